#include "msrl/agents/td3/td3.h"

#include <algorithm>

#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kCriticLoss, kActorLoss, kQ };

}  // namespace

Td3::Td3(const EnvSpec& spec, const Td3Config& config, std::uint64_t seed,
         const std::optional<BranchSettings>& branch)
    : config_(RequireInRange(config)),
      action_spec_(spec.action),
      n_(spec.observation_size),
      m_(spec.action.size),
      memory_(spec, config, branch, seed),
      noise_rng_(seed, "noise"),
      actor_spec_{.input = n_,
                  .hidden = HiddenLayers(config.hidden_layers, config.hidden_width),
                  .output = m_,
                  .output_activation = Activation::kTanh},
      actor_(actor_spec_),
      actor_target_(actor_spec_),
      critic_({.observation = n_,
               .action = m_,
               .hidden = actor_spec_.hidden,
               .layer_norm = config.critic_layer_norm,
               .batch = config.batch_size,
               .initial_value = config.initial_value},
              branch),
      actor_adam_(actor_.parameter_count()),
      actor_tape_(actor_spec_, config.batch_size),
      act_tape_(actor_spec_, Critic::kMaxCandidates),
      actor_gradients_(actor_.parameter_count()),
      noise_(m_, config.batch_size),
      d_action_(m_, config.batch_size),
      d_q_(2, config.batch_size),
      minus_mean_(Eigen::MatrixXf::Constant(1, config.batch_size,
                                            -1.0F / static_cast<float>(config.batch_size))),
      act_observation_(n_, kMaxTurns),
      act_noise_(m_, 1),
      y_(config.batch_size),
      q_taken_(config.batch_size),
      q_chosen_(config.batch_size),
      metrics_({"loss/critic", "loss/actor", "value/q"}) {
  Rng init(seed, "init");
  actor_.Init(init);
  critic_.Init(init);
  actor_target_ = actor_;
}

std::int64_t Td3::parameter_count() const {
  return static_cast<std::int64_t>(actor_.parameter_count()) + critic_.parameter_count();
}

void Td3::Choose(std::span<const Turn> turns, ActMode mode, std::span<bool> by_policy) {
  const bool random = mode == ActMode::kExplore && memory_.IsWarmingUp();
  std::ranges::fill(by_policy, !random);
  if (random) {
    for (const Turn& turn : turns) DrawUniformAction(action_spec_, turn.rng, turn.out);
    return;
  }
  const auto action = actor_.Forward(CopyObservations(turns, act_observation_), act_tape_);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    act_noise_.setZero();
    if (mode == ActMode::kExplore) FillNormal(turns[i].rng, Flat(act_noise_));
    const std::span<double> out = turns[i].out.values();
    for (int a = 0; a < m_; ++a) {
      const double noisy =
          action(a, static_cast<Eigen::Index>(i)) + config_.exploration_noise * act_noise_(a, 0);
      out[static_cast<std::size_t>(a)] = std::clamp(noisy, -1.0, 1.0);
    }
    RequireFinite("action", out);
  }
}

void Td3::ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                       const ConstMatrixRef& action, std::span<float> q) {
  Eigen::Map<Eigen::RowVectorXf>(q.data(), observation.cols()) =
      critic_.QNow(observation, features, action);
}

void Td3::StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                      std::span<float> v) {
  ActionValues(observation, features, actor_.Forward(observation, act_tape_), v);
}

void Td3::Update() {
  for (int i = memory_.UpdatesDue(); i > 0; --i) UpdateOn(memory_.Sample());
}

void Td3::UpdateOn(const ReplayBatch& batch) {
  MSRL_CHECK_EQ(batch.size(), config_.batch_size);
  const auto size = static_cast<float>(batch.size());
  const auto gamma = static_cast<float>(config_.gamma);
  const auto spread = static_cast<float>(config_.target_noise);
  const auto limit = static_cast<float>(config_.target_noise_limit);

  // a' = clip(pi'(o') + clip(noise)),  y = r + gamma (1 - terminated) min_i Q'_i(o', a')
  FillNormal(noise_rng_, Flat(noise_));
  const auto next_action = actor_target_.Forward(batch.next_observation, actor_tape_);
  critic_.actions() = (next_action + (spread * noise_).cwiseMax(-limit).cwiseMin(limit))
                          .cwiseMax(-1.0F)
                          .cwiseMin(1.0F);
  const auto& next_q = critic_.TargetQ(batch.next_observation, batch.next_features);
  y_ = batch.reward + gamma * batch.continues.cwiseProduct(next_q.colwise().minCoeff());

  // L_Q = sum_i mean (Q_i(o, a) - y)^2
  critic_.actions() = batch.action;
  const auto& q = critic_.Q(batch.observation, batch.features);
  d_q_ = q.rowwise() - y_;
  const double loss = static_cast<double>(d_q_.squaredNorm()) / size;
  RequireFinite("critic loss", std::span(&loss, 1));
  metrics_.Add(kCriticLoss, loss);
  metrics_.Add(kQ, static_cast<double>(q.row(0).mean()));
  if (batch.has_lessons()) q_taken_ = q.row(0);
  d_q_ *= 2.0F / size;

  // policy and all targets follow with a delay
  const bool due = ++updates_ % config_.policy_delay == 0;
  critic_.Learn(d_q_, config_.critic_learning_rate, due ? config_.tau : 0.0);
  if (due) UpdateActor(batch);
}

void Td3::UpdateActor(const ReplayBatch& batch) {
  // L_pi = -mean Q_1(o, pi(o))
  critic_.actions() = actor_.Forward(batch.observation, actor_tape_);
  const auto& q = critic_.QOfActions({.first = 0, .count = 1});
  double loss = -static_cast<double>(q.row(0).mean());
  if (batch.has_lessons()) q_chosen_ = q.row(0);
  critic_.ActionGradient(minus_mean_, d_action_);
  if (batch.has_lessons()) {
    loss += AddLessonGradient(batch, q_taken_, q_chosen_, critic_.actions(), d_action_);
  }
  RequireFinite("actor loss", std::span(&loss, 1));
  metrics_.Add(kActorLoss, loss);
  actor_.Backward(d_action_, actor_tape_, actor_gradients_);
  RequireFiniteGradients("actor", actor_gradients_);
  actor_adam_.Step(actor_.parameters(), actor_gradients_, config_.actor_learning_rate,
                   actor_target_.parameters(), config_.tau);
}

FeedForwardPolicy Td3::ExportPolicy() const {
  FeedForwardPolicy policy;
  AddLayers(actor_.function(), actor_.parameters(), policy);
  return policy;
}

void Td3::Visit(const Archive& state) {
  memory_.Visit(state.Child("memory"));
  state.Random("noise", noise_rng_);
  state.Int("updates", updates_);
  VisitNetwork(state.Child("actor"), actor_);
  VisitNetwork(state.Child("actor_target"), actor_target_);
  critic_.Visit(state);
  VisitAdam(state.Child("actor_adam"), actor_adam_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
