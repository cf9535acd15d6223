#include "msrl/agents/mbpo/ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kLoss, kEndLoss, kHoldoutError, kMinibatches };

// The paper's, of 1/2 |W|^2: 2.5e-5 for the first layer, then 5e-5 and 7.5e-5, 1e-4 for the last.
float DecayOf(std::size_t layer, std::size_t layers) {
  return layer + 1 == layers ? 1e-4F : 2.5e-5F * std::min(static_cast<float>(layer + 1), 3.0F);
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// The transition in a column of a batch.
void CopyInput(const ReplayBatch& batch, Eigen::Index column, Eigen::Ref<Eigen::VectorXf> x) {
  x << batch.observation.col(column), batch.action.col(column);
}

}  // namespace

void RequireValid(const EnsembleSettings& settings) {
  RequireInRange(settings);
  if (settings.elites > settings.members) {
    throw UserError(StrCat("model_elites is ", settings.elites, ", but there are only ",
                           settings.members, " members"));
  }
}

double BoundedLogVariance(double x, double low, double high) {
  return low + Softplus(high - Softplus(high - x) - low);
}

Ensemble::Ensemble(const EnvSpec& spec, const EnsembleSettings& settings,
                   std::int64_t most_transitions, int most_states, std::uint64_t seed)
    : settings_(settings),
      terminates_(spec.terminates),
      n_(spec.observation_size),
      m_(spec.action.size),
      outputs_(1 + n_),
      bound_(static_cast<float>(spec.observation_bound)),
      spec_{.input = n_ + m_,
            .hidden = HiddenLayers(settings.layers, settings.width),
            .output = 2 * outputs_ + (learns_ends() ? 1 : 0),
            .activation = Activation::kSilu,
            .members = settings.members},
      units_(n_ + m_),
      rng_(seed, "model"),
      metrics_({"loss/model", "loss/end", "model/holdout_error", "model/minibatches"}),
      errors_(static_cast<std::size_t>(settings.members)),
      best_errors_(errors_.size()),
      mean_(n_ + m_),
      variance_(n_ + m_),
      tape_(spec_, kChunk),
      input_(n_ + m_, kChunk),
      noise_(outputs_, kChunk),
      chosen_(static_cast<std::size_t>(most_states)),
      imagined_(static_cast<std::size_t>(n_)) {
  RequireValid(settings);
  MSRL_CHECK(spec.action.kind == ActionKind::kContinuous);
  Rng init(seed, "model-init");
  network_ = AddMlp(parameters_, "network", spec_, init);
  member_size_ = network_.function->parameter_count() / static_cast<std::size_t>(settings.members);
  for (std::size_t i = 0; i < network_.function->tensors().size(); i += 2) {
    const Parameter weight{&parameters_, network_.index + i};
    InitTruncatedNormal(weight, 0.5 / std::sqrt(weight.tensor().columns), init);
    InitConstant({&parameters_, network_.index + i + 1}, 0.0);  // the bias
  }
  lv_low_ = parameters_.Add("log_variance.low", outputs_, 1);
  lv_high_ = parameters_.Add("log_variance.high", outputs_, 1);
  InitConstant(lv_low_, -10.0);
  InitConstant(lv_high_, 0.5);
  BuildLoss();

  elites_.resize(static_cast<std::size_t>(settings.elites));
  std::iota(elites_.begin(), elites_.end(), 0);
  best_.resize(network_.function->parameter_count());
  asked_.reserve(kChunk);
  rows_.Allocate(1, most_transitions);
  samples_.Allocate(settings.members, most_transitions);
}

