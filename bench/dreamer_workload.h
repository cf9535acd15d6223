// The shapes of the compact DreamerV3, shared by the agent's benchmark and libtorch's modules.
#ifndef BENCH_DREAMER_WORKLOAD_H_
#define BENCH_DREAMER_WORKLOAD_H_

#include "msrl/agents/dreamer/dreamer.h"

namespace msrl::bench {

constexpr int kDreamerObservation = 17;
constexpr int kDreamerActions = 6;
constexpr int kDreamerBins = 255;

inline DreamerConfig DreamerWorkload() {
  DreamerConfig config;
  config.replay_size = 100;  // the benchmark brings its own records
  return config;
}

}  // namespace msrl::bench

#endif  // BENCH_DREAMER_WORKLOAD_H_
