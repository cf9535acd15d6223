#include "msrl/agents/dqn/dqn.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kLoss, kQ, kEpsilon };

const DqnConfig& Checked(const DqnConfig& config) {
  RequireValid(config);
  RequirePositive("learning_rate", config.learning_rate);
  RequirePositive("epsilon_steps", static_cast<double>(config.epsilon_steps));
  for (const double epsilon : {config.epsilon_start, config.epsilon_end}) {
    if (!(epsilon >= 0.0 && epsilon <= 1.0)) {
      throw UserError(
          StrCat("dqn: epsilon_start and epsilon_end must be in [0, 1], got ", epsilon));
    }
  }
  return config;
}

// Derivative of the Huber loss: quadratic within 1, linear beyond.
float HuberSlope(float error) { return std::clamp(error, -1.0F, 1.0F); }

double Huber(float error) {
  const double size = std::abs(static_cast<double>(error));
  return size <= 1.0 ? 0.5 * size * size : size - 0.5;
}

}  // namespace

Dqn::Dqn(const EnvSpec& spec, const DqnConfig& config, std::uint64_t seed)
    : config_(Checked(config)),
      action_spec_(spec.action),
      memory_(spec, config, seed),
      spec_{.input = spec.observation_size,
            .hidden = HiddenLayers(config.hidden_layers, config.hidden_width),
            .output = spec.action.size},
      critic_(spec_),
      critic_target_(spec_),
      adam_(critic_.parameter_count()),
      tape_(spec_, config.batch_size),
      act_tape_(spec_, 1),
      gradients_(critic_.parameter_count()),
      act_observation_(spec.observation_size, 1),
      d_q_(spec.action.size, config.batch_size),
      best_(static_cast<std::size_t>(config.batch_size)),
      metrics_({"loss/critic", "value/q", "policy/epsilon"}) {
  Rng init(seed, "init");
  critic_.Init(init);
  critic_target_ = critic_;
}

std::int64_t Dqn::parameter_count() const {
  return static_cast<std::int64_t>(critic_.parameter_count());
}

double Dqn::epsilon() const {
  const auto done = static_cast<double>(memory_.steps() - config_.random_steps) /
                    static_cast<double>(config_.epsilon_steps);
  return std::lerp(config_.epsilon_start, config_.epsilon_end, std::clamp(done, 0.0, 1.0));
}

void Dqn::Act(const Situation& situation, ActMode mode, Rng& rng, ActionBuffer& out) {
  if (mode == ActMode::kExplore && (memory_.IsWarmingUp() || rng.Bernoulli(epsilon()))) {
    DrawUniformAction(action_spec_, rng, out);
    return;
  }
  CopyObservation(situation.observation, act_observation_.col(0));
  Eigen::Index best = 0;
  critic_.Forward(act_observation_, act_tape_).col(0).maxCoeff(&best);
  out.set_index(static_cast<int>(best));
}

void Dqn::Update() {
  for (int i = memory_.UpdatesDue(); i > 0; --i) UpdateOn(memory_.Sample());
}

void Dqn::UpdateOn(const ReplayBatch& batch) {
  MSRL_CHECK_EQ(batch.size(), config_.batch_size);
  const auto size = static_cast<float>(batch.size());
  const auto gamma = static_cast<float>(config_.gamma);

  // a* = argmax_a Q(o', a)   (not double: of Q')
  const Mlp& chooser = config_.double_q ? critic_ : critic_target_;
  const auto choice = chooser.Forward(batch.next_observation, tape_);
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    choice.col(b).maxCoeff(&best_[static_cast<std::size_t>(b)]);
  }
  // y = r + gamma (1 - terminated) Q'(o', a*);  d_q_ carries y of each column until Q is known
  const auto next_q = critic_target_.Forward(batch.next_observation, tape_);
  d_q_.setZero();
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    const float value = next_q(best_[static_cast<std::size_t>(b)], b);
    d_q_(static_cast<Eigen::Index>(batch.action(0, b)), b) =
        batch.reward[b] + gamma * batch.continues[b] * value;
  }

  // L = mean Huber(Q(o, a) - y)
  const auto q = critic_.Forward(batch.observation, tape_);
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
  critic_.Backward(d_q_, tape_, gradients_);
  RequireFiniteGradients("critic", gradients_);
  // Q' <- tau Q + (1 - tau) Q'
  adam_.Step(critic_.parameters(), gradients_, config_.learning_rate, critic_target_.parameters(),
             config_.tau);
}

void Dqn::Save(const StateWriter& state) const {
  memory_.Save(state.Child("memory"));
  SaveNetwork(state.Child("critic"), critic_);
  SaveNetwork(state.Child("critic_target"), critic_target_);
  SaveAdam(state.Child("adam"), adam_);
  metrics_.Save(state.Child("metrics"));
}

void Dqn::Load(const StateReader& state) {
  memory_.Load(state.Child("memory"));
  LoadNetwork(state.Child("critic"), critic_);
  LoadNetwork(state.Child("critic_target"), critic_target_);
  LoadAdam(state.Child("adam"), adam_);
  metrics_.Load(state.Child("metrics"));
}

}  // namespace msrl