// L = sum over members of mean[(mu - y)^2 exp(-lv)] + mean[lv]
//     + 0.01 (sum lv_high - sum lv_low), and the cross-entropy of ends where they are learned
void Ensemble::BuildLoss() {
  const int members = settings_.members;
  const auto each = static_cast<float>(members);
  x_ = graph_.Input(members * spec_.input, settings_.batch);
  y_ = graph_.Input(members * outputs_, settings_.batch);
  const Node out = graph_.Mlp(x_, network_);
  const Node low = graph_.Param(lv_low_);
  const Node high = graph_.Param(lv_high_);
  std::vector<Node> means;
  std::vector<Node> variances;
  std::vector<Node> logits;
  for (int e = 0; e < members; ++e) {
    const int first = e * spec_.output;
    means.push_back(graph_.SliceRows(out, first, outputs_));
    variances.push_back(graph_.SliceRows(out, first + outputs_, outputs_));
    if (learns_ends()) logits.push_back(graph_.SliceRows(out, first + 2 * outputs_, 1));
  }
  // all members in one matrix, and so are the bounds that they share
  const Node mu = graph_.ConcatRows(means);
  const std::vector<Node> lows(means.size(), low);
  const std::vector<Node> highs(means.size(), high);
  const Node all_low = graph_.ConcatRows(lows);
  const Node all_high = graph_.ConcatRows(highs);
  Node lv = graph_.ConcatRows(variances);
  lv = graph_.Subtract(all_high, graph_.Softplus(graph_.Subtract(all_high, lv)));
  lv = graph_.Add(all_low, graph_.Softplus(graph_.Subtract(lv, all_low)));

  const Node error = graph_.Square(graph_.Subtract(mu, y_));
  const Node precision = graph_.Exp(graph_.Scale(lv, -1.0F));
  likelihood_ = graph_.Mean(graph_.Add(graph_.Multiply(error, precision), lv));
  const Node width = graph_.Subtract(graph_.Sum(high), graph_.Sum(low));
  loss_ = graph_.Add(graph_.Scale(likelihood_, each),
                     graph_.Scale(width, static_cast<float>(kBoundWeight)));
  if (learns_ends()) {
    ends_ = graph_.Input(members, settings_.batch);
    const Node logit = graph_.ConcatRows(logits);
    cross_entropy_ =
        graph_.Mean(graph_.Subtract(graph_.Softplus(logit), graph_.Multiply(ends_, logit)));
    loss_ = graph_.Add(loss_, graph_.Scale(cross_entropy_, each));
  }
  graph_.Finish();
}

void Ensemble::UpdateOn(std::span<const ReplayBatch> batches) {
  MSRL_CHECK_EQ(std::ssize(batches), settings_.members);
  for (int e = 0; e < settings_.members; ++e) {
    const ReplayBatch& batch = batches[static_cast<std::size_t>(e)];
    MSRL_CHECK_EQ(batch.size(), settings_.batch);
    auto x = graph_.input(x_).middleRows(e * spec_.input, spec_.input);
    x.topRows(n_) = batch.observation;
    x.bottomRows(m_) = batch.action;
    units_.Apply(x);
    auto y = graph_.input(y_).middleRows(e * outputs_, outputs_);
    y.row(0) = batch.reward;
    y.bottomRows(n_) = batch.next_observation - batch.observation;
    if (learns_ends()) graph_.input(ends_).row(e) = 1.0F - batch.continues.array();
  }
  graph_.Forward();
  const double loss = static_cast<double>(graph_.value(loss_)(0, 0));
  RequireFinite("model loss", std::span(&loss, 1));
  metrics_.Add(kLoss, static_cast<double>(graph_.value(likelihood_)(0, 0)));
  if (learns_ends()) {
    metrics_.Add(kEndLoss, static_cast<double>(graph_.value(cross_entropy_)(0, 0)));
  }
  parameters_.ClearGradients();
  graph_.Backward(loss_);
  AddDecay();
  RequireFiniteGradients("model", parameters_.gradients());
  parameters_.Step(settings_.learning_rate);
}

// L += sum over layers of c / 2 |W|^2
void Ensemble::AddDecay() {
  const auto factor = static_cast<float>(settings_.decay);
  const std::size_t layers = spec_.hidden.size() + 1;
  for (std::size_t i = 0; i < network_.function->tensors().size(); i += 2) {
    const Parameter weight{&parameters_, network_.index + i};
    weight.gradient() += factor * DecayOf(i / 2 % layers, layers) * weight.value();
  }
}

