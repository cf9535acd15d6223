#include "msrl/inspect/precise_critic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/agents/episode_tracker.h"
#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using ::msrl::testing::Tol;

struct Played {
  SegmentMatrix z;
  SegmentMatrix increment;
  Eigen::VectorXd observation;
};

std::vector<Played> Play(const char* id, int episodes) {
  std::vector<Played> states;
  const auto env = MakeEnv(id);
  EpisodeTracker tracker(env->spec(), CompactLift());
  Rng rng(1, "behaviour");
  for (int e = 0; e < episodes; ++e) {
    env->Reset(static_cast<std::uint64_t>(e));
    tracker.Begin(*env);
    Behaviour behaviour = MakeBehaviour(*env, rng);
    for (bool running = true; running;) {
      const Action action = behaviour.Act();
      const StepResult result = env->Step(action);
      const Experience seen = tracker.Advance(action, result, *env);
      if (seen.before.step % 4 == 2) {
        states.push_back({seen.before.matrix, seen.after.matrix - seen.before.matrix,
                          Eigen::VectorXd(seen.before.observation)});
      }
      running = !result.terminated && !result.truncated;
    }
  }
  return states;
}

Critic MakeCritic(int observation, bool discrete, bool hidden_input) {
  BranchSettings branch;
  branch.lift = CompactLift();
  branch.shape = {.width = 12, .layers = 2};
  branch.hidden_input = hidden_input;
  branch.residual_scale = 1.0;
  CriticSizes sizes;
  sizes.observation = observation;
  sizes.action = discrete ? 0 : 2;
  sizes.outputs = discrete ? 3 : 1;
  sizes.heads = discrete ? 1 : 2;
  sizes.hidden = {16, 16};
  sizes.batch = 1;
  Critic critic(sizes, branch);
  Rng rng(3, "critic");
  critic.Init(rng);
  return critic;
}

// Values are the critic's, gradients are those of the values.
TEST(CriticValue, IsTheCriticAndItsGradientThatOfDifferences) {
  const std::vector<Played> states = Play("point-rooms", 4);
  ASSERT_GT(states.size(), 20u);
  const auto n = static_cast<int>(states[0].observation.size());
  Rng rng(1, "actions");
  int smaller[2] = {0, 0};
  for (const bool discrete : {false, true}) {
    for (const bool hidden_input : {true, false}) {
      SCOPED_TRACE(StrCat(discrete, " ", hidden_input));
      Critic critic = MakeCritic(n, discrete, hidden_input);
      const PreciseCritic precise(critic);
      for (const Played& state : states) {
        Eigen::VectorXd action(discrete ? 0 : 2);
        for (double& a : action) a = rng.Uniform(-1.0, 1.0);
        const auto index = static_cast<int>(rng.Index(3));
        const CriticValue value = discrete ? CriticValue(precise, state.observation, index)
                                           : CriticValue(precise, state.observation, action);
        Eigen::MatrixXf features(precise.features().size(), 1);
        precise.features().Compute(state.z, Flat(features));
        critic.actions() = action.cast<float>();
        const Eigen::MatrixXf q = critic.Q(state.observation.cast<float>(), features);
        EXPECT_NEAR(value.Value(state.z), discrete ? q(index, 0) : q.minCoeff(), Tol(2e-5));
        if (!discrete) ++smaller[q(0, 0) < q(1, 0) ? 0 : 1];

        const SegmentMatrix gradient = value.Gradient(state.z);
        EXPECT_GT(gradient.Norm(), 0.0);
        // along steps of play, which stay within what matrices can be
        constexpr double kStep = 1e-6;
        for (const SegmentMatrix& direction : {state.increment, states.back().increment}) {
          SegmentMatrix small = direction;
          small *= kStep;
          const double difference = (value.Value(state.z + small) - value.Value(state.z)) / kStep;
          const double expected = gradient.Inner(direction);
          EXPECT_NEAR(difference, expected, Tol(1e-4) * (1.0 + std::abs(expected)));
        }
      }
    }
  }
  EXPECT_GT(smaller[0], 5);
  EXPECT_GT(smaller[1], 5);
}

