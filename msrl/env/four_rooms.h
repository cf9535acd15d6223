// Four rooms: the bridge target, a point mass in a 4 x 4 arena with two walls of two gaps each; and
// the same arena without walls.
// Never part of the source distribution.
#ifndef MSRL_ENV_FOUR_ROOMS_H_
#define MSRL_ENV_FOUR_ROOMS_H_

#include <string>

#include "msrl/env/model_env.h"

namespace msrl {

struct FourRoomsConfig {
  GoalReward reward = GoalReward::kSparse;
  bool walls = true;  // else just the arena, which has an id of its own

  template <typename V>
  void Fields(V&& visit) {
    visit("reward", reward, "1 within 0.3 of the goal, or minus a quarter of the distance");
  }
};

class FourRoomsModel {
 public:
  using Config = FourRoomsConfig;
  struct State {
    Vec2 position{0, 0};
    Vec2 velocity{0, 0};
    template <typename V>
    void Fields(V&& visit) {
      for (Vec2* v : {&position, &velocity}) {
        for (int i = 0; i < 2; ++i) visit((*v)[i]);
      }
    }
  };
  static constexpr int kControllers = 3;
  static constexpr double kGoalRadius = 0.3;

  static EnvSpec Spec(const FourRoomsConfig& config);
  static FourRoomsModel Draw(const FourRoomsConfig& config, std::uint64_t seed);
  explicit FourRoomsModel(bool with_walls = true);

  Outcome Advance(State& state, const Vec2& action, Rng* noise) const;
  void Observe(const State& state, std::span<double> observation,
               std::span<double, kGeometrySize> geometry) const;
  Vec2 Control(const State& state, int controller) const;
  Vec2 Worst(const State& state) const { return -Control(state, 0); }
  std::optional<bool> Success(const State& state) const {
    return (goal - state.position).norm() < kGoalRadius;
  }
  std::map<std::string, double> HiddenFacts() const { return {}; }  // all of it is visible
  void Sketch(const State& state, Painter& painter) const;

  State start;
  std::string layout;
  int horizon = 0;
  std::uint8_t slot_mask = 0xff;
  Vec2 goal{0, 0};
  Walls walls;
  Route route;
  bool sparse = true;
};

using FourRooms = ModelEnv<FourRoomsModel>;

}  // namespace msrl

#endif  // MSRL_ENV_FOUR_ROOMS_H_
