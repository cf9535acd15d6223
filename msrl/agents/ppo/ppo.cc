#include "msrl/agents/ppo/ppo.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "msrl/agents/common/off_policy.h"
#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kActorLoss, kValueLoss, kEntropy, kKl, kClipped };

constexpr double kAdamEpsilon = 1e-5;
constexpr double kNormalizerClip = 10.0;

const PpoConfig& Checked(const PpoConfig& config) {
  RequireInRange(config);
  if (config.rollout_steps % config.minibatch_size != 0) {
    throw UserError(StrCat("setting 'minibatch_size' must divide 'rollout_steps', got ",
                           config.minibatch_size, " and ", config.rollout_steps));
  }
  return config;
}

AdamOptions MakeAdamOptions() { return {.epsilon = kAdamEpsilon}; }

}  // namespace

void GeneralizedAdvantages(std::span<const float> rewards, std::span<const float> values,
                           std::span<const float> next_values,
                           std::span<const std::uint8_t> terminated,
                           std::span<const std::uint8_t> ended, double gamma, double lambda,
                           std::span<float> advantages) {
  double next = 0.0;
  for (std::size_t t = rewards.size(); t-- > 0;) {
    const double live = terminated[t] != 0 ? 0.0 : 1.0;
    const double same_episode = ended[t] != 0 ? 0.0 : 1.0;
    const double delta = rewards[t] + gamma * live * next_values[t] - values[t];
    next = delta + gamma * lambda * same_episode * next;
    advantages[t] = static_cast<float>(next);
  }
}

Ppo::Ppo(const EnvSpec& spec, const PpoConfig& config, std::uint64_t seed)
    : config_(Checked(config)),
      action_spec_(spec.action),
      shuffle_rng_(seed, "shuffle"),
      actor_spec_{.input = spec.observation_size,
                  .hidden = HiddenLayers(config.hidden_layers, config.hidden_width),
                  .output = spec.action.size,
                  .activation = Activation::kTanh},
      critic_spec_{.input = spec.observation_size,
                   .hidden = actor_spec_.hidden,
                   .output = 1,
                   .activation = Activation::kTanh},
      actor_(actor_spec_),
      critic_(critic_spec_),
      log_std_(spec.action.kind == ActionKind::kDiscrete
                   ? std::size_t{0}
                   : static_cast<std::size_t>(spec.action.size)),
      actor_adam_(actor_.parameter_count(), MakeAdamOptions()),
      log_std_adam_(log_std_.size(), MakeAdamOptions()),
      critic_adam_(critic_.parameter_count(), MakeAdamOptions()),
      observation_statistics_(spec.observation_size, kNormalizerClip),
      return_statistics_(1, kNormalizerClip),
      observations_(spec.observation_size, config.rollout_steps),
      next_observations_(spec.observation_size, config.rollout_steps),
      actions_(spec.action.kind == ActionKind::kDiscrete ? 1 : spec.action.size,
               config.rollout_steps),
      rewards_(static_cast<std::size_t>(config.rollout_steps)),
      log_prob_(rewards_.size()),
      terminated_(rewards_.size()),
      ended_(rewards_.size()),
      act_tape_(actor_spec_, kMaxTurns),
      actor_tape_(actor_spec_, config.minibatch_size),
      critic_tape_(critic_spec_, config.minibatch_size),
      value_tape_(critic_spec_, config.rollout_steps),
      head_(spec.action),
      actor_gradients_(actor_.parameter_count()),
      critic_gradients_(critic_.parameter_count()),
      log_std_gradients_(log_std_.size()),
      values_(rewards_.size()),
      next_values_(rewards_.size()),
      advantages_(rewards_.size()),
      order_(rewards_.size()),
      act_observation_(spec.observation_size, kMaxTurns),
      act_action_(actions_.rows(), kMaxTurns),
      batch_observation_(spec.observation_size, config.minibatch_size),
      batch_action_(actions_.rows(), config.minibatch_size),
      d_head_(spec.action.size, config.minibatch_size),
      d_value_(1, config.minibatch_size),
      batch_log_prob_(static_cast<std::size_t>(config.minibatch_size)),
      batch_advantage_(batch_log_prob_.size()),
      d_log_prob_(batch_log_prob_.size()),
      metrics_({"loss/actor", "loss/value", "policy/entropy", "policy/kl", "policy/clipped"}) {
  Rng init(seed, "init");
  actor_.Init(init, {.kind = InitKind::kOrthogonal, .last_scale = 0.01});
  critic_.Init(
      init, {.kind = InitKind::kOrthogonal, .last_scale = 1.0, .last_bias = config.initial_value});
  observations_.setZero();
  next_observations_.setZero();
  actions_.setZero();
}

std::int64_t Ppo::parameter_count() const {
  return static_cast<std::int64_t>(actor_.parameter_count() + critic_.parameter_count() +
                                   log_std_.size());
}

void Ppo::Normalize(const ConstMatrixRef& observations, MatrixRef out) const {
  if (config_.normalize_observations) {
    observation_statistics_.Normalize(observations, out);
  } else {
    out = observations;
  }
}