// The branch and what R makes of h both speak: neither is the whole gradient.
TEST(CriticValue, ResidualsSeeTheMatrixThroughH) {
  const std::vector<Played> states = Play("point-rooms", 2);
  const auto n = static_cast<int>(states[0].observation.size());
  for (const bool hidden_input : {true, false}) {
    const Critic critic = MakeCritic(n, false, hidden_input);
    const PreciseCritic precise(critic);
    const BranchValue branch(critic.branch(), precise.features());
    for (const Played& state : states) {
      const CriticValue value(precise, state.observation, Eigen::VectorXd::Zero(2));
      EXPECT_NEAR(precise.F(state.z), branch.Value(state.z), Tol(1e-12));
      const double off = value.Gradient(state.z).Distance(branch.Gradient(state.z));
      if (hidden_input) {
        EXPECT_GT(off, 1e-6);
      } else {
        EXPECT_LT(off, 1e-12);
      }
    }
  }
}

TEST(CriticValue, IsFirstOrderAdditive) {
  const std::vector<Played> states = Play("point-rooms", 6);
  const auto n = static_cast<int>(states[0].observation.size());
  const PreciseCritic precise(MakeCritic(n, false, true));
  std::vector<CriticValue> values;
  std::vector<SegmentMatrix> prefixes, increments;
  for (const Played& state : states) {
    values.emplace_back(precise, state.observation, Eigen::VectorXd::Constant(2, 0.3));
    prefixes.push_back(state.z);
    increments.push_back(state.increment);
  }
  std::vector<const MatrixValue*> pointers;
  for (const CriticValue& value : values) pointers.push_back(&value);
  const ValueTheoryReport report = StudyValues(pointers, prefixes, increments);
  EXPECT_EQ(report.states, std::ssize(states));
  EXPECT_NEAR(report.first_order.slope_median, 2.0, 0.1);
  EXPECT_NEAR(report.additivity.slope_median, 2.0, 0.1);
  ASSERT_EQ(report.factors.size(), 10u);
  EXPECT_EQ(report.factors[0], 0.25);
  EXPECT_EQ(report.factors[9], 0.25 / 512.0);
  for (std::size_t k = 1; k < 10; ++k) {
    EXPECT_LT(report.first_order.median_errors[k], 0.5 * report.first_order.median_errors[k - 1]);
    EXPECT_LT(report.additivity.median_errors[k], 0.5 * report.additivity.median_errors[k - 1]);
  }
}

TEST(CriticValue, NeedsABranch) {
  CriticSizes sizes;
  sizes.observation = 2;
  sizes.action = 1;
  sizes.hidden = {4};
  sizes.batch = 1;
  EXPECT_THROW(PreciseCritic(Critic(sizes, std::nullopt)), InvariantError);
}

TEST(GradientSummary, ByHand) {
  // two gradients: x[0]*x[0] and x[1]*dx[2]
  Eigen::MatrixXd first = Eigen::MatrixXd::Zero(28, 28);
  Eigen::MatrixXd second = first;
  first(0, 0) = 3.0;
  second(1, 10) = second(10, 1) = -2.0;
  const std::vector<SegmentMatrix> gradients{SegmentMatrix::FromDense(CompactLift(), first),
                                             SegmentMatrix::FromDense(CompactLift(), second)};
  const std::vector<GradientBlock> blocks = GradientBlocks(gradients);
  ASSERT_EQ(blocks.size(), 15u);
  double shares = 0.0;
  for (const GradientBlock& block : blocks) {
    shares += block.share;
    const std::string name = block.rows + "*" + block.columns;
    const double squares = name == "x*x" ? 9.0 : name == "x*dx" ? 8.0 : 0.0;
    EXPECT_NEAR(block.share, squares / 17.0, Tol(1e-12)) << name;
    EXPECT_NEAR(block.norm, std::sqrt(squares / 2.0), Tol(1e-12)) << name;
  }
  EXPECT_NEAR(shares, 1.0, Tol(1e-12));

  const std::vector<GradientEntry> entries = LargestEntries(gradients, 10);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "x[1]*dx[2]");
  EXPECT_NEAR(entries[0].mean, -2.0, Tol(1e-12));
  EXPECT_NEAR(entries[0].rms, 4.0 / std::sqrt(2.0), Tol(1e-12));
  EXPECT_EQ(entries[0].positive, 0.0);
  EXPECT_EQ(entries[1].name, "x[0]*x[0]");
  EXPECT_NEAR(entries[1].mean, 1.5, Tol(1e-12));
  EXPECT_NEAR(entries[1].positive, 0.5, Tol(1e-12));
  EXPECT_EQ(LargestEntries(gradients, 1).size(), 1u);
  EXPECT_THROW(GradientBlocks({}), InvariantError);
}

}  // namespace
}  // namespace msrl
