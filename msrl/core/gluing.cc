#include "msrl/core/gluing.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {
namespace {

Interval Intersect(Interval a, Interval b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Sorted by start, the longer first, so that an interval inside another comes after it.
std::vector<Interval> Sorted(std::span<const Interval> cover) {
  std::vector<Interval> sorted(cover.begin(), cover.end());
  std::sort(sorted.begin(), sorted.end(), [](Interval a, Interval b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return sorted;
}

}  // namespace

void RequireCover(std::span<const Interval> cover, Index horizon) {
  for (const Interval& interval : cover) {
    if (interval.begin < 0 || interval.end > horizon || interval.begin >= interval.end) {
      throw UserError(StrCat("interval [", interval.begin, ", ", interval.end,
                             ") is empty or not inside the ", horizon, " transitions to cover"));
    }
  }
  Index covered = 0;
  for (const Interval& interval : Sorted(cover)) {
    if (interval.begin > covered) break;
    covered = std::max(covered, interval.end);
  }
  if (covered < horizon) {
    throw UserError(StrCat("the intervals do not cover transition ", covered, " of ", horizon));
  }
}

std::vector<NerveElement> Nerve(std::span<const Interval> cover, Index horizon,
                                std::size_t max_size) {
  RequireCover(cover, horizon);
  // grow every element by the later intervals that still meet it
  std::vector<NerveElement> nerve;
  for (std::size_t k = 0; k < cover.size(); ++k) {
    nerve.push_back({{static_cast<int>(k)}, cover[k]});
  }
  for (std::size_t e = 0; e < nerve.size(); ++e) {
    const std::size_t first = static_cast<std::size_t>(nerve[e].members.back()) + 1;
    for (std::size_t k = first; k < cover.size(); ++k) {
      const Interval overlap = Intersect(nerve[e].overlap, cover[k]);
      if (overlap.length() <= 0) continue;
      if (nerve.size() >= max_size) {
        throw UserError(StrCat("more than ", max_size, " nonempty overlaps; glue intervals with ",
                               "the linear form instead"));
      }
      NerveElement grown{nerve[e].members, overlap};
      grown.members.push_back(static_cast<int>(k));
      nerve.push_back(std::move(grown));
    }
  }
  return nerve;
}

SegmentMatrix GlueNerve(std::span<const SharedMatrix> family) {
  if (family.empty()) throw UserError("cannot glue an empty family of matrices");
  SegmentMatrix glued(family.front().matrix.lift());
  for (const SharedMatrix& element : family) {
    MSRL_CHECK_GE(element.members, 1);
    if (element.members % 2 == 1) {
      glued += element.matrix;
    } else {
      glued -= element.matrix;
    }
  }
  return glued;
}

IntervalGluing PlanIntervalGluing(std::span<const Interval> cover, Index horizon) {
  RequireCover(cover, horizon);
  IntervalGluing plan;
  for (const Interval& interval : Sorted(cover)) {
    // starts no earlier than the last piece: inside it unless it ends later
    if (!plan.pieces.empty() && interval.end <= plan.pieces.back().end) continue;
    if (!plan.pieces.empty()) {
      const Interval overlap = Intersect(plan.pieces.back(), interval);
      if (overlap.length() > 0) plan.overlaps.push_back(overlap);
    }
    plan.pieces.push_back(interval);
  }
  return plan;
}

SegmentMatrix GlueIntervals(const IntervalGluing& plan,
                            std::span<const SegmentMatrix> piece_matrices,
                            std::span<const SegmentMatrix> overlap_matrices) {
  MSRL_CHECK_EQ(piece_matrices.size(), plan.pieces.size());
  MSRL_CHECK_EQ(overlap_matrices.size(), plan.overlaps.size());
  if (piece_matrices.empty()) throw UserError("cannot glue an empty cover");
  SegmentMatrix glued(piece_matrices.front().lift());
  for (const SegmentMatrix& piece : piece_matrices) glued += piece;
  for (const SegmentMatrix& overlap : overlap_matrices) glued -= overlap;
  return glued;
}

SegmentMatrix GlueIntervals(std::span<const Interval> cover, Index horizon,
                            const std::function<SegmentMatrix(Interval)>& matrix_of) {
  const IntervalGluing plan = PlanIntervalGluing(cover, horizon);
  std::vector<SegmentMatrix> pieces;
  std::vector<SegmentMatrix> overlaps;
  for (const Interval& piece : plan.pieces) pieces.push_back(matrix_of(piece));
  for (const Interval& overlap : plan.overlaps) overlaps.push_back(matrix_of(overlap));
  return GlueIntervals(plan, pieces, overlaps);
}

}  // namespace msrl
