// Proximal policy optimisation (Schulman et al. 2017) with generalised advantages, for continuous
// and discrete actions. docs/agents/ppo.md
#ifndef MSRL_AGENTS_PPO_PPO_H_
#define MSRL_AGENTS_PPO_PPO_H_

#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/ppo/policy_head.h"
#include "msrl/core/config.h"
#include "msrl/nn/running_normalizer.h"

namespace msrl {

struct PpoConfig {
  int hidden_layers = 2;
  int hidden_width = 64;
  int rollout_steps = 2048;
  int minibatch_size = 64;
  int epochs = 10;
  double learning_rate = 3e-4;
  double gamma = 0.99;
  double lambda = 0.95;
  double clip = 0.2;
  bool clip_value = true;
  double value_weight = 0.5;
  double entropy_weight = 0.0;
  double max_gradient_norm = 0.5;
  bool normalize_observations = true;
  bool normalize_rewards = true;
  double initial_value = 0.0;

  template <typename V>
  void Fields(V&& visit) {
    visit("hidden_layers", hidden_layers, "hidden layers of policy and value network",
          Between(0, kMaxHiddenLayers));
    visit("hidden_width", hidden_width, "width of the hidden layers", Between(1, kMaxHiddenWidth));
    visit("rollout_steps", rollout_steps, "steps between updates", Positive());
    visit("minibatch_size", minibatch_size, "steps per gradient step; divides rollout_steps",
          AtLeast(2));
    visit("epochs", epochs, "passes over the steps of a rollout", Positive());
    visit("learning_rate", learning_rate, "Adam step size", Positive());
    visit("gamma", gamma, "discount", Between(0, 1));
    visit("lambda", lambda, "decay of generalised advantages", Between(0, 1));
    visit("clip", clip, "bound on the change of the probability ratio", Positive());
    visit("clip_value", clip_value, "whether values are clipped like ratios");
    visit("value_weight", value_weight, "weight of the value loss", NotNegative());
    visit("entropy_weight", entropy_weight, "weight of the entropy bonus", NotNegative());
    visit("max_gradient_norm", max_gradient_norm, "gradients are scaled down to this norm",
          Positive());
    visit("normalize_observations", normalize_observations, "by running mean and deviation");
    visit("normalize_rewards", normalize_rewards, "by the deviation of the running return");
    visit("initial_value", initial_value, "added to every value before anything is learned",
          AnyNumber());
  }
};

// delta_t = r_t + gamma (1 - terminated_t) V(o'_t) - V(o_t)
// A_t = delta_t + gamma lambda (1 - ended_t) A_{t+1}
// ended: terminated or truncated. All of one length; the last entry has no A_{t+1}.
void GeneralizedAdvantages(std::span<const float> rewards, std::span<const float> values,
                           std::span<const float> next_values,
                           std::span<const std::uint8_t> terminated,
                           std::span<const std::uint8_t> ended, double gamma, double lambda,
                           std::span<float> advantages);

class Ppo : public Agent {
 public:
  // UserError on impossible settings.
  Ppo(const EnvSpec& spec, const PpoConfig& config, std::uint64_t seed);

  std::int64_t parameter_count() const override;
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  FeedForwardPolicy ExportPolicy() const override;
  void DrainMetrics(MetricSink& sink) override { metrics_.Drain(sink); }
  void Visit(const Archive& state) override;

  const Mlp& actor() const { return actor_; }
  const Mlp& critic() const { return critic_; }

 private:
  // Of one episode.
  struct Course : Carry {
    Course(Eigen::Index observation_size, Eigen::Index action_size)
        : observation(Eigen::MatrixXf::Zero(observation_size, 1)),
          chosen(Eigen::MatrixXf::Zero(action_size, 1)) {}
    void Begin() override { running_return = 0.0; }
    void Visit(const Archive& state) override;

    double running_return = 0.0;  // discounted
    // what the last Act saw, normalised, and chose before it was clipped
    Eigen::MatrixXf observation, chosen;
    float log_prob = 0.0F;
  };

  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  void Normalize(const ConstMatrixRef& observations, MatrixRef out) const;
  float ScaledReward(const Experience& experience, double& running_return);
  void FillValues(const Eigen::MatrixXf& observations, std::span<float> out);
  // One gradient step on order_[first, first + minibatch_size).
  void TrainOn(int first);

  PpoConfig config_;
  ActionSpec action_spec_;
  Rng shuffle_rng_;

  MlpSpec actor_spec_, critic_spec_;
  Mlp actor_, critic_;
  FloatBuffer log_std_;  // of continuous actions: parameters besides the network's
  Adam actor_adam_, log_std_adam_, critic_adam_;
  RunningNormalizer observation_statistics_;
  RunningNormalizer return_statistics_;

  // the rollout; observations normalised when they were seen
  int filled_ = 0;
  Eigen::MatrixXf observations_, next_observations_, actions_;
  std::vector<float> rewards_, log_prob_;
  std::vector<std::uint8_t> terminated_, ended_;

  // workspace
  MlpTape act_tape_, actor_tape_, critic_tape_, value_tape_;
  PolicyHead head_;
  FloatBuffer actor_gradients_, critic_gradients_, log_std_gradients_;
  std::vector<float> values_, next_values_, advantages_;
  std::vector<int> order_;
  Eigen::MatrixXf act_observation_, act_action_, batch_observation_, batch_action_, d_head_,
      d_value_;
  std::vector<float> batch_log_prob_, batch_advantage_, d_log_prob_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_PPO_PPO_H_
