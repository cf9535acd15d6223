// Every agent that learns reaches the known optimum of small tasks.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "msrl/agents/dqn/dqn.h"
#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/registry.h"
#include "msrl/agents/td3/td3.h"
#include "msrl/core/check.h"
#include "msrl/testing/toy_envs.h"

namespace msrl {
namespace {

using ::msrl::testing::MakeIdentity;
using ::msrl::testing::MakeScalarLqr;
using ::msrl::testing::MakeTwoStates;
using ::msrl::testing::ScalarLqr;
using ::msrl::testing::TwoStates;

struct Recipe {
  int steps = 0;
  std::vector<std::string> settings;
};

// Sizes that learn within a second. A new agent gets a row.
const Recipe& RecipeFor(const std::string& agent) {
  static const std::map<std::string, Recipe> recipes{
      {"dqn",
       {4000,
        {"hidden_width=32", "batch_size=32", "replay_size=5000", "random_steps=200",
         "learning_rate=0.002", "tau=0.02", "epsilon_steps=1500", "epsilon_end=0.1"}}},
      {"td3",
       {8000,
        {"hidden_width=32", "batch_size=32", "replay_size=5000", "random_steps=200", "tau=0.02",
         "actor_learning_rate=0.0005", "critic_learning_rate=0.002", "exploration_noise=0.3",
         "target_noise=0.05"}}},
      {"sac",
       {8000,
        {"hidden_width=32", "batch_size=32", "replay_size=5000", "random_steps=200", "tau=0.02",
         "actor_learning_rate=0.001", "critic_learning_rate=0.002", "alpha_learning_rate=0.003",
         "target_entropy_per_action=-3"}}},
      {"ppo",
       {16384,
        {"hidden_width=32", "rollout_steps=512", "minibatch_size=64", "learning_rate=0.002"}}},
  };
  // the matrix-space agents learn with the settings of their bases
  static const std::map<std::string, std::string> bases{
      {"msrl", "sac"}, {"msrl-td3", "td3"}, {"msrl-dqn", "dqn"}};
  const auto base = bases.find(agent);
  const auto found = recipes.find(base == bases.end() ? agent : base->second);
  if (found == recipes.end()) throw UserError("learning_test.cc has no settings for " + agent);
  return found->second;
}

// Mean return of episodes with fixed seeds.
template <typename Choose>
double MeanReturn(Env& env, const Choose& choose) {
  constexpr int kEpisodes = 50;
  ActionBuffer action(env.spec().action);
  double sum = 0.0;
  for (std::uint64_t seed = 0; seed < kEpisodes; ++seed) {
    env.Reset(1000 + seed);
    StepResult result;
    while (!result.terminated && !result.truncated) {
      choose(env, action);
      result = env.Step(action.view());
      sum += result.reward;
    }
  }
  return sum / kEpisodes;
}

double Evaluate(Agent& agent, Env& env) {
  const SegmentMatrix matrix(CompactLift());
  Rng rng(1, "evaluation");
  const std::unique_ptr<Carry> carry = agent.MakeCarry();
  return MeanReturn(env, [&](const Env& now, ActionBuffer& action) {
    agent.Act({{now.observation(), now.geometry(), matrix, 0}, *carry, rng, action},
              ActMode::kEvaluate);
  });
}

std::unique_ptr<Agent> Train(const AgentEntry& entry, Env& env, double gamma) {
  const Recipe& recipe = RecipeFor(entry.id);
  std::vector<std::string> settings = recipe.settings;
  settings.push_back("gamma=" + std::to_string(gamma));
  std::unique_ptr<Agent> agent = MakeAgent(entry, env.spec(), settings, /*seed=*/1);
  EpisodeTracker tracker(env.spec(), *agent);
  Rng resets(1, "env");
  Rng policy(1, "policy");
  ActionBuffer action(env.spec().action);
  StepResult result{.truncated = true};
  for (int t = 0; t < recipe.steps; ++t) {
    if (result.terminated || result.truncated) {
      env.Reset(resets.NextU64());
      tracker.Begin(env);
    }
    agent->Act(tracker.turn(policy, action), ActMode::kExplore);
    result = env.Step(action.view());
    agent->Observe(tracker.Advance(action.view(), result, env), tracker.carry());
    agent->Update();
  }
  return agent;
}

// Calls check(agent, env) for every learner that fits, after training.
template <typename Check>
void ForAllLearners(const std::unique_ptr<Env>& env, double gamma, const Check& check) {
  for (const AgentEntry& entry : BuiltinAgents()) {
    const bool discrete = env->spec().action.kind == ActionKind::kDiscrete;
    if (entry.quick.empty() || (discrete ? !entry.discrete : !entry.continuous)) continue;
    SCOPED_TRACE(entry.id + " in " + env->spec().id);
    const std::unique_ptr<Agent> agent = Train(entry, *env, gamma);
    check(*agent, *env);
  }
}

TEST(Learning, IdentityContinuous) {
  // what a random agent gets: -2/3 for each of 20 steps
  ForAllLearners(MakeIdentity(ActionKind::kContinuous), 0.5,
                 [](Agent& agent, Env& env) { EXPECT_GT(Evaluate(agent, env), -0.2); });
}

TEST(Learning, IdentityDiscrete) {
  ForAllLearners(MakeIdentity(ActionKind::kDiscrete), 0.5,
                 [](Agent& agent, Env& env) { EXPECT_EQ(Evaluate(agent, env), 20.0); });
}

TEST(Learning, TwoStates) {
  ForAllLearners(MakeTwoStates(), TwoStates::kGamma, [](Agent& agent, Env& env) {
    // ten rewards from state 1, nine from state 0
    const double best = MeanReturn(env, [](const Env& now, ActionBuffer& action) {
      action.set_index(now.observation()[0] == 1.0 ? 1 : 0);
    });
    EXPECT_GT(best, 9.0 * TwoStates::kRewardScale);
    EXPECT_NEAR(Evaluate(agent, env), best, 1e-9);

    const auto* dqn = dynamic_cast<const Dqn*>(&agent);
    if (dqn == nullptr) return;
    MlpTape tape(dqn->critic().network().spec(), 2);
    const auto q = dqn->critic().network().Forward(Eigen::MatrixXf::Identity(2, 2), tape);
    for (int state = 0; state < 2; ++state) {
      for (int action = 0; action < TwoStates::kActions; ++action) {
        EXPECT_NEAR(q(action, state), TwoStates::Q(state, action), 0.1) << state << " " << action;
      }
    }
  });
}

TEST(Learning, ScalarLqr) {
  const auto env = MakeScalarLqr();
  EXPECT_LT(0.5 * ScalarLqr::K(), 1.0);
  const double best = MeanReturn(*env, [](const Env& now, ActionBuffer& action) {
    action.values()[0] = -ScalarLqr::K() * now.observation()[0];
  });
  const double still =
      MeanReturn(*env, [](const Env&, ActionBuffer& action) { action.values()[0] = 0.0; });
  EXPECT_LT(still, 3.0 * best);
  ForAllLearners(env, ScalarLqr::kGamma, [&](Agent& agent, Env& task) {
    // of what standing still loses, the agent wins back all but a tenth
    EXPECT_GT(Evaluate(agent, task), best + 0.1 * (still - best));

    auto* td3 = dynamic_cast<Td3*>(&agent);
    if (td3 == nullptr) return;
    MlpTape tape(td3->critic().network().spec(), 1);
    const auto error = [&](double x) {
      const double u = -ScalarLqr::K() * x;
      const Eigen::Vector2f input(static_cast<float>(x), static_cast<float>(u));
      return td3->critic().network().Forward(input, tape)(0, 0) - ScalarLqr::Q(x, u);
    };
    // the smaller of two critics is too small everywhere by about the same, never too large
    EXPECT_GT(error(0.0), -0.15);
    EXPECT_LT(error(0.0), 0.02);
    for (const double x : {-0.4, -0.2, 0.2, 0.4}) EXPECT_NEAR(error(x), error(0.0), 0.03) << x;
  });
}

}  // namespace
}  // namespace msrl