void Ensemble::Train(const Replay& replay) {
  if (batches_.empty()) {
    batches_.assign(static_cast<std::size_t>(settings_.members), replay.MakeBatch(settings_.batch));
  }
  Split(replay);
  FindUnits(replay);
  const std::int64_t count = std::ssize(trained_);
  const auto sample_of = [&](int e) {
    return samples_.Row(e).first(static_cast<std::size_t>(count));
  };
  for (int e = 0; e < settings_.members; ++e) {
    for (std::int64_t& row : sample_of(e)) {
      row = trained_[static_cast<std::size_t>(rng_.Index(count))];
    }
  }
  std::ranges::fill(best_errors_, std::numeric_limits<double>::infinity());
  std::int64_t left = settings_.minibatches;
  for (int idle = 0; idle <= settings_.patience && left > 0;) {
    for (int e = 0; e < settings_.members; ++e) Shuffle(rng_, sample_of(e));
    for (std::int64_t first = 0; first < count && left > 0; first += settings_.batch, --left) {
      for (int e = 0; e < settings_.members; ++e) {
        const auto sample = sample_of(e);
        for (Eigen::Index k = 0; k < settings_.batch; ++k) {
          // the last batch of an epoch is filled up from its beginning
          replay.Read(sample[static_cast<std::size_t>((first + k) % count)], k,
                      batches_[static_cast<std::size_t>(e)]);
        }
      }
      UpdateOn(batches_);
    }
    MeasureErrors(replay);
    idle = KeepBest() ? 0 : idle + 1;
  }
  TakeBest();
  metrics_.Add(kMinibatches, static_cast<double>(settings_.minibatches - left));
}

void Ensemble::Split(const Replay& replay) {
  const auto all = rows_.Row(0).first(static_cast<std::size_t>(replay.size()));
  std::size_t found = 0;
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (replay.IsStep(row)) all[found++] = row;
  }
  MSRL_CHECK_EQ(found, all.size());
  MSRL_CHECK_GT(found, 0U);
  const auto held_out =
      static_cast<std::size_t>(std::min(settings_.holdout, replay.size() / kHoldoutShare));
  for (std::size_t i = 0; i < held_out; ++i) {
    std::swap(all[i], all[i + static_cast<std::size_t>(
                                  rng_.Index(std::ssize(all) - static_cast<std::int64_t>(i)))]);
  }
  trained_ = all.subspan(held_out);
  // of very few transitions one is for both
  held_out_ = all.first(std::max<std::size_t>(held_out, 1));
}

void Ensemble::FindUnits(const Replay& replay) {
  const auto count = static_cast<double>(trained_.size());
  auto x = input_.col(0);
  const auto for_all = [&](const auto& add) {
    for (const std::int64_t row : trained_) {
      replay.Read(row, 0, batches_[0]);
      CopyInput(batches_[0], 0, x);
      add();
    }
  };
  mean_.setZero();
  for_all([&] { mean_ += x.cast<double>(); });
  mean_ /= count;
  variance_.setZero();
  for_all([&] { variance_ += (x.cast<double>() - mean_).cwiseAbs2(); });
  variance_ /= count;
  units_.mean = mean_.cast<float>();
  // what never changes has no unit
  for (Eigen::Index i = 0; i < variance_.size(); ++i) {
    units_.spread[i] = variance_[i] < 1e-12 ? 1.0F : static_cast<float>(std::sqrt(variance_[i]));
  }
}

void Ensemble::MeasureErrors(const Replay& replay) {
  std::ranges::fill(errors_, 0.0);
  const std::int64_t count = std::ssize(held_out_);
  const std::int64_t most = std::min<std::int64_t>(kChunk, settings_.batch);
  ReplayBatch& batch = batches_[0];
  for (std::int64_t first = 0; first < count; first += most) {
    const Eigen::Index size = std::min(most, count - first);
    auto x = input_.leftCols(size);
    for (Eigen::Index k = 0; k < size; ++k) {
      replay.Read(held_out_[static_cast<std::size_t>(first + k)], k, batch);
      CopyInput(batch, k, x.col(k));
    }
    units_.Apply(x);
    const auto out = network_.function->Forward(NetworkValues(), x, tape_,
                                                {.first = 0, .count = settings_.members});
    for (int e = 0; e < settings_.members; ++e) {
      const auto mu = out.middleRows(e * spec_.output, outputs_);
      double error =
          static_cast<double>((mu.row(0) - batch.reward.head(size)).squaredNorm()) +
          static_cast<double>((mu.bottomRows(n_) - batch.next_observation.leftCols(size) +
                               batch.observation.leftCols(size))
                                  .squaredNorm());
      for (Eigen::Index k = 0; learns_ends() && k < size; ++k) {
        const double p = Sigmoid(out(e * spec_.output + 2 * outputs_, k));
        error += std::pow(p - (1.0 - static_cast<double>(batch.continues[k])), 2);
      }
      const std::int64_t entries = outputs_ + (learns_ends() ? 1 : 0);
      errors_[static_cast<std::size_t>(e)] += error / static_cast<double>(count * entries);
    }
  }
  RequireFinite("model hold-out error", errors_);
}

