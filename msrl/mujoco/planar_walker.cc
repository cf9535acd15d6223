#include "msrl/mujoco/planar_walker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

constexpr double kControlCost = 1e-3;
constexpr double kLargestSpeedShown = 10.0;  // m/s and rad/s, the reference clips there
constexpr double kStartNoise = 0.005;

// Units and targets of the geometry.
constexpr double kLength = 2.0;        // m
constexpr double kHeight = 1.25;       // m
constexpr double kSpeedUnit = 3.0;     // m/s
constexpr double kNominalSpeed = 3.0;  // m/s, what kRun and kTerrain aim at in slot 2
constexpr double kFallTilt = 0.6;  // rad, where a balancing source falls: the limits here map to it

constexpr double kSpeedTolerance = 0.2;  // of the target speed, for success
constexpr double kGoalRadius = 0.3;      // m

// Terrain: boxes of one length whose places and heights are drawn.
constexpr double kBoxHalfLength = 0.25;
constexpr double kBoxHalfHeight = 0.5;
constexpr double kFirstBox = 1.5;
constexpr double kProbeDistance = 0.25;

struct RobotFacts {
  const char* name;
  int joints;  // actuated
  double lowest;
  double highest;
  double largest_pitch;
  double slowest_target;
  double fastest_target;
  double highest_box;
};

const RobotFacts& Facts(PlanarRobot robot) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr std::array<RobotFacts, 2> kFacts = {{
      {"hopper", 3, 0.7, kInfinity, 0.2, 0.5, 2.0, 0.06},
      {"walker2d", 6, 0.8, 2.0, 1.0, 0.5, 3.0, 0.10},
  }};
  return kFacts[static_cast<std::size_t>(robot)];
}

bool IsUpright(const RobotFacts& facts, double height, double pitch) {
  return facts.lowest < height && height < facts.highest && std::abs(pitch) < facts.largest_pitch;
}

// What the hopper has to be besides.
bool AreSmall(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::abs(value) < 100.0; });
}

struct TaskFacts {
  const char* suffix;
  const char* description;
  int extra_observations;
};

const TaskFacts& Facts(PlanarTask task) {
  static constexpr std::array<TaskFacts, 4> kFacts = {{
      {"", "runs as fast as it can", 0},
      {"-velocity", "keeps a speed drawn for each episode", 1},
      {"-goal", "goes to a place drawn for each episode", 1},
      {"-terrain", "runs over boxes drawn for each episode", PlanarWalker::kProbes},
  }};
  return kFacts[static_cast<std::size_t>(task)];
}

std::string Text(PlanarRobot robot, PlanarTask task, bool is_v4) {
  std::string text = ModelText(Facts(robot).name);
  if (robot == PlanarRobot::kWalker2d && is_v4) {
    text = ReplaceOnce(std::move(text), R"(<default class="right_foot"><geom friction="1.9"/>)",
                       R"(<default class="right_foot"><geom friction="0.9"/>)");
  }
  if (task == PlanarTask::kTerrain) {
    std::string boxes;
    for (int i = 0; i < PlanarWalker::kBoxes; ++i) {
      boxes += StrCat("<body mocap=\"true\" pos=\"", 3 * i, " 0 -1\"><geom type=\"box\" size=\"",
                      kBoxHalfLength, " 2 ", kBoxHalfHeight,
                      "\" conaffinity=\"1\" condim=\"3\" material=\"block\"/></body>\n");
    }
    text = ReplaceOnce(std::move(text), "<!--world-->", boxes);
  }
  return text;
}

}  // namespace

MujocoEnv::Setup PlanarWalker::MakeSetup(PlanarRobot robot, PlanarTask task,
                                         const MujocoConfig& config) {
  const RobotFacts& facts = Facts(robot);
  const int coordinates = facts.joints + 3;
  Setup setup;
  EnvSpec& spec = setup.spec;
  spec.id = StrCat(facts.name, Facts(task).suffix);
  spec.family = facts.name;
  spec.description =
      StrCat(robot == PlanarRobot::kHopper ? "one-legged robot " : "two-legged planar robot ",
             Facts(task).description, task == PlanarTask::kRun ? " (Gymnasium)" : "");
  spec.observation_size = 2 * coordinates - 1 + Facts(task).extra_observations;
  spec.action = {ActionKind::kContinuous, facts.joints};
  spec.step_limit = 1000;
  spec.frame_skip = 4;
  spec.dt = 0.008;
  spec.reward_low = -std::numeric_limits<double>::infinity();
  spec.reward_high = std::numeric_limits<double>::infinity();
  spec.reward_scale = 3.0;
  spec.geometry_unit = {kLength, 1, kSpeedUnit, 1, kSpeedUnit, 1, 1, 1};
  if (task == PlanarTask::kGoal) spec.geometry_unit[2] = kLength;
  spec.observation_bound = 100.0;
  spec.has_success = task == PlanarTask::kVelocity || task == PlanarTask::kGoal;
  if (task != PlanarTask::kGoal) spec.goal_origin = 4;
  if (spec.has_success) spec.goal_entries = {spec.observation_size - 1};
  // body = q[1], q[2], ..., v; speeds of 100, at which the hopper stops, are never shown
  const auto body = static_cast<std::size_t>(2 * coordinates - 1);
  spec.terminates = [robot, body](std::span<const double> o) {
    return !IsUpright(Facts(robot), o[0], o[1]) ||
           (robot == PlanarRobot::kHopper && !AreSmall(o.first(body).subspan(1)));
  };
  SetMeasuredReturns(spec);
  setup.options = IdentityText(ListFields(config));
  setup.model = TaskModel(config, spec.id, Text(robot, task, config.is_v4()),
                          {.nq = coordinates, .nv = coordinates, .nu = facts.joints});
  setup.memory_size = kMemorySize;
  return setup;
}

