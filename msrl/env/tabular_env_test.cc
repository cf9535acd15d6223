#include "msrl/env/tabular_env.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "msrl/core/obstruction.h"
#include "msrl/core/segment.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/micro_grid.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

class Tabular : public ::testing::TestWithParam<std::string> {};

// The multigraph is the environment: following edges by their action gives the same geometry and
// reward, bit for bit.
TEST_P(Tabular, GraphFollowsTheEnvironment) {
  const auto env = MakeEnv(GetParam());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    env->Reset(seed);
    auto& tabular = *UnwrapAs<TabularEnv>(*env);
    const StateGraph start = tabular.Graph();
    ASSERT_EQ(start.starts, std::vector<int>{start.current});
    int node = start.current;
    Behaviour behaviour(*env, {.skill = 0.3, .persistence = 1.0}, Rng(seed, "a"));
    for (bool running = true; running;) {
      ASSERT_EQ(start.graph.nodes.col(node), env->geometry());
      ASSERT_EQ(start.node_state[static_cast<std::size_t>(node)], tabular.state());
      ASSERT_EQ(tabular.Graph().current, node);
      const Action action = behaviour.Act();
      std::array<double, kActionCodeSize> code;
      EmbedAction(env->spec(), action, code);
      const GraphEdge* taken = nullptr;
      for (const GraphEdge& edge : start.graph.edges) {
        if (edge.tail == node && edge.action == EnvView(code.data(), kActionCodeSize)) {
          taken = &edge;
        }
      }
      ASSERT_NE(taken, nullptr);
      const StepResult result = env->Step(action);
      ASSERT_EQ(taken->reward, result.reward / env->spec().reward_scale);
      node = taken->head;
      running = !result.terminated && !result.truncated;
    }
    ASSERT_EQ(start.graph.nodes.col(node), env->geometry());
  }
}

// No real segment is ever certified as impossible.
TEST_P(Tabular, RealSegmentsAreReachable) {
  const std::string options[] = {"action_cost=0"};
  const auto env = MakeEnv(GetParam(), options);
  const Lift::Ptr lift = CompactLift();
  constexpr int kHorizon = 4;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    env->Reset(seed);
    const StateGraph graph = UnwrapAs<TabularEnv>(*env)->Graph();
    const ReachableSet reachable(lift, graph.graph, graph.starts, kHorizon);
    for (std::uint64_t trial = 0; trial < 20; ++trial) {
      env->Reset(seed);
      SegmentMatrix matrix(lift);
      Eigen::VectorXd psi(lift->m());
      Behaviour behaviour(*env, {}, Rng(trial, "a"));
      for (int t = 0; t < kHorizon; ++t) {
        const Eigen::VectorXd before = env->geometry();
        const Action action = behaviour.Act();
        std::array<double, kActionCodeSize> code;
        EmbedAction(env->spec(), action, code);
        const StepResult result = env->Step(action);
        lift->Apply(before, EnvView(code.data(), kActionCodeSize),
                    result.reward / env->spec().reward_scale, env->geometry(), psi);
        matrix.AddStep(psi);
        ASSERT_FALSE(ExactObstruction(matrix, reachable).certified());
        if (result.terminated) break;
      }
    }
  }
}

TEST_P(Tabular, TheExpertEarnsItsValue) {
  const auto env = MakeEnv(GetParam());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    env->Reset(seed);
    auto& bare = *UnwrapAs<TabularEnv>(*env);
    const double value = ExpertValue(*env);
    ActionBuffer action(env->spec().action);
    double sum = 0.0;
    double discount = 1.0;
    for (int t = 0; t < 3000; ++t) {
      bare.expert()->Best(action);
      const StepResult result = bare.Step(action.view());
      sum += discount * result.reward / env->spec().reward_scale;
      discount *= env->spec().gamma;
      if (result.terminated) break;
    }
    EXPECT_NEAR(sum, value, testing::Tol(1e-9));
  }
}

TEST_P(Tabular, TheGoalCanAlwaysBeReached) {
  const std::string options[] = {"reward=sparse", "action_cost=0"};
  const auto env = MakeEnv(GetParam(), options);
  int reached = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Behaviour expert(*env, {.skill = 1.0, .persistence = 1.0}, Rng(seed, "a"));
    reached += PlayEpisode(*env, expert, seed).success ? 1 : 0;
  }
  EXPECT_EQ(reached, 300);
}

INSTANTIATE_TEST_SUITE_P(Families, Tabular, ::testing::Values("graph-motif", "micro-grid"),
                         [](const auto& test) { return test.param.substr(0, 5); });

TEST(GraphMotif, EveryMotifOccursAndCanBePinned) {
  std::map<Motif, int> count;
  GraphMotif sampled({});
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    sampled.Reset(seed);
    ++count[sampled.motif()];
  }
  EXPECT_EQ(count.size(), 5u);
  for (const auto& [motif, times] : count) EXPECT_GE(times, 50) << EnumName(motif);

  GraphMotifConfig config;
  config.motif = Motif::kLollipop;
  config.size = 9;
  GraphMotif pinned(config);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    pinned.Reset(seed);
    EXPECT_EQ(pinned.motif(), Motif::kLollipop);
    EXPECT_EQ(pinned.instance().mdp.states, 9);
  }
}

