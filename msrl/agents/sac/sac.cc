#include "msrl/agents/sac/sac.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kCriticLoss, kActorLoss, kQ, kEntropy, kAlpha };

}  // namespace

Sac::Sac(const EnvSpec& spec, const SacConfig& config, std::uint64_t seed,
         const std::optional<BranchSettings>& branch)
    : config_(RequireInRange(config)),
      action_spec_(spec.action),
      n_(spec.observation_size),
      m_(spec.action.size),
      memory_(spec, config, branch, seed),
      noise_rng_(seed, "noise"),
      actor_spec_{.input = n_,
                  .hidden = HiddenLayers(config.hidden_layers, config.hidden_width),
                  .output = 2 * m_},
      actor_(actor_spec_),
      critic_({.observation = n_,
               .action = m_,
               .hidden = actor_spec_.hidden,
               .layer_norm = config.critic_layer_norm,
               .batch = config.batch_size,
               .initial_value = config.initial_value},
              branch),
      actor_adam_(actor_.parameter_count()),
      alpha_adam_(1),
      log_alpha_(1, static_cast<float>(std::log(config.initial_alpha))),
      actor_tape_(actor_spec_, config.batch_size),
      act_tape_(actor_spec_, Critic::kMaxCandidates),
      policy_(m_, config.batch_size),
      act_policy_(m_, Critic::kMaxCandidates),
      actor_gradients_(actor_.parameter_count()),
      log_prob_(static_cast<std::size_t>(config.batch_size)),
      act_log_prob_(kMaxTurns),
      noise_(m_, config.batch_size),
      d_action_(m_, config.batch_size),
      d_head_(2 * m_, config.batch_size),
      d_q_(2, config.batch_size),
      act_observation_(n_, kMaxTurns),
      act_noise_(m_, kMaxTurns),
      act_action_(m_, Critic::kMaxCandidates),
      d_mode_(m_, config.batch_size),
      mode_(m_, config.batch_size),
      y_(config.batch_size),
      q_taken_(config.batch_size),
      q_chosen_(config.batch_size),
      metrics_({"loss/critic", "loss/actor", "value/q", "policy/entropy", "policy/alpha"}) {
  Rng init(seed, "init");
  actor_.Init(init);
  critic_.Init(init);
}

std::int64_t Sac::parameter_count() const {
  return static_cast<std::int64_t>(actor_.parameter_count()) + critic_.parameter_count() + 1;
}

double Sac::alpha() const { return std::exp(static_cast<double>(log_alpha_[0])); }

void Sac::Choose(std::span<const Turn> turns, ActMode mode, std::span<bool> by_policy) {
  const bool random = mode == ActMode::kExplore && memory_.IsWarmingUp();
  std::ranges::fill(by_policy, !random);
  if (random) {
    for (const Turn& turn : turns) DrawUniformAction(action_spec_, turn.rng, turn.out);
    return;
  }
  const auto count = static_cast<Eigen::Index>(turns.size());
  const auto head = actor_.Forward(CopyObservations(turns, act_observation_), act_tape_);
  auto action = act_action_.leftCols(count);
  if (mode == ActMode::kExplore) {
    for (std::size_t i = 0; i < turns.size(); ++i)
      FillNormal(turns[i].rng, ColumnSpan(act_noise_, i));
    act_policy_.Sample(head, act_noise_.leftCols(count), action,
                       std::span(act_log_prob_).first(turns.size()));
  } else {
    act_policy_.Mode(head, action);
  }
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::ranges::copy(ColumnSpan(act_action_, i), turns[i].out.values().begin());
    RequireFinite("action", turns[i].out.values());
  }
}

void Sac::ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                       const ConstMatrixRef& action, std::span<float> q) {
  Eigen::Map<Eigen::RowVectorXf>(q.data(), observation.cols()) =
      critic_.QNow(observation, features, action);
}

void Sac::StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                      std::span<float> v) {
  auto action = act_action_.leftCols(observation.cols());
  act_policy_.Mode(actor_.Forward(observation, act_tape_), action);
  ActionValues(observation, features, action, v);
}

void Sac::Update() {
  for (int i = memory_.UpdatesDue(); i > 0; --i) UpdateOn(memory_.Sample());
}

void Sac::UpdateOn(const ReplayBatch& batch) {
  MSRL_CHECK_EQ(batch.size(), config_.batch_size);
  UpdateCritic(batch);
  UpdateActor(batch);
  if (config_.learn_alpha) UpdateAlpha();
  metrics_.Add(kAlpha, alpha());
}

