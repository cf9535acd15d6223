// Where is the goal that nobody shows? A perceptron on matrix features that was taught, on sources
// whose goals are hidden from Z, to tell them from what was rewarded.
//
// And the matrix as it would be had the goal been shown there: slots 2 and 3 are the goal minus the
// two slots of its origin, a linear function of the other channels, so that
//   psi~ = L psi,   Z~ = L Z L^T
// with L depending on the goal alone.
#ifndef MSRL_VALUE_GOAL_READING_H_
#define MSRL_VALUE_GOAL_READING_H_

#include <Eigen/Core>
#include <string>
#include <utility>

#include "msrl/core/segment_matrix.h"
#include "msrl/value/matrix_network.h"

namespace msrl {

class GoalReading : public MatrixNetwork {
 public:
  static constexpr const char* kKind = "goal-reading";
  static constexpr int kOutputs = 2;
  // Offsets beyond this are taught and told as this.
  static constexpr double kReach = 2.5;

  static ArtefactHeader HeaderOf(int feature_count, const BranchShape& shape,
                                 const BranchInfo& info) {
    return MatrixNetwork::HeaderOf(kKind, feature_count, shape, info);
  }

  GoalReading(int feature_count, const BranchShape& shape, BranchInfo info)
      : MatrixNetwork(feature_count, shape, kOutputs, std::move(info)) {}

  // The goal as seen from the present state, in units of slots 2 and 3. `features` is one column.
  Eigen::Vector2d Offset(const ConstMatrixRef& features, MlpTape& tape) const {
    const auto out = Forward(features, tape);
    return out.col(0).cast<double>().cwiseMax(-kReach).cwiseMin(kReach);
  }

  std::string Encode() const { return MatrixNetwork::Encode(kKind); }
  // UserError on anything that is not a whole reading, or that is of another lift.
  static GoalReading From(const Artefact& artefact, LiftId expected) {
    return GoalReading(
        MatrixNetwork::From(artefact, kKind, kOutputs, expected, Alignment::kAligned));
  }

 private:
  explicit GoalReading(MatrixNetwork network) : MatrixNetwork(std::move(network)) {}
};

// L of a goal, for matrices of a compact lift.
struct ShownGoal {
  // Where it is, in the coordinates of the slots from `origin` on.
  Eigen::Vector2d goal;
  int origin = 0;  // EnvSpec::goal_origin

  // L psi, in place.
  void Apply(const Lift& lift, Eigen::Ref<Eigen::VectorXd> psi) const;
  // L Z L^T, in place. No allocation.
  void Apply(SegmentMatrix& z) const;
};

}  // namespace msrl

#endif  // MSRL_VALUE_GOAL_READING_H_
