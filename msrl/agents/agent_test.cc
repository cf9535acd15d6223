#include "msrl/agents/agent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/fixed/fixed.h"
#include "msrl/agents/registry.h"
#include "msrl/core/segment.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;

class MapSink : public MetricSink {
 public:
  void Add(std::string_view name, double value) override { values[std::string(name)] = value; }
  std::map<std::string, double> values;
};

TEST(RequireFinite, NamesTheEntry) {
  const std::vector<float> good{1.0f, -2.0f};
  RequireFinite("w", good);
  const std::vector<float> bad{1.0f, std::nanf("")};
  try {
    RequireFinite("critic weights", bad);
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "critic weights[1] is nan");
  }
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THROW(RequireFinite("loss", std::span(&infinite, 1)), RunError);
}

TEST(MetricMeans, AveragesAndStartsAnew) {
  MetricMeans means({"a", "b"});
  means.Add(0, 1.0);
  means.Add(0, 3.0);
  const std::string bytes = Archived(means);
  MapSink sink;
  means.Drain(sink);
  EXPECT_EQ(sink.values, (std::map<std::string, double>{{"a", 2.0}}));
  MapSink empty;
  means.Drain(empty);
  EXPECT_TRUE(empty.values.empty());

  MetricMeans loaded({"a", "b"});
  Unarchive(bytes, loaded);
  loaded.Add(1, 5.0);
  MapSink both;
  loaded.Drain(both);
  EXPECT_EQ(both.values, (std::map<std::string, double>{{"a", 2.0}, {"b", 5.0}}));
}

TEST(EpisodeTracker, AccumulatesWhatDescribeGives) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = MakeEnv(entry.id);
    EpisodeTracker tracker(env->spec(), CompactLift());
    RandomAgent agent(env->spec(), {}, 1);
    Rng rng(1, "policy");
    ActionBuffer action(env->spec().action);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      env->Reset(seed);
      tracker.Begin(*env);
      Segment segment;
      std::vector<Eigen::VectorXd> xs{env->geometry()};
      std::vector<Eigen::VectorXd> as;
      std::vector<double> rs;
      double total = 0.0;
      bool running = true;
      while (running) {
        agent.Act(tracker.turn(rng, action), ActMode::kExplore);
        const Eigen::VectorXd old = env->observation();
        const StepResult result = env->Step(action.view());
        const Experience seen = tracker.Advance(action.view(), result, *env);
        EXPECT_EQ(Eigen::VectorXd(seen.before.observation), old);
        EXPECT_EQ(Eigen::VectorXd(seen.after.observation), Eigen::VectorXd(env->observation()));
        EXPECT_EQ(seen.after.step, seen.before.step + 1);
        EXPECT_EQ(seen.scaled_reward, result.reward / env->spec().reward_scale);
        SegmentMatrix sum = seen.before.matrix;
        sum.AddStep(Eigen::Map<const Eigen::VectorXd>(seen.psi.data(), tracker.lift()->m()));
        EXPECT_TRUE(sum == seen.after.matrix);
        xs.push_back(env->geometry());
        as.push_back(EnvView(seen.action_code.data(), kActionCodeSize));
        rs.push_back(seen.scaled_reward);
        total += result.reward;
        running = !result.terminated && !result.truncated;
      }
      const auto steps = static_cast<Index>(rs.size());
      segment.x.resize(kGeometrySize, steps + 1);
      segment.a.resize(kActionCodeSize, steps);
      segment.r.resize(steps);
      for (Index t = 0; t <= steps; ++t) segment.x.col(t) = xs[static_cast<std::size_t>(t)];
      for (Index t = 0; t < steps; ++t) {
        segment.a.col(t) = as[static_cast<std::size_t>(t)];
        segment.r[t] = rs[static_cast<std::size_t>(t)];
      }
      const SegmentMatrix expected = Describe(tracker.lift(), segment);
      const SegmentMatrix& got = tracker.situation().matrix;
      EXPECT_LE(got.Distance(expected), 1e-9 * (1.0 + expected.Norm())) << entry.id;
      EXPECT_EQ(got.Horizon(), steps);
      EXPECT_EQ(tracker.episode_return(), total);
      EXPECT_EQ(tracker.steps(), steps);
    }
  }
}

TEST(EpisodeTracker, DoesNotAllocate) {
  const auto env = MakeEnv("four-rooms-sparse");
  EpisodeTracker tracker(env->spec(), CompactLift());
  ActionBuffer action(env->spec().action);
  env->Reset(1);
  tracker.Begin(*env);
  tracker.Advance(action.view(), env->Step(action.view()), *env);
  const std::int64_t before = AllocationCount();
  for (int t = 0; t < 50; ++t) tracker.Advance(action.view(), env->Step(action.view()), *env);
  EXPECT_EQ(AllocationCount(), before);
}

TEST(Agents, MistakesAreNamed) {
  EXPECT_NE(UserErrorText([] { BuiltinAgents().Find("randm"); }).find("did you mean 'random'?"),
            std::string::npos);
  const auto env = MakeEnv("graph-motif");
  const std::vector<std::string> settings{"speed=3"};
  EXPECT_NE(UserErrorText([&] {
              MakeAgent(BuiltinAgents().Find("still"), env->spec(), settings, 1);
            }).find("unknown setting 'speed'"),
            std::string::npos);
  AgentEntry picky = BuiltinAgents().Find("still");
  picky.discrete = false;
  EXPECT_EQ(UserErrorText([&] { MakeAgent(picky, env->spec(), {}, 1); }),
            "agent 'still' needs continuous actions, those of 'graph-motif' are discrete");
}

}  // namespace
}  // namespace msrl
