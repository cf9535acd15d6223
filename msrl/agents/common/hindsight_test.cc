#include "msrl/agents/common/hindsight.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "msrl/agents/common/off_policy.h"
#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/registry.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env_list/env_list.h"
#include "msrl/mujoco/maze.h"
#include "msrl/mujoco/mujoco_env.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using Options = std::vector<std::string>;

struct Task {
  std::string id;
  Options options = {};
};

// Every listed task that has other goals, and its variants.
std::vector<Task> GoalTasks() {
  std::vector<Task> tasks;
  for (const EnvEntry& entry : BuiltinEnvs()) {
    if (MakeEnv(entry.id)->spec().goal_task == nullptr) continue;
    tasks.push_back({entry.id});
    if (!entry.id.ends_with("maze-umaze")) continue;
    tasks.push_back({entry.id, {"continuing=true"}});
    tasks.push_back({entry.id, {"reward=dense", "continuing=true"}});
  }
  return tasks;
}

// What the environment itself says of a step with another goal.
struct Verdict {
  double reward = 0.0;
  bool terminated = false;
  Eigen::VectorXd observation;
};

Verdict StepWithGoal(Env& env, std::span<const std::byte> state, const Action& action,
                     const Vec2& goal) {
  env.Restore(state);
  if (const auto* rooms = UnwrapAs<FourRooms>(env)) {
    FourRoomsModel model = rooms->model();
    model.goal = goal;
    FourRoomsModel::State moved = rooms->state();
    const Outcome outcome = model.Advance(moved, {action.values()[0], action.values()[1]}, nullptr);
    Eigen::VectorXd observation(env.spec().observation_size);
    std::array<double, kGeometrySize> geometry{};
    model.Observe(moved, {observation.data(), static_cast<std::size_t>(observation.size())},
                  geometry);
    return {outcome.reward, outcome.terminated, observation};
  }
  auto& mujoco = *UnwrapAs<MujocoEnv>(env);
  const mjModel& m = mujoco.model();
  const mjData& d = mujoco.data();
  std::vector<double> qpos(d.qpos, d.qpos + m.nq);
  const std::string& family = env.spec().family;
  if (family.ends_with("maze")) {
    mujoco.memory()[MazeTask::kGoalX] = goal.x();
    mujoco.memory()[MazeTask::kGoalY] = goal.y();
  } else if (family == "reacher") {
    qpos[2] = goal.x();
    qpos[3] = goal.y();
  } else {
    EXPECT_EQ(family, "pusher");
    qpos[9] = goal.y() + 0.05;
    qpos[10] = goal.x() - 0.45;
  }
  mujoco.Replace(qpos, std::vector<double>(d.qvel, d.qvel + m.nv),
                 std::vector<double>(d.qacc_warmstart, d.qacc_warmstart + m.nv));
  const StepResult result = env.Step(action);
  return {result.reward, result.terminated, env.observation()};
}

// A run of random steps that fills a memory, and all that is known of each replay row.
struct Played {
  struct Row {
    std::vector<std::byte> state;
    std::vector<double> action;  // empty where no step was taken
    Vec2 achieved;
    int episode = 0;
  };
  std::vector<Row> rows;

  Played(Env& env, OffPolicyMemory& memory, int steps) {
    EpisodeTracker tracker(env.spec(), CompactLift());
    Behaviour behaviour(env, {.persistence = 6.0}, Rng(3, "random"));
    int episode = -1;
    const auto note = [&] {
      rows.push_back(
          {env.Snapshot(), {}, env.spec().goal_task->Achieved(env.observation()), episode});
    };
    bool ended = true;
    for (int t = 0; t < steps; ++t) {
      if (ended) {
        env.Reset(static_cast<std::uint64_t>(++episode));
        tracker.Begin(env);
        note();
      }
      const Action action = behaviour.Act();
      rows.back().action.assign(action.values().begin(), action.values().end());
      StepResult result = env.Step(action);
      result.truncated |= t % 150 == 149;  // in the middle of many a way
      ended = result.terminated || result.truncated;
      memory.Observe(tracker.Advance(action, result, env));
      note();
    }
  }
};

