// Model predictive path integral control: a normal distribution over sequences of actions, fitted
// again and again to the best of its samples. Knows nothing of models.
//
//   Mppi mppi(settings, /*action_size=*/m);
//   mppi.Begin(mean);                           // m x H, the plan of the step before
//   for (int i = 0; i < settings.iterations; ++i) {
//     mppi.Sample(rng, actions);                // m x (H N), column t N + i
//     mppi.Fit(actions, values);                // N values
//   }
//   const int chosen = mppi.Choose(rng);        // a sample, by its weight
#ifndef MSRL_AGENTS_TDMPC_MPPI_H_
#define MSRL_AGENTS_TDMPC_MPPI_H_

#include <span>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/nn/mlp.h"

namespace msrl {

struct MppiSettings {
  int horizon = 3;
  int samples = 64;
  int policy_samples = 8;
  int elites = 16;
  int iterations = 3;
  double temperature = 0.5;
  double min_std = 0.05;
  double max_std = 2.0;

  template <typename V>
  void Fields(V&& visit) {
    visit("horizon", horizon, "steps that the model looks ahead, in learning and in planning",
          Between(1, 64));
    visit("plan_samples", samples, "action sequences per iteration of the planner",
          Between(2, 65536));
    visit("plan_policy_samples", policy_samples, "of these, how many the policy proposes",
          NotNegative());
    visit("plan_elites", elites, "best sequences that the next distribution is fitted to",
          AtLeast(1));
    visit("plan_iterations", iterations, "iterations of the planner", AtLeast(1));
    visit("plan_temperature", temperature, "elites weigh exp(this times value)", NotNegative());
    visit("plan_min_std", min_std, "least deviation of a planned action", Positive());
    visit("plan_max_std", max_std, "first and largest deviation of a planned action", Positive());
  }
};

// UserError on settings that contradict each other.
void RequireConsistent(const MppiSettings& settings);

// weights_i ~ exp(temperature (values_i - max values)), their sum is one.
void MppiWeights(std::span<const float> values, double temperature, std::span<float> weights);

class Mppi {
 public:
  Mppi(const MppiSettings& settings, int action_size);

  // Starts from a mean (m x H), with the largest deviation everywhere.
  void Begin(const Eigen::MatrixXf& mean);
  // Draws all but the first policy_samples sequences, cut to [-1, 1]; actions are m x (H N).
  void Sample(Rng& rng, MatrixRef actions);
  // Fits mean and deviation to the elites. Values are finite. No allocation.
  void Fit(const ConstMatrixRef& actions, std::span<const float> values);
  // The number of an elite of the last Fit, drawn by weight.
  int Choose(Rng& rng) const;

  const Eigen::MatrixXf& mean() const { return mean_; }  // m x H
  const Eigen::MatrixXf& std() const { return std_; }

 private:
  MppiSettings settings_;
  Eigen::MatrixXf mean_, std_;
  std::vector<int> order_;  // of samples, the elites first
  std::vector<float> elite_values_, weights_;
  std::vector<float> noise_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TDMPC_MPPI_H_
