// Deep Q-learning with double targets (Mnih et al. 2015, van Hasselt et al. 2016).
// docs/agents/dqn.md
#ifndef MSRL_AGENTS_DQN_DQN_H_
#define MSRL_AGENTS_DQN_DQN_H_

#include "msrl/agents/common/networks.h"
#include "msrl/agents/common/off_policy.h"

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
    visit("learning_rate", learning_rate, "Adam step size");
    visit("double_q", double_q, "whether the online network chooses the successor's action");
    visit("epsilon_start", epsilon_start, "share of random actions after the random steps");
    visit("epsilon_end", epsilon_end, "share of random actions at the end of the decay");
    visit("epsilon_steps", epsilon_steps, "steps of the linear decay");
  }
};

class Dqn : public Agent {
 public:
  // UserError on impossible settings.
  Dqn(const EnvSpec& spec, const DqnConfig& config, std::uint64_t seed);

  std::int64_t parameter_count() const override;
  void Act(const Situation& situation, ActMode mode, Rng& rng, ActionBuffer& out) override;
  void Observe(const Experience& experience) override { memory_.Observe(experience); }
  void Update() override;
  void DrainMetrics(MetricSink& sink) override { metrics_.Drain(sink); }
  void Save(const StateWriter& state) const override;
  void Load(const StateReader& state) override;

  // One update on a given batch of config.batch_size transitions.
  void UpdateOn(const ReplayBatch& batch);

  const Mlp& critic() const { return critic_; }
  const Mlp& critic_target() const { return critic_target_; }
  double epsilon() const;

 private:
  DqnConfig config_;
  ActionSpec action_spec_;
  OffPolicyMemory memory_;

  MlpSpec spec_;
  Mlp critic_, critic_target_;
  Adam adam_;

  // workspace
  MlpTape tape_, act_tape_;
  FloatBuffer gradients_;
  Eigen::MatrixXf act_observation_, d_q_;
  std::vector<Eigen::Index> best_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DQN_DQN_H_
