// What a task adds to its physics: the environment against a bare loop of mj_step through the same
// states, in turn, for every MuJoCo task; and the batched environment on two threads against one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <numeric>
#include <thread>

#include "bench/ratio_main.h"
#include "msrl/core/text.h"
#include "msrl/env/batch_env.h"
#include "msrl/env_list/env_list.h"
#include "msrl/mujoco/tasks.h"

namespace msrl::bench {
namespace {

constexpr std::size_t kSteps = 40;  // of one turn
constexpr int kTurns = 25;          // of one iteration
constexpr int kBatch = 16;
constexpr const char* kBatchTasks[] = {"reacher", "hopper", "ant"};

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double RealSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<ActionBuffer> RandomActions(const ActionSpec& spec, std::size_t count) {
  Rng rng(0, "bench");
  std::vector<ActionBuffer> actions(count, ActionBuffer(spec));
  for (ActionBuffer& action : actions) {
    for (double& value : action.values()) value = rng.Uniform(-1.0, 1.0);
  }
  return actions;
}

// The environment under random actions, and where its episodes begin.
class Environment {
 public:
  explicit Environment(const std::string& id)
      : env_(MakeEnv(id)),
        task_(*UnwrapAs<MujocoEnv>(*env_)),
        actions_(RandomActions(env_->spec().action, kSteps)) {}

  struct Start {
    std::vector<double> qpos, qvel, mocap;
  };

  void Reset(std::uint64_t seed) { env_->Reset(seed); }
  Start Current() const {
    const mjModel& m = task_.model();
    const mjData& d = task_.data();
    return {{d.qpos, d.qpos + m.nq},
            {d.qvel, d.qvel + m.nv},
            {d.mocap_pos, d.mocap_pos + 3 * m.nmocap}};
  }
  // Whether the episode ended.
  bool Step(std::size_t i) {
    const StepResult result = env_->Step(actions_[i].view());
    benchmark::DoNotOptimize(env_->observation().data());
    return result.terminated || result.truncated;
  }
  const mjModel& model() const { return task_.model(); }
  int frame_skip() const { return env_->spec().frame_skip; }
  std::span<const double> action(std::size_t i) const { return actions_[i].values(); }

 private:
  std::unique_ptr<Env> env_;
  MujocoEnv& task_;
  std::vector<ActionBuffer> actions_;
};

// The same steps with nothing but physics.
void BareStep(const Environment& env, std::size_t i, mjData* data) {
  const auto values = env.action(i);
  for (std::size_t k = 0; k < values.size(); ++k) {
    data->ctrl[k] = env.model().actuator_ctrlrange[2 * k + 1] * values[k];
  }
  for (int k = 0; k < env.frame_skip(); ++k) mj_step(&env.model(), data);
  benchmark::DoNotOptimize(data->qpos);
}

void BareReset(const Environment& env, const Environment::Start& start, mjData* data) {
  mj_resetData(&env.model(), data);
  std::copy(start.qpos.begin(), start.qpos.end(), data->qpos);
  std::copy(start.qvel.begin(), start.qvel.end(), data->qvel);
  std::copy(start.mocap.begin(), start.mocap.end(), data->mocap_pos);
  mj_forward(&env.model(), data);
}

void Task(benchmark::State& state, const MujocoTask& task) {
  Environment env(task.id);
  const DataPtr data = MakeData(env.model());
  double env_seconds = 0.0;
  double bare_seconds = 0.0;
  std::int64_t steps = 0;
  std::uint64_t seed = 0;
  for (auto _ : state) {
    for (int turn = 0; turn < kTurns; ++turn) {
      env.Reset(++seed);
      const Environment::Start start = env.Current();
      // an episode that ends makes the turn shorter for both
      std::size_t length = 0;
      double begin = ProcessorSeconds();
      while (length < kSteps && !env.Step(length++)) {
      }
      env_seconds += ProcessorSeconds() - begin;
      BareReset(env, start, data.get());
      begin = ProcessorSeconds();
      for (std::size_t i = 0; i < length; ++i) BareStep(env, i, data.get());
      bare_seconds += ProcessorSeconds() - begin;
      steps += static_cast<std::int64_t>(length);
    }
  }
  state.counters["ratio"] = bare_seconds / env_seconds;
  state.counters["env_steps_per_s"] = static_cast<double>(steps) / env_seconds;
}

// Some steps in turn on one thread, on two, and on two that never wait for each other: what the
// machine's second core is worth at this moment.
void Batch(benchmark::State& state, const char* id) {
  const auto make = [&](int size, int threads) {
    std::vector<std::unique_ptr<Env>> envs;
    for (int i = 0; i < size; ++i) envs.push_back(MakeEnv(id));
    return std::make_unique<BatchEnv>(std::move(envs), threads);
  };
  const auto one = make(kBatch, 1);
  const auto two = make(kBatch, 2);
  const auto left = make(kBatch / 2, 1);
  const auto right = make(kBatch / 2, 1);
  const auto actions = RandomActions(one->spec().action, kSteps);
  std::vector<std::uint64_t> seeds(kBatch);
  std::iota(seeds.begin(), seeds.end(), 0);
  const auto play = [&](BatchEnv& batch) {
    const auto size = static_cast<std::size_t>(batch.size());
    batch.Reset(std::span(seeds).first(size));
    const double begin = RealSeconds();
    for (std::size_t next = 0; next < kSteps - kBatch; ++next) {
      const auto results = batch.Step(std::span(actions).subspan(next, size));
      for (std::size_t i = 0; i < size; ++i) {
        if (results[i].terminated || results[i].truncated) {
          batch.env(static_cast<int>(i)).Reset(seeds[i]);
        }
      }
    }
    return RealSeconds() - begin;
  };
  double one_seconds = 0.0;
  double two_seconds = 0.0;
  double free_seconds = 0.0;
  for (auto _ : state) {
    one_seconds += play(*one);
    two_seconds += play(*two);
    const double begin = RealSeconds();
    std::thread other([&] { play(*left); });
    play(*right);
    other.join();
    free_seconds += RealSeconds() - begin;
  }
  state.counters["ratio"] = one_seconds / two_seconds;
  state.counters["ceiling"] = one_seconds / free_seconds;
}

const bool kRegistered = [] {
  for (const MujocoTask& task : MujocoTasks()) {
    benchmark::RegisterBenchmark(task.id.c_str(), Task, task)->Unit(benchmark::kMillisecond);
  }
  for (const char* id : kBatchTasks) {
    benchmark::RegisterBenchmark(StrCat("Batch ", id).c_str(), Batch, id)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace

std::vector<Promise> Promises() {
  std::vector<Promise> promises;
  for (const MujocoTask& task : MujocoTasks()) {
    promises.push_back(
        {StrCat(task.id, ": speed of the environment vs bare mj_step"), "", task.id, 0.9});
  }
  for (const char* id : kBatchTasks) {
    promises.push_back(
        {StrCat(id, ": 16 environments on 2 threads vs 1"), "", StrCat("Batch ", id), 1.8});
  }
  return promises;
}

}  // namespace msrl::bench
