#include "msrl/agents/msrl/step_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msrl/core/check.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/point_world.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::PointWorld;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;

constexpr int kMost = 8;

StepModelSettings Quick() {
  StepModelSettings settings;
  settings.width = 32;
  settings.batch = 64;
  settings.first_updates = 1500;
  return settings;
}

class StepModelTest : public ::testing::TestWithParam<ActionKind> {
 protected:
  bool discrete() const { return GetParam() == ActionKind::kDiscrete; }
  StepModel Make(const StepModelSettings& settings = Quick()) const {
    return {PointWorld::Spec(GetParam()), settings, kMost, /*seed=*/3};
  }
  Replay Record(double low = -1.0, double high = 1.0) const {
    Rng rng(5, "record");
    return PointWorld::Record(GetParam(), 1500, rng, low, high);
  }
  // A step from each place, by an action in {-1, 0, 1}.
  Imagined Ask(StepModel& model, const std::vector<double>& places, double a) const {
    Imagined states(2, kMost);
    Eigen::MatrixXf actions = Eigen::MatrixXf::Zero(model.action_rows(), std::ssize(places));
    states.count = static_cast<int>(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      const auto o = PointWorld::Observation(places[i]);
      const auto g = PointWorld::Geometry(places[i]);
      for (Eigen::Index j = 0; j < 2; ++j) {
        states.observation(j, k) = static_cast<float>(o[static_cast<std::size_t>(j)]);
      }
      for (Eigen::Index j = 0; j < kGeometrySize; ++j) {
        states.geometry(j, k) = static_cast<float>(g[static_cast<std::size_t>(j)]);
      }
      if (discrete()) {
        actions(static_cast<Eigen::Index>(a) + 1, k) = 1.0F;
      } else {
        actions(0, k) = static_cast<float>(a);
      }
    }
    model.Advance(actions, states);
    return states;
  }
};

TEST_P(StepModelTest, LearnsWhereAStepLeadsAndWhatItIsWorth) {
  StepModelSettings settings = Quick();
  settings.first_updates = 5000;
  StepModel model = Make(settings);
  EXPECT_FALSE(model.ready());
  model.Update(Record());
  EXPECT_TRUE(model.ready());
  const std::vector<double> places{-0.97, -0.4, 0.0, 0.27, 0.5, 0.75};
  for (const double a : {-1.0, 0.0, 1.0}) {
    const Imagined ahead = Ask(model, places, a);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double q = PointWorld::Next(places[i], a);
      SCOPED_TRACE(StrCat(places[i], " by ", a));
      const auto k = static_cast<Eigen::Index>(i);
      EXPECT_NEAR(ahead.geometry(0, k), q, 0.02);
      EXPECT_NEAR(ahead.geometry(2, k), PointWorld::kGoal - q, 0.02);
      EXPECT_NEAR(ahead.geometry(1, k), 0.0, 0.01);
      EXPECT_NEAR(ahead.observation(0, k), q, 0.02);
      EXPECT_NEAR(ahead.observation(1, k), 2.0 * q * q, 0.06);
      // rewards and ends are steps; away from their edges they are known
      if (std::abs(std::abs(q - PointWorld::kGoal) - 0.1) > 0.06) {
        EXPECT_NEAR(ahead.reward[k], PointWorld::AtGoal(q) ? 1.0 : 0.0, 0.25);
        EXPECT_NEAR(ahead.geometry(7, k), PointWorld::AtGoal(q) ? 1.0 : 0.0, 0.25);
      }
      if (std::abs(q + 0.9) > 0.06) {
        EXPECT_NEAR(ahead.ends[k], PointWorld::Ends(q) ? 1.0 : 0.0, 0.3);
      }
    }
  }
}

