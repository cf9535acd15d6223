// What one may know of a task that shows its goal: enough to read a step towards one goal as a step
// towards any other.
#ifndef MSRL_ENV_GOAL_TASK_H_
#define MSRL_ENV_GOAL_TASK_H_

#include <span>

#include "msrl/env/env.h"
#include "msrl/env/vec2.h"

namespace msrl {

struct Outcome {
  double reward = 0.0;
  bool terminated = false;
};

// Of a task whose goal is a place in the plane, stays the same for an episode, and changes nothing
// but what is shown, paid and called an end. All functions are pure and don't allocate.
class GoalTask {
 public:
  virtual ~GoalTask() = default;

  // Of a state that looks like this: the goal that is reached in it, and the goal that it shows.
  virtual Vec2 Achieved(const EnvView& observation) const = 0;
  virtual Vec2 Desired(const EnvView& observation) const = 0;
  // What the state at `achieved` shows of the goal `desired`: the entries EnvSpec::goal_entries of
  // its observation, in their order.
  virtual void Show(const Vec2& achieved, const Vec2& desired, std::span<double> entries) const = 0;
  // Of a step that ends at `achieved`: the part of its reward that depends on the goal, and whether
  // the goal is the end.
  virtual Outcome Judge(const Vec2& achieved, const Vec2& desired) const = 0;
};

}  // namespace msrl

#endif  // MSRL_ENV_GOAL_TASK_H_
