#include "msrl/env/dubins_reacher.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace msrl {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kHalfWidth = 1.25;
constexpr int kMinHorizon = 50;
constexpr int kMaxHorizon = 120;
constexpr double kGoalCell = 0.2;
constexpr int kGoalCells = 10;
// The body's tilt rate: what is kept of it, and what tilt, correction and drive add.
constexpr double kTiltDamping = 0.9;
constexpr double kTiltGrowth = 2.0;
constexpr double kCorrectionGain = 0.5;
constexpr double kDriveKick = 0.3;
constexpr auto kTasks = EnumValues<ControlTask>();

double Wrapped(double angle) { return std::remainder(angle, 2.0 * kPi); }

std::span<const RewardStyle> StylesOf(ControlTask task) {
  const std::span all(kDubinsReacherRewards);
  switch (task) {
    case ControlTask::kDubins:
      return all.first(5);
    case ControlTask::kArm:
      return all.first(4);
    case ControlTask::kBalance:
      return all.last(2);
  }
  return all;
}

// The tasks that the options allow.
std::vector<ControlTask> AllowedTasks(const DubinsReacherConfig& config) {
  std::vector<ControlTask> tasks;
  for (const ControlTask task : kTasks) {
    const auto styles = StylesOf(task);
    const bool fits =
        !config.common.reward || std::ranges::find(styles, *config.common.reward) != styles.end();
    if (fits && config.task.value_or(task) == task) tasks.push_back(task);
  }
  return tasks;
}

}  // namespace

EnvSpec DubinsReacherModel::Spec(const DubinsReacherConfig& config) {
  RequireInRange(config);
  if (AllowedTasks(config).empty()) {
    throw UserError(StrCat("dubins-reacher: the task '", EnumName(*config.task),
                           "' has no reward style '", EnumName(*config.common.reward), "'"));
  }
  EnvSpec spec;
  spec.id = kId;
  spec.family = "dubins-reacher";
  spec.description = "a car with bounded turn rate, a two-link arm, a body to balance";
  spec.observation_size = kObservationSize;
  spec.action = {ActionKind::kContinuous, 2};
  spec.step_limit = DubinsReacherConfig::kStepLimit;
  spec.reward_low = -3.0;
  spec.reward_high = 1.5;
  spec.geometry_unit = {1, 1, 1, 1, 0.06, 0.06, 1, 1};
  spec.geometry_bound = 8.0;
  spec.has_success = true;
  return spec;
}

DubinsReacherModel DubinsReacherModel::Draw(const DubinsReacherConfig& config, std::uint64_t seed) {
  Rng rng(seed, "dubins-reacher");
  const std::vector<ControlTask> tasks = AllowedTasks(config);
  DubinsReacherModel model = DrawInSplit(config.common, [&] {
    DubinsReacherModel m;
    m.task = tasks[static_cast<std::size_t>(rng.Index(std::ssize(tasks)))];
    m.rule = SampleRewardRule(config.common, StylesOf(m.task), rng);
    LayoutText code(EnumName(m.task));
    const int direction = m.task == ControlTask::kBalance ? 0 : RandomInt(0, 15, rng);
    const int speed = RandomInt(3, 10, rng);

    if (m.task == ControlTask::kArm) {
      m.link = {SampleOnGrid(0.35, 0.6, 0.05, rng), SampleOnGrid(0.35, 0.6, 0.05, rng)};
      m.joint_speed = SampleOnGrid(0.06, 0.2, 0.02, rng);
      // goals in cells of a ring that the hand can reach
      const int around = RandomInt(0, 15, rng);
      const int out = RandomInt(0, 3, rng);
      const double inner = std::abs(m.link[0] - m.link[1]) + 0.05;
      const double outer = m.link.sum() - 0.05;
      const double angle = 2.0 * kPi * (around + rng.Uniform()) / 16;
      const double distance = inner + (outer - inner) * (out + rng.Uniform()) / 4;
      m.goal = distance * Vec2(std::cos(angle), std::sin(angle));
      code.Add('l', std::lround(m.link[0] * 100));
      code.Add('m', std::lround(m.link[1] * 100));
      code.Add('v', std::lround(m.joint_speed * 100));
      code.Add('a', around);
      code.Add('r', out);
    } else {
      m.top_speed = SampleOnGrid(0.03, 0.1, 0.01, rng);
      code.Add('v', std::lround(m.top_speed * 100));
    }
    if (m.task == ControlTask::kDubins) {
      m.turn_rate = SampleOnGrid(0.2, 0.5, 0.05, rng);
      const int cell_x = RandomInt(0, kGoalCells - 1, rng);
      const int cell_y = RandomInt(0, kGoalCells - 1, rng);
      m.goal = Vec2(cell_x + rng.Uniform(), cell_y + rng.Uniform()) * kGoalCell -
               Vec2::Constant(0.5 * kGoalCell * kGoalCells);
      code.Add('t', std::lround(m.turn_rate * 100));
      code.Add('i', m.rule.HasGoal() ? cell_x : -1);
      code.Add('j', m.rule.HasGoal() ? cell_y : -1);
    }
    if (m.task == ControlTask::kBalance) {
      m.tilt_limit = SampleOnGrid(0.3, 0.9, 0.1, rng);
      m.instability = SampleOnGrid(0.02, 0.06, 0.01, rng);
      m.correction = SampleOnGrid(0.06, 0.12, 0.01, rng);
      code.Add('l', std::lround(m.tilt_limit * 100));
      code.Add('u', std::lround(m.instability * 100));
      code.Add('c', std::lround(m.correction * 100));
    }
    if (!m.rule.HasGoal()) {
      code.Add('d', direction);
      code.Add('s', speed);
      const double angle = 2.0 * kPi * direction / 16;
      m.target_velocity = 0.1 * speed * m.top_speed * Vec2(std::cos(angle), std::sin(angle));
    }
    m.layout = code.text();
    return m;
  });
  model.damping = rng.Uniform(0.6, 0.95);
  model.radius = rng.Uniform(0.1, 0.2);
  model.scale = SampleScale(config.common, rng);
  model.horizon = SampleHorizon(config.common, kMinHorizon, kMaxHorizon, rng);
  model.slot_mask = SampleSlotMask(config.common, rng);
  model.noise_deviation = config.noise;

  State& start = model.start;
  do {
    start.angle = {rng.Uniform(-kPi, kPi), rng.Uniform(-kPi, kPi)};
    start.position = {rng.Uniform(-1.1, 1.1), rng.Uniform(-1.1, 1.1)};
    if (model.task == ControlTask::kArm) start.position = model.Hand(start.angle);
  } while ((start.position - model.goal).norm() < 2.0 * model.radius);
  if (!model.rule.HasGoal()) start.position.setZero();
  if (model.task == ControlTask::kBalance) start.angle = {rng.Uniform(-0.1, 0.1), 0.0};
  return model;
}

