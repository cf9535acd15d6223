#include "msrl/agents/msrl/step_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kChangeLoss, kRewardLoss, kEndLoss };

constexpr int kContactSlot = kGeometrySize - 1;
constexpr int kGoalSlot = 2;
constexpr int kGoalSlots = 2;
// g, and g' without its contact, which is foretold
constexpr int kOutcomeGeometry = 2 * kGeometrySize - 1;
enum Outcome : Eigen::Index { kReward, kContact, kEnd, kOutcomes };

MlpSpec TwoLayers(int input, int width, int output, int members) {
  return {.input = input,
          .hidden = {width, width},
          .output = output,
          .activation = Activation::kSilu,
          .members = members};
}

float Sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

}  // namespace

Imagined::Imagined(int observation_size, int most)
    : observation(observation_size, most),
      geometry(kGeometrySize, most),
      reward(most),
      ends(most),
      doubt(most) {}

StepModel::StepModel(const EnvSpec& spec, const StepModelSettings& settings, int most,
                     std::uint64_t seed, bool goal_is_read)
    : settings_(RequireInRange(settings)),
      discrete_(spec.action.kind == ActionKind::kDiscrete),
      goal_is_read_(goal_is_read),
      origin_(spec.goal_origin),
      n_(spec.observation_size),
      m_(spec.action.size),
      input_rows_(n_ + kGeometrySize + m_),
      change_rows_(n_ + kGeometrySize),
      bound_(static_cast<float>(spec.geometry_bound)),
      change_spec_(TwoLayers(input_rows_, settings.width, change_rows_, settings.members)),
      outcome_spec_(TwoLayers(kOutcomeGeometry + m_, settings.width, kOutcomes, 1)),
      change_(change_spec_),
      outcome_(outcome_spec_),
      change_adam_(change_.parameter_count()),
      outcome_adam_(outcome_.parameter_count()),
      input_units_(input_rows_),
      change_units_(change_rows_),
      rng_(seed, "model"),
      metrics_({"model/change_loss", "model/reward_loss", "model/end_loss"}),
      change_tape_(change_spec_, settings.batch),
      outcome_tape_(outcome_spec_, settings.batch),
      change_gradients_(change_.parameter_count()),
      outcome_gradients_(outcome_.parameter_count()),
      input_(settings.members * input_rows_, settings.batch),
      target_(settings.members * change_rows_, settings.batch),
      d_change_(target_.rows(), settings.batch),
      outcome_input_(outcome_spec_.input, settings.batch),
      outcome_target_(kOutcomes, settings.batch),
      d_outcome_(kOutcomes, settings.batch),
      act_change_tape_(change_spec_, most),
      act_outcome_tape_(outcome_spec_, most),
      act_input_(input_rows_, most),
      act_outcome_input_(outcome_spec_.input, most),
      act_change_(change_rows_, most) {
  Rng init(seed, "model-init");
  change_.Init(init);
  outcome_.Init(init);
}

std::int64_t StepModel::parameter_count() const {
  return static_cast<std::int64_t>(change_.parameter_count() + outcome_.parameter_count());
}

// The transition in a column of the batch, in its own units.
void StepModel::Gather(const Replay& replay, Eigen::Index column, float* input,
                       float* change) const {
  const std::int64_t row = batch_.row[static_cast<std::size_t>(column)];
  const auto before = replay.geometry(row);
  const auto after = replay.geometry(row + 1);
  for (int i = 0; i < n_; ++i) {
    input[i] = batch_.observation(i, column);
    change[i] = batch_.next_observation(i, column) - input[i];
  }
  for (int i = 0; i < kGeometrySize; ++i) {
    const auto at = static_cast<std::size_t>(i);
    input[n_ + i] = static_cast<float>(before[at]);
    change[n_ + i] = static_cast<float>(after[at] - before[at]);
  }
  for (int i = 0; goal_is_read_ && i < kGoalSlots; ++i) {
    change[n_ - kGoalSlots + i] = change[n_ + kGoalSlot + i] = -change[n_ + origin_ + i];
  }
  float* const action = input + n_ + kGeometrySize;
  if (discrete_) {
    std::fill_n(action, m_, 0.0F);
    action[static_cast<int>(batch_.action(0, column))] = 1.0F;
  } else {
    for (int i = 0; i < m_; ++i) action[i] = std::clamp(batch_.action(i, column), -1.0F, 1.0F);
  }
}

