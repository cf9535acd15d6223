// The facts about an environment, as data.
#ifndef MSRL_ENV_SPEC_H_
#define MSRL_ENV_SPEC_H_

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/lift.h"

namespace msrl {

class GoalTask;

// Size of the aligned geometry and of the action code: the same for all environments, because what
// is learned in one is used in another.
inline constexpr int kGeometrySize = 8;
inline constexpr int kActionCodeSize = 10;
inline constexpr int kMaxActionSize = 32;

enum class ActionKind { kDiscrete, kContinuous };

struct ActionSpec {
  ActionKind kind = ActionKind::kDiscrete;
  int size = 0;  // number of actions {0, ..., size-1}, or dimension of [-1, 1]^size
};

// A measured return with the way it was measured.
struct MeasuredReturn {
  double value = 0.0;
  std::string origin;
};

struct EnvSpec {
  std::string id;
  std::string family;
  std::string description;
  int observation_size = 0;
  ActionSpec action;
  int step_limit = 0;   // the most agent steps that an episode can have
  int frame_skip = 1;   // simulation steps per agent step
  double dt = 1.0;      // time per agent step
  double gamma = 0.99;  // discount of all values
  // |reward / reward_scale| is about 1 at most; values and matrices use the quotient.
  double reward_scale = 1.0;
  double reward_low = -1.0;  // bounds of the reward of one step
  double reward_high = 1.0;
  // What one unit of each geometry slot is in the environment's own units. Where an instance
  // samples its scales this is the middle of their range.
  std::array<double, kGeometrySize> geometry_unit = {1, 1, 1, 1, 1, 1, 1, 1};
  double geometry_bound = 4.0;      // no slot exceeds it
  double observation_bound = 10.0;  // no entry of the observation exceeds it
  bool has_success = false;
  // Entries of the observation that tell the episode's goal; empty if there is none to tell.
  std::vector<int> goal_entries;
  // What a step would have been with another goal; null where that cannot be told.
  std::shared_ptr<const GoalTask> goal_task;
  // Slots 2 and 3 are the goal minus the two slots from here on: 0 a place, 4 a velocity.
  int goal_origin = 0;
  // The entry of the action code that each dimension of a continuous action goes into; those with
  // one entry share it as their mean. Empty: dimension i goes into entry i.
  std::vector<int> action_code;
  // Whether a step terminates the episode, told by the observation that it leads to: for agents
  // that imagine steps. Empty where an observation does not tell. Failed simulations terminate
  // besides.
  std::function<bool(std::span<const double> observation)> terminates;
  std::optional<MeasuredReturn> random_return;
  std::optional<MeasuredReturn> still_return;  // zero action
  std::optional<MeasuredReturn> reference_return;
};

// EnvSpec::terminates of tasks that only a time limit ends.
inline bool NeverTerminates(std::span<const double> /*observation*/) { return false; }

// The shared meaning of the eight geometry slots:
//   0,1 where am I          position relative to the episode's start or the arena's centre
//   2,3 where is the goal   goal - position; target velocity - velocity in velocity tasks
//   4,5 how do I move       velocity or last displacement, about 1 at a typical speed
//   6   posture             sine of heading or elbow, signed tilt (0 upright)
//   7   contact             1 within the goal's radius, 0 without a goal; progress of a key-door
//   task
// What balances in a plane has -(how near a fall) in slot 1.
// Environments divide by their own units (EnvSpec::geometry_unit) so that a typical magnitude is 1;
// hence the scales here are 1, and all environments have the same LiftId.
const std::vector<GeometrySlot>& AlignedSlots();

// The lift with the aligned slots, d = 8, q = 10. Equal ids for equal kinds.
Lift::Ptr CompactLift(LiftKind kind = LiftKind::kCompact);

// What Step takes: the index of a discrete action, or a view of a continuous one.
class Action {
 public:
  static Action Discrete(int index) { return Action(ActionKind::kDiscrete, index, {}); }
  // The values must outlive the action.
  static Action Continuous(std::span<const double> values) {
    return Action(ActionKind::kContinuous, 0, values);
  }

  ActionKind kind() const { return kind_; }
  int index() const { return index_; }
  std::span<const double> values() const { return values_; }

 private:
  Action(ActionKind kind, int index, std::span<const double> values)
      : kind_(kind), index_(index), values_(values) {}

  ActionKind kind_;
  int index_;
  std::span<const double> values_;
};

// The index of a discrete action. UserError on the wrong kind or an index out of range.
int RequireIndex(const EnvSpec& spec, const Action& action);

// A continuous action clipped to [-1, 1]; `out` has spec.action.size entries. UserError on the
// wrong kind, a wrong size or a value that is not finite.
void RequireClipped(const EnvSpec& spec, const Action& action, std::span<double> out);

// The action as the lift sees it: one-hot, or clipped and put into the code (EnvSpec::action_code),
// padded with zeros. Does not allocate. UserError as above, or if the action does not fit.
void EmbedAction(const EnvSpec& spec, const Action& action, std::span<double, kActionCodeSize> out);

}  // namespace msrl

#endif  // MSRL_ENV_SPEC_H_
