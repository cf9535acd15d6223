#include "msrl/mujoco/pusher.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

constexpr double kLength = 0.2;               // m, unit of length on the table
constexpr double kSpeed = 0.2;                // m/s, unit of the puck's speed
constexpr double kCentre[2] = {0.45, -0.05};  // where puck and goal are at offset 0
constexpr double kPostHeight = -0.275;        // the puck's

// In v4 the puck is lighter and has a sphere that touches nothing.
constexpr const char* kObjectV4 =
    R"(<geom type="sphere" size="0.05" density="0.00001" material="robot"/>
      <geom type="cylinder" size="0.05 0.05" density="0.00001" contype="1" material="robot"/>)";
constexpr const char* kObjectV5 =
    R"(<geom type="cylinder" size="0.05 0.05" density="0.01" contype="1" material="robot"/>)";
constexpr const char* kPost =
    R"(<body name="post" mocap="true" pos="0.45 -0.15 -0.275">
      <geom name="post" type="cylinder" size="0.025 0.05" contype="1" conaffinity="1" material="block"/>
    </body>)";

struct TaskFacts {
  const char* id;
  const char* description;
};

const TaskFacts& Facts(PusherTask task) {
  static constexpr std::array<TaskFacts, 3> kFacts = {{
      {"pusher", "arm pushes a puck to a fixed goal (Gymnasium Pusher)"},
      {"pusher-push", "arm pushes a puck to a goal drawn for each episode"},
      {"pusher-obstacle", "arm pushes a puck around a post to a drawn goal"},
  }};
  return kFacts[static_cast<std::size_t>(task)];
}

std::string Text(PusherTask task, bool is_v4) {
  std::string text =
      ReplaceOnce(ModelText("pusher"), "<!--object-->", is_v4 ? kObjectV4 : kObjectV5);
  if (task == PusherTask::kObstacle) text = ReplaceOnce(std::move(text), "<!--world-->", kPost);
  return text;
}

double Distance(const double* a, const double* b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

class PusherGoal : public GoalTask {
 public:
  // `drop`: how far above the goal the puck is.
  explicit PusherGoal(double drop) : drop_(drop) {}

  Vec2 Achieved(const EnvView& o) const override { return {o[17], o[18]}; }
  Vec2 Desired(const EnvView& o) const override { return {o[20], o[21]}; }
  void Show(const Vec2& /*achieved*/, const Vec2& desired,
            std::span<double> entries) const override {
    std::copy_n(desired.data(), 2, entries.begin());
  }
  Outcome Judge(const Vec2& achieved, const Vec2& desired) const override {
    return {-std::hypot(achieved.x() - desired.x(), achieved.y() - desired.y(), drop_), false};
  }

 private:
  double drop_;
};

}  // namespace

MujocoEnv::Setup Pusher::MakeSetup(PusherTask task, const MujocoConfig& config) {
  Setup setup;
  EnvSpec& spec = setup.spec;
  spec.id = Facts(task).id;
  spec.family = "pusher";
  spec.description = Facts(task).description;
  spec.observation_size = task == PusherTask::kObstacle ? 25 : 23;
  spec.action = {ActionKind::kContinuous, 7};
  spec.step_limit = 100;
  spec.frame_skip = 5;
  spec.dt = 0.05;
  spec.reward_low = -25.0;  // the puck can be pushed off 10 m
  spec.reward_high = 0.0;
  spec.reward_scale = 2.0;
  spec.geometry_unit = {kLength, kLength, kLength, kLength, kSpeed, kSpeed, 1, 1};
  spec.observation_bound = 1e4;  // joint speeds
  spec.has_success = task != PusherTask::kBase;
  if (task != PusherTask::kBase) spec.goal_entries = {20, 21};
  spec.terminates = NeverTerminates;
  SetMeasuredReturns(spec);
  setup.options = IdentityText(ListFields(config));
  setup.model =
      TaskModel(config, spec.id, Text(task, config.is_v4()), {.nq = 11, .nv = 11, .nu = 7});
  if (task != PusherTask::kBase && !config.is_v4()) {  // v4 pays for where a step began
    const mjModel& m = *setup.model;
    const auto height = [&m](const char* body) {
      return m.body_pos[3 * RequireId(m, mjOBJ_BODY, body) + 2];
    };
    spec.goal_task = std::make_shared<PusherGoal>(height("object") - height("goal"));
  }
  setup.memory_size = kMemorySize;
  return setup;
}