void StepModel::FindUnits(const Replay& replay) {
  const auto count = static_cast<Eigen::Index>(replay.size());
  Eigen::MatrixXf inputs(input_rows_, count);
  Eigen::MatrixXf changes(change_rows_, count);
  Eigen::Index at = 0;
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (!replay.IsStep(row)) continue;
    replay.Read(row, 0, batch_);
    Gather(replay, 0, inputs.col(at).data(), changes.col(at).data());
    ++at;
  }
  const auto measure = [&](const Eigen::MatrixXf& samples, float least, Units& units) {
    units.mean = samples.rowwise().mean();
    units.spread = (samples.colwise() - units.mean).rowwise().squaredNorm() /
                   static_cast<float>(samples.cols());
    units.spread = units.spread.cwiseSqrt().cwiseMax(least);
  };
  measure(inputs, 1e-2F, input_units_);
  measure(changes, 1e-3F, change_units_);
}

// g' is given in finer units: small differences of where a step leads decide the reward.
void StepModel::FillOutcomeInput(const float* from, const float* to, const float* action,
                                 float* input) const {
  constexpr float kFiner = 3.0F;
  std::copy_n(from, kGeometrySize, input);
  for (int i = 0; i < kContactSlot; ++i) input[kGeometrySize + i] = kFiner * to[i];
  std::copy_n(action, m_, input + kOutcomeGeometry);
}

void StepModel::Update(const Replay& replay) {
  if (replay.size() == 0) return;
  if (batch_.size() != settings_.batch) batch_ = replay.MakeBatch(settings_.batch);
  int updates = settings_.updates;
  if (!ready_) {
    FindUnits(replay);
    updates += settings_.first_updates;
    ready_ = true;
  }
  for (int i = 0; i < updates; ++i) Learn(replay);
}

void StepModel::Learn(const Replay& replay) {
  const auto size = static_cast<float>(settings_.batch);
  for (int e = 0; e < settings_.members; ++e) {
    replay.Sample(rng_, batch_);
    for (Eigen::Index k = 0; k < settings_.batch; ++k) {
      float* const input = &input_(e * input_rows_, k);
      float* const change = &target_(e * change_rows_, k);
      Gather(replay, k, input, change);
      if (e == 0) {
        const float* const g = input + n_;
        const float* const dg = change + n_;
        std::array<float, kGeometrySize> reached;
        for (int i = 0; i < kGeometrySize; ++i) reached[static_cast<std::size_t>(i)] = g[i] + dg[i];
        FillOutcomeInput(g, reached.data(), g + kGeometrySize, outcome_input_.col(k).data());
        outcome_target_(kReward, k) = batch_.reward[k];
        outcome_target_(kContact, k) = reached[kContactSlot];
        outcome_target_(kEnd, k) = 1.0F - batch_.continues[k];
      }
    }
    input_units_.Apply(input_.middleRows(e * input_rows_, input_rows_));
    change_units_.Apply(target_.middleRows(e * change_rows_, change_rows_));
  }
  // L = sum over members of mean |f(x) - y|^2
  d_change_ = change_.Forward(input_, change_tape_) - target_;
  metrics_.Add(kChangeLoss, static_cast<double>(d_change_.squaredNorm()) /
                                static_cast<double>(d_change_.size()));
  d_change_ *= 2.0F / size;
  change_.Backward(d_change_, change_tape_, change_gradients_);
  RequireFiniteGradients("model", change_gradients_);
  change_adam_.Step(change_.parameters(), change_gradients_, settings_.learning_rate);
  LearnOutcome();
}

