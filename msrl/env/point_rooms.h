// PointRooms: a point mass among walls with gaps, seen in coordinates that may be transformed.
#ifndef MSRL_ENV_POINT_ROOMS_H_
#define MSRL_ENV_POINT_ROOMS_H_

#include <string>
#include <string_view>

#include "msrl/env/model_env.h"

namespace msrl {

inline constexpr RewardStyle kPointRewards[] = {RewardStyle::kDistance, RewardStyle::kSparse,
                                                RewardStyle::kTime, RewardStyle::kProgress,
                                                RewardStyle::kVelocity};

enum class RoomLayout { kOpen, kWall, kCorridor };
constexpr auto EnumNames(RoomLayout) { return Names("open", "wall", "corridor"); }

enum class PlaneMap { kNone, kRotation, kReflection, kScaling, kShear, kDrawn };
constexpr auto EnumNames(PlaneMap) {
  return Names("none", "rotation", "reflection", "scaling", "shear", kSampled);
}

struct PointRoomsConfig {
  static constexpr int kStepLimit = 400;
  static constexpr std::string_view kLater = "detour";
  InstanceOptions common;
  std::optional<RoomLayout> layout;
  PlaneMap transform = PlaneMap::kNone;
  bool detour = false;

  template <typename V>
  void Fields(V&& visit) {
    common.Fields(visit, kPointRewards, kStepLimit);
    visit("layout", layout, "no wall, one wall with a gap, or two walls with a corridor between");
    visit("transform", transform, "linear map of the geometry's plane");
    visit("detour", detour, "a wall stands between start and goal: the straight line fails");
  }
};

class PointRoomsModel {
 public:
  using Config = PointRoomsConfig;
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
  static constexpr const char* kId = "point-rooms";
  static constexpr int kControllers = 5;
  static constexpr int kObservationSize = 17;

  static EnvSpec Spec(const PointRoomsConfig& config);
  static PointRoomsModel Draw(const PointRoomsConfig& config, std::uint64_t seed);

  Outcome Advance(State& state, const Vec2& action, Rng* noise) const;
  void Observe(const State& state, std::span<double> observation,
               std::span<double, kGeometrySize> geometry) const;
  Vec2 Control(const State& state, int controller) const;
  Vec2 Worst(const State& state) const;
  std::optional<bool> Success(const State& state) const;
  std::map<std::string, double> HiddenFacts() const { return HiddenFactsOf(*this); }
  void Sketch(const State& state, Painter& painter) const;

  State start;
  std::string layout;
  int horizon = 0;
  std::uint8_t slot_mask = 0xff;

  RewardRule rule;
  Walls walls;
  Route route;
  Vec2 goal{0, 0};
  Vec2 target_velocity{0, 0};  // velocity style only
  double radius = 0.1;         // of the goal
  double damping = 0.8;
  double top_speed = 0.1;  // per step, at a full action along one axis
  double scale = 1.0;
  // Geometry pairs (position, goal, motion) are shown after this map. Drawn from a stream of its
  // own: the same seed has the same instance under every transform.
  Eigen::Matrix2d transform = Eigen::Matrix2d::Identity();

 private:
  double acceleration() const { return top_speed * (1.0 - damping); }
};

using PointRooms = ModelEnv<PointRoomsModel>;

}  // namespace msrl

#endif  // MSRL_ENV_POINT_ROOMS_H_
