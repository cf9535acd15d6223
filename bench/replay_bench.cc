// Drawing a batch from the replay: 128 transitions of 11 observed numbers and 3 actions from
// 100,000 states, without matrices and with what a critic on matrix features needs.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/ratio_main.h"
#include "msrl/core/rng.h"
#include "msrl/env/spec.h"
#include "msrl/memory/replay.h"
#include "msrl/value/matrix_features.h"

namespace msrl::bench {
namespace {

constexpr int kObservation = 11;
constexpr int kAction = 3;
constexpr int kBatch = 128;
constexpr std::int64_t kStates = 100'000;
constexpr int kEpisode = 500;

Replay Filled(bool matrices) {
  const Lift::Ptr lift = CompactLift();
  ReplayConfig config{
      .capacity = kStates, .observation_size = kObservation, .action_size = kAction};
  if (matrices) {
    config.feature_size = MatrixFeatures(lift, MatrixFeatureOptions{}).size();
    config.lift = lift;
    config.code_size = kAction;
  }
  Replay replay(config);
  Rng rng(1, "replay");
  const SegmentMatrix zero(lift);
  std::vector<double> before(kObservation), after(kObservation);
  std::vector<float> features(static_cast<std::size_t>(config.feature_size), 0.5F);
  const std::vector<double> geometry(static_cast<std::size_t>(lift->d()), 0.0);
  const std::vector<double> code(static_cast<std::size_t>(lift->q()), 0.0);
  const std::vector<float> action(kAction, 0.0F);
  for (std::int64_t i = 1; replay.end_row() < kStates; ++i) {
    for (double& value : after) value = rng.Normal();
    replay.Add({.before = {before, features, geometry, &zero},
                .action = action,
                .truncated = i % kEpisode == 0,
                .after = {after, features, geometry, &zero},
                .code = code});
    before = after;
  }
  return replay;
}

void Sample(benchmark::State& state, bool matrices) {
  const Replay replay = Filled(matrices);
  ReplayBatch batch = replay.MakeBatch(kBatch);
  Rng rng(2, "batch");
  for (auto _ : state) {
    replay.Sample(rng, batch);
    benchmark::DoNotOptimize(batch.features.data());
  }
}

void Plain(benchmark::State& state) { Sample(state, false); }
void Matrices(benchmark::State& state) { Sample(state, true); }
BENCHMARK(Plain)->Unit(benchmark::kMicrosecond);
BENCHMARK(Matrices)->Unit(benchmark::kMicrosecond);

}  // namespace

std::vector<Promise> Promises() { return {}; }

}  // namespace msrl::bench
