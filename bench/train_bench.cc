// Whole training: environment, tracking, acting, storing and one update per step, after the
// warm-up.
#include <benchmark/benchmark.h>

#include "bench/ratio_main.h"
#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/registry.h"
#include "msrl/core/text.h"
#include "msrl/env_list/env_list.h"

namespace msrl::bench {
namespace {

constexpr int kWarmUp = 1000;

void Train(benchmark::State& state, const std::string& agent_id, const std::string& env_id) {
  const auto env = MakeEnv(env_id);
  const std::vector<std::string> settings = {StrCat("hidden_width=", state.range(0)),
                                             StrCat("batch_size=", state.range(1)),
                                             StrCat("random_steps=", kWarmUp)};
  const auto agent = MakeAgent(BuiltinAgents().Find(agent_id), env->spec(), settings, 0);
  EpisodeTracker tracker(env->spec(), *agent);
  ActionBuffer action(env->spec().action);
  Rng policy(0, "policy");
  std::uint64_t seed = 0;
  env->Reset(seed);
  tracker.Begin(*env);
  const auto step = [&] {
    agent->Act(tracker.turn(policy, action), ActMode::kExplore);
    const StepResult result = env->Step(action.view());
    agent->Observe(tracker.Advance(action.view(), result, *env), tracker.carry());
    agent->Update();
    if (result.terminated || result.truncated) {
      env->Reset(++seed);
      tracker.Begin(*env);
    }
  };
  for (int i = 0; i < kWarmUp; ++i) step();
  for (auto _ : state) step();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(Train, sac_hopper, "sac", "hopper")
    ->Args({64, 128})
    ->Args({128, 128})
    ->Args({128, 256})
    ->Args({256, 256})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Train, td3_hopper, "td3", "hopper")
    ->Args({128, 128})
    ->Args({256, 256})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Train, sac_reacher, "sac", "reacher")
    ->Args({64, 128})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

// Rates, not ratios.
std::vector<Promise> Promises() { return {}; }

}  // namespace msrl::bench
