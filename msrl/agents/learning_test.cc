// Every agent that learns reaches the known optimum of small tasks.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
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

using ::msrl::testing::MakeBalance;
using ::msrl::testing::MakeIdentity;
using ::msrl::testing::MakeRecall;
using ::msrl::testing::MakeScalarLqr;
using ::msrl::testing::MakeTwoStates;
using ::msrl::testing::ScalarLqr;
using ::msrl::testing::TwoStates;

struct Recipe {
  int steps = 0;
  std::vector<std::string> settings;
  // What is different in some environments.
  struct Change {
    int steps = 0;
    std::vector<std::string> settings = {};  // besides the others
  };
  std::map<std::string, Change> changes = {};
};

// Of a transfer baseline with a small module: what "sac" learns with.
Recipe HostRecipe(const std::vector<std::string>& shape) {
  Recipe recipe{8000,
                {"hidden_width=32", "batch_size=32", "replay_size=5000", "random_steps=200",
                 "tau=0.02", "actor_learning_rate=0.001", "critic_learning_rate=0.002",
                 "alpha_learning_rate=0.003", "target_entropy_per_action=-3", "module_windows=4"},
                // beside one small number a z that moves is a fair amount of noise
                {{"toy-lqr", {16000, {"slot_size=4", "encode_every=500"}}}}};
  recipe.settings.insert(recipe.settings.end(), shape.begin(), shape.end());
  return recipe;
}

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
      {"sf-gpi", HostRecipe({"features=6", "feature_width=16", "successor_width=16", "code_size=4",
                             "policies=2", "policy_width=8"})},
      {"uvfa", HostRecipe({"stream_width=16", "stream_features=8"})},
      {"traj2value-rnn", HostRecipe({"token_width=8", "memory_width=8", "head_width=8"})},
      {"traj2value-transformer",
       HostRecipe({"head_size=4", "heads=2", "blocks=1", "head_width=8"})},
      {"subgraph-gnn", HostRecipe({"node_width=8", "layers=2", "head_width=8"})},
      {"dbc", HostRecipe({"encoder_width=16", "latent_size=6", "model_width=16", "head_width=8"})},
      {"mbpo",
       {1500,
        {"hidden_width=32", "batch_size=32", "replay_size=5000", "random_steps=200", "tau=0.02",
         "actor_learning_rate=0.001", "critic_learning_rate=0.002", "alpha_learning_rate=0.003",
         "target_entropy_per_action=-3", "model_members=3", "model_elites=2", "model_layers=2",
         "model_width=32", "model_batch=64", "model_every=100", "model_minibatches=100",
         "rollout_states=500"}}},
      {"dreamer",
       {1500,
        {"deter=32", "blocks=2", "stoch=8", "classes=4", "hidden=32", "units=32", "layers=1",
         "sequences=8", "sequence_length=16", "start_steps=8", "horizon=5", "replay_size=5000",
         "random_steps=200", "train_ratio=128", "learning_rate=0.002", "warm_up=100"},
        // One small number is worth little in the reconstruction, and z tells of it only what pays.
        // If nothing predicts it, even the prior has to be free. And where one action pays 0 for
        // certain, the policy must not settle for it before the cue is known to matter.
        {{"toy-lqr", {1500, {"representation_weight=0.01"}}},
         {"toy-identity-box",
          {3000,
           {"free_nats=6", "sequences=16", "train_ratio=256", "start_steps=16", "horizon=1"}}},
         {"toy-recall-index", {2000, {"entropy_weight=0.3"}}}}}},
      {"ppo",
       {16384,
        {"hidden_width=32", "rollout_steps=512", "minibatch_size=64", "learning_rate=0.002"}}},
      {"tdmpc",
       {2500,
        {"encoder_width=32", "latent_groups=4", "model_width=32", "q_count=2", "bins=41",
         "batch_size=32", "replay_size=5000", "random_steps=200", "first_updates=200",
         "update_every=1", "learning_rate=0.001", "encoder_learning_rate=0.0005", "plan_samples=32",
         "plan_policy_samples=4", "plan_elites=8", "plan_min_std=0.02"}}},
  };
  // the matrix-space agents learn with the settings of their bases
  static const std::map<std::string, std::string> bases{
      {"msrl", "sac"}, {"msrl-td3", "td3"}, {"msrl-dqn", "dqn"}};
  const auto base = bases.find(agent);
  const auto found = recipes.find(base == bases.end() ? agent : base->second);
  if (found == recipes.end()) throw UserError("learning_test.cc has no settings for " + agent);
  return found->second;
}

