// Hopper and Walker2d: robots in a vertical plane that run in +x.
#ifndef MSRL_MUJOCO_PLANAR_WALKER_H_
#define MSRL_MUJOCO_PLANAR_WALKER_H_

#include <array>

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

enum class PlanarRobot { kHopper, kWalker2d };

enum class PlanarTask {
  kRun,       // Gymnasium's: as fast as possible
  kVelocity,  // at a speed drawn for each episode
  kGoal,      // to a place drawn for each episode
  kTerrain,   // as kRun, over boxes drawn for each episode
};

class PlanarWalker : public MujocoEnv {
 public:
  PlanarWalker(PlanarRobot robot, PlanarTask task, const MujocoConfig& config);

  static constexpr int kBoxes = 12;
  static constexpr int kProbes = 5;  // heights ahead that kTerrain shows

  std::optional<bool> Success() const override;
  std::optional<GoalMark> goal_mark() const override;
  // The ground's height at x. Cost: a comparison per box.
  double GroundHeight(double x) const;

 private:
  // Where the episode began, where the last step ended, its speed, and the drawn speed or place.
  enum Memory { kStartX, kLastX, kSpeed, kTarget, kMemorySize };

  static Setup MakeSetup(PlanarRobot robot, PlanarTask task, const MujocoConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  bool IsHealthy() const;

  PlanarRobot robot_;
  PlanarTask task_;
  bool is_v4_;
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_PLANAR_WALKER_H_
