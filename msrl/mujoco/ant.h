// Four-legged robot that runs in +x, and the parts that AntMaze shares.
#ifndef MSRL_MUJOCO_ANT_H_
#define MSRL_MUJOCO_ANT_H_

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

class Ant : public MujocoEnv {
 public:
  explicit Ant(const MujocoConfig& config);

 protected:
  Ant(Setup setup, const MujocoConfig& config);

  // Sizes, bounds and units of an ant with `extra` observations.
  static Setup MakeSetup(std::string id, int extra_observations, const MujocoConfig& config);

  // Writes the ant's part of the observation, returns its end.
  double* ShowBody();
  double Tilt() const;  // x of the torso's own z axis: 0 upright, signed

  static constexpr double kSpeedUnit = 2.0;  // m/s
  static constexpr ModelSizes kSizes = {.nq = 15, .nv = 14, .nu = 8};

 private:
  enum Memory { kStartX, kStartY, kLastX, kMemorySize };  // kLastX: lagged, as xpos is

  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;

  bool is_v4_;
  int torso_;
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_ANT_H_
