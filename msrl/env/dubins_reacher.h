// DubinsReacher: low-dimensional control where the effect of an action depends on the posture.
//
//   dubins   a car: action = (speed, turn), bounded turn rate, it only moves where it points
//   arm      a planar arm of two links: action = torques of shoulder and elbow
//   balance  a leaning body: action = (drive, correction); the episode ends when it falls
#ifndef MSRL_ENV_DUBINS_REACHER_H_
#define MSRL_ENV_DUBINS_REACHER_H_

#include <string>
#include <string_view>

#include "msrl/env/model_env.h"

namespace msrl {

inline constexpr RewardStyle kDubinsReacherRewards[] = {
    RewardStyle::kDistance, RewardStyle::kSparse,   RewardStyle::kTime,
    RewardStyle::kProgress, RewardStyle::kVelocity, RewardStyle::kSurvival};

enum class ControlTask { kDubins, kArm, kBalance };
constexpr auto EnumNames(ControlTask) { return Names("dubins", "arm", "balance"); }

struct DubinsReacherConfig {
  static constexpr int kStepLimit = 400;
  InstanceOptions common;
  std::optional<ControlTask> task;
  double noise = 0.005;

  template <typename V>
  void Fields(V&& visit) {
    common.Fields(visit, kDubinsReacherRewards, kStepLimit);
    visit("task", task, "what is controlled");
    visit("noise", noise, "random push per step on the balancing body, 0 to 0.02",
          Between(0, 0.02));
  }
};

class DubinsReacherModel {
 public:
  using Config = DubinsReacherConfig;
  struct State {
    Vec2 position{0, 0};  // of the car, the hand, or the body (first coordinate)
    Vec2 velocity{0, 0};  // per step
    Vec2 angle{0, 0};     // heading; shoulder and elbow; tilt
    Vec2 rate{0, 0};      // of the angles, per step (arm, balance)
    template <typename V>
    void Fields(V&& visit) {
      for (Vec2* v : {&position, &velocity, &angle, &rate}) {
        for (int i = 0; i < 2; ++i) visit((*v)[i]);
      }
    }
  };
  static constexpr const char* kId = "dubins-reacher";
  static constexpr int kControllers = 5;
  static constexpr int kObservationSize = 17;

  static EnvSpec Spec(const DubinsReacherConfig& config);
  static DubinsReacherModel Draw(const DubinsReacherConfig& config, std::uint64_t seed);

  Outcome Advance(State& state, const Vec2& action, Rng* noise) const;
  void Observe(const State& state, std::span<double> observation,
               std::span<double, kGeometrySize> geometry) const;
  Vec2 Control(const State& state, int controller) const;
  Vec2 Worst(const State& state) const;
  std::optional<bool> Success(const State& state) const;
  std::map<std::string, double> HiddenFacts() const;
  void Sketch(const State& state, Painter& painter) const;

  State start;
  std::string layout;
  int horizon = 0;
  std::uint8_t slot_mask = 0xff;

  ControlTask task = ControlTask::kDubins;
  RewardRule rule;
  Vec2 goal{0, 0};
  Vec2 target_velocity{0, 0};  // velocity and survival styles
  double radius = 0.1;         // of the goal
  double scale = 1.0;
  double top_speed = 0.1;          // of car and body, per step
  double turn_rate = 0.4;          // of the car, per step
  Vec2 link{0.5, 0.5};             // lengths
  double joint_speed = 0.1;        // of the arm, per step
  double damping = 0.8;            // of arm and body
  double tilt_limit = 0.5;         // of the body
  double instability = 0.04;       // how fast a tilt grows
  double correction = 0.1;         // how strong the second action is
  double noise_deviation = 0.005;  // of the body's tilt rate

 private:
  Vec2 Hand(const Vec2& angle) const;
  // Length of the motion slots' unit.
  double SpeedUnit() const;
  void AdvanceDubins(State& state, const Vec2& action) const;
  void AdvanceArm(State& state, const Vec2& action) const;
  void AdvanceBalance(State& state, const Vec2& action, Rng* noise) const;
  Vec2 ControlDubins(const State& state, double pace) const;
  Vec2 ControlArm(const State& state, double elbow, double pace) const;
  Vec2 ControlBalance(const State& state, double pace) const;
  // Joint actions that take the hand away from the goal.
  Vec2 Away(const State& state) const;
  Vec2 Offset(const State& state) const;
};

using DubinsReacher = ModelEnv<DubinsReacherModel>;

}  // namespace msrl

#endif  // MSRL_ENV_DUBINS_REACHER_H_
