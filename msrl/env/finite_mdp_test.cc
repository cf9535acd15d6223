#include "msrl/env/finite_mdp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

FiniteMdp RandomMdp(Rng& rng) {
  FiniteMdp mdp =
      FiniteMdp::Idle(1 + static_cast<int>(rng.Index(20)), 1 + static_cast<int>(rng.Index(4)));
  for (std::size_t i = 0; i < mdp.next.size(); ++i) {
    mdp.next[i] = static_cast<int>(rng.Index(mdp.states));
    mdp.reward[i] = rng.Uniform(-1.0, 1.0);
    mdp.terminated[i] = rng.Bernoulli(0.1) ? 1 : 0;
  }
  return mdp;
}

// V(s) = max_a r + gamma V(s'), with the chosen action attaining it.
RC_GTEST_PROP(FiniteMdpProperty, SatisfiesTheOptimalityEquation, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>(), "mdp");
  const FiniteMdp mdp = RandomMdp(rng);
  const double gamma = rng.Bernoulli(0.2) ? 0.0 : rng.Uniform(0.5, 0.995);
  const FiniteSolution solution = Solve(mdp, gamma);
  for (int s = 0; s < mdp.states; ++s) {
    const auto k = static_cast<std::size_t>(s);
    double best = -1e300;
    for (int a = 0; a < mdp.actions; ++a) {
      const double q = Backup(mdp, solution.value, gamma, s, a);
      best = std::max(best, q);
    }
    const double tolerance = testing::Tol(1e-9) * (1.0 + std::abs(best));
    RC_ASSERT(std::abs(solution.value[k] - best) <= tolerance);
    RC_ASSERT(std::abs(Backup(mdp, solution.value, gamma, s, solution.action[k]) - best) <=
              tolerance);
  }
}

// The same as plain value iteration, which knows nothing of paths and cycles.
RC_GTEST_PROP(FiniteMdpProperty, AgreesWithValueIteration, ()) {
  Rng rng(*rc::gen::arbitrary<std::uint64_t>(), "mdp");
  const FiniteMdp mdp = RandomMdp(rng);
  const double gamma = 0.9;
  std::vector<double> value(static_cast<std::size_t>(mdp.states), 0.0);
  for (int sweep = 0; sweep < 400; ++sweep) {
    std::vector<double> next(value.size(), -1e300);
    for (int s = 0; s < mdp.states; ++s) {
      for (int a = 0; a < mdp.actions; ++a) {
        auto& v = next[static_cast<std::size_t>(s)];
        v = std::max(v, Backup(mdp, value, gamma, s, a));
      }
    }
    value = next;
  }
  const FiniteSolution solution = Solve(mdp, gamma);
  for (std::size_t s = 0; s < value.size(); ++s) {
    RC_ASSERT(std::abs(solution.value[s] - value[s]) <= testing::Tol(1e-9));
  }
}

TEST(FiniteMdp, CountsStepsToTheGoal) {
  FiniteMdp mdp = FiniteMdp::Idle(4, 1);
  mdp.next = {1, 2, 2, 3};
  EXPECT_EQ(StepsToGoal(mdp, {0, 0, 1, 0}), (std::vector<int>{2, 1, 0, -1}));
}

TEST(FiniteMdp, RefusesTablesThatDontFit) {
  FiniteMdp mdp = FiniteMdp::Idle(2, 2);
  mdp.next[0] = 2;
  EXPECT_THROW(Solve(mdp, 0.9), UserError);
  mdp = FiniteMdp::Idle(2, 2);
  mdp.reward.pop_back();
  EXPECT_THROW(Solve(mdp, 0.9), UserError);
}

}  // namespace
}  // namespace msrl
