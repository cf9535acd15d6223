// Deterministic decision processes with finitely many states, solved exactly.
#ifndef MSRL_ENV_FINITE_MDP_H_
#define MSRL_ENV_FINITE_MDP_H_

#include <cstddef>
#include <vector>

namespace msrl {

struct FiniteMdp {
  int states = 0;
  int actions = 0;
  // Per state * actions + action:
  std::vector<int> next;
  std::vector<double> reward;
  std::vector<char> terminated;  // no future after this transition

  std::size_t At(int state, int action) const {
    return static_cast<std::size_t>(state) * static_cast<std::size_t>(actions) +
           static_cast<std::size_t>(action);
  }
  // All transitions stay and earn nothing.
  static FiniteMdp Idle(int states, int actions);
};

// UserError unless all sizes and targets fit.
void RequireValid(const FiniteMdp& mdp);

struct FiniteSolution {
  std::vector<double> value;  // V*(s)
  std::vector<int> action;    // an optimal one
};

// r + gamma V(s') or r alone if terminated.
double Backup(const FiniteMdp& mdp, const std::vector<double>& value, double gamma, int state,
              int action);

// V* to rounding, 0 <= gamma < 1. Policy iteration; a policy of a deterministic process is a path
// into a cycle, so that its value is a closed form and a sweep costs O(states * actions).
FiniteSolution Solve(const FiniteMdp& mdp, double gamma);

// Steps from each state to the nearest marked one, -1 if none can be reached.
std::vector<int> StepsToGoal(const FiniteMdp& mdp, const std::vector<char>& is_goal);

}  // namespace msrl

#endif  // MSRL_ENV_FINITE_MDP_H_
