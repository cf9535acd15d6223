// One task for two implementations: updates and plans of TD-MPC2 with the compact preset's
// networks, one thread.
#ifndef BENCH_TDMPC_WORKLOAD_H_
#define BENCH_TDMPC_WORKLOAD_H_

#include "msrl/agents/tdmpc/tdmpc.h"

namespace msrl::bench {

constexpr int kTdMpcObservation = 17;
constexpr int kTdMpcAction = 6;

inline TdMpcConfig TdMpcWorkload() {
  TdMpcConfig config;
  config.replay_size = 1000;
  config.random_steps = 1;
  config.first_updates = 0;
  return config;
}

}  // namespace msrl::bench

#endif  // BENCH_TDMPC_WORKLOAD_H_
