#include "msrl/agents/msrl/obstruction_proxy.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/common/off_policy.h"
#include "msrl/core/check.h"
#include "msrl/core/statistics.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kLoss, kRemoved };

constexpr int kPredictChunk = 64;
// Gaps at the junction matter when they are about a tolerance; features have three times the state.
constexpr float kGapGain = 4.0F;
// Weight of the belief that half of the candidates are obstructed, in judged candidates.
constexpr double kPriorCount = 20.0;

const ObstructionConfig& Checked(const ObstructionConfig& config) {
  RequireInRange(config);
  if (config.memory / 4 < config.min_each) {
    throw UserError(StrCat("setting 'obstruction_memory' must be at least four times ",
                           "'obstruction_min_each', got ", config.memory, " and ",
                           config.min_each));
  }
  return config;
}

MlpSpec NetworkSpec(int input, const ObstructionConfig& config) {
  MlpSpec spec;
  spec.input = input;
  spec.hidden = HiddenLayers(config.layers, config.width);
  spec.output = 1;
  return spec;
}

std::span<const float> AsSpan(const Eigen::Ref<const Eigen::VectorXf>& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

float Sigmoid(float logit) { return 1.0F / (1.0F + std::exp(-logit)); }

// log(1 + exp(x)) without overflow
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace

bool OutcomeDiffers(std::span<const double> real, std::span<const double> foretold,
                    double tolerance) {
  MSRL_CHECK_EQ(real.size(), foretold.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    if (!(std::abs(real[i] - foretold[i]) <= tolerance)) return true;
  }
  return false;
}

ObstructionProxy::Junction ObstructionProxy::JunctionOf(const MatrixFeatures& features) {
  // where a segment begins is not among the features of the state alone
  if (features.options().only_state) return {};
  const int slots = features.last_state_end() - features.last_state_begin();
  const int first = features.last_state_begin() - slots;
  return {.horizon = first - 1, .first = first, .last = first + slots, .slots = slots};
}

ObstructionProxy::ObstructionProxy(int observation_size, const MatrixFeatures& features,
                                   const ObstructionConfig& config, std::uint64_t seed)
    : ObstructionProxy(observation_size, features.size(), JunctionOf(features), config, seed) {}

ObstructionProxy::ObstructionProxy(int observation_size, int feature_size,
                                   const ObstructionConfig& config, std::uint64_t seed)
    : ObstructionProxy(observation_size, feature_size, Junction{}, config, seed) {}

ObstructionProxy::ObstructionProxy(int observation_size, int feature_size, const Junction& junction,
                                   const ObstructionConfig& config, std::uint64_t seed)
    : config_(Checked(config)),
      n_(observation_size),
      f_(feature_size),
      junction_(junction),
      spec_(NetworkSpec(2 * (n_ + f_) + junction.size(), config)),
      network_(spec_),
      adam_(network_.parameter_count(), {.weight_decay = config.weight_decay}),
      rng_(seed, "obstruction-replay"),
      normalizer_(n_),
      judged_probability_(kWindow),
      judged_obstructed_(kWindow),
      metrics_({"obstruction/loss", "obstruction/removed"}),
      tape_(spec_, config.batch),
      predict_tape_(spec_, kPredictChunk),
      input_(spec_.input, config.batch),
      predict_input_(spec_.input, kPredictChunk),
      d_logit_(1, config.batch),
      gradients_(network_.parameter_count()) {
  Rng init(seed, "obstruction-init");
  // an untrained proxy has no opinion
  network_.Init(init, {.last_scale = 0.01});
  const Eigen::Index rows = 2 * Eigen::Index{n_ + f_};
  rings_[kObstructed].examples.resize(rows, config.memory / 2);
  rings_[kRealized].examples.resize(rows, config.memory / 4);
  rings_[kReal].examples.resize(rows, config.memory / 4);
}

std::int64_t ObstructionProxy::parameter_count() const {
  return static_cast<std::int64_t>(network_.parameter_count());
}

double ObstructionProxy::base_rate() const {
  return (judged_positives_ + 0.5 * kPriorCount) / (judged_ + kPriorCount);
}

float ObstructionProxy::BaseRateLogit() const {
  const double rate = base_rate();
  return static_cast<float>(std::log(rate / (1.0 - rate)));
}

void ObstructionProxy::FillJunction(Eigen::Ref<Eigen::VectorXf> input) const {
  if (junction_.slots == 0) return;
  const Eigen::Index z = 2 * n_;
  auto gap = input.segment(z + 2 * f_, junction_.slots);
  float& distance = input[z + 2 * f_ + junction_.slots];
  if (input[z + junction_.horizon] == 0.0F) {
    gap.setZero();
    distance = 0.0F;
    return;
  }
  gap = (input.segment(z + f_ + junction_.first, junction_.slots) -
         input.segment(z + junction_.last, junction_.slots))
            .cwiseAbs();
  distance = std::log1p(kGapGain * gap.norm());
  gap = (1.0F + kGapGain * gap.array()).log().matrix();
}

void ObstructionProxy::Predict(const ConstVectorRef& o, const ConstVectorRef& z,
                               const ConstMatrixRef& tail_observations,
                               const ConstMatrixRef& segment_features,
                               std::span<float> probability) {
  const Eigen::Index count = tail_observations.cols();
  MSRL_CHECK_EQ(o.size(), n_);
  MSRL_CHECK_EQ(z.size(), f_);
  MSRL_CHECK_EQ(tail_observations.rows(), n_);
  MSRL_CHECK_EQ(segment_features.rows(), f_);
  MSRL_CHECK_EQ(segment_features.cols(), count);
  MSRL_CHECK_EQ(std::ssize(probability), count);
  const float base = BaseRateLogit();
  for (Eigen::Index start = 0; start < count; start += kPredictChunk) {
    const Eigen::Index k = std::min<Eigen::Index>(kPredictChunk, count - start);
    auto input = predict_input_.leftCols(k);
    normalizer_.Normalize(o, input.block(0, 0, n_, 1));
    for (Eigen::Index i = 1; i < k; ++i) input.col(i).head(n_) = input.col(0).head(n_);
    normalizer_.Normalize(tail_observations.middleCols(start, k), input.middleRows(n_, n_));
    input.middleRows(2 * n_, f_).colwise() = z;
    input.middleRows(2 * n_ + f_, f_) = segment_features.middleCols(start, k);
    for (Eigen::Index i = 0; i < k; ++i) FillJunction(input.col(i));
    const auto logit = network_.Forward(input, predict_tape_);
    for (Eigen::Index i = 0; i < k; ++i) {
      probability[static_cast<std::size_t>(start + i)] = Sigmoid(logit(0, i) + base);
    }
  }
  RequireFinite("obstruction probability", probability);
}

void ObstructionProxy::CountFiltered(std::span<const float> probability) {
  for (const float p : probability) metrics_.Add(kRemoved, Keeps(p) ? 0.0 : 1.0);
}

void ObstructionProxy::Add(const ConstVectorRef& o, const ConstVectorRef& z,
                           const ConstVectorRef& tail, const ConstVectorRef& segment,
                           bool obstructed, std::optional<float> predicted) {
  MSRL_CHECK_EQ(o.size(), n_);
  MSRL_CHECK_EQ(z.size(), f_);
  MSRL_CHECK_EQ(tail.size(), n_);
  MSRL_CHECK_EQ(segment.size(), f_);
  RequireFinite("observation of a composition", AsSpan(o));
  RequireFinite("matrix features of a composition", AsSpan(z));
  RequireFinite("tail observation of a composition", AsSpan(tail));
  RequireFinite("segment features of a composition", AsSpan(segment));
  normalizer_.Update(o);
  normalizer_.Update(tail);
  Ring& ring = rings_[obstructed ? kObstructed : predicted ? kRealized : kReal];
  auto example = ring.examples.col(ring.next);
  example.head(n_) = o;
  example.segment(n_, n_) = tail;
  example.segment(2 * n_, f_) = z;
  example.tail(f_) = segment;
  const auto capacity = static_cast<int>(ring.examples.cols());
  ring.next = (ring.next + 1) % capacity;
  ring.size = std::min(ring.size + 1, capacity);
  if (predicted) Judge(*predicted, obstructed);
}

void ObstructionProxy::Judge(float predicted, bool obstructed) {
  MSRL_CHECK(predicted >= 0.0F && predicted <= 1.0F, "probability ", predicted);
  const auto at = static_cast<std::size_t>(next_judged_);
  if (judged_ == kWindow) judged_positives_ -= judged_obstructed_[at];
  judged_probability_[at] = predicted;
  judged_obstructed_[at] = obstructed ? 1 : 0;
  judged_positives_ += judged_obstructed_[at];
  next_judged_ = (next_judged_ + 1) % kWindow;
  judged_ = std::min(judged_ + 1, kWindow);
}

void ObstructionProxy::Update() {
  ++steps_;
  if (steps_ % config_.update_every == 0 && CanLearn()) LearnOnce();
}

const ObstructionProxy::Ring& ObstructionProxy::DrawRing(bool obstructed) {
  if (obstructed) return rings_[kObstructed];
  const bool both = rings_[kRealized].size > 0 && rings_[kReal].size > 0;
  if (both) return rings_[rng_.Bernoulli(0.5) ? kRealized : kReal];
  return rings_[rings_[kRealized].size > 0 ? kRealized : kReal];
}

void ObstructionProxy::LearnOnce() {
  // half of the batch from each class
  const int positives = config_.batch / 2;
  for (int b = 0; b < config_.batch; ++b) {
    const Ring& ring = DrawRing(b < positives);
    input_.col(b).head(2 * (n_ + f_)) = ring.examples.col(rng_.Index(ring.size));
    FillJunction(input_.col(b));
  }
  normalizer_.Normalize(input_.topRows(n_), input_.topRows(n_));
  normalizer_.Normalize(input_.middleRows(n_, n_), input_.middleRows(n_, n_));

  // L = mean (log(1 + e^l) - y l),  dL/dl = sigmoid(l) - y
  const auto logit = network_.Forward(input_, tape_);
  double loss = 0.0;
  for (int b = 0; b < config_.batch; ++b) {
    const float l = logit(0, b);
    const float y = b < positives ? 1.0F : 0.0F;
    loss += Softplus(l) - static_cast<double>(y * l);
    d_logit_(0, b) = (Sigmoid(l) - y) / static_cast<float>(config_.batch);
  }
  loss /= config_.batch;
  RequireFinite("obstruction loss", std::span(&loss, 1));
  metrics_.Add(kLoss, loss);
  network_.Backward(d_logit_, tape_, gradients_);
  RequireFiniteGradients("obstruction", gradients_);
  adam_.Step(network_.parameters(), gradients_, config_.learning_rate);
  ++updates_;
}

void ObstructionProxy::DrainMetrics(MetricSink& sink) {
  metrics_.Drain(sink);
  if (judged_positives_ == 0 || judged_positives_ == judged_) return;
  const auto count = static_cast<std::size_t>(judged_);
  const auto probability = std::span(judged_probability_).first(count);
  const auto obstructed = std::span(judged_obstructed_).first(count);
  std::vector<double> positives, negatives;
  for (std::size_t i = 0; i < count; ++i) {
    (obstructed[i] != 0 ? positives : negatives).push_back(probability[i]);
  }
  sink.Add("obstruction/auroc", Auroc(positives, negatives));
  sink.Add("obstruction/ece", ExpectedCalibrationError(probability, obstructed));
  sink.Add("obstruction/brier", BrierScore(probability, obstructed));
  sink.Add("obstruction/base_rate", static_cast<double>(judged_positives_) / judged_);
}

void ObstructionProxy::Visit(const Archive& state) {
  // a ring that is not full has never come round
  const auto next = [](const Archive& where, const char* name, int& place, int size, int capacity) {
    const bool full = size == capacity;
    where.Int(name, place, full ? 0 : size, full ? capacity - 1 : size);
  };
  VisitNetwork(state.Child("network"), network_);
  VisitAdam(state.Child("adam"), adam_);
  state.Random("random", rng_);
  state.Packed("normalizer", normalizer_);
  constexpr std::array kNames{"obstructed", "realized", "real"};
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Archive child = state.Child(kNames[kind]);
    Ring& ring = rings_[kind];
    const auto capacity = static_cast<int>(ring.examples.cols());
    child.Int("size", ring.size, 0, capacity);
    next(child, "next", ring.next, ring.size, capacity);
    const auto values =
        Flat(ring.examples).first(static_cast<std::size_t>(ring.size * ring.examples.rows()));
    child.Array("examples", values, {ring.size, ring.examples.rows()});
    if (state.loading() && !std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
      child.Fail("examples", "holds a number that is not finite");
    }
  }
  state.Int("steps", steps_);
  state.Int("updates", updates_);
  state.Int("judged", judged_, 0, kWindow);
  next(state, "next_judged", next_judged_, judged_, kWindow);
  state.Array("judged_probability", judged_probability_);
  state.Array("judged_obstructed", judged_obstructed_);
  metrics_.Visit(state.Child("metrics"));
  if (!state.loading()) return;
  judged_positives_ = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(judged_); ++i) {
    if (!(judged_probability_[i] >= 0.0 && judged_probability_[i] <= 1.0)) {
      state.Fail("judged_probability", "holds something that is no probability");
    }
    if (judged_obstructed_[i] > 1) {
      state.Fail("judged_obstructed", "holds something else than 0 and 1");
    }
    judged_positives_ += judged_obstructed_[i];
  }
}

}  // namespace msrl