Vec2 DubinsReacherModel::Hand(const Vec2& angle) const {
  const double both = angle[0] + angle[1];
  return {link[0] * std::cos(angle[0]) + link[1] * std::cos(both),
          link[0] * std::sin(angle[0]) + link[1] * std::sin(both)};
}

double DubinsReacherModel::SpeedUnit() const {
  return task == ControlTask::kArm ? 0.7 * joint_speed : top_speed;
}

void DubinsReacherModel::AdvanceDubins(State& state, const Vec2& action) const {
  state.angle[0] += turn_rate * action[1];
  const double speed = top_speed * 0.5 * (1.0 + action[0]);
  state.velocity = speed * Vec2(std::cos(state.angle[0]), std::sin(state.angle[0]));
  const Vec2 next = state.position + state.velocity;
  if (rule.HasGoal() && next.cwiseAbs().maxCoeff() > kHalfWidth) {
    state.velocity.setZero();
  } else {
    state.position = next;
  }
}

void DubinsReacherModel::AdvanceArm(State& state, const Vec2& action) const {
  state.rate = damping * state.rate + joint_speed * (1.0 - damping) * action;
  state.angle += state.rate;
  const Vec2 hand = Hand(state.angle);
  state.velocity = hand - state.position;
  state.position = hand;
}

void DubinsReacherModel::AdvanceBalance(State& state, const Vec2& action, Rng* noise) const {
  state.velocity[0] = damping * state.velocity[0] + top_speed * (1.0 - damping) * action[0];
  state.position[0] += state.velocity[0];
  state.rate[0] = kTiltDamping * state.rate[0] + kTiltGrowth * instability * state.angle[0] +
                  kCorrectionGain * correction * action[1] + kDriveKick * instability * action[0];
  if (noise != nullptr && noise_deviation > 0.0) state.rate[0] += noise_deviation * noise->Normal();
  state.angle[0] += state.rate[0];
}

Outcome DubinsReacherModel::Advance(State& state, const Vec2& action, Rng* noise) const {
  const double before = (goal - state.position).norm();
  Vec2 effort = action;
  switch (task) {
    case ControlTask::kDubins:
      AdvanceDubins(state, action);
      effort[0] = 0.5 * (1.0 + action[0]);
      break;
    case ControlTask::kArm:
      AdvanceArm(state, action);
      break;
    case ControlTask::kBalance:
      AdvanceBalance(state, action, noise);
      break;
  }
  const double price = 0.5 * effort.squaredNorm();
  if (!rule.HasGoal()) {
    const double speed = state.velocity.dot(target_velocity) / target_velocity.squaredNorm();
    const bool balancing = task == ControlTask::kBalance;
    return {rule.Total(rule.Velocity(speed, balancing ? 0.3 : 0.0), price),
            balancing && std::abs(state.angle[0]) > tilt_limit};
  }
  const double after = (goal - state.position).norm();
  const bool arrived = after < radius;
  return {rule.Total(rule.Goal(after, (before - after) / SpeedUnit(), arrived), price),
          arrived && rule.stop_at_goal};
}