OffPolicyConfig SmallConfig(int her) {
  OffPolicyConfig config;
  config.batch_size = 100;
  config.replay_size = 1500;
  config.random_steps = 1;
  config.her = her;
  return config;
}

// The promise: what a relabelled sample says is what the environment says of this very step where
// the goal is the other one.
void ExpectTheEnvironmentsOwn(int most) {
  std::set<std::string> families;
  for (const Task& task : GoalTasks()) {
    SCOPED_TRACE(task.id + (task.options.empty() ? "" : " " + task.options[0]));
    const auto env = MakeEnv(task.id, task.options);
    const auto other = MakeEnv(task.id, task.options);
    const EnvSpec& spec = env->spec();
    families.insert(spec.family);
    OffPolicyMemory memory(spec, SmallConfig(/*her=*/4), std::nullopt, 7);
    OffPolicyMemory plain(spec, SmallConfig(/*her=*/0), std::nullopt, 7);
    const int steps = 2000;  // more than the replay holds
    const Played played(*env, memory, steps);
    Played(*env, plain, steps);
    Rng rng(7, "hindsight");  // the memory's
    int samples = 0;
    int changed = 0;
    int ends = 0;
    while (samples < most) {
      const ReplayBatch& batch = memory.Sample();
      const ReplayBatch& as_played = plain.Sample();
      ASSERT_EQ(batch.row, as_played.row);
      for (Eigen::Index i = 0; i < batch.size(); ++i) {
        const auto row = static_cast<std::size_t>(batch.row[static_cast<std::size_t>(i)]);
        if (i >= 80) {  // four of five are relabelled
          ASSERT_EQ(batch.observation.col(i), as_played.observation.col(i));
          ASSERT_EQ(batch.next_observation.col(i), as_played.next_observation.col(i));
          ASSERT_EQ(batch.reward[i], as_played.reward[i]);
          ASSERT_EQ(batch.continues[i], as_played.continues[i]);
          continue;
        }
        std::size_t last = row;
        while (last + 1 < played.rows.size() &&
               played.rows[last + 1].episode == played.rows[row].episode) {
          ++last;
        }
        const std::size_t later =
            row + 1 + static_cast<std::size_t>(rng.Index(static_cast<std::int64_t>(last - row)));
        const Vec2 goal = played.rows[later].achieved;
        const Played::Row& now = played.rows[row];
        const Verdict verdict =
            StepWithGoal(*other, now.state, Action::Continuous(now.action), goal);
        ASSERT_FLOAT_EQ(batch.reward[i], static_cast<float>(verdict.reward / spec.reward_scale));
        ASSERT_EQ(batch.continues[i], verdict.terminated ? 0.0F : 1.0F);
        ASSERT_LE((batch.next_observation.col(i) - verdict.observation.cast<float>())
                      .cwiseAbs()
                      .maxCoeff(),
                  1e-6F);
        if (row > 0 && played.rows[row - 1].episode == now.episode) {
          const Played::Row& before = played.rows[row - 1];
          const Verdict shown =
              StepWithGoal(*other, before.state, Action::Continuous(before.action), goal);
          ASSERT_LE(
              (batch.observation.col(i) - shown.observation.cast<float>()).cwiseAbs().maxCoeff(),
              1e-6F);
        }
        changed += batch.reward[i] != as_played.reward[i] ? 1 : 0;
        ends += batch.continues[i] == 0.0F ? 1 : 0;
        ++samples;
      }
    }
    EXPECT_GT(changed, most / 50);
    const bool may_end = spec.family.ends_with("maze") && task.options.empty();
    EXPECT_EQ(ends > most / 100, may_end);
  }
  EXPECT_EQ(families, (std::set<std::string>{"antmaze", "arena", "four-rooms", "pointmaze",
                                             "pusher", "reacher"}));
}

