#include "msrl/core/segment_view.h"

#include <gtest/gtest.h>

#include <vector>

#include "msrl/core/rng.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;

// Row by row, as NumPy keeps it.
TEST(SegmentView, SeesRowMajorMemory) {
  const Lift::Ptr lift = Lift::Make({.kind = LiftKind::kFull, .d = 3, .q = 2, .slots = {}});
  Rng rng(1, "view");
  std::vector<double> x(3 * 6);
  std::vector<double> a(2 * 5);
  std::vector<double> r(5);
  for (auto* numbers : {&x, &a, &r}) {
    for (double& number : *numbers) number = rng.Normal();
  }
  Segment segment{.x = Eigen::MatrixXd(3, 6), .a = Eigen::MatrixXd(2, 5), .r = Eigen::VectorXd(5)};
  for (Index t = 0; t < 6; ++t) {
    for (Index i = 0; i < 3; ++i) segment.x(i, t) = x[static_cast<std::size_t>(3 * t + i)];
  }
  for (Index t = 0; t < 5; ++t) {
    for (Index i = 0; i < 2; ++i) segment.a(i, t) = a[static_cast<std::size_t>(2 * t + i)];
    segment.r[t] = r[static_cast<std::size_t>(t)];
  }

  const SegmentView view{{x.data(), 3, 6}, {a.data(), 2, 5}, {r.data(), 5}};
  EXPECT_EQ(view.x.data(), x.data());
  EXPECT_EQ(Describe(lift, view), Describe(lift, segment));
  EXPECT_EQ(LiftedSteps(*lift, view), LiftedSteps(*lift, segment));

  const SegmentView cut{{x.data(), 3, 5}, {a.data(), 2, 5}, {r.data(), 5}};
  EXPECT_EQ(UserErrorText([&] { Describe(lift, cut); }),
            "a trajectory with 5 rewards needs 6 states and 5 actions, got 5 and 5");
}

}  // namespace
}  // namespace msrl