Vec2 DubinsReacherModel::Offset(const State& state) const {
  return rule.HasGoal() ? Vec2(scale * (goal - state.position))
                        : Vec2((target_velocity - state.velocity) / SpeedUnit());
}

void DubinsReacherModel::Observe(const State& state, std::span<double> observation,
                                 std::span<double, kGeometrySize> geometry) const {
  const bool has_goal = rule.HasGoal();
  const bool balancing = task == ControlTask::kBalance;
  Vec2 position = scale * state.position;
  // tasks without a goal have no border: far positions are shown at the edge
  if (!has_goal) position = (0.3 * position).cwiseMax(-3.0).cwiseMin(3.0);
  if (balancing) position[1] = -std::abs(state.angle[0]);
  const Vec2 offset = Offset(state);
  const Vec2 motion = state.velocity / SpeedUnit();
  const Vec2 sine(std::sin(state.angle[0]), std::sin(state.angle[1]));
  const double contact = has_goal && (goal - state.position).norm() < radius ? 1.0 : 0.0;
  const double rate_unit = balancing ? 0.1 : joint_speed;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    geometry[i] = observation[i] = position[k];
    geometry[2 + i] = observation[2 + i] = offset[k];
    geometry[4 + i] = observation[4 + i] = motion[k];
    observation[6 + i] = sine[k];
    observation[8 + i] = std::cos(state.angle[k]);
    observation[10 + i] = std::clamp(state.rate[k] / rate_unit, -5.0, 5.0);
  }
  geometry[6] = task == ControlTask::kArm ? sine[1] : sine[0];
  geometry[7] = observation[12] = contact;
  for (std::size_t i = 0; i < 3; ++i) observation[13 + i] = task == kTasks[i] ? 1.0 : 0.0;
  observation[16] = has_goal ? 1.0 : 0.0;
}

Vec2 DubinsReacherModel::ControlDubins(const State& state, double pace) const {
  const Vec2 way = rule.HasGoal() ? Vec2(goal - state.position) : target_velocity;
  const double off = Wrapped(std::atan2(way.y(), way.x()) - state.angle[0]);
  const double turn = std::clamp(off / turn_rate, -1.0, 1.0);
  // the turn comes first, so the step is taken along the new heading
  const double left = Wrapped(off - turn * turn_rate);
  const double wanted = rule.HasGoal() ? way.norm() : way.norm() + 0.02 * top_speed;
  const double speed = std::min(wanted / top_speed * std::max(0.0, std::cos(left)), 1.0) * pace;
  return {2.0 * speed - 1.0, turn};
}

Vec2 DubinsReacherModel::ControlArm(const State& state, double elbow, double pace) const {
  // inverse kinematics, with the elbow on the given side
  const double reach = goal.squaredNorm();
  const double cosine = (reach - link.squaredNorm()) / (2.0 * link[0] * link[1]);
  const double bend = elbow * std::acos(std::clamp(cosine, -1.0, 1.0));
  const double shoulder = std::atan2(goal.y(), goal.x()) -
                          std::atan2(link[1] * std::sin(bend), link[0] + link[1] * std::cos(bend));
  const Vec2 way(Wrapped(shoulder - state.angle[0]), Wrapped(bend - state.angle[1]));
  const double limit = pace * joint_speed;
  const Vec2 wanted = (0.3 * way).cwiseMax(-limit).cwiseMin(limit);
  return Clipped((wanted - damping * state.rate) / (joint_speed * (1.0 - damping)));
}

Vec2 DubinsReacherModel::ControlBalance(const State& state, double pace) const {
  const double drive = pace * std::clamp((target_velocity[0] - damping * state.velocity[0]) /
                                             (top_speed * (1.0 - damping)),
                                         -1.0, 1.0);
  // the correction that brings the tilt back by a third per step
  const double drift = kTiltDamping * state.rate[0] + kTiltGrowth * instability * state.angle[0] +
                       kDriveKick * instability * drive;
  const double push = (-0.3 * state.angle[0] - drift) / (kCorrectionGain * correction);
  return {drive, std::clamp(push, -1.0, 1.0)};
}

