#include "msrl/env/point_rooms.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace msrl {
namespace {

constexpr double kHalfWidth = 1.25;
constexpr double kFarAway = 1e9;  // half width of the arena of velocity tasks
constexpr auto kLayouts = EnumValues<RoomLayout>();
constexpr int kMinHorizon = 50;
constexpr int kMaxHorizon = 120;

// Goals lie in cells of this width; the cell is part of the layout, the place within it is not.
constexpr double kGoalCell = 0.2;
constexpr int kGoalCells = 10;

Eigen::Matrix2d DrawTransform(PlaneMap kind, Rng& rng) {
  constexpr PlaneMap kKinds[] = {PlaneMap::kRotation, PlaneMap::kReflection, PlaneMap::kScaling,
                                 PlaneMap::kShear};
  const PlaneMap drawn = kKinds[rng.Index(std::ssize(kKinds))];
  if (kind == PlaneMap::kDrawn) kind = drawn;
  const double angle = rng.Uniform(-std::numbers::pi, std::numbers::pi);
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  const Vec2 stretch(std::exp(rng.Uniform(-0.5, 0.5)), std::exp(rng.Uniform(-0.5, 0.5)));
  const double slant = rng.Uniform(-0.8, 0.8);
  Eigen::Matrix2d map = Eigen::Matrix2d::Identity();
  if (kind == PlaneMap::kRotation) map << c, -s, s, c;
  if (kind == PlaneMap::kReflection) map << c, s, s, -c;
  if (kind == PlaneMap::kScaling) map = stretch.asDiagonal();
  if (kind == PlaneMap::kShear) map << 1.0, slant, 0.0, 1.0;
  return map;
}

Vec2 RandomPoint(double half_width, Rng& rng) {
  return {rng.Uniform(-half_width, half_width), rng.Uniform(-half_width, half_width)};
}

}  // namespace

EnvSpec PointRoomsModel::Spec(const PointRoomsConfig& config) {
  RequireInRange(config);
  if (config.detour &&
      (config.layout == RoomLayout::kOpen || config.common.reward == RewardStyle::kVelocity)) {
    throw UserError("point-rooms: detour needs a wall and a goal behind it");
  }
  EnvSpec spec;
  spec.id = kId;
  spec.family = "point-rooms";
  spec.description = "point mass among walls, gaps and corridors; coordinate transforms";
  spec.observation_size = kObservationSize;
  spec.action = {ActionKind::kContinuous, 2};
  spec.step_limit = PointRoomsConfig::kStepLimit;
  spec.reward_low = -3.0;
  spec.reward_high = 1.5;
  spec.geometry_unit = {1, 1, 1, 1, 0.1, 0.1, 1, 1};
  spec.geometry_bound = 20.0;  // stretched coordinates at the largest scale
  spec.has_success = true;
  return spec;
}

PointRoomsModel PointRoomsModel::Draw(const PointRoomsConfig& config, std::uint64_t seed) {
  Rng rng(seed, "point-rooms");
  std::span<const RewardStyle> styles = kPointRewards;
  std::span<const RoomLayout> layouts = kLayouts;
  if (config.detour) {  // without velocities, and without the open arena
    styles = styles.first(styles.size() - 1);
    layouts = layouts.subspan(1);
  }
  PointRoomsModel model = DrawInSplit(config.common, [&] {
    PointRoomsModel drawn;
    drawn.rule = SampleRewardRule(config.common, styles, rng);
    const auto drawn_kind = static_cast<std::size_t>(rng.Index(std::ssize(layouts)));
    RoomLayout kind = config.layout.value_or(layouts[drawn_kind]);
    const bool has_goal = drawn.rule.HasGoal();
    // a velocity task needs room to move
    if (!has_goal) kind = RoomLayout::kOpen;
    LayoutText code(EnumName(kind));

    drawn.walls = Walls(has_goal ? kHalfWidth : kFarAway);
    const int axis = RandomInt(0, 1, rng);
    const double first = SampleOnGrid(-0.5, 0.3, 0.1, rng);
    const double width = SampleOnGrid(0.3, 0.5, 0.1, rng);
    for (int i = 0; i < 2; ++i) {
      Wall wall{
          .axis = axis, .position = first + i * width, .gap_half_width = 0.0, .gaps = 1, .gap = {}};
      wall.gap[0] = SampleOnGrid(-0.8, 0.8, 0.1, rng);
      wall.gap_half_width = SampleOnGrid(0.2, 0.3, 0.05, rng);
      if (kind == RoomLayout::kOpen || (kind == RoomLayout::kWall && i == 1)) continue;
      drawn.walls.Add(wall);
      code.Add('a', axis);
      code.Add('x', std::lround(wall.position * 20));
      code.Add('g', std::lround(wall.gap[0] * 20));
      code.Add('w', std::lround(wall.gap_half_width * 20));
    }
    const int cell_x = RandomInt(0, kGoalCells - 1, rng);
    const int cell_y = RandomInt(0, kGoalCells - 1, rng);
    const int direction = RandomInt(0, 15, rng);
    const int speed = RandomInt(3, 10, rng);
    drawn.top_speed = SampleOnGrid(0.05, 0.15, 0.01, rng);
    code.Add('v', std::lround(drawn.top_speed * 100));
    if (has_goal) {
      code.Add('i', cell_x);
      code.Add('j', cell_y);
    } else {
      code.Add('d', direction);
      code.Add('s', speed);
      const double angle = 2.0 * std::numbers::pi * direction / 16;
      drawn.target_velocity =
          0.1 * speed * drawn.top_speed * Vec2(std::cos(angle), std::sin(angle));
    }
    drawn.goal = Vec2(cell_x + rng.Uniform(), cell_y + rng.Uniform()) * kGoalCell -
                 Vec2::Constant(0.5 * kGoalCell * kGoalCells);
    drawn.layout = code.text();
    return drawn;
  });
  model.damping = rng.Uniform(0.6, 0.95);
  model.radius = rng.Uniform(0.1, 0.25);
  model.scale = SampleScale(config.common, rng);
  model.horizon = SampleHorizon(config.common, kMinHorizon, kMaxHorizon, rng);
  model.slot_mask = SampleSlotMask(config.common, rng);
  do {
    model.start.position = RandomPoint(1.1, rng);
  } while ((model.start.position - model.goal).norm() < 2.0 * model.radius ||
           (config.detour && model.walls.IsClear(model.start.position, model.goal, 0.0)));
  if (!model.rule.HasGoal()) model.start.position.setZero();
  model.route = Route(model.walls, model.goal, 0.08);
  Rng transform_rng(seed, "point-rooms/transform");
  model.transform = DrawTransform(config.transform, transform_rng);
  return model;
}

