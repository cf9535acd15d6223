// Deep Q-learning with double targets (Mnih et al. 2015, van Hasselt et al. 2016).
// docs/agents/dqn.md
#ifndef MSRL_AGENTS_DQN_DQN_H_
#define MSRL_AGENTS_DQN_DQN_H_

#include "msrl/agents/common/critic_agent.h"

namespace msrl {

struct DqnConfig : OffPolicyConfig {
  DqnConfig() {
    hidden_width = 128;
    batch_size = 128;
    replay_size = 100'000;
  }

  double learning_rate = 5e-4;
  bool double_q = true;
  double epsilon_start = 1.0;
  double epsilon_end = 0.05;
  std::int64_t epsilon_steps = 10'000;

  template <typename V>
  void Fields(V&& visit) {
    OffPolicyConfig::Fields(visit);
    visit("learning_rate", learning_rate, "Adam step size", Positive());
    visit("double_q", double_q, "whether the online network chooses the successor's action");
    visit("epsilon_start", epsilon_start, "share of random actions after the random steps",
          Between(0, 1));
    visit("epsilon_end", epsilon_end, "share of random actions at the end of the decay",
          Between(0, 1));
    visit("epsilon_steps", epsilon_steps, "steps of the linear decay", Positive());
  }
};

class Dqn : public CriticAgent {
 public:
  // With `branch`, the critic sees Z. UserError on impossible settings.
  Dqn(const EnvSpec& spec, const DqnConfig& config, std::uint64_t seed,
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

  Critic& critic() override { return critic_; }
  const Critic& critic() const override { return critic_; }
  OffPolicyMemory& memory() override { return memory_; }
  const OffPolicyMemory& memory() const override { return memory_; }
  double epsilon() const;

 private:
  DqnConfig config_;
  ActionSpec action_spec_;
  OffPolicyMemory memory_;

  Critic critic_;

  // workspace
  Eigen::MatrixXf act_observation_, act_features_, d_q_;
  const Eigen::MatrixXf no_action_;  // actions choose outputs, they are no input
  std::vector<Eigen::Index> best_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DQN_DQN_H_