TEST(GraphMotif, NeighboursAreNear) {
  GraphMotifConfig config;
  config.chord_probability = 0.0;
  GraphMotif env(config);
  double along = 0.0;
  double across = 0.0;
  int edges = 0;
  int pairs = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    env.Reset(seed);
    const TabularInstance& instance = env.instance();
    for (int s = 0; s < instance.mdp.states; ++s) {
      const auto& here = instance.position[static_cast<std::size_t>(s)];
      const int next = instance.mdp.next[instance.mdp.At(s, 0)];
      for (int other = 0; other < instance.mdp.states; ++other) {
        const double distance = (instance.position[static_cast<std::size_t>(other)] - here).norm();
        if (other == next && other != s) along += distance, ++edges;
        if (other != s) across += distance, ++pairs;
      }
    }
  }
  EXPECT_LT(along / edges, 0.6 * across / pairs);
}

// In a reversal pair, one lane is walked as the other one backwards.
TEST(GraphMotif, LanesOfAReversalPairAreOpposite) {
  GraphMotifConfig config;
  config.motif = Motif::kReversalPair;
  GraphMotif env(config);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    env.Reset(seed);
    const TabularInstance& instance = env.instance();
    const int k = instance.mdp.states / 2;
    const auto step = [&](int s) -> Eigen::Vector2d {
      return instance.position[static_cast<std::size_t>(instance.mdp.next[instance.mdp.At(s, 0)])] -
             instance.position[static_cast<std::size_t>(s)];
    };
    for (int i = 0; i + 1 < k; ++i) {
      const Eigen::Vector2d there = step(i);
      const Eigen::Vector2d back = step(2 * k - 2 - i);
      EXPECT_LT(there.dot(back), -0.5 * there.norm() * back.norm());
    }
  }
}

TEST(MicroGrid, EveryKindOccurs) {
  std::map<GridKind, int> count;
  MicroGrid env({});
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    env.Reset(seed);
    ++count[env.layout().kind];
  }
  EXPECT_EQ(count.size(), 7u);
}

TEST(MicroGrid, TheDoorNeedsTheKey) {
  MicroGridConfig config;
  config.kind = GridKind::kKeyDoor;
  MicroGrid env(config);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    env.Reset(seed);
    const GridLayout& grid = env.layout();
    const FiniteMdp& mdp = env.instance().mdp;
    const int door = grid.door_cell;
    EXPECT_EQ(mdp.next[mdp.At(3 * door, 1)], 3 * door);
    EXPECT_EQ(mdp.next[mdp.At(3 * door + 1, 1)], 3 * (door + 1) + 2);
    EXPECT_EQ(mdp.next[mdp.At(3 * door + 2, 1)], 3 * (door + 1) + 2);
    // without the key nothing on the goal's side is reachable
    std::set<int> seen;
    for (const int state : env.Graph().node_state) {
      if (env.PhaseOf(state) == 0) seen.insert(env.CellOf(state));
    }
    EXPECT_FALSE(seen.contains(grid.goal));
  }
}

TEST(MicroGrid, OneWayPassagesAreOneWay) {
  MicroGridConfig config;
  config.kind = GridKind::kOneWay;
  MicroGrid env(config);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    env.Reset(seed);
    const GridLayout& grid = env.layout();
    int one_way = 0;
    for (int cell = 0; cell < grid.cells(); ++cell) {
      if (cell % grid.width == grid.width - 1) continue;
      const bool right = (grid.passable[static_cast<std::size_t>(cell)] >> 1 & 1) != 0;
      const bool left = (grid.passable[static_cast<std::size_t>(cell + 1)] >> 3 & 1) != 0;
      one_way += right != left ? 1 : 0;
    }
    EXPECT_EQ(one_way, 2);
  }
}

// Once round a loop, either way: same cells, different directed matrices.
TEST(MicroGrid, LoopsAreOccupancyEquivalent) {
  MicroGridConfig config;
  config.kind = GridKind::kLoop;
  config.width = config.height = 3;
  MicroGrid env(config);
  env.Reset(0);
  const FiniteMdp& mdp = env.instance().mdp;
  const auto cells_of = [&](std::initializer_list<int> moves) {
    std::multiset<int> cells;
    int state = 0;
    for (const int move : moves) {
      state = mdp.next[mdp.At(state, move)];
      cells.insert(state);
    }
    EXPECT_EQ(state, 0);
    return cells;
  };
  EXPECT_EQ(cells_of({1, 1, 0, 0, 3, 3, 2, 2}), cells_of({0, 0, 1, 1, 2, 2, 3, 3}));
}

}  // namespace
}  // namespace msrl
