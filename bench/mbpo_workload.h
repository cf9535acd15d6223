// One task for two implementations: an update of MBPO's ensemble on given batches, one thread.
#ifndef BENCH_MBPO_WORKLOAD_H_
#define BENCH_MBPO_WORKLOAD_H_

namespace msrl::bench {

// Hopper's.
constexpr int kEnsembleObservation = 11;
constexpr int kEnsembleAction = 3;
constexpr int kEnsembleBatch = 256;
constexpr double kEnsembleLearningRate = 1e-3;

struct EnsembleShape {
  int members;
  int layers;
  int width;
};

}  // namespace msrl::bench

#endif  // BENCH_MBPO_WORKLOAD_H_
