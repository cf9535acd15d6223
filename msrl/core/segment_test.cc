#include "msrl/core/segment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

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
using testing::UserErrorText;

// Theorem "Composition": M(a * b) = M(a) + M(b), to 1e-12 relative (the paper reports 3e-7 to
// 2e-5).
RC_GTEST_PROP(CompositionProperty, IsAddition, ()) {
  Scene scene = DrawScene();
  const Segment first = scene.RandomSegment();
  Segment second = scene.RandomSegment(*rc::gen::inRange<Index>(0, 60));
  second.x.col(0) = first.exit();

  const Segment joined = Concatenate(first, second, 0.0);
  RC_ASSERT(joined.horizon() == first.horizon() + second.horizon());
  const SegmentMatrix composed =
      Compose(Anchor(scene.lift, first), Anchor(scene.lift, second), 0.0).matrix;
  const Eigen::MatrixXd direct = NaiveMatrix(*scene.lift, joined);
  RC_ASSERT((composed.Dense() - direct).norm() <= Tol(1e-12) * direct.norm());
  RC_ASSERT(Describe(scene.lift, joined).Distance(composed) <= Tol(1e-12) * direct.norm());
}

RC_GTEST_PROP(CompositionProperty, AnchorsAreTheOuterEnds, ()) {
  Scene scene = DrawScene();
  const Segment first = scene.RandomSegment();
  Segment second = scene.RandomSegment();
  second.x.col(0) = first.exit();
  const AnchoredMatrix composed =
      Compose(Anchor(scene.lift, first), Anchor(scene.lift, second), 0.0);
  RC_ASSERT(composed.entry == first.entry());
  RC_ASSERT(composed.exit == second.exit());
}

RC_GTEST_PROP(CompositionProperty, RefusesAJunctionThatDoesNotMatch, ()) {
  Scene scene = DrawScene();
  const Segment first = scene.RandomSegment();
  Segment second = scene.RandomSegment();
  second.x.col(0) = first.exit();
  second.x(scene.rng.Index(scene.lift->d()), 0) += 1e-3 * scene.scale;
  RC_ASSERT_THROWS_AS(Concatenate(first, second, 1e-6 * scene.scale), UserError);
  RC_ASSERT_THROWS_AS(
      Compose(Anchor(scene.lift, first), Anchor(scene.lift, second), 1e-6 * scene.scale),
      UserError);
  // the tolerance is the caller's
  RC_ASSERT(Concatenate(first, second, 1e-2 * scene.scale).horizon() ==
            first.horizon() + second.horizon());
}

RC_GTEST_PROP(RestrictionProperty, KeepsExactlyTheTransitionsInside, ()) {
  Scene scene = DrawScene();
  const Segment segment = scene.RandomSegment();
  const Index begin = *rc::gen::inRange<Index>(0, segment.horizon() + 1);
  const Index end = *rc::gen::inRange<Index>(begin, segment.horizon() + 1);
  const Segment part = Restrict(segment, {begin, end});
  RC_ASSERT(part.horizon() == end - begin);
  const Eigen::MatrixXd all = LiftedSteps(*scene.lift, segment);
  RC_ASSERT(LiftedSteps(*scene.lift, part) == all.middleCols(begin, end - begin));
}

// The descriptor is a commutative sum: order is not encoded beyond the lifted steps.
RC_GTEST_PROP(OrderProperty, SameMultisetOfStepsSameMatrix, ()) {
  Scene scene = DrawScene();
  // three loops through one state can be walked in any order
  std::vector<Segment> loops;
  for (int k = 0; k < 3; ++k) {
    loops.push_back(scene.RandomCycle());
    if (k > 0) {
      loops.back().x.col(0) = loops.front().x.col(0);
      loops.back().x.col(loops.back().horizon()) = loops.front().x.col(0);
    }
  }
  const Segment forward = Concatenate(Concatenate(loops[0], loops[1], 0.0), loops[2], 0.0);
  const Segment shuffled = Concatenate(Concatenate(loops[2], loops[0], 0.0), loops[1], 0.0);
  const SegmentMatrix a = Describe(scene.lift, forward);
  const SegmentMatrix b = Describe(scene.lift, shuffled);
  RC_ASSERT(a.Distance(b) <= Tol(1e-13) * a.Norm());
}

Segment SmallSegment() {
  return {Eigen::MatrixXd::Zero(2, 4), Eigen::MatrixXd::Zero(1, 3), Eigen::VectorXd::Zero(3)};
}

TEST(Segment, RestrictRefusesIntervalsOutside) {
  const Segment segment = SmallSegment();
  EXPECT_THROW(Restrict(segment, {-1, 2}), UserError);
  EXPECT_THROW(Restrict(segment, {0, 4}), UserError);
  EXPECT_THROW(Restrict(segment, {2, 1}), UserError);
  EXPECT_EQ(Restrict(segment, {3, 3}).horizon(), 0);
}

TEST(Segment, DescribeNamesStepAndChannel) {
  const auto lift = Lift::Make({LiftKind::kFull, 2, 1, {}});
  Segment segment = SmallSegment();
  segment.a(0, 2) = std::nan("");
  EXPECT_EQ(UserErrorText([&] { Describe(lift, segment); }), "step 2: a[0] is nan");
}

TEST(Segment, DescribeRefusesSizesThatDoNotFit) {
  const auto lift = Lift::Make({LiftKind::kFull, 2, 1, {}});
  Segment segment = SmallSegment();
  segment.r.resize(2);
  EXPECT_THROW(Describe(lift, segment), UserError);
  EXPECT_THROW(Describe(Lift::Make({LiftKind::kFull, 3, 1, {}}), SmallSegment()), UserError);
  EXPECT_THROW(Describe(Lift::Make({LiftKind::kFull, 2, 2, {}}), SmallSegment()), UserError);
  Segment point{Eigen::MatrixXd::Constant(2, 1, std::nan("")), Eigen::MatrixXd(1, 0),
                Eigen::VectorXd(0)};
  EXPECT_THROW(Describe(lift, point), UserError);
}

}  // namespace
}  // namespace msrl
