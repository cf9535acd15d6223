// Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018). docs/agents/td3.md
#ifndef MSRL_AGENTS_TD3_TD3_H_
#define MSRL_AGENTS_TD3_TD3_H_

#include "msrl/agents/common/critic_agent.h"

namespace msrl {

struct Td3Config : OffPolicyConfig {
  double actor_learning_rate = 1e-3;
  double critic_learning_rate = 1e-3;
  double exploration_noise = 0.1;
  double target_noise = 0.2;
  double target_noise_limit = 0.5;
  int policy_delay = 2;

  template <typename V>
  void Fields(V&& visit) {
    OffPolicyConfig::Fields(visit);
    visit("actor_learning_rate", actor_learning_rate, "Adam step size of the policy", Positive());
    visit("critic_learning_rate", critic_learning_rate, "Adam step size of the critics",
          Positive());
    visit("exploration_noise", exploration_noise, "standard deviation added to actions in training",
          NotNegative());
    visit("target_noise", target_noise, "standard deviation of target policy smoothing",
          NotNegative());
    visit("target_noise_limit", target_noise_limit, "bound on the smoothing noise", NotNegative());
    visit("policy_delay", policy_delay, "critic updates per update of policy and targets",
          Positive());
  }
};

class Td3 : public CriticAgent {
 public:
  // With `branch`, the critic sees Z. UserError on impossible settings.
  Td3(const EnvSpec& spec, const Td3Config& config, std::uint64_t seed,
      const std::optional<BranchSettings>& branch = std::nullopt);

  std::int64_t parameter_count() const override;
  void Choose(std::span<const Turn> turns, ActMode mode, std::span<bool> by_policy) override;
  void ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                    const ConstMatrixRef& action, std::span<float> q) override;
  void StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                   std::span<float> v) override;
  void Update() override;
  FeedForwardPolicy ExportPolicy() const override;
  void DrainMetrics(MetricSink& sink) override { metrics_.Drain(sink); }
  void Visit(const Archive& state) override;

  // One update on a given batch of config.batch_size transitions.
  void UpdateOn(const ReplayBatch& batch);

  const Mlp& actor() const { return actor_; }
  const Mlp& actor_target() const { return actor_target_; }
  Critic& critic() override { return critic_; }
  const Critic& critic() const override { return critic_; }
  OffPolicyMemory& memory() override { return memory_; }
  const OffPolicyMemory& memory() const override { return memory_; }

 private:
  void UpdateActor(const ReplayBatch& batch);

  Td3Config config_;
  ActionSpec action_spec_;
  int n_;  // size of an observation
  int m_;  // size of an action
  OffPolicyMemory memory_;
  Rng noise_rng_;
  std::int64_t updates_ = 0;

  MlpSpec actor_spec_;
  Mlp actor_, actor_target_;
  Critic critic_;
  Adam actor_adam_;

  // workspace
  MlpTape actor_tape_, act_tape_;
  FloatBuffer actor_gradients_;
  Eigen::MatrixXf noise_, d_action_, d_q_, minus_mean_;
  Eigen::MatrixXf act_observation_, act_noise_;
  Eigen::RowVectorXf y_, q_taken_, q_chosen_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TD3_TD3_H_
