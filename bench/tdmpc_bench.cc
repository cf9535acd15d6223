// TD-MPC2's update and planning step next to libtorch's modules (tdmpc_modules.cc): the same
// networks, losses and plans.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "bench/ratio_main.h"
#include "bench/tdmpc_workload.h"

namespace msrl::bench {
namespace {

EnvSpec Spec() {
  EnvSpec spec;
  spec.id = "bench";
  spec.observation_size = kTdMpcObservation;
  spec.action = {ActionKind::kContinuous, kTdMpcAction};
  spec.step_limit = 1000;
  return spec;
}

void TdMpcUpdate(benchmark::State& state) {
  TdMpc agent(Spec(), TdMpcWorkload(), 0);
  SequenceBatch batch = agent.MakeBatch();
  Rng rng(0, "batch");
  for (float& v : batch.observation.reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
  for (float& v : batch.action.reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
  for (float& v : batch.reward) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
  batch.continues.setOnes();
  batch.inside.setOnes();
  for (auto _ : state) agent.UpdateOn(batch);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TdMpcUpdate)->Unit(benchmark::kMillisecond);

void TdMpcPlan(benchmark::State& state) {
  const EnvSpec spec = Spec();
  TdMpc agent(spec, TdMpcWorkload(), 0);
  const std::unique_ptr<Carry> carry = agent.MakeCarry();
  const SegmentMatrix matrix(CompactLift());
  const Eigen::VectorXd observation = Eigen::VectorXd::Constant(kTdMpcObservation, 0.3);
  const Eigen::VectorXd geometry = Eigen::VectorXd::Zero(kGeometrySize);
  const Situation situation{
      {observation.data(), observation.size()}, {geometry.data(), geometry.size()}, matrix, 0};
  Rng rng(0, "policy");
  ActionBuffer action(spec.action);
  agent.Act({situation, *carry, rng, action}, ActMode::kExplore);  // the random step
  agent.Observe({.before = situation,
                 .action = action.view(),
                 .action_code = {},
                 .reward = 0.0,
                 .scaled_reward = 0.0,
                 .psi = {},
                 .after = situation},
                *carry);
  for (auto _ : state) {
    agent.Act({situation, *carry, rng, action}, ActMode::kExplore);
    benchmark::DoNotOptimize(action.values().data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TdMpcPlan)->Unit(benchmark::kMillisecond);

}  // namespace

std::vector<Promise> Promises() {
  return {{"TD-MPC2 update, compact: agent vs libtorch modules", "TdMpcModulesUpdate",
           "TdMpcUpdate", 2.5},
          {"TD-MPC2 planning step, compact: agent vs libtorch modules", "TdMpcModulesPlan",
           "TdMpcPlan", 2.5}};
}

}  // namespace msrl::bench