PlanarWalker::PlanarWalker(PlanarRobot robot, PlanarTask task, const MujocoConfig& config)
    : MujocoEnv(MakeSetup(robot, task, config)),
      robot_(robot),
      task_(task),
      is_v4_(config.is_v4()) {
  if (task == PlanarTask::kTerrain && model().nmocap != kBoxes) {
    throw UserError(StrCat(spec_.id, ": the model has ", model().nmocap,
                           " mocap bodies, the terrain needs ", kBoxes));
  }
}

void PlanarWalker::Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) {
  for (double& q : qpos) q += rng.Uniform(-kStartNoise, kStartNoise);
  for (double& v : qvel) v = rng.Uniform(-kStartNoise, kStartNoise);
  const RobotFacts& facts = Facts(robot_);
  switch (task_) {
    case PlanarTask::kRun:
      break;
    case PlanarTask::kVelocity:
      memory()[kTarget] = rng.Uniform(facts.slowest_target, facts.fastest_target);
      break;
    case PlanarTask::kGoal:
      memory()[kTarget] = rng.Uniform(2.0, 6.0);
      break;
    case PlanarTask::kTerrain:
      double x = kFirstBox;
      for (int i = 0; i < kBoxes; ++i) {
        double* box = mutable_data().mocap_pos + 3 * i;
        box[0] = x;
        box[2] = rng.Uniform(0.01, facts.highest_box) - kBoxHalfHeight;
        x += 2 * kBoxHalfLength + rng.Uniform(0.3, 1.5);
      }
      break;
  }
}

void PlanarWalker::Begun() {
  memory()[kStartX] = memory()[kLastX] = qpos()[0];
  memory()[kSpeed] = 0.0;
}

double PlanarWalker::GroundHeight(double x) const {
  if (task_ != PlanarTask::kTerrain) return 0.0;
  for (int i = 0; i < kBoxes; ++i) {
    const double* box = data().mocap_pos + 3 * i;
    if (std::abs(x - box[0]) <= kBoxHalfLength) return box[2] + kBoxHalfHeight;
  }
  return 0.0;
}

bool PlanarWalker::IsHealthy() const {
  const RobotFacts& facts = Facts(robot_);
  const auto q = qpos();
  return IsUpright(facts, q[1], q[2]) &&
         (robot_ != PlanarRobot::kHopper || (AreSmall(q.subspan(2)) && AreSmall(qvel())));
}

Outcome PlanarWalker::Judge(std::span<const double> control) {
  const double x = qpos()[0];
  const double before = memory()[kLastX];
  const double speed = (x - before) / spec_.dt;
  memory()[kLastX] = x;
  memory()[kSpeed] = speed;
  const bool healthy = IsHealthy();
  const double alive = healthy || is_v4_ ? 1.0 : 0.0;
  const double cost = kControlCost * SquaredNorm(control);
  const double target = memory()[kTarget];
  double progress = speed;
  if (task_ == PlanarTask::kVelocity) {
    progress = 2.0 * std::max(0.0, 1.0 - std::abs(speed - target) / target);
  } else if (task_ == PlanarTask::kGoal) {
    progress = (std::abs(target - before) - std::abs(target - x)) / spec_.dt;
  }
  return {progress + alive - cost, !healthy};
}

void PlanarWalker::Show() {
  const auto q = qpos();
  const auto v = qvel();
  double* o = std::copy(q.begin() + 1, q.end(), observation_.data());
  for (const double value : v) *o++ = std::clamp(value, -kLargestSpeedShown, kLargestSpeedShown);

  double goal = InUnits(kNominalSpeed - v[0], kSpeedUnit);
  const double target = memory()[kTarget];
  if (task_ == PlanarTask::kVelocity) {
    *o = target;
    goal = InUnits(target - v[0], kSpeedUnit);
  } else if (task_ == PlanarTask::kGoal) {
    *o = std::clamp(target - q[0], -kLargestSpeedShown, kLargestSpeedShown);
    goal = InUnits(target - q[0], kLength);
  } else if (task_ == PlanarTask::kTerrain) {
    for (int i = 1; i <= kProbes; ++i) *o++ = GroundHeight(q[0] + i * kProbeDistance);
  }
  // how far from a fall, as if all of it were tilt
  const RobotFacts& facts = Facts(robot_);
  const double tilt = kFallTilt * q[2] / facts.largest_pitch;
  const double drop = kFallTilt * (kHeight - q[1]) / (kHeight - facts.lowest);
  const bool at_goal = task_ == PlanarTask::kGoal && std::abs(target - q[0]) < kGoalRadius;
  geometry_ = {InUnits(q[0] - memory()[kStartX], kLength),
               -std::min(std::max(std::abs(tilt), drop), 1.0),
               goal,
               0.0,
               InUnits(v[0], kSpeedUnit),
               0.0,
               std::sin(std::clamp(tilt, -1.0, 1.0)),
               at_goal ? 1.0 : 0.0};
}

std::optional<bool> PlanarWalker::Success() const {
  const double target = memory()[kTarget];
  if (task_ == PlanarTask::kVelocity) {
    return std::abs(memory()[kSpeed] - target) < kSpeedTolerance * target;
  }
  if (task_ == PlanarTask::kGoal) return std::abs(target - qpos()[0]) < kGoalRadius;
  return std::nullopt;
}

std::optional<GoalMark> PlanarWalker::goal_mark() const {
  if (task_ != PlanarTask::kGoal) return std::nullopt;
  return GoalMark{memory()[kTarget], 0.0, kGoalRadius};
}

}  // namespace msrl