// Mean return of episodes with fixed seeds. `begin` is called at the start of each, `after` after
// each step.
template <typename Choose>
double MeanReturn(
    Env& env, const Choose& choose,
    const std::function<void(const ActionBuffer&, const StepResult&)>& after,
    const std::function<void()>& begin = [] {}) {
  constexpr int kEpisodes = 50;
  ActionBuffer action(env.spec().action);
  double sum = 0.0;
  for (std::uint64_t seed = 0; seed < kEpisodes; ++seed) {
    env.Reset(1000 + seed);
    begin();
    StepResult result;
    while (!result.terminated && !result.truncated) {
      choose(env, action);
      result = env.Step(action.view());
      after(action, result);
      sum += result.reward;
    }
  }
  return sum / kEpisodes;
}
template <typename Choose>
double MeanReturn(
    Env& env, const Choose& choose, const std::function<void()>& begin = [] {}) {
  return MeanReturn(
      env, choose, [](const ActionBuffer&, const StepResult&) {}, begin);
}

// As in a run: agents that look at Z, or at what it says of the last step, see it.
double Evaluate(Agent& agent, Env& env) {
  EpisodeTracker tracker(env.spec(), agent);
  Rng rng(1, "evaluation");
  bool first = true;
  return MeanReturn(
      env,
      [&](const Env& now, ActionBuffer& action) {
        if (first) tracker.Begin(now);
        first = false;
        agent.Act(tracker.turn(rng, action), ActMode::kEvaluate);
      },
      [&](const ActionBuffer& action, const StepResult& result) {
        tracker.Advance(action.view(), result, env);
        first = result.terminated || result.truncated;
      });
}

std::unique_ptr<Agent> Train(const AgentEntry& entry, Env& env, double gamma) {
  const Recipe& recipe = RecipeFor(entry.id);
  int steps = recipe.steps;
  std::vector<std::string> settings = recipe.settings;
  settings.push_back("gamma=" + std::to_string(gamma));
  if (const auto found = recipe.changes.find(env.spec().id); found != recipe.changes.end()) {
    const Recipe::Change& change = found->second;
    steps = change.steps;
    settings.insert(settings.end(), change.settings.begin(), change.settings.end());
  }
  std::unique_ptr<Agent> agent = MakeAgent(entry, env.spec(), settings, /*seed=*/1);
  EpisodeTracker tracker(env.spec(), *agent);
  Rng resets(1, "env");
  Rng policy(1, "policy");
  ActionBuffer action(env.spec().action);
  StepResult result{.truncated = true};
  for (int t = 0; t < steps; ++t) {
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

// Only who remembers the first observation knows what is right in the others. Agents over others
// see the matrix Z, which is a memory of its own kind: they are not asked. Nor are those with a
// module that reads windows, which is taught to remember elsewhere.
TEST(Learning, RecallNeedsMemory) {
  const std::set<std::string> windows{"traj2value-rnn", "traj2value-transformer", "subgraph-gnn"};
  int memoryless = 0;
  for (const ActionKind kind : {ActionKind::kContinuous, ActionKind::kDiscrete}) {
    const std::unique_ptr<Env> env = MakeRecall(kind);
    const bool discrete = kind == ActionKind::kDiscrete;
    double cue = 0.0;
    const double best = MeanReturn(
        *env,
        [&](const Env&, ActionBuffer& action) {
          if (discrete) {
            action.set_index(cue > 0.0 ? 1 : 0);
          } else {
            action.values()[0] = cue;
          }
        },
        [&] { cue = env->observation()[0]; });
    EXPECT_GT(best, 1.5);
    for (const AgentEntry& entry : BuiltinAgents()) {
      if (entry.quick.empty() || (discrete ? !entry.discrete : !entry.continuous)) continue;
      if (!entry.over.empty() || windows.contains(entry.id)) continue;
      SCOPED_TRACE(entry.id + " in " + env->spec().id);
      const double mean_return = Evaluate(*Train(entry, *env, 0.95), *env);
      if (entry.id == "dreamer") {
        EXPECT_GT(mean_return, 0.8 * best);
      } else {
        // 0 on average, give or take 0.7 in 50 episodes
        EXPECT_LT(mean_return, 0.5 * best);
        ++memoryless;
      }
    }
  }
  EXPECT_GE(memoryless, 5);
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

// What ends an episode in the model is told by the task's rule, or learned.
TEST(Learning, BalancingInImagination) {
  for (const bool tells_end : {true, false}) {
    SCOPED_TRACE(tells_end);
    const auto env = MakeBalance(tells_end);
    EXPECT_LT(MeanReturn(*env, [](const Env&, ActionBuffer& action) { action.values()[0] = 0.0; }),
              60.0);
    const auto agent = Train(BuiltinAgents().Find("mbpo"), *env, 0.99);
    EXPECT_EQ(Evaluate(*agent, *env), 100.0);
  }
}

}  // namespace
}  // namespace msrl
