#include "msrl/core/gluing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "msrl/core/check.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::DrawScene;
using testing::NaiveMatrix;
using testing::Scene;
using testing::Tol;

// Theorem "Local-to-global gluing": inclusion-exclusion over the nerve, the O(K) form for intervals
// and the direct sum agree.
RC_GTEST_PROP(GluingProperty, NerveIntervalsAndDirectSumAgree, ()) {
  Scene scene = DrawScene();
  const Index horizon = *rc::gen::inRange<Index>(0, 30);
  const Segment segment = scene.RandomSegment(horizon);
  const std::vector<Interval> cover = scene.RandomCover(horizon, *rc::gen::inRange(0, 4));
  const auto matrix_of = [&](Interval interval) {
    return Describe(scene.lift, Restrict(segment, interval));
  };
  const Eigen::MatrixXd direct = NaiveMatrix(*scene.lift, segment);
  if (cover.empty()) {
    RC_ASSERT(horizon == 0);
    return;
  }
  std::vector<SharedMatrix> family;
  double terms = 0.0;
  for (const NerveElement& element : Nerve(cover, horizon)) {
    family.push_back({static_cast<int>(element.members.size()), matrix_of(element.overlap)});
    terms += family.back().matrix.Norm();
  }
  // cancellation: errors are relative to what was summed
  RC_ASSERT((GlueNerve(family).Dense() - direct).norm() <= Tol(1e-13) * terms);
  const SegmentMatrix linear = GlueIntervals(cover, horizon, matrix_of);
  RC_ASSERT((linear.Dense() - direct).norm() <= Tol(1e-12) * direct.norm());
}

// The nerve against its definition: all nonempty subsets with a common transition.
RC_GTEST_PROP(GluingProperty, NerveHasExactlyTheNonemptyOverlaps, ()) {
  Scene scene = DrawScene();
  const Index horizon = *rc::gen::inRange<Index>(1, 20);
  std::vector<Interval> cover = scene.RandomCover(horizon, 2);
  if (cover.size() > 10) cover.resize(10);
  cover.push_back({0, horizon});

  std::set<std::vector<int>> expected;
  for (unsigned subset = 1; subset < (1u << cover.size()); ++subset) {
    std::vector<int> members;
    for (std::size_t k = 0; k < cover.size(); ++k) {
      if ((subset >> k) & 1u) members.push_back(static_cast<int>(k));
    }
    bool shared = false;
    for (Index t = 0; t < horizon && !shared; ++t) {
      shared = std::all_of(members.begin(), members.end(), [&](int k) {
        const Interval& interval = cover[static_cast<std::size_t>(k)];
        return interval.begin <= t && t < interval.end;
      });
    }
    if (shared) expected.insert(members);
  }
  std::set<std::vector<int>> actual;
  for (const NerveElement& element : Nerve(cover, horizon)) actual.insert(element.members);
  RC_ASSERT(actual == expected);
}

// Every transition is counted exactly once by the interval plan.
RC_GTEST_PROP(GluingProperty, PlanCountsEveryTransitionOnce, ()) {
  Scene scene = DrawScene();
  const Index horizon = *rc::gen::inRange<Index>(1, 200);
  const std::vector<Interval> cover = scene.RandomCover(horizon, 10);
  const IntervalGluing plan = PlanIntervalGluing(cover, horizon);
  RC_ASSERT(plan.pieces.size() <= cover.size());
  RC_ASSERT(plan.overlaps.size() < plan.pieces.size());
  std::vector<int> count(static_cast<std::size_t>(horizon), 0);
  const auto add = [&count](Interval interval, int sign) {
    for (Index t = interval.begin; t < interval.end; ++t)
      count[static_cast<std::size_t>(t)] += sign;
  };
  for (const Interval& piece : plan.pieces) add(piece, 1);
  for (const Interval& overlap : plan.overlaps) add(overlap, -1);
  for (const int n : count) RC_ASSERT(n == 1);
}

TEST(Gluing, OverlapsByHand) {
  // steps with psi = (x, dx, r, 1): x = t, dx = 1, r = 0
  const auto lift = Lift::Make({LiftKind::kCompactNoAction, 1, 0, {}});
  Segment segment{Eigen::MatrixXd(1, 5), Eigen::MatrixXd(0, 4), Eigen::VectorXd::Zero(4)};
  segment.x << 0, 1, 2, 3, 4;
  const auto matrix_of = [&](Interval i) { return Describe(lift, Restrict(segment, i)); };
  const std::vector<Interval> cover{{0, 3}, {1, 4}, {2, 3}};
  const SegmentMatrix glued = GlueIntervals(cover, 4, matrix_of);
  EXPECT_EQ(glued.HorizonEntry(), 4.0);
  EXPECT_EQ(glued.Block("x", "x")(0, 0), 0.0 + 1.0 + 4.0 + 9.0);
  EXPECT_EQ(glued.Block("x", "1")(0, 0), 6.0);
}

TEST(Gluing, AnyFamilyHasAGluedCandidate) {
  const auto lift = Lift::Make({LiftKind::kCompactNoAction, 1, 0, {}});
  SegmentMatrix one(lift);
  one.AddStep(Eigen::Vector4d(1, 0, 0, 1));
  const std::vector<SharedMatrix> family{{1, one}, {2, one}, {2, one}};
  const SegmentMatrix candidate = GlueNerve(family);
  EXPECT_EQ(candidate.HorizonEntry(), -1.0);
  EXPECT_FALSE(candidate.IsPsd());
}

TEST(Gluing, RefusesBadCovers) {
  const auto cover_error = [](const std::vector<Interval>& cover) {
    return testing::UserErrorText([&] { RequireCover(cover, 10); });
  };
  EXPECT_EQ(cover_error({{0, 10}}), "no error");
  EXPECT_EQ(cover_error({{0, 4}, {5, 10}}), "the intervals do not cover transition 4 of 10");
  EXPECT_EQ(cover_error({{1, 10}}), "the intervals do not cover transition 0 of 10");
  EXPECT_EQ(cover_error({{0, 9}}), "the intervals do not cover transition 9 of 10");
  EXPECT_EQ(cover_error({}), "the intervals do not cover transition 0 of 10");
  EXPECT_NE(cover_error({{0, 11}}).find("[0, 11)"), std::string::npos);
  EXPECT_NE(cover_error({{-1, 10}}).find("[-1, 10)"), std::string::npos);
  EXPECT_NE(cover_error({{0, 10}, {4, 4}}).find("[4, 4)"), std::string::npos);
}

TEST(Gluing, RefusesAnExplodingNerveAndAnEmptyFamily) {
  const std::vector<Interval> deep(30, Interval{0, 5});
  EXPECT_THROW(Nerve(deep, 5, 1000), UserError);
  EXPECT_EQ(PlanIntervalGluing(deep, 5).pieces.size(), 1u);
  EXPECT_THROW(GlueNerve({}), UserError);
}

TEST(Gluing, RefusesMixedLifts) {
  const SegmentMatrix a(Lift::Make({LiftKind::kCompact, 1, 1, {}}));
  const SegmentMatrix b(Lift::Make({LiftKind::kCompact, 1, 2, {}}));
  const std::vector<SharedMatrix> family{{1, a}, {1, b}};
  EXPECT_THROW(GlueNerve(family), UserError);
}

}  // namespace
}  // namespace msrl
