// Q(o, Z, a) = F(Z) + R([h(Z); o; a]) of a trained critic as a function of Z, in double.
#ifndef MSRL_INSPECT_PRECISE_CRITIC_H_
#define MSRL_INSPECT_PRECISE_CRITIC_H_

#include <Eigen/Core>
#include <vector>

#include "msrl/agents/common/critic.h"
#include "msrl/inspect/value_theory.h"

namespace msrl {

// The networks of a critic with their float parameters in double arithmetic: a copy that the values
// of many states share.
class PreciseCritic {
 public:
  // InvariantError without a branch.
  explicit PreciseCritic(const Critic& critic);

  const MatrixFeatures& features() const { return features_; }
  // F(Z).
  double F(const SegmentMatrix& z) const;
  // Q of the output `output`: the smaller of twins. `state` is [o; a], or o if actions are outputs.
  double Q(const SegmentMatrix& z, const Eigen::VectorXd& state, int output) const;
  // dQ/dZ, of the smaller of twins.
  SegmentMatrix Gradient(const SegmentMatrix& z, const Eigen::VectorXd& state, int output) const;

 private:
  struct Forward {
    Eigen::VectorXd features;
    Eigen::VectorXd input;  // of R
    double f = 0.0;
    double r = 0.0;
    std::size_t head = 0;  // the smaller one
  };
  Forward Run(const SegmentMatrix& z, const Eigen::VectorXd& state, int output) const;
  Eigen::VectorXd FeaturesOf(const SegmentMatrix& z) const;

  MatrixFeatures features_;
  bool hidden_input_;
  int outputs_;
  PreciseMlp branch_;
  std::vector<PreciseMlp> heads_;  // R
};

// With observation and action fixed.
class CriticValue : public MatrixValue {
 public:
  // A continuous action. The critic must outlive this.
  CriticValue(const PreciseCritic& critic, const Eigen::VectorXd& observation,
              const Eigen::VectorXd& action);
  // A discrete one.
  CriticValue(const PreciseCritic& critic, const Eigen::VectorXd& observation, int action);

  double Value(const SegmentMatrix& z) const override { return critic_.Q(z, state_, output_); }
  SegmentMatrix Gradient(const SegmentMatrix& z) const override {
    return critic_.Gradient(z, state_, output_);
  }

 private:
  const PreciseCritic& critic_;
  Eigen::VectorXd state_;
  int output_ = 0;
};

}  // namespace msrl

#endif  // MSRL_INSPECT_PRECISE_CRITIC_H_
