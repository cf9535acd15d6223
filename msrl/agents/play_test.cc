#include "msrl/agents/play.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;

BatchEnv MakeBatch(const std::string& id, int count, int threads = 1) {
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < count; ++i) envs.push_back(MakeEnv(id));
  return BatchEnv(std::move(envs), threads);
}

std::unique_ptr<Agent> Make(const std::string& id, const EnvSpec& spec) {
  return MakeAgent(BuiltinAgents().Find(id), spec, BuiltinAgents().Find(id).quick, 1);
}

std::string Text(const PlayedStep& step) {
  const Experience& seen = step.experience;
  std::string text = StrCat(seen.action.index(), " ", seen.reward, " ", seen.after.step, " ",
                            seen.after.matrix.Trace(), " ", seen.after.observation.sum());
  for (const double value : seen.action.values()) text += StrCat(" ", value);
  return text + (step.ended() ? "." : ";");
}

// The definition: one episode after the other, with the streams that are promised.
std::vector<std::string> PlayPlainly(Agent& agent, Env& env, const EpisodePlan& plan) {
  std::vector<std::string> stories;
  Rng resets(plan.seed, plan.name + "/env");
  ActionBuffer action(env.spec().action);
  for (int episode = 0; episode < plan.episodes; ++episode) {
    Rng policy(plan.seed, StrCat(plan.name, "/policy/", episode));
    EpisodeTracker tracker(env.spec(), agent);
    env.Reset(resets.NextU64());
    tracker.Begin(env);
    std::string& story = stories.emplace_back();
    for (bool running = true; running;) {
      agent.Act(tracker.turn(policy, action), plan.mode);
      const StepResult result = env.Step(action.view());
      const Experience seen = tracker.Advance(action.view(), result, env);
      running = !result.terminated && !result.truncated;
      story += Text({0, seen, tracker});
    }
  }
  return stories;
}

TEST(PlayEpisodes, WhatHappensIsTheSameForAnyNumberOfEnvironmentsAndThreads) {
  for (const auto& [agent_id, env_id] :
       {std::pair{"random", "graph-motif"}, std::pair{"random", "hopper"},
        std::pair{"sac", "four-rooms-sparse"}, std::pair{"msrl-dqn", "graph-motif"}}) {
    SCOPED_TRACE(agent_id);
    const std::unique_ptr<Env> env = MakeEnv(env_id);
    const std::unique_ptr<Agent> agent = Make(agent_id, env->spec());
    const EpisodePlan plan{.episodes = 7, .seed = 3, .name = "test"};
    const std::vector<std::string> expected = PlayPlainly(*agent, *env, plan);
    EXPECT_EQ(std::set(expected.begin(), expected.end()).size(), expected.size());
    for (const auto& [count, threads] :
         {std::pair{1, 1}, std::pair{3, 1}, std::pair{3, 2}, std::pair{7, 1}, std::pair{9, 2}}) {
      SCOPED_TRACE(count);
      BatchEnv envs = MakeBatch(env_id, count, threads);
      std::vector<std::string> stories(7);
      int largest = 0;
      EXPECT_TRUE(PlayEpisodes(*agent, envs, plan, [&](int episode, const PlayedStep& step) {
        stories[static_cast<std::size_t>(episode)] += Text(step);
        largest = std::max(largest, step.env);
      }));
      EXPECT_EQ(stories, expected);
      EXPECT_EQ(largest, std::min(count, 7) - 1);
    }
  }
}

TEST(PlayEpisodes, StopsWhenAsked) {
  BatchEnv envs = MakeBatch("graph-motif", 2);
  const std::unique_ptr<Agent> agent = Make("random", envs.spec());
  int asked = 0;
  int visits = 0;
  const EpisodePlan plan{.episodes = 5, .name = "test", .stop = [&asked] { return ++asked == 4; }};
  EXPECT_FALSE(PlayEpisodes(*agent, envs, plan, [&](int, const PlayedStep&) { ++visits; }));
  EXPECT_EQ(visits, 2 * 3);  // asked before every step of both
}

TEST(Lockstep, EpisodesThatEndDropOutAndOthersGoOn) {
  BatchEnv envs = MakeBatch("graph-motif", 3);
  const std::unique_ptr<Agent> agent = Make("random", envs.spec());
  Lockstep play(*agent, envs, {Rng(1, "a"), Rng(1, "b"), Rng(1, "c")});
  EXPECT_FALSE(play.playing());
  play.Begin(0, 1);
  play.Begin(2, 2);
  std::map<int, int> ends;
  int steps = 0;
  while (play.playing()) {
    play.Step(ActMode::kExplore, [&](const PlayedStep& step) {
      EXPECT_EQ(ends.count(step.env), 0U);
      if (step.ended()) ++ends[step.env];
      ++steps;
    });
  }
  EXPECT_EQ(ends, (std::map<int, int>{{0, 1}, {2, 1}}));
  EXPECT_GT(steps, 2);
}

TEST(Lockstep, DoesNotAllocate) {
  BatchEnv envs = MakeBatch("four-rooms-sparse", 5);
  const std::unique_ptr<Agent> agent = Make("msrl", envs.spec());
  Lockstep play(*agent, envs, std::vector<Rng>(5, Rng(1, "policy")));
  for (int i = 0; i < 5; ++i) play.Begin(i, static_cast<std::uint64_t>(i));
  const std::function<void(const PlayedStep&)> nothing = [](const PlayedStep&) {};
  play.Step(ActMode::kEvaluate, nothing);
  const std::int64_t before = AllocationCount();
  for (int t = 0; t < 20; ++t) play.Step(ActMode::kEvaluate, nothing);
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_TRUE(play.playing());
}

}  // namespace
}  // namespace msrl
