// Tasks whose best return is known, for tests of learning. Each has one number as its state; all
// are inside a TimeLimit.
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

// x' = 1.1 x + 0.1 u, reward 1, over when |x| > 0.5; x in [-0.3, 0.3] at the start. What is left to
// itself falls; an u of 1 holds any x that has not fallen. Best return: 100, the length of the
// episode. With a rule in the spec that tells ends, or without one.
std::unique_ptr<Env> MakeBalance(bool tells_end);

// A cue, 1 or -1, is the first observation; all later ones are 0. The reward of every step but the
// first is cue * a, of one continuous action or of the index 0 or 1. A policy that sees the present
// observation only gets 0 on average.
std::unique_ptr<Env> MakeRecall(ActionKind kind);

}  // namespace msrl::testing

#endif  // MSRL_TESTING_TOY_ENVS_H_
