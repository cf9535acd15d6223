#include "msrl/agents/msrl/model_planner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/agents/msrl/plan_contest.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/only_values.h"
#include "msrl/testing/point_world.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::PointWorld;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;

// The same value everywhere.
class FlatValues : public testing::OnlyValues {
 public:
  explicit FlatValues(float value = 0.0F) : value_(value) {}

  void StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& /*features*/,
                   std::span<float> v) override {
    std::fill_n(v.begin(), observation.cols(), value_);
  }

 private:
  float value_;
};

// F = factor * (3 x_T[0] + 6), of the place where a path ends.
ValueBranch Place(float factor) {
  const MatrixFeatures features(CompactLift());
  BranchInfo info;
  info.lift = CompactLift()->id();
  ValueBranch branch(features.size(), {.width = 1, .layers = 1, .layer_norm = false}, info);
  const auto w = branch.network().parameters();
  w[static_cast<std::size_t>(features.last_state_begin())] = 1.0F;
  w[static_cast<std::size_t>(features.size())] = 6.0F;  // so that the unit is never off
  w[static_cast<std::size_t>(features.size()) + 1] = factor;
  return branch;
}

class ModelPlannerTest : public ::testing::TestWithParam<ActionKind> {
 protected:
  bool discrete() const { return GetParam() == ActionKind::kDiscrete; }
  static ModelPlanSettings Settings() {
    ModelPlanSettings settings;
    settings.model.width = 32;
    settings.model.batch = 64;
    settings.model.first_updates = 1500;
    return settings;
  }
  ModelPlanner Make(const ModelPlanSettings& settings) const {
    return {PointWorld::Spec(GetParam()),
            settings,
            CompactLift(),
            MatrixFeatureOptions{},
            0.99,
            /*seed=*/3};
  }
  ModelPlanner Learned(const ModelPlanSettings& settings = Settings()) const {
    ModelPlanner planner = Make(settings);
    planner.Update(Record());
    return planner;
  }
  Replay Record() const {
    Rng rng(5, "record");
    return PointWorld::Record(GetParam(), 1500, rng);
  }
  // What becomes of the policy's choice in {-1, 0, 1} at a place, after one step to the right.
  double Choice(ModelPlanner& planner, double p, double policy, float value = 0.0F,
                std::uint64_t seed = 1) const {
    const EnvSpec spec = PointWorld::Spec(GetParam());
    const auto o = PointWorld::Observation(p);
    const auto g = PointWorld::Geometry(p);
    const auto before = PointWorld::Geometry(p - 0.05);
    SegmentMatrix z(CompactLift());
    Eigen::VectorXd psi(z.lift()->m());
    const Eigen::VectorXd code = Eigen::VectorXd::Zero(kActionCodeSize);
    z.lift()->Apply(EnvView(before.data(), kGeometrySize), code, 0.0,
                    EnvView(g.data(), kGeometrySize), psi);
    z.AddStep(psi);
    const Situation situation{.observation = EnvView(o.data(), 2),
                              .geometry = EnvView(g.data(), kGeometrySize),
                              .matrix = z,
                              .step = 1};
    ActionBuffer out(spec.action);
    if (discrete()) {
      out.set_index(static_cast<int>(policy) + 1);
    } else {
      out.values()[0] = policy;
    }
    FlatValues base(value);
    Rng rng(seed, "plan");
    planner.Improve(situation, ActMode::kExplore, base, rng, out);
    return discrete() ? out.index() - 1.0 : out.values()[0];
  }
};

TEST_P(ModelPlannerTest, GoesWhereTheRewardIs) {
  ModelPlanner unlearned = Make(Settings());
  EXPECT_EQ(Choice(unlearned, 0.2, -1.0), -1.0);
  ModelPlanner planner = Learned();
  EXPECT_GT(Choice(planner, 0.25, -1.0), 0.4);
  EXPECT_LT(Choice(planner, 0.75, 1.0), -0.4);
  // a choice that is as good as any stays
  ModelPlanSettings wary = Settings();
  wary.margin = 10.0;
  ModelPlanner settled = Learned(wary);
  EXPECT_EQ(Choice(settled, 0.25, -1.0), -1.0);
}

TEST_P(ModelPlannerTest, KeepsOutOfEndsWhileLifeIsWorthSomething) {
  ModelPlanner planner = Learned();
  EXPECT_GT(Choice(planner, -0.82, -1.0, /*value=*/5.0F), -0.4);
  EXPECT_LT(Choice(planner, -0.82, 1.0, /*value=*/-5.0F), -0.4);
}

TEST_P(ModelPlannerTest, TheSourceSpeaksAndFades) {
  ModelPlanSettings settings = Settings();
  settings.source_steps = 4;
  ModelPlanner planner = Learned(settings);
  // far from all rewards the source alone decides
  for (const float factor : {1.0F, -1.0F}) {
    planner.SetSource(Place(factor));
    EXPECT_GT(factor * static_cast<float>(Choice(planner, -0.2, 0.0)), 0.4F);
  }
  const Replay replay = Record();
  EXPECT_EQ(planner.SourceWeight(), 1.0);
  planner.Update(replay);
  EXPECT_EQ(planner.SourceWeight(), 0.75);
  for (int t = 0; t < 5; ++t) planner.Update(replay);
  EXPECT_EQ(planner.SourceWeight(), 0.0);
  settings.source_steps = 0;
  ModelPlanner lasting = Learned(settings);
  for (int t = 0; t < 5; ++t) lasting.Update(replay);
  EXPECT_EQ(lasting.SourceWeight(), 1.0);
}

