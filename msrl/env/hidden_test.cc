#include "msrl/env/hidden.h"

#include <gtest/gtest.h>

#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using Options = std::vector<std::string>;
const Options kGoalHidden{"hidden=goal"};
const Options kGainsHidden{"hidden=gains"};

std::vector<std::string> Targets() {
  std::vector<std::string> ids;
  for (const EnvEntry& entry : BuiltinEnvs()) {
    if (!entry.is_source) ids.push_back(entry.id);
  }
  return ids;
}

// The same episode with the goal shown and hidden: nothing differs but what tells the goal.
TEST(Hidden, GoalIsNeitherInObservationNorInGeometry) {
  int tasks = 0;
  for (const std::string& id : Targets()) {
    const auto shown = MakeEnv(id);
    const EnvSpec& spec = shown->spec();
    if (spec.goal_entries.empty()) continue;
    ++tasks;
    const auto hidden = MakeEnv(id, kGoalHidden);
    EXPECT_EQ(hidden->spec().id, id);
    EXPECT_TRUE(hidden->spec().terminates == nullptr);
    EXPECT_TRUE(MakeEnv(id, kGainsHidden)->spec().terminates != nullptr);
    bool told = false;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      shown->Reset(seed);
      hidden->Reset(seed);
      Rng rng(seed, "actions");
      ActionBuffer action(spec.action);
      for (int t = 0; t < 5; ++t) {
        Eigen::VectorXd expected = shown->observation();
        for (const int entry : spec.goal_entries) {
          told |= expected[entry] != 0.0;
          expected[entry] = 0.0;
        }
        EXPECT_EQ(Eigen::VectorXd(hidden->observation()), expected) << id;
        Eigen::VectorXd geometry = shown->geometry();
        geometry[2] = geometry[3] = geometry[7] = 0.0;
        EXPECT_EQ(Eigen::VectorXd(hidden->geometry()), geometry) << id;
        DrawUniformAction(spec.action, rng, action);
        const StepResult with = shown->Step(action.view());
        EXPECT_EQ(hidden->Step(action.view()).reward, with.reward) << id;
        if (with.terminated || with.truncated) break;
      }
    }
    EXPECT_TRUE(told) << id;
  }
  EXPECT_GE(tasks, 12);
}

// No entry but the named ones moves with the goal: episodes that differ in nothing else look alike.
TEST(Hidden, ObservationsOfOtherGoalsAreEqual) {
  const auto env = MakeEnv("reacher", kGoalHidden);
  env->Reset(0);
  const Eigen::VectorXd first = env->observation();
  env->Reset(1);
  // seeds differ in small postures and speeds only
  EXPECT_LE((first - env->observation()).cwiseAbs().maxCoeff(), 0.25);
}

// Slots 2 and 3 are the goal minus the slots from the spec's origin on.
TEST(Hidden, GoalsMoveWithTheSlotsThatTheSpecNames) {
  for (const std::string& id : Targets()) {
    const auto env = MakeEnv(id);
    const EnvSpec& spec = env->spec();
    if (spec.goal_entries.empty()) continue;
    env->Reset(3);
    Rng rng(3, "actions");
    ActionBuffer action(spec.action);
    Eigen::VectorXd before = env->geometry();
    for (int t = 0; t < 5; ++t) {
      DrawUniformAction(spec.action, rng, action);
      const StepResult result = env->Step(action.view());
      if (result.terminated || result.truncated) break;
      const Eigen::VectorXd after = env->geometry();
      // planar walkers have one direction only
      const int plane = after[3] == 0.0 && before[3] == 0.0 ? 1 : 2;
      for (int i = 0; i < plane; ++i) {
        const int origin = spec.goal_origin + i;
        EXPECT_NEAR(after[2 + i] - before[2 + i], before[origin] - after[origin], 1e-9)
            << id << " slot " << i;
      }
      before = after;
    }
  }
}

TEST(Hidden, GainsScaleAndTurnActions) {
  const auto plain = MakeEnv("arena-dense");
  const auto turned = MakeEnv("arena-dense", kGainsHidden);
  int negative = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    plain->Reset(seed);
    turned->Reset(seed);
    EXPECT_EQ(Eigen::VectorXd(turned->observation()), Eigen::VectorXd(plain->observation()));
    const std::map<std::string, double> facts = dynamic_cast<EnvWrapper&>(*turned).HiddenFacts();
    std::array<double, 2> full{1.0, 1.0};
    std::array<double, 2> scaled{facts.at("gain0"), facts.at("gain1")};
    for (const double gain : scaled) {
      EXPECT_GE(std::abs(gain), Hidden::kSmallestGain);
      EXPECT_LE(std::abs(gain), 1.0);
      negative += gain < 0.0;
    }
    EXPECT_EQ(turned->Step(Action::Continuous(full)).reward,
              plain->Step(Action::Continuous(scaled)).reward);
    EXPECT_EQ(Eigen::VectorXd(turned->observation()), Eigen::VectorXd(plain->observation()));
  }
  EXPECT_GE(negative, 10);
  EXPECT_LE(negative, 30);
  EXPECT_EQ(turned->expert(), nullptr);
}

TEST(Hidden, SnapshotsAreCompleteAndKeptApart) {
  for (const Options& options : {kGoalHidden, kGainsHidden}) {
    const auto env = MakeEnv("reacher", options);
    env->Reset(4);
    const std::array<double, 2> push{0.7, -0.3};
    env->Step(Action::Continuous(push));
    const std::vector<std::byte> bytes = env->Snapshot();
    const double reward = env->Step(Action::Continuous(push)).reward;
    const auto other = MakeEnv("reacher", options);
    other->Reset(9);
    other->Restore(bytes);
    EXPECT_EQ(other->Snapshot(), bytes);
    EXPECT_EQ(other->Step(Action::Continuous(push)).reward, reward);
    EXPECT_EQ(Eigen::VectorXd(other->observation()), Eigen::VectorXd(env->observation()));
    EXPECT_THROW(MakeEnv("reacher")->Restore(bytes), UserError);
  }
  const auto goal = MakeEnv("reacher", kGoalHidden);
  goal->Reset(1);
  const auto gains = MakeEnv("reacher", kGainsHidden);
  EXPECT_THROW(gains->Restore(goal->Snapshot()), UserError);
}

TEST(Hidden, StepsDoNotAllocate) {
  const auto env = MakeEnv("arena-sparse", kGainsHidden);
  env->Reset(0);
  const std::array<double, 2> push{0.7, -0.3};
  env->Step(Action::Continuous(push));
  const std::int64_t before = testing::AllocationCount();
  env->Step(Action::Continuous(push));
  EXPECT_EQ(testing::AllocationCount(), before);
}

TEST(Hidden, RefusesWhereThereIsNoGoalToHide) {
  EXPECT_NE(testing::UserErrorText([] { MakeEnv("hopper", kGoalHidden); }).find("no goal"),
            std::string::npos);
  EXPECT_THROW(MakeEnv("reacher", Options{"hidden=gaol"}), UserError);
  EXPECT_THROW(MakeEnv("point-rooms", kGoalHidden), UserError);
}

}  // namespace
}  // namespace msrl