std::unique_ptr<Carry> Ppo::MakeCarry() const {
  return std::make_unique<Course>(observations_.rows(), actions_.rows());
}

void Ppo::Course::Visit(const Archive& state) {
  if (!state.Has("running_return")) {
    state.Fail("running_return", "is missing: finish this run with the msrl that began it");
  }
  state.Double("running_return", running_return);
}

void Ppo::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  const bool explores = mode == ActMode::kExplore;
  const auto count = static_cast<Eigen::Index>(turns.size());
  const auto observations = CopyObservations(turns, act_observation_);
  for (Eigen::Index i = 0; i < count; ++i) {
    RequireFinite("observation",
                  ColumnSpan(act_observation_, static_cast<std::size_t>(i)));  // as float
    if (explores && config_.normalize_observations) {
      observation_statistics_.Update(act_observation_.col(i));
    }
    Normalize(act_observation_.col(i), act_observation_.col(i));
  }
  const auto head = actor_.Forward(observations, act_tape_);
  if (!explores) head_.Mode(head, act_action_.leftCols(count));
  for (Eigen::Index i = 0; i < count; ++i) {
    const Turn& turn = turns[static_cast<std::size_t>(i)];
    if (explores) {
      auto& course = CarryAs<Course>(turn.carry);
      head_.Sample(head.col(i), log_std_, turn.rng, course.chosen);
      head_.LogProb(head.col(i), log_std_, course.chosen, {&course.log_prob, 1});
      course.observation = act_observation_.col(i);
      act_action_.col(i) = course.chosen;
    }
    if (action_spec_.kind == ActionKind::kDiscrete) {
      turn.out.set_index(static_cast<int>(act_action_(0, i)));
      continue;
    }
    // the sample is unbounded; the environment gets it clipped
    std::ranges::transform(
        ColumnSpan(act_action_, static_cast<std::size_t>(i)), turn.out.values().begin(),
        [](float value) { return std::clamp(static_cast<double>(value), -1.0, 1.0); });
    RequireFinite("action", turn.out.values());
  }
}

float Ppo::ScaledReward(const Experience& experience, double& running_return) {
  if (!config_.normalize_rewards) return static_cast<float>(experience.scaled_reward);
  running_return = config_.gamma * running_return + experience.scaled_reward;
  Eigen::Matrix<float, 1, 1> value(static_cast<float>(running_return));
  RequireFinite("running return", std::span(value.data(), 1));
  return_statistics_.Update(value);
  Eigen::Matrix<float, 1, 1> reward(static_cast<float>(experience.scaled_reward));
  return_statistics_.Scale(reward, reward);
  return reward[0];
}

void Ppo::Observe(const Experience& experience, Carry& carry) {
  MSRL_CHECK_LT(filled_, config_.rollout_steps);
  auto& course = CarryAs<Course>(carry);
  const auto t = static_cast<std::size_t>(filled_);
  observations_.col(filled_) = course.observation;
  actions_.col(filled_) = course.chosen;
  log_prob_[t] = course.log_prob;
  rewards_[t] = ScaledReward(experience, course.running_return);
  terminated_[t] = experience.terminated ? 1 : 0;
  ended_[t] = experience.terminated || experience.truncated ? 1 : 0;
  // the true successor, also at the end of an episode; its statistics are updated when it is acted
  // in
  CopyObservation(experience.after.observation, next_observations_.col(filled_));
  Normalize(next_observations_.col(filled_), next_observations_.col(filled_));
  ++filled_;
}

void Ppo::FillValues(const Eigen::MatrixXf& observations, std::span<float> out) {
  const auto values = critic_.Forward(observations, value_tape_);
  std::copy_n(values.data(), out.size(), out.begin());
}

void Ppo::Update() {
  if (filled_ < config_.rollout_steps) return;
  FillValues(observations_, values_);
  FillValues(next_observations_, next_values_);
  GeneralizedAdvantages(rewards_, values_, next_values_, terminated_, ended_, config_.gamma,
                        config_.lambda, advantages_);
  std::iota(order_.begin(), order_.end(), 0);
  for (int epoch = 0; epoch < config_.epochs; ++epoch) {
    Shuffle(shuffle_rng_, order_);
    for (int first = 0; first < config_.rollout_steps; first += config_.minibatch_size) {
      TrainOn(first);
    }
  }
  filled_ = 0;
}

