#include "msrl/agents/msrl/sight.h"

#include <gtest/gtest.h>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/fixed/fixed.h"
#include "msrl/agents/msrl/msrl.h"
#include "msrl/agents/registry.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;
using Options = std::vector<std::string>;

constexpr MatrixFeatureOptions kRegressions{.endpoints = true, .regressions = true};

GoalReading SomeReading(const Lift::Ptr& lift) {
  const MatrixFeatures features(lift, kRegressions);
  GoalReading reading(features.size(), {.width = 8, .layers = 1},
                      {.lift = lift->id(),
                       .lift_kind = std::string(LiftKindName(lift->kind())),
                       .features = features.options(),
                       .made = {}});
  Rng rng(7, "reading");
  reading.Init(rng);
  return reading;
}

// Plays an episode at random and shows every step to `visit`.
template <typename Visit>
void PlayThrough(Env& env, Sight& sight, const Lift::Ptr& lift, int steps, Visit visit) {
  struct Mover : RandomAgent {
    Mover(const EnvSpec& spec, LiftKind lift) : RandomAgent(spec, {}, 0), kind(lift) {}
    LiftKind lift_kind() const override { return kind; }
    LiftKind kind;
  } agent(env.spec(), lift->kind());
  EpisodeTracker tracker(env.spec(), agent);
  Seen seen = sight.MakeSeen();
  Rng policy(1, "policy");
  ActionBuffer action(env.spec().action);
  env.Reset(3);
  tracker.Begin(env);
  seen.Begin();
  for (int t = 0; t < steps; ++t) {
    const Turn turn = tracker.turn(policy, action);
    const Situation before = sight.See(turn.situation, seen);
    agent.Act(turn, ActMode::kExplore);
    sight.NoteAction(action.view(), seen);
    const Eigen::VectorXd raw = turn.situation.observation;
    const StepResult result = env.Step(action.view());
    const Experience experience = tracker.Advance(action.view(), result, env);
    const Situation after = sight.SeeAfter(experience, seen);
    visit(raw, before, experience, after);
  }
}

TEST(Sight, FramesAreTheLastStepsNewestFirst) {
  const auto env = MakeEnv("arena-dense", Options{"hidden=goal"});
  const Lift::Ptr lift = CompactLift();
  Sight sight(env->spec(), {.kind = SightKind::kFrames, .frames = 2}, lift, {});
  const int frame = 8 + 2 + 1;
  ASSERT_EQ(sight.seen_spec().observation_size, 8 + 2 * frame);
  std::vector<Eigen::VectorXd> steps;  // (o, a, r) as they were
  PlayThrough(*env, sight, lift, 6,
              [&](const Eigen::VectorXd& raw, const Situation& before, const Experience& experience,
                  const Situation& after) {
                const auto expect = [&](const Situation& seen, int known) {
                  for (int k = 0; k < 2; ++k) {
                    const int which = known - 1 - k;
                    const Eigen::VectorXd shown = seen.observation.segment(8 + k * frame, frame);
                    const Eigen::VectorXd wanted = which < 0
                                                       ? Eigen::VectorXd::Zero(frame).eval()
                                                       : steps[static_cast<std::size_t>(which)];
                    EXPECT_LE((shown - wanted).cwiseAbs().maxCoeff(), 1e-12);
                  }
                };
                const auto known = static_cast<int>(steps.size());
                expect(before, known);
                Eigen::VectorXd step(frame);
                step << raw, experience.action.values()[0], experience.action.values()[1],
                    experience.scaled_reward;
                steps.push_back(step);
                expect(after, known + 1);
              });
}

TEST(Sight, MatrixIsFeaturesOfZ) {
  const auto env = MakeEnv("arena-dense");
  const Lift::Ptr lift = CompactLift();
  Sight sight(env->spec(), {.kind = SightKind::kMatrix}, lift, {});
  const MatrixFeatures features(lift);
  std::vector<float> wanted(static_cast<std::size_t>(features.size()));
  PlayThrough(*env, sight, lift, 5,
              [&](const Eigen::VectorXd&, const Situation&, const Experience& experience,
                  const Situation& after) {
                features.Compute(experience.after.matrix, wanted);
                for (int i = 0; i < features.size(); ++i) {
                  EXPECT_EQ(static_cast<float>(after.observation[8 + i]),
                            wanted[static_cast<std::size_t>(i)]);
                }
              });
}

// What is read is shown in o, in the geometry and in all of Z.
TEST(Sight, ReadingShowsTheGoalEverywhere) {
  const auto env = MakeEnv("arena-dense", Options{"hidden=goal"});
  const Lift::Ptr lift = CompactLift(LiftKind::kCompactEffort);
  Sight sight(env->spec(), {.kind = SightKind::kReading}, lift, kRegressions);
  sight.SetReading(SomeReading(lift));
  PlayThrough(*env, sight, lift, 6,
              [&](const Eigen::VectorXd&, const Situation&, const Experience& experience,
                  const Situation& after) {
                const Eigen::Vector2d offset = after.observation.tail<2>();
                EXPECT_NE(offset.norm(), 0.0);
                EXPECT_EQ(after.geometry[2], offset[0]);
                EXPECT_EQ(after.geometry[3], offset[1]);
                EXPECT_EQ(experience.after.geometry[2], 0.0);
                SegmentMatrix wanted = experience.after.matrix;
                const Eigen::Vector2d goal = offset + experience.after.geometry.head<2>();
                ShownGoal{goal, 0}.Apply(wanted);
                EXPECT_EQ(after.matrix, wanted);
              });
}

