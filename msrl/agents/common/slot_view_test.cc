#include "msrl/agents/common/slot_view.h"

#include <gtest/gtest.h>

#include <vector>

#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::SmallSpec;
using testing::UserErrorText;

TEST(SlotView, ActionsGoToTheirEntriesOfTheCode) {
  EnvSpec spec = SmallSpec(ActionKind::kContinuous, 3);
  Eigen::MatrixXf expected = Eigen::MatrixXf::Zero(kActionCodeSize, 3);
  expected.topRows(3).setIdentity();
  EXPECT_EQ(SlotsOf(spec), expected);
  // two that share an entry are their mean there
  spec.action_code = {4, 1, 4};
  expected.setZero();
  expected(4, 0) = expected(4, 2) = 0.5F;
  expected(1, 1) = 1.0F;
  EXPECT_EQ(SlotsOf(spec), expected);
  EXPECT_NE(UserErrorText([] {
              SlotsOf(SmallSpec(ActionKind::kContinuous, 11));
            }).find("don't fit into a code"),
            std::string::npos);
}

TEST(SlotView, SlotsAreAboveTheObservationAndAliveOnceSeen) {
  const EnvSpec spec = SmallSpec(ActionKind::kContinuous, 2);
  const std::vector<double> observation{7.0, 8.0, 9.0};
  std::vector<double> geometry(kGeometrySize, 0.0);
  const SegmentMatrix matrix(CompactLift());
  const EnvView own(observation.data(), 3);
  const auto at = [&](int step) {
    return Situation{own, EnvView(geometry.data(), kGeometrySize), matrix, step};
  };
  ChannelWriter writer(ChannelFacts::Of(spec));
  EXPECT_EQ(SeenSize(spec, false), 3);
  EXPECT_EQ(See(at(0), false, writer, {}).data(), own.data());

  std::vector<double> seen(static_cast<std::size_t>(SeenSize(spec, true)));
  geometry[1] = 9.0;
  See(at(0), true, writer, seen);
  EXPECT_EQ(seen[1], 5.0);  // cut
  EXPECT_EQ(seen[kGeometrySize + 1], 1.0);
  EXPECT_EQ(seen[kGeometrySize + 2], 0.0);
  EXPECT_EQ(std::vector<double>(seen.end() - 3, seen.end()), observation);
  geometry[1] = 0.0;
  geometry[2] = 0.5;
  See(at(1), true, writer, seen);
  const std::vector<double> first = seen;
  EXPECT_EQ(seen[1], 0.0);
  EXPECT_EQ(seen[kGeometrySize + 1], 1.0);
  EXPECT_EQ(seen[kGeometrySize + 2], 1.0);
  See(at(1), true, writer, seen);
  EXPECT_EQ(seen, first);
  // of the next episode nothing is known
  See(at(0), true, writer, seen);
  EXPECT_EQ(seen[kGeometrySize + 1], 0.0);
}

}  // namespace
}  // namespace msrl