void Sac::UpdateCritic(const ReplayBatch& batch) {
  const auto size = static_cast<float>(batch.size());
  const auto gamma = static_cast<float>(config_.gamma);
  const auto alpha_now = static_cast<float>(alpha());

  // a' ~ pi(.|o'),  y = r + gamma (1 - terminated) (min_i Q'_i(o', a') - alpha log pi(a'|o'))
  FillNormal(noise_rng_, Flat(noise_));
  const auto head = actor_.Forward(batch.next_observation, actor_tape_);
  policy_.Sample(head, noise_, critic_.actions(), log_prob_);
  const auto& next_q = critic_.TargetQ(batch.next_observation, batch.next_features);
  const Eigen::Map<const Eigen::RowVectorXf> log_pi(log_prob_.data(), batch.size());
  y_ = batch.reward +
       gamma * batch.continues.cwiseProduct(next_q.colwise().minCoeff() - alpha_now * log_pi);

  // L_Q = sum_i mean (Q_i(o, a) - y)^2
  critic_.actions() = batch.action;
  const auto& q = critic_.Q(batch.observation, batch.features);
  d_q_ = q.rowwise() - y_;
  const double loss = static_cast<double>(d_q_.squaredNorm()) / size;
  RequireFinite("critic loss", std::span(&loss, 1));
  metrics_.Add(kCriticLoss, loss);
  metrics_.Add(kQ, static_cast<double>(q.row(0).mean()));
  if (batch.has_lessons()) q_taken_ = q.colwise().minCoeff();
  d_q_ *= 2.0F / size;
  // Q' <- tau Q + (1 - tau) Q'
  critic_.Learn(d_q_, config_.critic_learning_rate, config_.tau);
}

void Sac::UpdateActor(const ReplayBatch& batch) {
  const auto size = static_cast<float>(batch.size());
  const auto alpha_now = static_cast<float>(alpha());

  // a ~ pi(.|o),  L_pi = mean (alpha log pi(a|o) - min_i Q_i(o, a))
  FillNormal(noise_rng_, Flat(noise_));
  const auto head = actor_.Forward(batch.observation, actor_tape_);
  policy_.Sample(head, noise_, critic_.actions(), log_prob_);
  const auto& q = critic_.QOfActions({.first = 0, .count = 2});
  const Eigen::Map<const Eigen::RowVectorXf> log_pi(log_prob_.data(), batch.size());
  const float mean_log_pi = log_pi.mean();
  double loss = static_cast<double>(alpha_now * mean_log_pi - q.colwise().minCoeff().mean());
  if (batch.has_lessons()) {
    // what is taught is tanh(mu), the policy without its noise
    q_chosen_ = q.colwise().minCoeff();
    policy_.Mode(head, mode_);
    d_mode_.setZero();
    loss += AddLessonGradient(batch, q_taken_, q_chosen_, mode_, d_mode_);
    d_mode_.array() *= 1.0F - mode_.array().square();
  }
  RequireFinite("actor loss", std::span(&loss, 1));
  metrics_.Add(kActorLoss, loss);
  metrics_.Add(kEntropy, -static_cast<double>(mean_log_pi));

  // only the smaller critic counts
  d_q_.row(0) = (q.row(0).array() <= q.row(1).array()).cast<float>() * (-1.0F / size);
  d_q_.row(1).setConstant(-1.0F / size);
  d_q_.row(1) -= d_q_.row(0);
  critic_.ActionGradient(d_q_, d_action_);
  y_.setConstant(alpha_now / size);
  policy_.Backward(d_action_, {y_.data(), static_cast<std::size_t>(y_.size())}, d_head_);
  if (batch.has_lessons()) d_head_.topRows(m_) += d_mode_;
  actor_.Backward(d_head_, actor_tape_, actor_gradients_);
  RequireFiniteGradients("actor", actor_gradients_);
  actor_adam_.Step(actor_.parameters(), actor_gradients_, config_.actor_learning_rate);
}

void Sac::UpdateAlpha() {
  // L_alpha = -log alpha (mean log pi + target entropy)
  const Eigen::Map<const Eigen::RowVectorXf> log_pi(log_prob_.data(),
                                                    static_cast<Eigen::Index>(log_prob_.size()));
  const auto target = static_cast<float>(config_.target_entropy_per_action * m_);
  const float gradient = -(log_pi.mean() + target);
  alpha_adam_.Step(log_alpha_, {&gradient, 1}, config_.alpha_learning_rate);
}

FeedForwardPolicy Sac::ExportPolicy() const {
  FeedForwardPolicy policy;
  AddSquashedMode(actor_.function(), actor_.parameters(), policy);
  return policy;
}

void Sac::Visit(const Archive& state) {
  memory_.Visit(state.Child("memory"));
  state.Random("noise", noise_rng_);
  VisitNetwork(state.Child("actor"), actor_);
  critic_.Visit(state);
  VisitAdam(state.Child("actor_adam"), actor_adam_);
  VisitAdam(state.Child("alpha_adam"), alpha_adam_);
  state.Array("log_alpha", log_alpha_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
