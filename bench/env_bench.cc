// Steps per second of the environments, resets included, under precomputed random actions. The
// column `target` is the least rate that we want on one core.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/ratio_main.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"

namespace msrl::bench {
namespace {

constexpr std::size_t kActions = 4096;  // a power of two: the index wraps by a mask

std::vector<ActionBuffer> RandomActions(const ActionSpec& spec) {
  Rng rng(0, "bench");
  std::vector<ActionBuffer> actions(kActions, ActionBuffer(spec));
  for (ActionBuffer& action : actions) {
    if (spec.kind == ActionKind::kDiscrete)
      action.set_index(static_cast<int>(rng.Index(spec.size)));
    for (double& value : action.values()) value = rng.Uniform(-1.0, 1.0);
  }
  return actions;
}

void Steps(benchmark::State& state, const std::string& id, const std::vector<std::string>& options,
           double target) {
  const auto env = MakeEnv(id, options);
  const auto actions = RandomActions(env->spec().action);
  std::uint64_t seed = 0;
  std::size_t next = 0;
  env->Reset(seed);
  for (auto _ : state) {
    const StepResult result = env->Step(actions[next++ & (kActions - 1)].view());
    benchmark::DoNotOptimize(env->geometry().data());
    if (result.terminated || result.truncated) env->Reset(++seed);
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["target"] = target;
}
BENCHMARK_CAPTURE(Steps, graph_motif, "graph-motif", {}, 2e6);
BENCHMARK_CAPTURE(Steps, micro_grid, "micro-grid", {}, 2e6);
BENCHMARK_CAPTURE(Steps, point_rooms, "point-rooms", {}, 1e6);
BENCHMARK_CAPTURE(Steps, dubins, "dubins-reacher", {"task=dubins"}, 1e6);
BENCHMARK_CAPTURE(Steps, arm, "dubins-reacher", {"task=arm"}, 1e6);
BENCHMARK_CAPTURE(Steps, balance, "dubins-reacher", {"task=balance"}, 1e6);
BENCHMARK_CAPTURE(Steps, four_rooms, "four-rooms-sparse", {}, 1e6);

void Resets(benchmark::State& state, const std::string& id) {
  const auto env = MakeEnv(id);
  std::uint64_t seed = 0;
  for (auto _ : state) env->Reset(++seed);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(Resets, graph_motif, "graph-motif");
BENCHMARK_CAPTURE(Resets, micro_grid, "micro-grid");
BENCHMARK_CAPTURE(Resets, point_rooms, "point-rooms");
BENCHMARK_CAPTURE(Resets, dubins_reacher, "dubins-reacher");

// The whole source pipeline of one step: act, step, lift, accumulate, expert value every tenth
// step.
void SourceData(benchmark::State& state, const std::string& id) {
  const auto env = MakeEnv(id);
  const Lift::Ptr lift = CompactLift();
  Rng rng(0, "mix");
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  for (auto _ : state) {
    env->Reset(++seed);
    Behaviour behaviour = MakeBehaviour(*env, rng);
    SegmentMatrix matrix(lift);
    Eigen::VectorXd psi(lift->m());
    Eigen::VectorXd before(kGeometrySize);
    std::array<double, kActionCodeSize> code;
    for (int t = 0;; ++t) {
      if (t % 10 == 0) benchmark::DoNotOptimize(ExpertValue(*env));
      before = env->geometry();
      const Action action = behaviour.Act();
      EmbedAction(env->spec(), action, code);
      const StepResult result = env->Step(action);
      lift->Apply(before, EnvView(code.data(), kActionCodeSize), result.reward, env->geometry(),
                  psi);
      matrix.AddStep(psi);
      ++steps;
      if (result.terminated || result.truncated) break;
    }
  }
  state.SetItemsProcessed(steps);
}
BENCHMARK_CAPTURE(SourceData, graph_motif, "graph-motif");
BENCHMARK_CAPTURE(SourceData, micro_grid, "micro-grid");
BENCHMARK_CAPTURE(SourceData, point_rooms, "point-rooms");
BENCHMARK_CAPTURE(SourceData, dubins_reacher, "dubins-reacher");

}  // namespace

// Rates, not ratios: the targets stand beside them.
std::vector<Promise> Promises() { return {}; }

}  // namespace msrl::bench
