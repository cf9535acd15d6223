#include "msrl/agents/dqn/dqn.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kLoss, kQ, kEpsilon };

// Derivative of the Huber loss: quadratic within 1, linear beyond.
float HuberSlope(float error) { return std::clamp(error, -1.0F, 1.0F); }

double Huber(float error) {
  const double size = std::abs(static_cast<double>(error));
  return size <= 1.0 ? 0.5 * size * size : size - 0.5;
}

}  // namespace

Dqn::Dqn(const EnvSpec& spec, const DqnConfig& config, std::uint64_t seed,
         const std::optional<BranchSettings>& branch)
    : config_(RequireInRange(config)),
      action_spec_(spec.action),
      memory_(spec, config, branch, seed),
      critic_({.observation = spec.observation_size,
               .outputs = spec.action.size,
               .heads = 1,
               .hidden = HiddenLayers(config.hidden_layers, config.hidden_width),
               .layer_norm = config.critic_layer_norm,
               .batch = config.batch_size,
               .initial_value = config.initial_value},
              branch),
      act_observation_(spec.observation_size, kMaxTurns),
      act_features_(critic_.feature_count(), kMaxTurns),
      d_q_(spec.action.size, config.batch_size),
      best_(static_cast<std::size_t>(config.batch_size)),
      metrics_({"loss/critic", "value/q", "policy/epsilon"}) {
  Rng init(seed, "init");
  critic_.Init(init);
}

std::int64_t Dqn::parameter_count() const { return critic_.parameter_count(); }

double Dqn::epsilon() const {
  const auto done = static_cast<double>(memory_.steps() - config_.random_steps) /
                    static_cast<double>(config_.epsilon_steps);
  return std::lerp(config_.epsilon_start, config_.epsilon_end, std::clamp(done, 0.0, 1.0));
}

void Dqn::Choose(std::span<const Turn> turns, ActMode mode, std::span<bool> by_policy) {
  Eigen::Index count = 0;  // of the policy's turns, one column each
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Turn& turn = turns[i];
    by_policy[i] =
        mode == ActMode::kEvaluate || !(memory_.IsWarmingUp() || turn.rng.Bernoulli(epsilon()));
    if (!by_policy[i]) {
      DrawUniformAction(action_spec_, turn.rng, turn.out);
      continue;
    }
    CopyObservation(turn.situation.observation, act_observation_.col(count));
    memory_.ComputeFeatures(turn.situation,
                            ColumnSpan(act_features_, static_cast<std::size_t>(count)));
    ++count;
  }
  if (count == 0) return;
  const auto q =
      critic_.QNow(act_observation_.leftCols(count), act_features_.leftCols(count), no_action_);
  count = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!by_policy[i]) continue;
    Eigen::Index best = 0;
    q.col(count++).maxCoeff(&best);
    turns[i].out.set_index(static_cast<int>(best));
  }
}

void Dqn::ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                       const ConstMatrixRef& action, std::span<float> q) {
  const auto all = critic_.QNow(observation, features, no_action_);
  for (Eigen::Index i = 0; i < observation.cols(); ++i) {
    q[static_cast<std::size_t>(i)] = all(static_cast<Eigen::Index>(action(0, i)), i);
  }
}

void Dqn::StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                      std::span<float> v) {
  Eigen::Map<Eigen::RowVectorXf>(v.data(), observation.cols()) =
      critic_.QNow(observation, features, no_action_).colwise().maxCoeff();
}

void Dqn::Update() {
  for (int i = memory_.UpdatesDue(); i > 0; --i) UpdateOn(memory_.Sample());
}

void Dqn::UpdateOn(const ReplayBatch& batch) {
  MSRL_CHECK_EQ(batch.size(), config_.batch_size);
  const auto size = static_cast<float>(batch.size());
  const auto gamma = static_cast<float>(config_.gamma);

  // a* = argmax_a Q(o', a)   (not double: of Q')
  const auto& choice = config_.double_q
                           ? critic_.Q(batch.next_observation, batch.next_features)
                           : critic_.TargetQ(batch.next_observation, batch.next_features);
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    choice.col(b).maxCoeff(&best_[static_cast<std::size_t>(b)]);
  }
  // y = r + gamma (1 - terminated) Q'(o', a*);  d_q_ carries y of each column until Q is known
  const auto& next_q = critic_.TargetQ(batch.next_observation, batch.next_features);
  d_q_.setZero();
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    const float value = next_q(best_[static_cast<std::size_t>(b)], b);
    d_q_(static_cast<Eigen::Index>(batch.action(0, b)), b) =
        batch.reward[b] + gamma * batch.continues[b] * value;
  }

  // L = mean Huber(Q(o, a) - y)
  const auto& q = critic_.Q(batch.observation, batch.features);
  double loss = 0.0;
  double mean_q = 0.0;
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    const auto a = static_cast<Eigen::Index>(batch.action(0, b));
    const float error = q(a, b) - d_q_(a, b);
    d_q_(a, b) = HuberSlope(error) / size;
    loss += Huber(error) / size;
    mean_q += static_cast<double>(q(a, b)) / size;
  }
  RequireFinite("critic loss", std::span(&loss, 1));
  metrics_.Add(kLoss, loss);
  metrics_.Add(kQ, mean_q);
  metrics_.Add(kEpsilon, epsilon());
  // Q' <- tau Q + (1 - tau) Q'
  critic_.Learn(d_q_, config_.learning_rate, config_.tau);
}

FeedForwardPolicy Dqn::ExportPolicy() const {
  const auto& branch = critic_.branch_settings();
  if (branch && branch->hidden_input) {
    throw UserError("its Q sees h(Z), which depends on the whole episode (branch_hidden=true)");
  }
  // F(Z) is the same for all actions
  FeedForwardPolicy policy;
  policy.discrete = true;
  AddLayers(critic_.network().function(), critic_.network().parameters(), policy);
  return policy;
}

void Dqn::Visit(const Archive& state) {
  memory_.Visit(state.Child("memory"));
  critic_.Visit(state);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
