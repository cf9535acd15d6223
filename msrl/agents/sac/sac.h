// Soft actor-critic (Haarnoja et al. 2018): twin critics, a squashed Gaussian policy and a
// temperature that keeps its entropy at a target. docs/agents/sac.md
#ifndef MSRL_AGENTS_SAC_SAC_H_
#define MSRL_AGENTS_SAC_SAC_H_

#include "msrl/agents/common/critic_agent.h"
#include "msrl/nn/squashed_gaussian.h"

namespace msrl {

struct SacConfig : OffPolicyConfig {
  double actor_learning_rate = 3e-4;
  double critic_learning_rate = 1e-3;
  double alpha_learning_rate = 1e-3;
  double initial_alpha = 0.1;
  double target_entropy_per_action = -1.0;
  bool learn_alpha = true;

  template <typename V>
  void Fields(V&& visit) {
    OffPolicyConfig::Fields(visit);
    visit("actor_learning_rate", actor_learning_rate, "Adam step size of the policy", Positive());
    visit("critic_learning_rate", critic_learning_rate, "Adam step size of the critics",
          Positive());
    visit("alpha_learning_rate", alpha_learning_rate, "Adam step size of log alpha", Positive());
    visit("initial_alpha", initial_alpha, "temperature at the start (rewards are normalised)",
          Positive());
    visit("target_entropy_per_action", target_entropy_per_action,
          "wanted entropy of the policy, times the number of action dimensions", AnyNumber());
    visit("learn_alpha", learn_alpha, "whether the temperature follows the target entropy");
  }
};

class Sac : public CriticAgent {
 public:
  // With `branch`, the critic sees Z. UserError on impossible settings.
  Sac(const EnvSpec& spec, const SacConfig& config, std::uint64_t seed,
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
  Critic& critic() override { return critic_; }
  const Critic& critic() const override { return critic_; }
  OffPolicyMemory& memory() override { return memory_; }
  const OffPolicyMemory& memory() const override { return memory_; }
  double alpha() const;

 private:
  void UpdateCritic(const ReplayBatch& batch);
  void UpdateActor(const ReplayBatch& batch);
  void UpdateAlpha();

  SacConfig config_;
  ActionSpec action_spec_;
  int n_;  // size of an observation
  int m_;  // size of an action
  OffPolicyMemory memory_;
  Rng noise_rng_;

  MlpSpec actor_spec_;
  Mlp actor_;
  Critic critic_;
  Adam actor_adam_;
  Adam alpha_adam_;
  FloatBuffer log_alpha_;  // one number

  // workspace
  MlpTape actor_tape_, act_tape_;
  SquashedGaussian policy_, act_policy_;
  FloatBuffer actor_gradients_, log_prob_, act_log_prob_;
  Eigen::MatrixXf noise_, d_action_, d_head_, d_q_;
  Eigen::MatrixXf act_observation_, act_noise_, act_action_;
  Eigen::MatrixXf d_mode_, mode_;
  Eigen::RowVectorXf y_, q_taken_, q_chosen_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_SAC_SAC_H_
