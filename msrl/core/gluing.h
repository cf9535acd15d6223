// Local-to-global gluing of overlapping restrictions (paper, Theorem "Local-to-global gluing").
#ifndef MSRL_CORE_GLUING_H_
#define MSRL_CORE_GLUING_H_

#include <functional>
#include <span>
#include <vector>

#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

// One nonempty overlap: the members S of the cover whose intersection I_S is not empty.
struct NerveElement {
  std::vector<int> members;  // ascending indices into the cover
  Interval overlap;
};

// UserError unless the intervals are inside {0, ..., horizon-1}, not empty, and cover it.
void RequireCover(std::span<const Interval> cover, Index horizon);

// All of N = {S : I_S not empty}. Its size grows as 2^(deepest overlap): UserError past `max_size`.
std::vector<NerveElement> Nerve(std::span<const Interval> cover, Index horizon,
                                std::size_t max_size = 1u << 20);

// A matrix M_S with the number |S| of intervals that it is shared by.
struct SharedMatrix {
  int members = 1;
  SegmentMatrix matrix;
};

// sum over S of (-1)^(|S|+1) M_S for any family over a nerve. The result is a candidate: it need
// not be positive semidefinite nor realizable. UserError if the family is empty or mixes lifts.
SegmentMatrix GlueNerve(std::span<const SharedMatrix> family);

// The same for intervals, in O(K) matrices instead of up to 2^K. Intervals that lie inside another
// one are dropped; of the rest, sorted, those that contain a given t are consecutive, so
//   M = sum_k M(I_k) - sum_k M(I_k intersected with I_{k+1}).
struct IntervalGluing {
  std::vector<Interval> pieces;    // sorted, none inside another
  std::vector<Interval> overlaps;  // of consecutive pieces, empty ones left out
};
IntervalGluing PlanIntervalGluing(std::span<const Interval> cover, Index horizon);

// `piece_matrices` and `overlap_matrices` belong to plan.pieces and plan.overlaps.
SegmentMatrix GlueIntervals(const IntervalGluing& plan,
                            std::span<const SegmentMatrix> piece_matrices,
                            std::span<const SegmentMatrix> overlap_matrices);

// Plans, asks `matrix_of` for the matrix of each interval needed, and glues.
SegmentMatrix GlueIntervals(std::span<const Interval> cover, Index horizon,
                            const std::function<SegmentMatrix(Interval)>& matrix_of);

}  // namespace msrl

#endif  // MSRL_CORE_GLUING_H_