bool Ensemble::KeepBest() {
  bool better = false;
  for (int e = 0; e < settings_.members; ++e) {
    const auto i = static_cast<std::size_t>(e);
    const double best = best_errors_[i];
    if (!std::isinf(best) && best - errors_[i] <= kImprovement * best) continue;
    best_errors_[i] = errors_[i];
    std::ranges::copy(MemberValues(e),
                      best_.begin() + static_cast<std::ptrdiff_t>(i * member_size_));
    better = true;
  }
  return better;
}

void Ensemble::TakeBest() {
  std::ranges::copy(best_, MemberValues(0).begin());
  // the first so many of all, in the order of their errors
  for (std::int64_t rank = 0; rank < std::ssize(elites_); ++rank) {
    const auto best = std::ranges::min_element(best_errors_);
    elites_[static_cast<std::size_t>(rank)] = best - best_errors_.begin();
    metrics_.Add(kHoldoutError, *best);
    *best = std::numeric_limits<double>::infinity();
  }
}

void Ensemble::Advance(const ConstMatrixRef& observation, const ConstMatrixRef& action, Rng& rng,
                       MatrixRef next, std::span<float> reward,
                       std::span<std::uint8_t> terminated) {
  const auto count = static_cast<std::size_t>(observation.cols());
  MSRL_CHECK_LE(count, chosen_.size());
  for (std::size_t i = 0; i < count; ++i) {
    chosen_[i] = elites_[static_cast<std::size_t>(rng.Index(std::ssize(elites_)))];
  }
  // those that ask the same member are asked together
  for (const std::int64_t member : elites_) {
    const auto ask = [&] {
      AdvanceBy(static_cast<int>(member), observation, action, rng, next, reward, terminated);
      asked_.clear();
    };
    for (std::size_t i = 0; i < count; ++i) {
      if (chosen_[i] != member) continue;
      asked_.push_back(static_cast<Eigen::Index>(i));
      if (asked_.size() == kChunk) ask();
    }
    if (!asked_.empty()) ask();
  }
}

void Ensemble::AdvanceBy(int member, const ConstMatrixRef& observation,
                         const ConstMatrixRef& action, Rng& rng, MatrixRef next,
                         std::span<float> reward, std::span<std::uint8_t> terminated) {
  const auto count = static_cast<Eigen::Index>(asked_.size());
  auto x = input_.leftCols(count);
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index i = asked_[static_cast<std::size_t>(k)];
    x.col(k) << observation.col(i), action.col(i);
  }
  units_.Apply(x);
  const auto out =
      network_.function->Forward(NetworkValues(), x, tape_, {.first = member, .count = 1});
  RequireFinite("imagined step", {out.data(), static_cast<std::size_t>(out.size())});
  FillNormal(rng, Flat(noise_));
  const auto low = lv_low_.value();
  const auto high = lv_high_.value();
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index i = asked_[static_cast<std::size_t>(k)];
    const auto sample = [&](Eigen::Index row) {
      const double lv = BoundedLogVariance(out(outputs_ + row, k), low(row, 0), high(row, 0));
      return out(row, k) + static_cast<float>(std::exp(0.5 * lv)) * noise_(row, k);
    };
    reward[static_cast<std::size_t>(i)] = sample(0);
    for (Eigen::Index row = 0; row < n_; ++row) {
      const float o = observation(row, i) + sample(1 + row);
      next(row, i) = std::clamp(o, -bound_, bound_);
      imagined_[static_cast<std::size_t>(row)] = next(row, i);
    }
    const bool ends =
        learns_ends() ? rng.Bernoulli(Sigmoid(out(2 * outputs_, k))) : terminates_(imagined_);
    terminated[static_cast<std::size_t>(i)] = ends ? 1 : 0;
  }
}

void Ensemble::Visit(const Archive& state) {
  VisitParameters(state.Child("ensemble"), parameters_);
  units_.Visit(state.Child("units"));
  state.Array("elites", elites_);
  for (const std::int64_t member : elites_) {
    if (member < 0 || member >= settings_.members) state.Fail("elites", "are no members");
  }
  state.Random("random", rng_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
