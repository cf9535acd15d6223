// A robot with torso, two legs and two arms.
#ifndef MSRL_MUJOCO_HUMANOID_H_
#define MSRL_MUJOCO_HUMANOID_H_

#include <array>

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

enum class HumanoidTask {
  kRun,        // Gymnasium's: as fast as possible in +x
  kStand,      // on the spot
  kWalk,       // in +x at 1 m/s
  kDirection,  // at 1 m/s in a direction drawn for each episode
};

class Humanoid : public MujocoEnv {
 public:
  Humanoid(HumanoidTask task, const MujocoConfig& config);

  std::optional<bool> Success() const override;

 private:
  // The centre of mass (lagged, as xipos is) at the start and after the last step, its velocity,
  // and the wanted velocity.
  enum Memory {
    kStartX,
    kStartY,
    kCentreX,
    kCentreY,
    kSpeedX,
    kSpeedY,
    kTargetX,
    kTargetY,
    kMemorySize
  };

  static Setup MakeSetup(HumanoidTask task, const MujocoConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  bool IsHealthy() const;
  // How far the velocity is from the wanted one, in m/s.
  double SpeedError() const;
  std::array<double, 2> CentreOfMass() const;

  HumanoidTask task_;
  bool is_v4_;
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_HUMANOID_H_
