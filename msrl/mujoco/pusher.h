// Seven-joint arm that pushes a puck on a table to a goal.
#ifndef MSRL_MUJOCO_PUSHER_H_
#define MSRL_MUJOCO_PUSHER_H_

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

enum class PusherTask {
  kBase,      // Gymnasium's: the goal is always at the same place
  kPush,      // the goal is drawn
  kObstacle,  // as kPush, with a post between puck and goal
};

class Pusher : public MujocoEnv {
 public:
  Pusher(PusherTask task, const MujocoConfig& config);

  static constexpr double kSuccessRadius = 0.05;  // m, in the table's plane
  std::optional<bool> Success() const override;

 private:
  // The distances as last seen: puck to goal in space and on the table, puck to hand.
  enum Memory { kGoalDistance, kTableDistance, kHandDistance, kMemorySize };

  static Setup MakeSetup(PusherTask task, const MujocoConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  void Measure();

  PusherTask task_;
  bool is_v4_;
  int hand_;
  int object_;
  int goal_;
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_PUSHER_H_
