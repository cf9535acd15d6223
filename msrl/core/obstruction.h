// Realizability: how far a candidate matrix is from all matrices that an environment can produce
// (paper, Theorem "Obstruction").
#ifndef MSRL_CORE_OBSTRUCTION_H_
#define MSRL_CORE_OBSTRUCTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "msrl/core/graph.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

// The reachable matrix sets R_e^(T) for T = 0, ..., max_horizon of an environment whose realizable
// segments are the walks of a finite directed multigraph.
class ReachableSet {
 public:
  // Enumerates all walks of up to `max_horizon` edges from the start nodes. Walks with the same end
  // and the same edges, in whatever order, have the same matrix and are kept once.
  // UserError past `max_matrices`.
  ReachableSet(Lift::Ptr lift, const Multigraph& graph, std::span<const int> starts,
               int max_horizon, std::size_t max_matrices = 2'000'000);

  const Lift::Ptr& lift() const { return lift_; }
  int max_horizon() const { return static_cast<int>(by_horizon_.size()) - 1; }
  // The matrices of R^(T).
  std::span<const SegmentMatrix> At(std::int64_t horizon) const;

 private:
  Lift::Ptr lift_;
  std::vector<std::vector<SegmentMatrix>> by_horizon_;
};

enum class ObstructionReason {
  kNone,              // a reachable matrix is within the tolerance: no certificate
  kHorizonEntry,      // M_11 is not a nonnegative integer: no trajectory has it
  kNoTrajectory,      // nothing of this horizon is reachable: the infimum over the empty set
  kPositiveDistance,  // the nearest reachable matrix is farther than the tolerance
};

struct Obstruction {
  double score = 0.0;  // Obs_e^(T), +infinity in the cases kHorizonEntry and kNoTrajectory
  ObstructionReason reason = ObstructionReason::kNone;
  // True means: certainly not realizable. False claims nothing.
  bool certified() const { return reason != ObstructionReason::kNone; }
};

// `tolerance` (relative to 1 + the candidate's norm) separates rounding from a real distance.
// UserError if the lifts differ or the candidate's horizon was not enumerated.
Obstruction ExactObstruction(const SegmentMatrix& candidate, const ReachableSet& reachable,
                             double tolerance = 1e-9);

}  // namespace msrl

#endif  // MSRL_CORE_OBSTRUCTION_H_
