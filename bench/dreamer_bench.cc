// An update of DreamerV3 (compact preset), and a step of acting, next to libtorch's modules of the
// same networks (dreamer_modules.cc).
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/dreamer_workload.h"
#include "bench/ratio_main.h"

namespace msrl::bench {
namespace {

EnvSpec WorkloadSpec() {
  EnvSpec spec;
  spec.id = "benchmark";
  spec.observation_size = kDreamerObservation;
  spec.action = {ActionKind::kContinuous, kDreamerActions};
  spec.step_limit = 1000;
  return spec;
}

void DreamerUpdate(benchmark::State& state) {
  const DreamerConfig config = DreamerWorkload();
  Dreamer agent(WorkloadSpec(), config, 1);
  Rng rng(0, "records");
  RecordBatch batch = agent.MakeRecords();
  for (Eigen::MatrixXf* matrix : {&batch.observation, &batch.features, &batch.action}) {
    for (float& v : matrix->reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
  }
  for (float& v : batch.features.bottomRows(config.stoch).reshaped()) {
    v = static_cast<float>(rng.Index(config.classes));
  }
  for (float& v : batch.reward) v = static_cast<float>(rng.Normal());
  batch.first.setZero();
  batch.last.setZero();
  batch.terminal.setZero();
  Eigen::MatrixXf latents(config.deter + config.stoch, config.sequences * config.sequence_length);
  for (auto _ : state) {
    agent.UpdateOn(batch, latents);
    benchmark::DoNotOptimize(latents.data());
  }
  state.counters["parameters"] = static_cast<double>(agent.parameter_count());
}
BENCHMARK(DreamerUpdate)->Unit(benchmark::kMillisecond);

void DreamerAct(benchmark::State& state) {
  Dreamer agent(WorkloadSpec(), DreamerWorkload(), 1);
  const std::unique_ptr<Carry> carry = agent.MakeCarry();
  const SegmentMatrix matrix(CompactLift());
  const std::vector<double> numbers(kDreamerObservation + kGeometrySize, 0.3);
  const EnvView observation(numbers.data(), kDreamerObservation);
  const EnvView geometry(numbers.data(), kGeometrySize);
  ActionBuffer action({ActionKind::kContinuous, kDreamerActions});
  Rng rng(0, "policy");
  for (auto _ : state) {
    agent.Act({{observation, geometry, matrix, 0}, *carry, rng, action}, ActMode::kEvaluate);
    benchmark::DoNotOptimize(action.values().data());
  }
}
BENCHMARK(DreamerAct)->Unit(benchmark::kMicrosecond);

}  // namespace

std::vector<Promise> Promises() {
  return {{"DreamerV3, compact: update vs libtorch", "DreamerModulesUpdate", "DreamerUpdate", 2.5},
          {"DreamerV3, compact: acting vs libtorch", "DreamerModulesAct", "DreamerAct", 2.5}};
}

}  // namespace msrl::bench
