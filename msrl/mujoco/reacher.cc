#include "msrl/mujoco/reacher.h"

#include <array>
#include <cmath>
#include <numbers>

#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

constexpr double kReach = 0.2;        // m, unit of length
constexpr double kSpeed = 1.0;        // m/s, unit of speed
constexpr double kUpperLength = 0.1;  // m
constexpr double kLowerLength = 0.11;

struct TaskFacts {
  const char* id;
  const char* description;
  double control_cost;
  double reward_low;
  double reward_high;
};

const TaskFacts& Facts(ReacherTask task) {
  static constexpr std::array<TaskFacts, 3> kFacts = {{
      {"reacher", "two-link arm touches a target (Gymnasium Reacher)", 1.0, -2.7, 0.0},
      {"reacher-goal", "two-link arm touches a target from any posture", 0.1, -0.7, 0.0},
      {"reacher-sparse", "two-link arm, 1 per step within 3 cm of the target", 0.0, 0.0, 1.0},
  }};
  return kFacts[static_cast<std::size_t>(task)];
}

// The part of the reward that the goal decides.
double PayAt(ReacherTask task, double distance) {
  if (task != ReacherTask::kSparse) return -distance;
  return distance < Reacher::kSuccessRadius ? 1.0 : 0.0;
}

// The fingertip and the target are at the same height.
class ReacherGoal : public GoalTask {
 public:
  explicit ReacherGoal(ReacherTask task) : task_(task) {}

  Vec2 Achieved(const EnvView& o) const override { return {o[8] + o[4], o[9] + o[5]}; }
  Vec2 Desired(const EnvView& o) const override { return {o[4], o[5]}; }
  void Show(const Vec2& achieved, const Vec2& desired, std::span<double> entries) const override {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      entries[i] = desired[k];
      entries[2 + i] = achieved[k] - desired[k];
    }
  }
  Outcome Judge(const Vec2& achieved, const Vec2& desired) const override {
    return {PayAt(task_, (achieved - desired).norm()), false};
  }

 private:
  ReacherTask task_;
};

}  // namespace

MujocoEnv::Setup Reacher::MakeSetup(ReacherTask task, const MujocoConfig& config) {
  const TaskFacts& facts = Facts(task);
  Setup setup;
  EnvSpec& spec = setup.spec;
  spec.id = facts.id;
  spec.family = "reacher";
  spec.description = facts.description;
  spec.observation_size = config.is_v4() ? 11 : 10;
  spec.action = {ActionKind::kContinuous, 2};
  spec.step_limit = 50;
  spec.frame_skip = 2;
  spec.dt = 0.02;
  spec.reward_low = facts.reward_low;
  spec.reward_high = facts.reward_high;
  spec.reward_scale = task == ReacherTask::kGoal ? 0.4 : 1.0;
  spec.geometry_unit = {kReach, kReach, kReach, kReach, kSpeed, kSpeed, 1, 1};
  spec.observation_bound = 1e4;  // joint speeds
  spec.has_success = task != ReacherTask::kBase;
  spec.goal_entries = {4, 5, 8, 9};
  if (config.is_v4()) {
    spec.goal_entries.push_back(10);
  } else {
    spec.goal_task = std::make_shared<ReacherGoal>(task);  // v4 pays for where a step began
  }
  spec.terminates = NeverTerminates;
  SetMeasuredReturns(spec);
  setup.options = IdentityText(ListFields(config));
  setup.model = TaskModel(config, spec.id, ModelText("reacher"), {.nq = 4, .nv = 4, .nu = 2});
  setup.memory_size = kMemorySize;
  return setup;
}

Reacher::Reacher(ReacherTask task, const MujocoConfig& config)
    : MujocoEnv(MakeSetup(task, config)),
      task_(task),
      is_v4_(config.is_v4()),
      fingertip_(RequireId(model(), mjOBJ_BODY, "fingertip")),
      target_(RequireId(model(), mjOBJ_BODY, "target")) {}

void Reacher::Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) {
  const bool any_posture = task_ == ReacherTask::kGoal;
  qpos[0] +=
      any_posture ? rng.Uniform(-std::numbers::pi, std::numbers::pi) : rng.Uniform(-0.1, 0.1);
  qpos[1] += any_posture ? rng.Uniform(-2.8, 2.8) : rng.Uniform(-0.1, 0.1);
  do {
    qpos[2] = rng.Uniform(-0.2, 0.2);
    qpos[3] = rng.Uniform(-0.2, 0.2);
  } while (std::hypot(qpos[2], qpos[3]) >= 0.2);
  for (int i = 0; i < 2; ++i) qvel[i] = rng.Uniform(-0.005, 0.005);
}

double Reacher::Distance() const {
  const double* tip = body_position(fingertip_);
  const double* target = body_position(target_);
  return std::hypot(tip[0] - target[0], tip[1] - target[1], tip[2] - target[2]);
}

void Reacher::Begun() { memory()[kDistance] = Distance(); }

Outcome Reacher::Judge(std::span<const double> control) {
  const double before = memory()[kDistance];
  const double after = memory()[kDistance] = Distance();
  const double distance = is_v4_ && task_ != ReacherTask::kSparse ? before : after;
  return {PayAt(task_, distance) - Facts(task_).control_cost * SquaredNorm(control), false};
}

void Reacher::Show() {
  const double* tip = body_position(fingertip_);
  const double* target = body_position(target_);
  const auto q = qpos();
  const auto v = qvel();
  double* o = observation_.data();
  for (int i = 0; i < 2; ++i) {
    o[i] = std::cos(q[i]);
    o[2 + i] = std::sin(q[i]);
    o[4 + i] = q[2 + i];
    o[6 + i] = v[i];
    o[8 + i] = tip[i] - target[i];
  }
  if (is_v4_) o[10] = tip[2] - target[2];

  // the fingertip's velocity, from the two joints
  const double angle = q[0] + q[1];
  const double spin = v[0] + v[1];
  const double speed_x =
      -kUpperLength * std::sin(q[0]) * v[0] - kLowerLength * std::sin(angle) * spin;
  const double speed_y =
      kUpperLength * std::cos(q[0]) * v[0] + kLowerLength * std::cos(angle) * spin;
  geometry_ = {InUnits(tip[0], kReach),
               InUnits(tip[1], kReach),
               InUnits(target[0] - tip[0], kReach),
               InUnits(target[1] - tip[1], kReach),
               InUnits(speed_x, kSpeed),
               InUnits(speed_y, kSpeed),
               std::sin(q[1]),
               memory()[kDistance] < kSuccessRadius ? 1.0 : 0.0};
}

std::optional<bool> Reacher::Success() const {
  if (task_ == ReacherTask::kBase) return std::nullopt;
  return memory()[kDistance] < kSuccessRadius;
}

}  // namespace msrl
