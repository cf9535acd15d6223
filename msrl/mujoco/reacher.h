// Two-link arm in a plane, torques at shoulder and elbow, a target to touch.
#ifndef MSRL_MUJOCO_REACHER_H_
#define MSRL_MUJOCO_REACHER_H_

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

enum class ReacherTask {
  kBase,    // Gymnasium's
  kGoal,    // from any posture, cheaper torques
  kSparse,  // 1 within 3 cm of the target, else 0
};

class Reacher : public MujocoEnv {
 public:
  Reacher(ReacherTask task, const MujocoConfig& config);

  static constexpr double kSuccessRadius = 0.03;  // m
  std::optional<bool> Success() const override;

 private:
  enum Memory { kDistance, kMemorySize };  // fingertip to target, as last seen

  static Setup MakeSetup(ReacherTask task, const MujocoConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  double Distance() const;

  ReacherTask task_;
  bool is_v4_;
  int fingertip_;
  int target_;
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_REACHER_H_
