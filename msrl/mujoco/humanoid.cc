#include "msrl/mujoco/humanoid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

constexpr double kForwardWeight = 1.25;
constexpr double kAlive = 5.0;
constexpr double kControlCost = 0.1;
constexpr double kContactCost = 5e-7;
constexpr double kLargestContactCost = 10.0;
constexpr double kStartNoise = 0.01;
constexpr double kLowest = 1.0;
constexpr double kHighest = 2.0;
constexpr double kWalkingSpeed = 1.0;    // m/s
constexpr double kNominalSpeed = 2.0;    // m/s, what slot 2 aims at in kRun
constexpr double kSpeedTolerance = 0.3;  // m/s, for success
constexpr double kLength = 1.0;          // m, unit of length
constexpr int kBodies = 13;              // without the world
constexpr int kRootVelocities = 6;
constexpr ModelSizes kSizes = {.nq = 24, .nv = 23, .nu = 17};

struct TaskFacts {
  const char* id;
  const char* description;
  int extra_observations;
};

const TaskFacts& Facts(HumanoidTask task) {
  static constexpr std::array<TaskFacts, 4> kFacts = {{
      {"humanoid", "humanoid runs as fast as it can (Gymnasium)", 0},
      {"humanoid-stand", "humanoid stands on the spot", 0},
      {"humanoid-walk", "humanoid walks at 1 m/s", 0},
      {"humanoid-direction", "humanoid walks at 1 m/s in a drawn direction", 2},
  }};
  return kFacts[static_cast<std::size_t>(task)];
}

double SpeedUnit(HumanoidTask task) { return task == HumanoidTask::kStand ? 0.5 : 1.0; }  // m/s

bool IsHealthyHeight(double height) { return kLowest < height && height < kHighest; }

// Seventeen actuators in the ten entries of the action code: a group is its mean.
const std::vector<int>& ActionCode() {
  static const std::vector<int> code = {
      0,        // abdomen y
      1, 1,     // abdomen z, x
      2, 2, 3,  // right hip x, z; y
      4,        // right knee
      5, 5, 6,  // left hip x, z; y
      7,        // left knee
      8, 8, 8,  // right arm
      9, 9, 9,  // left arm
  };
  return code;
}

}  // namespace

MujocoEnv::Setup Humanoid::MakeSetup(HumanoidTask task, const MujocoConfig& config) {
  Setup setup;
  EnvSpec& spec = setup.spec;
  spec.id = Facts(task).id;
  spec.family = "humanoid";
  spec.description = Facts(task).description;
  spec.observation_size = (config.is_v4() ? 376 : 348) + Facts(task).extra_observations;
  spec.action = {ActionKind::kContinuous, kSizes.nu};
  spec.action_code = ActionCode();
  spec.step_limit = 1000;
  spec.frame_skip = 5;
  spec.dt = 0.015;
  spec.reward_low = -std::numeric_limits<double>::infinity();
  spec.reward_high = std::numeric_limits<double>::infinity();
  spec.reward_scale = 5.0;
  const double speed = SpeedUnit(task);
  spec.geometry_unit = {kLength, kLength, speed, speed, speed, speed, 1, 1};
  // contact forces are shown as they are
  spec.observation_bound = std::numeric_limits<double>::infinity();
  spec.has_success = task != HumanoidTask::kRun;
  spec.goal_origin = 4;
  if (task == HumanoidTask::kDirection) {
    spec.goal_entries = {spec.observation_size - 2, spec.observation_size - 1};
  }
  spec.terminates = [](std::span<const double> o) { return !IsHealthyHeight(o[0]); };
  SetMeasuredReturns(spec);
  setup.options = IdentityText(ListFields(config));
  setup.model = TaskModel(config, spec.id, ModelText("humanoid"), kSizes);
  setup.contact_forces = true;
  setup.memory_size = kMemorySize;
  return setup;
}

Humanoid::Humanoid(HumanoidTask task, const MujocoConfig& config)
    : MujocoEnv(MakeSetup(task, config)), task_(task), is_v4_(config.is_v4()) {
  if (model().nbody != kBodies + 1) {
    throw UserError(StrCat(spec_.id, ": the model has ", model().nbody - 1,
                           " bodies, a humanoid has ", kBodies));
  }
}