// The record's o is then taken for the reading: it goes against the position, whatever it did.
TEST_P(StepModelTest, HoldsAGoalThatIsRead) {
  for (const bool is_read : {false, true}) {
    StepModel model(PointWorld::Spec(GetParam()), Quick(), kMost, /*seed=*/3, is_read);
    model.Update(Record());
    const Imagined ahead = Ask(model, {-0.3, 0.2}, 1.0);
    for (const Eigen::Index k : {0, 1}) {
      const double p = k == 0 ? -0.3 : 0.2;
      EXPECT_NEAR(ahead.geometry(0, k), p + PointWorld::kPace, 0.03);
      EXPECT_NEAR(ahead.geometry(2, k), PointWorld::kGoal - p - PointWorld::kPace, 0.03);
      EXPECT_NEAR(ahead.observation(0, k), p + (is_read ? -1.0 : 1.0) * PointWorld::kPace, 0.03);
    }
  }
}

TEST_P(StepModelTest, DoubtsWhatItHasNotSeen) {
  StepModel model = Make();
  model.Update(Record(-0.2, 0.2));
  const Imagined known = Ask(model, {-0.1, 0.0, 0.1}, 1.0);
  const Imagined foreign = Ask(model, {-1.0, 0.95, 1.0}, 1.0);
  EXPECT_GT(foreign.doubt.head(3).minCoeff(), 2.0F * known.doubt.head(3).maxCoeff());
  StepModelSettings one = Quick();
  one.members = 1;
  StepModel alone = Make(one);
  alone.Update(Record(-0.2, 0.2));
  EXPECT_EQ(Ask(alone, {-1.0}, 1.0).doubt[0], 0.0F);
}

TEST_P(StepModelTest, GoesOnBitForBit) {
  const Replay replay = Record();
  StepModelSettings settings = Quick();
  settings.first_updates = 20;
  StepModel a = Make(settings);
  for (int t = 0; t < 7; ++t) a.Update(replay);
  StepModel b = Make(settings);
  Unarchive(Archived(a), b);
  EXPECT_TRUE(b.ready());
  for (int t = 0; t < 5; ++t) {
    a.Update(replay);
    b.Update(replay);
  }
  EXPECT_TRUE(Archived(a) == Archived(b));
  EXPECT_EQ(Ask(a, {0.3}, 1.0).geometry(0, 0), Ask(b, {0.3}, 1.0).geometry(0, 0));
}

TEST_P(StepModelTest, NothingIsAllocatedOnceItRuns) {
  const Replay replay = Record();
  StepModelSettings settings = Quick();
  settings.first_updates = 2;
  StepModel model = Make(settings);
  model.Update(replay);
  Imagined states = Ask(model, {0.1, 0.2}, 0.0);
  const Eigen::MatrixXf actions = Eigen::MatrixXf::Zero(model.action_rows(), 2);
  const auto before = AllocationCount();
  model.Update(replay);
  model.Advance(actions, states);
  EXPECT_EQ(AllocationCount(), before);
}

TEST_P(StepModelTest, NumbersThatGoBadAreNamed) {
  StepModelSettings settings = Quick();
  settings.first_updates = 2;
  StepModel model = Make(settings);
  model.Update(Record());
  Imagined states = Ask(model, {0.1}, 0.0);
  states.geometry(0, 0) = std::numeric_limits<float>::quiet_NaN();
  const Eigen::MatrixXf actions = Eigen::MatrixXf::Zero(model.action_rows(), 1);
  EXPECT_THROW(model.Advance(actions, states), RunError);
}

TEST_P(StepModelTest, RefusesImpossibleSettings) {
  for (const int members : {0, StepModelSettings::kMaxMembers + 1}) {
    StepModelSettings settings;
    settings.members = members;
    EXPECT_NE(UserErrorText([&] { Make(settings); }).find("model_members"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, StepModelTest,
                         ::testing::Values(ActionKind::kContinuous, ActionKind::kDiscrete),
                         [](const auto& test) {
                           return test.param == ActionKind::kDiscrete ? "Discrete" : "Continuous";
                         });

}  // namespace
}  // namespace msrl