TEST_P(ModelPlannerTest, MoreRoundsComeNearerToTheBest) {
  // F rewards the place alone, so +1 is best
  const auto mean_choice = [&](int rounds) {
    ModelPlanSettings settings = Settings();
    settings.candidates = 6;
    settings.rounds = rounds;
    ModelPlanner planner = Learned(settings);
    planner.SetSource(Place(1.0F));
    double sum = 0.0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) sum += Choice(planner, -0.2, -1.0, 0.0F, seed);
    return sum / 20.0;
  };
  if (discrete()) {
    EXPECT_EQ(mean_choice(4), mean_choice(1));  // all were tried in the first
  } else {
    EXPECT_GT(mean_choice(4), mean_choice(1));
  }
}

TEST_P(ModelPlannerTest, GoesOnBitForBit) {
  ModelPlanSettings settings = Settings();
  settings.model.first_updates = 20;
  ModelPlanner a = Learned(settings);
  a.SetSource(Place(1.0F));
  const Replay replay = Record();
  a.Update(replay);
  ModelPlanner b = Make(settings);
  b.SetSource(Place(0.0F));
  Unarchive(Archived(a), b);
  EXPECT_EQ(Choice(a, 0.1, 0.0), Choice(b, 0.1, 0.0));
  a.Update(replay);
  b.Update(replay);
  EXPECT_TRUE(Archived(a) == Archived(b));
}

TEST_P(ModelPlannerTest, PlanningDoesNotAllocate) {
  ModelPlanSettings settings = Settings();
  settings.model.first_updates = 2;
  settings.rounds = 3;
  ModelPlanner planner = Learned(settings);
  planner.SetSource(Place(1.0F));
  const EnvSpec spec = PointWorld::Spec(GetParam());
  const auto o = PointWorld::Observation(0.1);
  const auto g = PointWorld::Geometry(0.1);
  const SegmentMatrix z(CompactLift());
  const Situation situation{.observation = EnvView(o.data(), 2),
                            .geometry = EnvView(g.data(), kGeometrySize),
                            .matrix = z,
                            .step = 0};
  ActionBuffer out(spec.action);
  FlatValues base;
  Rng rng(1, "plan");
  planner.Improve(situation, ActMode::kExplore, base, rng, out);
  const auto before = AllocationCount();
  planner.Improve(situation, ActMode::kExplore, base, rng, out);
  EXPECT_EQ(AllocationCount(), before);
}

TEST_P(ModelPlannerTest, RefusesImpossibleSettings) {
  const auto text = [&](const auto& change) {
    ModelPlanSettings settings = Settings();
    change(settings);
    return UserErrorText([&] { Make(settings); });
  };
  EXPECT_NE(text([](auto& s) { s.horizon = 0; }).find("plan_horizon"), std::string::npos);
  EXPECT_NE(text([](auto& s) { s.candidates = 1; }).find("plan_candidates"), std::string::npos);
  EXPECT_NE(text([](auto& s) { s.candidates = 65; }).find("plan_candidates"), std::string::npos);
  EXPECT_NE(text([](auto& s) { s.rounds = 0; }).find("plan_rounds"), std::string::npos);
  EnvSpec wide = PointWorld::Spec(ActionKind::kDiscrete);
  wide.action.size = Critic::kMaxCandidates + 1;
  EXPECT_NE(UserErrorText([&] {
              ModelPlanner(wide, Settings(), CompactLift(), MatrixFeatureOptions{}, 0.99, 1);
            }).find("65"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ModelPlannerTest,
                         ::testing::Values(ActionKind::kContinuous, ActionKind::kDiscrete),
                         [](const auto& test) {
                           return test.param == ActionKind::kDiscrete ? "Discrete" : "Continuous";
                         });

TEST(PlanContest, TheSideThatEarnsMoreHasTheSay) {
  PlanContest contest(0.25);
  EXPECT_TRUE(contest.planning_leads());
  EXPECT_EQ(contest.planned_share(), 0.75);
  for (int i = 0; i < 3; ++i) contest.Note(false, 2.0);
  contest.Note(true, 1.0);
  contest.Note(true, 1.0);
  EXPECT_TRUE(contest.planning_leads());  // two episodes are no proof
  contest.Note(true, 1.0);
  EXPECT_FALSE(contest.planning_leads());
  EXPECT_EQ(contest.planned_share(), 0.25);
  // it can win the say back
  for (int i = 0; i < 10; ++i) contest.Note(true, 4.0);
  EXPECT_TRUE(contest.planning_leads());
  EXPECT_EQ(contest.episodes(true), 13);
  PlanContest same(0.25);
  Unarchive(Archived(contest), same);
  EXPECT_EQ(same.mean(true), contest.mean(true));
  EXPECT_EQ(same.episodes(false), 3);
}

TEST(PlanContest, WithoutTrialsPlanningAlwaysLeads) {
  PlanContest contest(0.0);
  for (int i = 0; i < 5; ++i) {
    contest.Note(true, 0.0);
    contest.Note(false, 9.0);
  }
  EXPECT_TRUE(contest.planning_leads());
  EXPECT_EQ(contest.planned_share(), 1.0);
}

}  // namespace
}  // namespace msrl