Pusher::Pusher(PusherTask task, const MujocoConfig& config)
    : MujocoEnv(MakeSetup(task, config)),
      task_(task),
      is_v4_(config.is_v4()),
      hand_(RequireId(model(), mjOBJ_BODY, "tips")),
      object_(RequireId(model(), mjOBJ_BODY, "object")),
      goal_(RequireId(model(), mjOBJ_BODY, "goal")) {
  if (task_ == PusherTask::kObstacle) RequireId(model(), mjOBJ_BODY, "post");
}

void Pusher::Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) {
  // offsets: the y slide comes first
  double& object_y = qpos[7];
  double& object_x = qpos[8];
  double& goal_y = qpos[9];
  double& goal_x = qpos[10];
  if (task_ != PusherTask::kBase) {
    goal_y = rng.Uniform(-0.1, 0.1);
    goal_x = rng.Uniform(-0.1, 0.1);
  }
  do {
    object_y = rng.Uniform(-0.3, 0.0);
    object_x = rng.Uniform(-0.2, 0.2);
  } while (std::hypot(object_y - goal_y, object_x - goal_x) <= 0.17);
  if (task_ == PusherTask::kObstacle) {
    double* post = mutable_data().mocap_pos;
    post[0] = kCentre[0] + (object_x + goal_x) / 2;
    post[1] = kCentre[1] + (object_y + goal_y) / 2;
    post[2] = kPostHeight;
  }
  for (int i = 0; i < 7; ++i) qvel[i] = rng.Uniform(-0.005, 0.005);
}

void Pusher::Begun() { Measure(); }

void Pusher::Measure() {
  const double* object = body_position(object_);
  const double* goal = body_position(goal_);
  memory()[kGoalDistance] = Distance(object, goal);
  memory()[kTableDistance] = std::hypot(object[0] - goal[0], object[1] - goal[1]);
  memory()[kHandDistance] = Distance(object, body_position(hand_));
}

Outcome Pusher::Judge(std::span<const double> control) {
  if (!is_v4_) Measure();
  const double reward =
      -memory()[kGoalDistance] - 0.1 * SquaredNorm(control) - 0.5 * memory()[kHandDistance];
  // v4 pays for the distances before the step
  if (is_v4_) Measure();
  return {reward, false};
}

void Pusher::Show() {
  const double* hand = body_position(hand_);
  const double* object = body_position(object_);
  const double* goal = body_position(goal_);
  double* o = observation_.data();
  o = std::copy_n(qpos().data(), 7, o);
  o = std::copy_n(qvel().data(), 7, o);
  o = std::copy_n(hand, 3, o);
  o = std::copy_n(object, 3, o);
  o = std::copy_n(goal, 3, o);
  if (task_ == PusherTask::kObstacle) std::copy_n(data().mocap_pos, 2, o);

  geometry_ = {InUnits(object[0] - kCentre[0], kLength),
               InUnits(object[1] - kCentre[1], kLength),
               InUnits(goal[0] - object[0], kLength),
               InUnits(goal[1] - object[1], kLength),
               InUnits(qvel()[8], kSpeed),
               InUnits(qvel()[7], kSpeed),
               std::sin(qpos()[3]),
               memory()[kTableDistance] < kSuccessRadius ? 1.0 : 0.0};
}

std::optional<bool> Pusher::Success() const {
  if (task_ == PusherTask::kBase) return std::nullopt;
  return memory()[kTableDistance] < kSuccessRadius;
}

}  // namespace msrl
