#include "msrl/env/finite_mdp.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// The value of a deterministic policy: follow it from every state not yet known until a known
// state, the end or a cycle, then go back.
void Evaluate(const FiniteMdp& mdp, double gamma, const std::vector<int>& policy,
              std::vector<double>& value) {
  enum : char { kUnknown, kOnPath, kKnown };
  const auto n = static_cast<std::size_t>(mdp.states);
  std::vector<char> mark(n, kUnknown);
  std::vector<std::size_t> path;
  for (std::size_t first = 0; first < n; ++first) {
    path.clear();
    std::size_t state = first;
    bool ended = false;
    while (!ended && mark[state] == kUnknown) {
      mark[state] = kOnPath;
      path.push_back(state);
      const std::size_t edge = mdp.At(static_cast<int>(state), policy[state]);
      ended = mdp.terminated[edge] != 0;
      if (!ended) state = static_cast<std::size_t>(mdp.next[edge]);
    }
    if (!ended && mark[state] == kOnPath) {
      // V(s) = R + gamma^k V(s) once round the cycle
      double sum = 0.0;
      double discount = 1.0;
      std::size_t at = state;
      do {
        const std::size_t edge = mdp.At(static_cast<int>(at), policy[at]);
        sum += discount * mdp.reward[edge];
        discount *= gamma;
        at = static_cast<std::size_t>(mdp.next[edge]);
      } while (at != state);
      value[state] = sum / (1.0 - discount);
      mark[state] = kKnown;
    }
    while (!path.empty()) {
      const std::size_t at = path.back();
      path.pop_back();
      if (mark[at] == kKnown) continue;
      value[at] = Backup(mdp, value, gamma, static_cast<int>(at), policy[at]);
      mark[at] = kKnown;
    }
  }
}

}  // namespace

FiniteMdp FiniteMdp::Idle(int states, int actions) {
  FiniteMdp mdp{.states = states, .actions = actions, .next = {}, .reward = {}, .terminated = {}};
  const std::size_t size = static_cast<std::size_t>(states) * static_cast<std::size_t>(actions);
  mdp.next.resize(size);
  mdp.reward.assign(size, 0.0);
  mdp.terminated.assign(size, 0);
  for (int s = 0; s < states; ++s) {
    for (int a = 0; a < actions; ++a) mdp.next[mdp.At(s, a)] = s;
  }
  return mdp;
}

void RequireValid(const FiniteMdp& mdp) {
  const std::size_t size = mdp.At(mdp.states, 0);
  if (mdp.states < 1 || mdp.actions < 1 || mdp.next.size() != size || mdp.reward.size() != size ||
      mdp.terminated.size() != size) {
    throw UserError(
        StrCat("finite process: tables don't have ", mdp.states, " x ", mdp.actions, " entries"));
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (mdp.next[i] < 0 || mdp.next[i] >= mdp.states || !std::isfinite(mdp.reward[i])) {
      throw UserError(StrCat("finite process: transition ", i, " goes to state ", mdp.next[i],
                             " with reward ", mdp.reward[i]));
    }
  }
}

double Backup(const FiniteMdp& mdp, const std::vector<double>& value, double gamma, int state,
              int action) {
  const std::size_t edge = mdp.At(state, action);
  if (mdp.terminated[edge] != 0) return mdp.reward[edge];
  return mdp.reward[edge] + gamma * value[static_cast<std::size_t>(mdp.next[edge])];
}

FiniteSolution Solve(const FiniteMdp& mdp, double gamma) {
  RequireValid(mdp);
  MSRL_CHECK(gamma >= 0.0 && gamma < 1.0, "gamma is ", gamma);
  const auto n = static_cast<std::size_t>(mdp.states);
  FiniteSolution solution{std::vector<double>(n, 0.0), std::vector<int>(n, 0)};
  for (bool improved = true; improved;) {
    improved = false;
    Evaluate(mdp, gamma, solution.action, solution.value);
    for (std::size_t s = 0; s < n; ++s) {
      const auto state = static_cast<int>(s);
      double best = solution.value[s];
      for (int a = 0; a < mdp.actions; ++a) {
        const double q = Backup(mdp, solution.value, gamma, state, a);
        // gains within rounding are ties, on which the iteration would not end
        if (q > best + 1e-11 * (1.0 + std::abs(best))) {
          best = q;
          solution.action[s] = a;
          improved = true;
        }
      }
    }
  }
  return solution;
}

std::vector<int> StepsToGoal(const FiniteMdp& mdp, const std::vector<char>& is_goal) {
  std::vector<int> steps(static_cast<std::size_t>(mdp.states), -1);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (is_goal[s] != 0) steps[s] = 0;
  }
  // states are few: relax until nothing changes
  for (bool changed = true; changed;) {
    changed = false;
    for (int s = 0; s < mdp.states; ++s) {
      int& mine = steps[static_cast<std::size_t>(s)];
      for (int a = 0; a < mdp.actions; ++a) {
        const int other = steps[static_cast<std::size_t>(mdp.next[mdp.At(s, a)])];
        if (other >= 0 && (mine < 0 || other + 1 < mine)) {
          mine = other + 1;
          changed = true;
        }
      }
    }
  }
  return steps;
}

}  // namespace msrl
