// An update of MBPO's ensemble next to the same one with libtorch's operations
// (mbpo_modules.cc).
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/mbpo_workload.h"
#include "bench/ratio_main.h"
#include "msrl/agents/mbpo/ensemble.h"

namespace msrl::bench {
namespace {

void EnsembleUpdate(benchmark::State& state) {
  EnvSpec spec;
  spec.observation_size = kEnsembleObservation;
  spec.action = {ActionKind::kContinuous, kEnsembleAction};
  spec.terminates = NeverTerminates;
  EnsembleSettings settings;
  settings.members = static_cast<int>(state.range(0));
  settings.elites = settings.members;
  settings.layers = static_cast<int>(state.range(1));
  settings.width = static_cast<int>(state.range(2));
  settings.batch = kEnsembleBatch;
  settings.learning_rate = kEnsembleLearningRate;
  Ensemble ensemble(spec, settings, /*most_transitions=*/1, /*most_states=*/1, /*seed=*/0);
  const Replay replay(
      {.capacity = 2, .observation_size = kEnsembleObservation, .action_size = kEnsembleAction});
  std::vector<ReplayBatch> batches(static_cast<std::size_t>(settings.members),
                                   replay.MakeBatch(kEnsembleBatch));
  Rng rng(0, "batches");
  const auto fill = [&rng](auto&& values) {
    for (float& value : values.reshaped()) value = static_cast<float>(rng.Normal());
  };
  for (ReplayBatch& batch : batches) {
    fill(batch.observation);
    fill(batch.action);
    fill(batch.reward);
    fill(batch.next_observation);
    batch.continues.setOnes();
  }
  for (auto _ : state) ensemble.UpdateOn(batches);
}
BENCHMARK(EnsembleUpdate)->Args({5, 3, 128})->Args({7, 4, 200})->Unit(benchmark::kMicrosecond);

}  // namespace

std::vector<Promise> Promises() {
  return {{"MBPO's ensemble, 5 x 3 x 128, batch 256: update vs libtorch", "EnsembleModules/5/3/128",
           "EnsembleUpdate/5/3/128", 2.5},
          {"the same, 7 x 4 x 200", "EnsembleModules/7/4/200", "EnsembleUpdate/7/4/200", 1.5}};
}

}  // namespace msrl::bench