TEST(Sight, RefusesWhatDoesNotGoTogether) {
  const EnvSpec spec = MakeEnv("arena-dense")->spec();
  const auto make = [&](const Options& settings) {
    return UserErrorText([&] { MakeAgent(BuiltinAgents().Find("msrl"), spec, settings, 1); });
  };
  EXPECT_NE(make({"sight=frames", "plan=library"}).find("plan=off"), std::string::npos);
  EXPECT_NE(make({"sight=reading", "plan=both"}).find("plan=model"), std::string::npos);
  EXPECT_NE(make({"sight=matrix", "matrix=false", "plan=library"}).find("matrix=true"),
            std::string::npos);
  EXPECT_EQ(make({"sight=matrix", "plan=library"}), "no error");
  EXPECT_NE(UserErrorText([&] {
              const Options blind{"sight=reading", "plan=off"};
              const auto env = MakeEnv("arena-dense");
              const auto agent = MakeAgent(BuiltinAgents().Find("msrl"), spec, blind, 1);
              EpisodeTracker tracker(spec, *agent);
              env->Reset(1);
              tracker.Begin(*env);
              Rng rng(1, "policy");
              ActionBuffer action(spec.action);
              agent->Act(tracker.turn(rng, action), ActMode::kExplore);
            }).find("--init"),
            std::string::npos);

  const Lift::Ptr lift = CompactLift(LiftKind::kCompactEffort);
  const Artefact artefact = Artefact::Parse(SomeReading(lift).Encode(), "reading");
  const auto start = [&](const Options& settings) {
    return UserErrorText(
        [&] { MakeAgent(BuiltinAgents().Find("msrl"), spec, settings, 1)->Initialise(artefact); });
  };
  EXPECT_EQ(start(SettingsForArtefact(artefact.header())), "no error");
  EXPECT_NE(start({"lift=compact-effort", "features=selected+regressions"}).find("sight=reading"),
            std::string::npos);
  EXPECT_NE(start({"sight=reading", "plan=off"}).find("lift"), std::string::npos);
  EXPECT_NE(start({"lift=compact-effort", "sight=reading", "plan=off"}).find("features"),
            std::string::npos);
}

struct Tracked {
  void Visit(const Archive& state) { tracker.Visit(state, env); }
  EpisodeTracker& tracker;
  const Env& env;
};

// Killed inside an episode and read again, the agent goes on as if nothing had been.
TEST(Sight, GoesOnBitForBit) {
  const Lift::Ptr lift = CompactLift(LiftKind::kCompactEffort);
  const Artefact artefact = Artefact::Parse(SomeReading(lift).Encode(), "reading");
  for (const Options& own : {Options{"sight=frames", "plan=off", "matrix=false"},
                             Options{"sight=matrix"}, SettingsForArtefact(artefact.header())}) {
    Options settings = BuiltinAgents().Find("msrl").quick;
    settings.insert(settings.end(), own.begin(), own.end());
    const bool reads = own.size() > 3;
    const auto make = [&] {
      auto env = MakeEnv("arena-dense", Options{"hidden=goal"});
      auto agent = MakeAgent(BuiltinAgents().Find("msrl"), env->spec(), settings, 5);
      return std::pair(std::move(env), std::move(agent));
    };
    struct Life {
      explicit Life(std::pair<std::unique_ptr<Env>, std::unique_ptr<Agent>> both)
          : env(std::move(both.first)),
            agent(std::move(both.second)),
            tracker(env->spec(), *agent),
            action(env->spec().action) {
        env->Reset(1);
        tracker.Begin(*env);
      }
      void Train(int steps, std::string& log) {
        for (int t = 0; t < steps; ++t) {
          agent->Act(tracker.turn(policy, action), ActMode::kExplore);
          for (const double value : action.values()) log += StrCat(value, " ");
          const StepResult result = env->Step(action.view());
          agent->Observe(tracker.Advance(action.view(), result, *env), tracker.carry());
          agent->Update();
          if (!result.terminated && !result.truncated) continue;
          env->Reset(resets.NextU64());
          tracker.Begin(*env);
        }
      }
      std::unique_ptr<Env> env;
      std::unique_ptr<Agent> agent;
      EpisodeTracker tracker;
      ActionBuffer action;
      Rng policy{2, "policy"}, resets{2, "resets"};
    };
    Life whole(make());
    if (reads) whole.agent->Initialise(artefact);
    std::string before, after;
    whole.Train(150, before);
    const std::string agent = testing::Archived(*whole.agent);
    const std::vector<std::byte> env = whole.env->Snapshot();
    const std::string tracker = testing::Archived(Tracked{whole.tracker, *whole.env});
    const Rng policy = whole.policy, resets = whole.resets;
    whole.Train(130, after);

    // as a run that is resumed: not initialised; in another state, to be overwritten
    Life second(make());
    std::string other;
    if (!reads) second.Train(20, other);
    testing::Unarchive(agent, *second.agent);
    second.env->Restore(env);
    Tracked tracked{second.tracker, *second.env};
    testing::Unarchive(tracker, tracked);
    second.policy = policy;
    second.resets = resets;
    std::string again;
    second.Train(130, again);
    EXPECT_EQ(again, after) << own.front();
  }
}

}  // namespace
}  // namespace msrl