void Ppo::TrainOn(int first) {
  const int size = config_.minibatch_size;
  const double share = 1.0 / size;
  const auto clip = static_cast<float>(config_.clip);
  const auto steps =
      std::span(order_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
  for (int b = 0; b < size; ++b) {
    const int t = steps[static_cast<std::size_t>(b)];
    batch_observation_.col(b) = observations_.col(t);
    batch_action_.col(b) = actions_.col(t);
    batch_advantage_[static_cast<std::size_t>(b)] = advantages_[static_cast<std::size_t>(t)];
  }
  // A <- (A - mean) / std within the minibatch
  Eigen::Map<Eigen::ArrayXf> advantage(batch_advantage_.data(), size);
  advantage -= advantage.mean();
  advantage /= std::sqrt(advantage.square().sum() / static_cast<float>(size - 1)) + 1e-8F;

  // rho = pi(a|o) / pi_old(a|o),  L_pi = mean max(-A rho, -A clip(rho, 1 - eps, 1 + eps))
  const auto head = actor_.Forward(batch_observation_, actor_tape_);
  head_.LogProb(head, log_std_, batch_action_, batch_log_prob_);
  double actor_loss = 0.0;
  double kl = 0.0;
  double clipped = 0.0;
  for (std::size_t b = 0; b < steps.size(); ++b) {
    const float log_ratio = batch_log_prob_[b] - log_prob_[static_cast<std::size_t>(steps[b])];
    const float rho = std::exp(log_ratio);
    const float plain = -batch_advantage_[b] * rho;
    const float bounded = -batch_advantage_[b] * std::clamp(rho, 1.0F - clip, 1.0F + clip);
    actor_loss += share * std::max(plain, bounded);
    // no gradient where the clipped term is the larger
    d_log_prob_[b] = plain >= bounded ? plain / static_cast<float>(size) : 0.0F;
    kl += share * (rho - 1.0F - log_ratio);
    clipped += std::abs(rho - 1.0F) > clip ? share : 0.0;
  }
  RequireFinite("actor loss", std::span(&actor_loss, 1));
  metrics_.Add(kEntropy, head_.Entropy(head, log_std_));
  head_.Backward(head, log_std_, batch_action_, d_log_prob_, config_.entropy_weight, d_head_,
                 log_std_gradients_);
  actor_.Backward(d_head_, actor_tape_, actor_gradients_);

  // R = A + V_old,  L_V = 1/2 mean max((V - R)^2, (V_old + clip(V - V_old) - R)^2)
  const auto value = critic_.Forward(batch_observation_, critic_tape_);
  double value_loss = 0.0;
  for (int b = 0; b < size; ++b) {
    const auto t = static_cast<std::size_t>(steps[static_cast<std::size_t>(b)]);
    const float target = advantages_[t] + values_[t];
    const float error = value(0, b) - target;
    const float change = value(0, b) - values_[t];
    const float bounded_error = values_[t] + std::clamp(change, -clip, clip) - target;
    const bool use_plain = !config_.clip_value || error * error >= bounded_error * bounded_error;
    const float used = use_plain ? error : bounded_error;
    const bool moves = use_plain || std::abs(change) < clip;
    value_loss += 0.5 * share * used * used;
    d_value_(0, b) =
        moves ? static_cast<float>(config_.value_weight) * used / static_cast<float>(size) : 0.0F;
  }
  RequireFinite("value loss", std::span(&value_loss, 1));
  critic_.Backward(d_value_, critic_tape_, critic_gradients_);

  ClipNorm({actor_gradients_, log_std_gradients_, critic_gradients_}, config_.max_gradient_norm);
  actor_adam_.Step(actor_.parameters(), actor_gradients_, config_.learning_rate);
  critic_adam_.Step(critic_.parameters(), critic_gradients_, config_.learning_rate);
  if (!log_std_.empty()) {
    log_std_adam_.Step(log_std_, log_std_gradients_, config_.learning_rate);
  }
  metrics_.Add(kActorLoss, actor_loss);
  metrics_.Add(kValueLoss, value_loss);
  metrics_.Add(kKl, kl);
  metrics_.Add(kClipped, clipped);
}

FeedForwardPolicy Ppo::ExportPolicy() const {
  FeedForwardPolicy policy;
  policy.discrete = action_spec_.kind == ActionKind::kDiscrete;
  if (config_.normalize_observations) {
    policy.offset = observation_statistics_.offset();
    policy.factor = observation_statistics_.factor();
    policy.limit = static_cast<float>(kNormalizerClip);
  }
  AddLayers(actor_.function(), actor_.parameters(), policy);
  return policy;
}

void Ppo::Visit(const Archive& state) {
  const auto matrix = [&state](const char* name, Eigen::MatrixXf& values) {
    state.Array(name, Flat(values), {values.cols(), values.rows()});
  };
  VisitNetwork(state.Child("actor"), actor_);
  VisitNetwork(state.Child("critic"), critic_);
  VisitAdam(state.Child("actor_adam"), actor_adam_);
  VisitAdam(state.Child("critic_adam"), critic_adam_);
  VisitAdam(state.Child("log_std_adam"), log_std_adam_);
  state.Array("log_std", log_std_);
  state.Random("shuffle", shuffle_rng_);
  state.Packed("observation_statistics", observation_statistics_);
  state.Packed("return_statistics", return_statistics_);
  // the steps of a rollout that is not complete
  state.Int("filled", filled_, 0, config_.rollout_steps - 1);
  matrix("observations", observations_);
  matrix("next_observations", next_observations_);
  matrix("actions", actions_);
  state.Array("rewards", rewards_);
  state.Array("log_prob", log_prob_);
  state.Array("terminated", terminated_);
  state.Array("ended", ended_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