Outcome PointRoomsModel::Advance(State& state, const Vec2& action, Rng* /*noise*/) const {
  const double before = (goal - state.position).norm();
  state.velocity = damping * state.velocity + acceleration() * action;
  const Vec2 next = state.position + state.velocity;
  if (walls.Blocks(state.position, next)) {
    state.velocity.setZero();
  } else {
    state.position = next;
  }
  const double effort = 0.5 * action.squaredNorm();
  if (!rule.HasGoal()) {
    const double speed = state.velocity.dot(target_velocity) / target_velocity.squaredNorm();
    return {rule.Total(rule.Velocity(speed, 0.0), effort), false};
  }
  const double after = (goal - state.position).norm();
  const bool arrived = after < radius;
  return {rule.Total(rule.Goal(after, (before - after) / top_speed, arrived), effort),
          arrived && rule.stop_at_goal};
}

void PointRoomsModel::Observe(const State& state, std::span<double> observation,
                              std::span<double, kGeometrySize> geometry) const {
  const bool has_goal = rule.HasGoal();
  const Vec2 motion = state.velocity / top_speed;
  // velocity tasks have no border: far positions are shown at the edge
  const Vec2 position = has_goal
                            ? Vec2(scale * state.position)
                            : Vec2((0.3 * scale * state.position).cwiseMax(-3.0).cwiseMin(3.0));
  const Vec2 offset = has_goal ? Vec2(scale * (goal - state.position))
                               : Vec2((target_velocity - state.velocity) / top_speed);
  const Vec2 shown_position = transform * position;
  const Vec2 shown_offset = transform * offset;
  const Vec2 shown_motion = transform * motion;
  const double contact = has_goal && (goal - state.position).norm() < radius ? 1.0 : 0.0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    geometry[i] = shown_position[k];
    geometry[2 + i] = shown_offset[k];
    geometry[4 + i] = shown_motion[k];
    observation[i] = position[k];
    observation[2 + i] = offset[k];
    observation[4 + i] = motion[k];
  }
  geometry[6] = 0.0;
  geometry[7] = contact;
  observation[6] = contact;
  observation[7] = has_goal ? 1.0 : 0.0;
  // the walls: present, axis, position, gap (0 where there is none)
  double* out = &observation[8];
  for (int i = 0; i < Walls::kMaxWalls; ++i, out += 4) {
    const bool present = i < walls.count();
    out[0] = present ? 1.0 : 0.0;
    out[1] = present ? walls[i].axis : 0.0;
    out[2] = present ? walls[i].position : 0.0;
    out[3] = present ? walls[i].gap[0] : 0.0;
  }
  observation[16] = damping;
}

Vec2 PointRoomsModel::Control(const State& state, int controller) const {
  constexpr double kStiffness[kControllers] = {0.6, 0.35, 0.2, 0.1, 0.0};
  constexpr double kPace[kControllers] = {1.0, 1.0, 0.6, 0.3, 0.0};
  const double a = acceleration();
  if (!rule.HasGoal()) {
    return kPace[controller] * Clipped((target_velocity - damping * state.velocity) / a);
  }
  if (controller == kControllers - 1) return Vec2::Zero();
  const Route::Heading heading = route.From(walls, state.position);
  const Vec2 way = heading.target - state.position;
  const double pace = kPace[controller] * top_speed;
  const Vec2 wanted = heading.is_goal ? Shortened(way * kStiffness[controller], pace)
                                      : Vec2(way * (pace / (way.norm() + 1e-9)));
  return Clipped((wanted - damping * state.velocity) / a);
}

Vec2 PointRoomsModel::Worst(const State& state) const {
  const Vec2 away = rule.HasGoal() ? Vec2(state.position - goal) : Vec2(-target_velocity);
  return Clipped(away / (away.cwiseAbs().maxCoeff() + 1e-9));
}

std::optional<bool> PointRoomsModel::Success(const State& state) const {
  if (!rule.HasGoal()) return std::nullopt;
  return (goal - state.position).norm() < radius;
}

void PointRoomsModel::Sketch(const State& state, Painter& painter) const {
  if (rule.HasGoal()) {
    painter.Look({0, 0}, 2.1 * kHalfWidth);
    DrawWalls(painter, walls);
    painter.Disc(goal, radius, kGoalColour);
  } else {
    painter.Look(state.position, 2.1 * kHalfWidth);
    DrawRuler(painter, 0.5);
    DrawTargetVelocity(painter, state.position, target_velocity);
  }
  painter.Disc(state.position, kMoverRadius, kBodyColour);
}

}  // namespace msrl
