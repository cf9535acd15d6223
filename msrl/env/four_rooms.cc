#include "msrl/env/four_rooms.h"

#include <cmath>

namespace msrl {
namespace {

constexpr int kHorizon = 100;
constexpr double kDamping = 0.8;
constexpr double kAcceleration = 0.04;
constexpr double kTopSpeed = kAcceleration / (1.0 - kDamping);
constexpr double kMotionScale = 5.0;  // one over the top speed

// Places are shown in units of 2.
class FourRoomsGoal : public GoalTask {
 public:
  explicit FourRoomsGoal(bool sparse) : sparse_(sparse) {}

  Vec2 Achieved(const EnvView& o) const override { return {2.0 * o[0], 2.0 * o[1]}; }
  Vec2 Desired(const EnvView& o) const override { return {2.0 * o[2], 2.0 * o[3]}; }
  void Show(const Vec2& achieved, const Vec2& desired, std::span<double> entries) const override {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      entries[i] = 0.5 * desired[k];
      entries[2 + i] = 0.5 * (desired[k] - achieved[k]);
    }
  }
  Outcome Judge(const Vec2& achieved, const Vec2& desired) const override {
    const double distance = (desired - achieved).norm();
    const double near = distance < FourRoomsModel::kGoalRadius ? 1.0 : 0.0;
    return {sparse_ ? near : -0.25 * distance, false};
  }

 private:
  bool sparse_;
};

}  // namespace

EnvSpec FourRoomsModel::Spec(const FourRoomsConfig& config) {
  EnvSpec spec;
  const bool is_sparse = config.reward == GoalReward::kSparse;
  spec.family = config.walls ? "four-rooms" : "arena";
  spec.id = StrCat(spec.family, "-", EnumName(config.reward));
  spec.description =
      StrCat("point mass in ", config.walls ? "four rooms" : "an open arena",
             is_sparse ? ", 1 per step near the goal" : ", minus the distance to the goal");
  spec.observation_size = 8;
  spec.action = {ActionKind::kContinuous, 2};
  spec.step_limit = kHorizon;
  spec.reward_low = is_sparse ? 0.0 : -std::sqrt(2.0);
  spec.reward_high = is_sparse ? 1.0 : 0.0;
  spec.geometry_unit = {2, 2, 2, 2, 1 / kMotionScale, 1 / kMotionScale, 1, 1};
  spec.geometry_bound = 2.0;
  spec.observation_bound = 2.0;
  spec.has_success = true;
  spec.goal_entries = {2, 3, 6, 7};
  spec.goal_task = std::make_shared<FourRoomsGoal>(is_sparse);
  spec.terminates = NeverTerminates;
  const std::string where = ", mean of 10,000 episodes with seeds from 100,000";
  if (!config.walls) return spec;
  spec.random_return = {is_sparse ? 1.75 : -50.5, "uniform random actions" + where};
  spec.reference_return = {is_sparse ? 87.7 : -4.64, "scripted expert" + where};
  return spec;
}

FourRoomsModel::FourRoomsModel(bool with_walls) : walls(2.0) {
  if (!with_walls) return;
  walls.Add({.axis = 0, .position = 0.0, .gap_half_width = 0.35, .gaps = 2, .gap = {1.2, -0.9}});
  walls.Add({.axis = 1, .position = 0.0, .gap_half_width = 0.35, .gaps = 2, .gap = {0.8, -1.3}});
}

FourRoomsModel FourRoomsModel::Draw(const FourRoomsConfig& config, std::uint64_t seed) {
  FourRoomsModel model(config.walls);
  Rng rng(seed, "four-rooms");
  model.layout = config.walls ? "four-rooms" : "arena";
  model.horizon = kHorizon;
  model.sparse = config.reward == GoalReward::kSparse;
  for (Vec2* point : {&model.start.position, &model.goal}) {
    for (int i = 0; i < 2; ++i) (*point)[i] = rng.Uniform(-1.9, 1.9);
  }
  model.route = Route(model.walls, model.goal, 0.1);
  return model;
}

Outcome FourRoomsModel::Advance(State& state, const Vec2& action, Rng* /*noise*/) const {
  state.velocity = kDamping * state.velocity + kAcceleration * action;
  const Vec2 next = state.position + state.velocity;
  if (walls.Blocks(state.position, next)) {
    state.velocity.setZero();
  } else {
    state.position = next;
  }
  return FourRoomsGoal(sparse).Judge(state.position, goal);
}

void FourRoomsModel::Observe(const State& state, std::span<double> observation,
                             std::span<double, kGeometrySize> geometry) const {
  const Vec2 position = 0.5 * state.position;
  const Vec2 offset = 0.5 * (goal - state.position);
  const Vec2 motion = kMotionScale * state.velocity;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    observation[i] = geometry[i] = position[k];
    observation[2 + i] = 0.5 * goal[k];
    observation[4 + i] = geometry[4 + i] = motion[k];
    observation[6 + i] = geometry[2 + i] = offset[k];
  }
  geometry[6] = 0.0;
  geometry[7] = offset.norm() < 0.5 * kGoalRadius ? 1.0 : 0.0;
}

Vec2 FourRoomsModel::Control(const State& state, int controller) const {
  const Route::Heading heading = route.From(walls, state.position);
  const Vec2 way = heading.target - state.position;
  // full speed through gaps; how hard to brake at the goal is what the controllers differ in
  constexpr double kStiffness[] = {0.5, 0.3, 0.2};
  const Vec2 wanted = heading.is_goal ? Shortened(way * kStiffness[controller], kTopSpeed)
                                      : Vec2(way * (kTopSpeed / (way.norm() + 1e-9)));
  return Clipped((wanted - kDamping * state.velocity) / kAcceleration);
}

void FourRoomsModel::Sketch(const State& state, Painter& painter) const {
  painter.Look({0, 0}, 2.1 * walls.half_width());
  DrawWalls(painter, walls);
  painter.Disc(goal, kGoalRadius, kGoalColour);
  painter.Disc(state.position, 1.5 * kMoverRadius, kBodyColour);
}

}  // namespace msrl
