// Tasks whose best return and values are known, for tests of learning. Each has one number as its
// state; all are inside a TimeLimit.
#ifndef MSRL_TESTING_TOY_ENVS_H_
#define MSRL_TESTING_TOY_ENVS_H_

#include <memory>

#include "msrl/env/env.h"

namespace msrl::testing {

// The observation says which action is right; every step asks anew. Reward -(a - o)^2 of one
// continuous action, or 1 for the right one of four. Best return: 0, or the length of the episode.
std::unique_ptr<Env> MakeIdentity(ActionKind kind);

// Two states and three actions: stay, change over, leave. Staying in state 0 gives 0.2, in state 1
// it gives 1; leaving gives 3 and terminates. All times reward_scale. Episodes are cut after ten
// steps: an agent that takes this for an end sees far smaller values.
struct TwoStates {
  static constexpr int kActions = 3;
  static constexpr double kRewardScale = 5.0;
  static constexpr double kGamma = 0.9;
  // Of the best policy without the cut, in the unit of reward / reward_scale.
  static double Q(int state, int action);
};
std::unique_ptr<Env> MakeTwoStates();

// x' = x + 0.3 u, reward -(x^2 + 0.1 u^2), x in [-0.5, 0.5] at the start.
struct ScalarLqr {
  static constexpr double kB = 0.3;
  static constexpr double kCost = 0.1;
  static constexpr double kGamma = 0.95;
  // V(x) = -P x^2: the solution of the Riccati equation.
  static double P();
  // u = -K x is best; it stays within [-1, 1].
  static double K();
  static double Q(double x, double u);
};
std::unique_ptr<Env> MakeScalarLqr();

}  // namespace msrl::testing

#endif  // MSRL_TESTING_TOY_ENVS_H_
