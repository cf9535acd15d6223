// One task for three implementations: TD3 updates on a pre-filled replay buffer, one thread.
#ifndef BENCH_TD3_WORKLOAD_H_
#define BENCH_TD3_WORKLOAD_H_

#include <Eigen/Core>

#include "msrl/core/rng.h"

namespace msrl::bench {

constexpr int kBatch = 100;
constexpr int kTransitions = 100'000;
constexpr double kLearningRate = 1e-3;
constexpr double kTau = 0.005;
constexpr float kGamma = 0.99F;
constexpr float kNoise = 0.2F;
constexpr float kNoiseLimit = 0.5F;

struct Td3Shape {
  int observation;
  int action;
  int width;  // of the two hidden layers

  int input() const { return observation + action; }
  // One transition per column: observation, action, next observation, reward, 1 - terminal.
  int record() const { return 2 * observation + action + 2; }
};

inline Eigen::MatrixXf RandomTransitions(const Td3Shape& shape) {
  Rng rng(0, "transitions");
  Eigen::MatrixXf records(shape.record(), kTransitions);
  for (float& value : records.reshaped()) value = static_cast<float>(rng.Uniform(-1.0, 1.0));
  records.bottomRows(1).setOnes();
  return records;
}

}  // namespace msrl::bench

#endif  // BENCH_TD3_WORKLOAD_H_