void StepModel::LearnOutcome() {
  const auto size = static_cast<float>(settings_.batch);
  const auto y = outcome_.Forward(outcome_input_, outcome_tape_);
  d_outcome_ = y - outcome_target_;
  metrics_.Add(kRewardLoss, static_cast<double>(d_outcome_.row(kReward).squaredNorm() / size));
  // of an end: cross-entropy of its logit
  double cross_entropy = 0.0;
  for (Eigen::Index k = 0; k < d_outcome_.cols(); ++k) {
    const float p = Sigmoid(y(kEnd, k));
    const float truth = outcome_target_(kEnd, k);
    cross_entropy -= std::log(static_cast<double>(truth > 0.5F ? p : 1.0F - p) + 1e-12);
    d_outcome_(kEnd, k) = 0.5F * (p - truth);
  }
  metrics_.Add(kEndLoss, cross_entropy / static_cast<double>(size));
  d_outcome_ *= 2.0F / size;
  outcome_.Backward(d_outcome_, outcome_tape_, outcome_gradients_);
  RequireFiniteGradients("model of outcomes", outcome_gradients_);
  outcome_adam_.Step(outcome_.parameters(), outcome_gradients_, settings_.learning_rate);
}

void StepModel::Advance(const ConstMatrixRef& action, Imagined& states) {
  MSRL_CHECK(ready_);
  const int count = states.count;
  const int members = settings_.members;
  auto input = act_input_.leftCols(count);
  input.topRows(n_) = states.observation.leftCols(count);
  input.middleRows(n_, kGeometrySize) = states.geometry.leftCols(count);
  input.bottomRows(m_) = action;
  input_units_.Apply(input);
  const auto predicted = change_.Forward(input, act_change_tape_);

  for (int k = 0; k < count; ++k) {
    // the members' mean, and how far they are from it where geometry is concerned
    auto mean = act_change_.col(k);
    mean = predicted.col(k).head(change_rows_);
    for (int e = 1; e < members; ++e) {
      mean += predicted.col(k).segment(e * change_rows_, change_rows_);
    }
    mean /= static_cast<float>(members);
    float spread = 0.0F;
    for (int e = 0; e < members; ++e) {
      spread += (predicted.col(k).segment(e * change_rows_ + n_, kGeometrySize) -
                 mean.tail(kGeometrySize))
                    .squaredNorm();
    }
    states.doubt[k] = std::sqrt(spread / static_cast<float>(members * kGeometrySize));
    mean = mean.cwiseMax(-kReach).cwiseMin(kReach).cwiseProduct(change_units_.spread) +
           change_units_.mean;

    states.observation.col(k) += mean.head(n_);
    auto g = states.geometry.col(k);
    std::array<float, kGeometrySize> reached;
    for (int i = 0; i < kGeometrySize; ++i) {
      reached[static_cast<std::size_t>(i)] = std::clamp(g[i] + mean[n_ + i], -bound_, bound_);
    }
    FillOutcomeInput(g.data(), reached.data(), action.col(k).data(),
                     act_outcome_input_.col(k).data());
    for (int i = 0; i < kContactSlot; ++i) g[i] = reached[static_cast<std::size_t>(i)];
  }
  const auto y = outcome_.Forward(act_outcome_input_.leftCols(count), act_outcome_tape_);
  for (int k = 0; k < count; ++k) {
    states.reward[k] = y(kReward, k);
    states.geometry(kContactSlot, k) = std::clamp(y(kContact, k), 0.0F, 1.0F);
    states.ends[k] = Sigmoid(y(kEnd, k));
  }
  RequireFinite("imagined reward", {states.reward.data(), static_cast<std::size_t>(count)});
  RequireFinite("imagined geometry",
                {states.geometry.data(), static_cast<std::size_t>(count) * kGeometrySize});
}

void StepModel::Visit(const Archive& state) {
  VisitNetwork(state.Child("change"), change_);
  VisitAdam(state.Child("change_adam"), change_adam_);
  VisitNetwork(state.Child("outcome"), outcome_);
  VisitAdam(state.Child("outcome_adam"), outcome_adam_);
  input_units_.Visit(state.Child("input_units"));
  change_units_.Visit(state.Child("change_units"));
  state.Random("random", rng_);
  state.Bool("ready", ready_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
