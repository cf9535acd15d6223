// What a task adds to its physics: the environment against a bare loop of mj_step through the same
// states, for every MuJoCo task; and the batched environment on two threads against one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>

#include "bench/ratio_main.h"
#include "msrl/core/text.h"
#include "msrl/env/batch_env.h"
#include "msrl/mujoco/tasks.h"
#include "msrl/suite/registry.h"

namespace msrl::bench {
namespace {

constexpr int kSteps = 200;  // of one iteration
constexpr int kBatch = 16;
constexpr const char* kBatchTasks[] = {"reacher", "hopper", "ant"};

// The actions of an iteration, in [-1, 1].
std::vector<ActionBuffer> RandomActions(const ActionSpec& spec) {
  Rng rng(0, "bench");
  std::vector<ActionBuffer> actions(kSteps, ActionBuffer(spec));
  for (ActionBuffer& action : actions) {
    for (double& value : action.values()) value = rng.Uniform(-1.0, 1.0);
  }
  return actions;
}

void Environment(benchmark::State& state, const MujocoTask& task) {
  const auto env = MakeEnv(task.id);
  const auto actions = RandomActions(env->spec().action);
  for (auto _ : state) {
    std::uint64_t seed = 0;
    env->Reset(seed);
    for (const ActionBuffer& action : actions) {
      const StepResult result = env->Step(action.view());
      benchmark::DoNotOptimize(env->observation().data());
      if (result.terminated || result.truncated) env->Reset(++seed);
    }
  }
  state.SetItemsProcessed(state.iterations() * kSteps);
}

struct Start {
  std::vector<double> qpos;
  std::vector<double> qvel;
  std::vector<double> mocap;
};

Start Current(const MujocoEnv& env) {
  const mjModel& m = env.model();
  const mjData& d = env.data();
  return {
      {d.qpos, d.qpos + m.nq}, {d.qvel, d.qvel + m.nv}, {d.mocap_pos, d.mocap_pos + 3 * m.nmocap}};
}

// The same episodes with nothing but physics: reset, forward, steps.
void Physics(benchmark::State& state, const MujocoTask& task) {
  const auto env = MakeEnv(task.id);
  const auto& inner = *UnwrapAs<MujocoEnv>(*env);
  const mjModel& model = inner.model();
  const auto actions = RandomActions(env->spec().action);
  // where each step begins, if it begins an episode
  std::vector<Start> starts(kSteps);
  std::uint64_t seed = 0;
  env->Reset(seed);
  starts[0] = Current(inner);
  for (std::size_t i = 0; i < kSteps; ++i) {
    const StepResult result = env->Step(actions[i].view());
    if (!result.terminated && !result.truncated) continue;
    env->Reset(++seed);
    if (i + 1 < kSteps) starts[i + 1] = Current(inner);
  }

  const DataPtr data = MakeData(model);
  const auto size = static_cast<std::size_t>(model.nu);
  for (auto _ : state) {
    for (std::size_t i = 0; i < kSteps; ++i) {
      if (const Start& start = starts[i]; !start.qpos.empty()) {
        mj_resetData(&model, data.get());
        std::copy(start.qpos.begin(), start.qpos.end(), data->qpos);
        std::copy(start.qvel.begin(), start.qvel.end(), data->qvel);
        std::copy(start.mocap.begin(), start.mocap.end(), data->mocap_pos);
        mj_forward(&model, data.get());
      }
      const auto values = actions[i].values();
      for (std::size_t k = 0; k < size; ++k) {
        data->ctrl[k] = model.actuator_ctrlrange[2 * k + 1] * values[k];
      }
      for (int k = 0; k < env->spec().frame_skip; ++k) mj_step(&model, data.get());
      benchmark::DoNotOptimize(data->qpos);
    }
  }
  state.SetItemsProcessed(state.iterations() * kSteps);
}

void Batch(benchmark::State& state, const char* id) {
  const auto threads = static_cast<int>(state.range(0));
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < kBatch; ++i) envs.push_back(MakeEnv(id));
  BatchEnv batch(std::move(envs), threads);
  const auto actions = RandomActions(batch.spec().action);
  std::vector<std::uint64_t> seeds(kBatch);
  std::iota(seeds.begin(), seeds.end(), 0);
  batch.Reset(seeds);
  std::size_t next = 0;
  for (auto _ : state) {
    const auto results = batch.Step(std::span(actions).subspan(next, kBatch));
    next = next + 2 * kBatch <= kSteps ? next + kBatch : 0;
    for (int i = 0; i < kBatch; ++i) {
      const StepResult& result = results[static_cast<std::size_t>(i)];
      if (result.terminated || result.truncated) batch.env(i).Reset(seeds[0]++);
    }
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

const bool kRegistered = [] {
  for (const MujocoTask& task : MujocoTasks()) {
    benchmark::RegisterBenchmark(StrCat("Environment ", task.id).c_str(), Environment, task)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(StrCat("Physics ", task.id).c_str(), Physics, task)
        ->Unit(benchmark::kMillisecond);
  }
  for (const char* id : kBatchTasks) {
    benchmark::RegisterBenchmark(StrCat("Batch ", id).c_str(), Batch, id)
        ->Arg(1)
        ->Arg(2)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace

std::vector<Promise> Promises() {
  std::vector<Promise> promises;
  for (const MujocoTask& task : MujocoTasks()) {
    promises.push_back({StrCat(task.id, ": speed of the environment vs bare mj_step"),
                        StrCat("Physics ", task.id), StrCat("Environment ", task.id), 0.9});
  }
  for (const char* id : kBatchTasks) {
    promises.push_back({StrCat(id, ": 16 environments on 2 threads vs 1"),
                        StrCat("Batch ", id, "/1"), StrCat("Batch ", id, "/2"), 1.8});
  }
  return promises;
}

}  // namespace msrl::bench