TEST(Hindsight, RelabelledStepsAreTheEnvironmentsOwn) { ExpectTheEnvironmentsOwn(800); }
TEST(HindsightAtLength, RelabelledStepsAreTheEnvironmentsOwn) { ExpectTheEnvironmentsOwn(10'000); }

TEST(Hindsight, AMemoryThatWasReadGoesOnAlike) {
  const auto env = MakeEnv("pointmaze-umaze");
  for (const int steps : {1, 149, 150, 151, 1000, 1499, 1500, 2711}) {
    OffPolicyMemory memory(env->spec(), SmallConfig(2), std::nullopt, 5);
    Played(*env, memory, steps);
    memory.Sample();
    OffPolicyMemory loaded(env->spec(), SmallConfig(2), std::nullopt, 99);
    testing::Unarchive(testing::Archived(memory), loaded);
    EXPECT_EQ(testing::Archived(loaded), testing::Archived(memory));
    for (int i = 0; i < 5; ++i) {
      const ReplayBatch& batch = memory.Sample();
      const ReplayBatch& again = loaded.Sample();
      EXPECT_EQ(batch.row, again.row);
      EXPECT_EQ(batch.observation, again.observation);
      EXPECT_EQ(batch.next_observation, again.next_observation);
      EXPECT_EQ(batch.reward, again.reward);
      EXPECT_EQ(batch.continues, again.continues);
    }
    EXPECT_EQ(testing::Archived(loaded), testing::Archived(memory));
  }
}

// An end that is none of the goal's stays one, whatever the goal.
TEST(Hindsight, OtherEndsStayEnds) {
  const auto env = MakeEnv("arena-dense");
  OffPolicyMemory memory(env->spec(), SmallConfig(4), std::nullopt, 5);
  EpisodeTracker tracker(env->spec(), CompactLift());
  const std::array<double, 2> push{0.5, 0.5};
  for (int t = 0; t < 50; ++t) {
    if (t % 5 == 0) {
      env->Reset(static_cast<std::uint64_t>(t));
      tracker.Begin(*env);
    }
    StepResult result = env->Step(Action::Continuous(push));
    result.terminated = t % 5 == 4;
    memory.Observe(tracker.Advance(Action::Continuous(push), result, *env));
  }
  const ReplayBatch& batch = memory.Sample();
  int ends = 0;
  for (Eigen::Index i = 0; i < batch.size(); ++i) {
    // six rows an episode, the fifth of which is the end
    const bool end = batch.row[static_cast<std::size_t>(i)] % 6 == 4;
    EXPECT_EQ(batch.continues[i], end ? 0.0F : 1.0F);
    ends += end ? 1 : 0;
  }
  EXPECT_GT(ends, 5);
}

TEST(Hindsight, SaysWhereThereIsNone) {
  const auto error = [](const std::string& env, const Options& options, const std::string& agent,
                        const Options& settings) {
    return testing::UserErrorText(
        [&] { BuiltinAgents().Make(agent, MakeEnv(env, options)->spec(), settings, 0); });
  };
  const auto none = [](const std::string& env) {
    return "her: '" + env + "' has no goal that could be another one in what the policy sees";
  };
  EXPECT_EQ(error("hopper", {}, "sac", {"her=4"}), none("hopper"));
  EXPECT_EQ(error("arena-sparse", {"hidden=goal"}, "td3", {"her=4"}), none("arena-sparse"));
  EXPECT_EQ(error("reacher", {"version=v4"}, "sac", {"her=4"}), none("reacher"));
  EXPECT_EQ(error("antmaze-umaze", {"continuing=true", "new_goals=true"}, "sac", {"her=4"}),
            none("antmaze-umaze"));
  EXPECT_EQ(error("graph-motif", {}, "dqn", {"her=4"}), none("graph-motif"));
  EXPECT_EQ(error("arena-sparse", {}, "msrl", {"her=4", "matrix=false", "sight=frames"}),
            none("arena-sparse"));
  EXPECT_EQ(error("arena-sparse", {}, "msrl", {"her=4"}),
            "her: the critic sees Z, which is of the goal that was pursued; set matrix=false");
  EXPECT_EQ(error("arena-sparse", {}, "msrl", {"her=4", "matrix=false"}), "no error");
  EXPECT_EQ(error("arena-sparse", {"hidden=gains"}, "sac", {"her=4"}), "no error");
}

}  // namespace
}  // namespace msrl