Vec2 DubinsReacherModel::Control(const State& state, int controller) const {
  constexpr double kPace[kControllers] = {1.0, 0.6, 0.3, 0.1, 0.0};
  switch (task) {
    case ControlTask::kDubins:
      return controller == kControllers - 1 ? Vec2(-1.0, 0.0)
                                            : ControlDubins(state, kPace[controller]);
    case ControlTask::kArm:
      // both elbows at full and at lower pace, and rest
      return controller == kControllers - 1
                 ? Vec2(0.0, 0.0)
                 : ControlArm(state, controller % 2 == 0 ? 1.0 : -1.0, controller < 2 ? 1.0 : 0.4);
    case ControlTask::kBalance:
      return ControlBalance(state, kPace[controller]);
  }
  return {0.0, 0.0};
}

Vec2 DubinsReacherModel::Away(const State& state) const {
  const Vec2 way = goal - state.position;
  const Vec2 elbow = link[0] * Vec2(std::cos(state.angle[0]), std::sin(state.angle[0]));
  const Vec2 forearm = state.position - elbow;
  const auto gain = [&](const Vec2& lever) { return lever.x() * way.y() - lever.y() * way.x(); };
  const Vec2 approach(gain(state.position), gain(forearm));
  return -Clipped(approach / (approach.cwiseAbs().maxCoeff() + 1e-9));
}

Vec2 DubinsReacherModel::Worst(const State& state) const {
  switch (task) {
    case ControlTask::kDubins: {
      const Vec2 best = ControlDubins(state, 1.0);
      // away from the goal, once it is behind
      return {best[0] > -0.9 ? -1.0 : 1.0, best[1] >= 0.0 ? -1.0 : 1.0};
    }
    case ControlTask::kArm:
      // down the gradient of the hand's approach, by the transposed Jacobian
      return Away(state);
    case ControlTask::kBalance:
      return {-1.0, state.angle[0] + state.rate[0] >= 0.0 ? 1.0 : -1.0};
  }
  return {0.0, 0.0};
}

std::optional<bool> DubinsReacherModel::Success(const State& state) const {
  if (!rule.HasGoal()) return std::nullopt;
  return (goal - state.position).norm() < radius;
}

std::map<std::string, double> DubinsReacherModel::HiddenFacts() const {
  std::map<std::string, double> facts = HiddenFactsOf(*this);
  facts["task"] = static_cast<double>(task);
  return facts;
}

void DubinsReacherModel::Sketch(const State& state, Painter& painter) const {
  const bool has_goal = rule.HasGoal();
  const auto direction = [](double angle) { return Vec2(std::cos(angle), std::sin(angle)); };
  switch (task) {
    case ControlTask::kDubins: {
      painter.Look(has_goal ? Vec2(0, 0) : state.position, 2.1 * kHalfWidth);
      if (has_goal) {
        DrawWalls(painter, Walls(kHalfWidth));
        painter.Disc(goal, radius, kGoalColour);
      } else {
        DrawRuler(painter, 0.5);
        DrawTargetVelocity(painter, state.position, target_velocity);
      }
      const Vec2 ahead = kMoverRadius * direction(state.angle[0]);
      const Vec2 left(-ahead.y(), ahead.x());
      const std::array<Vec2, 3> car = {Vec2(state.position + 1.6 * ahead),
                                       Vec2(state.position - ahead + left),
                                       Vec2(state.position - ahead - left)};
      painter.Hull(car, kBodyColour);
      break;
    }
    case ControlTask::kArm: {
      painter.Look({0, 0}, 2.1 * kHalfWidth);
      DrawRuler(painter, 0.5);
      if (has_goal) painter.Disc(goal, radius, kGoalColour);
      const Vec2 elbow = link[0] * direction(state.angle[0]);
      painter.Capsule({0, 0}, elbow, 0.03, kLimbColour);
      painter.Capsule(elbow, state.position, 0.025, kLimbColour);
      painter.Disc(state.position, kMoverRadius, kBodyColour);
      break;
    }
    case ControlTask::kBalance: {
      const Vec2 foot(state.position.x(), 0.0);
      painter.Look(foot + Vec2(0, 0.5), 2.0);
      DrawRuler(painter, 0.5);
      painter.Capsule(foot - Vec2(9, 0), foot + Vec2(9, 0), 0.01, kLineColour);
      const auto lean = [&](double tilt) {
        return Vec2(foot + Vec2(std::sin(tilt), std::cos(tilt)));
      };
      for (const double limit : {-tilt_limit, tilt_limit}) {
        painter.Capsule(foot, lean(limit), 0.006, kFaintColour);
      }
      painter.Capsule(foot, lean(state.angle[0]), 0.04, kLimbColour);
      painter.Disc(lean(state.angle[0]), 2.0 * kMoverRadius, kBodyColour);
      break;
    }
  }
}

}  // namespace msrl