void Humanoid::Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) {
  for (double& q : qpos) q += rng.Uniform(-kStartNoise, kStartNoise);
  for (double& v : qvel) v = rng.Uniform(-kStartNoise, kStartNoise);
  double angle = 0.0;
  if (task_ == HumanoidTask::kDirection) angle = rng.Uniform(-std::numbers::pi, std::numbers::pi);
  const double speed = task_ == HumanoidTask::kRun     ? kNominalSpeed
                       : task_ == HumanoidTask::kStand ? 0.0
                                                       : kWalkingSpeed;
  memory()[kTargetX] = speed * std::cos(angle);
  memory()[kTargetY] = speed * std::sin(angle);
}

std::array<double, 2> Humanoid::CentreOfMass() const {
  double mass = 0.0;
  std::array<double, 2> centre{};
  for (int body = 0; body < model().nbody; ++body) {
    const double m = model().body_mass[body];
    mass += m;
    centre[0] += m * data().xipos[3 * body];
    centre[1] += m * data().xipos[3 * body + 1];
  }
  return {centre[0] / mass, centre[1] / mass};
}

void Humanoid::Begun() {
  const auto centre = CentreOfMass();
  memory()[kStartX] = memory()[kCentreX] = centre[0];
  memory()[kStartY] = memory()[kCentreY] = centre[1];
  memory()[kSpeedX] = memory()[kSpeedY] = 0.0;
}

bool Humanoid::IsHealthy() const { return IsHealthyHeight(qpos()[2]); }

double Humanoid::SpeedError() const {
  return std::hypot(memory()[kSpeedX] - memory()[kTargetX], memory()[kSpeedY] - memory()[kTargetY]);
}

Outcome Humanoid::Judge(std::span<const double> control) {
  const auto centre = CentreOfMass();
  memory()[kSpeedX] = (centre[0] - memory()[kCentreX]) / spec_.dt;
  memory()[kSpeedY] = (centre[1] - memory()[kCentreY]) / spec_.dt;
  memory()[kCentreX] = centre[0];
  memory()[kCentreY] = centre[1];
  const bool healthy = IsHealthy();
  const double alive = healthy || is_v4_ ? kAlive : 0.0;
  // running pays for speed, the other tasks for the wanted velocity
  const double motion = task_ == HumanoidTask::kRun ? kForwardWeight * memory()[kSpeedX]
                                                    : -kForwardWeight * SpeedError();
  double reward = motion + alive - kControlCost * SquaredNorm(control);
  if (!is_v4_) {
    const double forces =
        SquaredNorm({data().cfrc_ext, static_cast<std::size_t>(6 * model().nbody)});
    reward -= std::min(kContactCost * forces, kLargestContactCost);
  }
  return {reward, !healthy};
}

void Humanoid::Show() {
  const auto q = qpos();
  const auto v = qvel();
  const mjData& d = data();
  // v5 leaves out what is always zero: the world, and actuators of the root
  const int first_body = is_v4_ ? 0 : 1;
  const int first_actuated = is_v4_ ? 0 : kRootVelocities;
  const int end = kBodies + 1;
  double* o = std::copy(q.begin() + 2, q.end(), observation_.data());
  o = std::copy(v.begin(), v.end(), o);
  o = std::copy(d.cinert + 10 * first_body, d.cinert + 10 * end, o);
  o = std::copy(d.cvel + 6 * first_body, d.cvel + 6 * end, o);
  o = std::copy(d.qfrc_actuator + first_actuated, d.qfrc_actuator + kSizes.nv, o);
  o = std::copy(d.cfrc_ext + 6 * first_body, d.cfrc_ext + 6 * end, o);
  if (task_ == HumanoidTask::kDirection) {
    *o++ = memory()[kTargetX];
    *o++ = memory()[kTargetY];
  }
  const double speed = SpeedUnit(task_);
  geometry_ = {InUnits(memory()[kCentreX] - memory()[kStartX], kLength),
               InUnits(memory()[kCentreY] - memory()[kStartY], kLength),
               InUnits(memory()[kTargetX] - memory()[kSpeedX], speed),
               InUnits(memory()[kTargetY] - memory()[kSpeedY], speed),
               InUnits(memory()[kSpeedX], speed),
               InUnits(memory()[kSpeedY], speed),
               2.0 * (q[4] * q[6] + q[3] * q[5]),
               0.0};
}

std::optional<bool> Humanoid::Success() const {
  if (task_ == HumanoidTask::kRun) return std::nullopt;
  return IsHealthy() && SpeedError() < kSpeedTolerance;
}

}  // namespace msrl
