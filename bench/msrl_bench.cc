// What the matrix costs: an update of MSRL over SAC against SAC's, and a planned step against the
// policy's own. Both sides in turn, sampling included, after real experience.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>

#include "bench/ratio_main.h"
#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/msrl/msrl.h"
#include "msrl/agents/sac/sac.h"
#include "msrl/core/text.h"
#include "msrl/env_list/env_list.h"

namespace msrl::bench {
namespace {

constexpr int kWarmUp = 6000;  // steps before the measurement: the library is full
constexpr int kTurn = 20;      // calls of one side before the other's

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

SacConfig BaseConfig(int width) {
  SacConfig config;
  config.hidden_width = width;
  config.batch_size = 128;
  config.replay_size = 100'000;
  config.random_steps = kWarmUp;
  return config;
}

// What becomes of F in the critic.
enum class Branch { kLearns, kStays, kIsGone };

// An agent in its environment.
class Player {
 public:
  // SAC, or MSRL over it with a plan.
  Player(const std::string& env, std::optional<PlanKind> plan, int width,
         Branch branch = Branch::kLearns)
      : env_(MakeEnv(env)) {
    MsrlConfig<SacConfig> config;
    static_cast<SacConfig&>(config) = BaseConfig(width);
    if (plan) {
      config.plan = *plan;
      config.branch_steps = branch == Branch::kLearns ? 0 : 1;
      config.branch_fade = branch == Branch::kIsGone ? 1 : 0;
      config.model.model.first_updates = 20;
      agent_ = std::make_unique<MsrlOver<Sac, SacConfig>>(env_->spec(), config, 0);
    } else {
      agent_ = std::make_unique<Sac>(env_->spec(), config, 0);
    }
    tracker_.emplace(env_->spec(), *agent_);
    action_.emplace(env_->spec().action);
    env_->Reset(0);
    tracker_->Begin(*env_);
    for (int i = 0; i <= kWarmUp; ++i) Step();
    Update();
  }

  void Act() { agent_->Act(tracker_->turn(policy_, *action_), ActMode::kExplore); }
  void Update() { agent_->Update(); }
  void Step() {
    Act();
    const StepResult result = env_->Step(action_->view());
    agent_->Observe(tracker_->Advance(action_->view(), result, *env_), tracker_->carry());
    if (result.terminated || result.truncated) {
      env_->Reset(++seed_);
      tracker_->Begin(*env_);
    }
  }

 private:
  std::unique_ptr<Env> env_;
  std::unique_ptr<Agent> agent_;
  std::optional<EpisodeTracker> tracker_;
  std::optional<ActionBuffer> action_;
  Rng policy_{0, "policy"};
  std::uint64_t seed_ = 0;
};

template <typename F>
double Seconds(const F& call) {
  const double begin = ProcessorSeconds();
  for (int i = 0; i < kTurn; ++i) call();
  return ProcessorSeconds() - begin;
}

void Update(benchmark::State& state, const std::string& env, PlanKind plan,
            Branch branch = Branch::kLearns) {
  const auto width = static_cast<int>(state.range(0));
  Player sac(env, std::nullopt, width);
  Player msrl(env, plan, width, branch);
  double sac_seconds = 0.0;
  double msrl_seconds = 0.0;
  for (auto _ : state) {
    sac_seconds += Seconds([&] { sac.Update(); });
    msrl_seconds += Seconds([&] { msrl.Update(); });
  }
  const auto count = static_cast<double>(state.iterations() * kTurn);
  state.counters["ratio"] = sac_seconds / msrl_seconds;
  state.counters["cost"] = msrl_seconds / sac_seconds;
  state.counters["msrl_updates_per_s"] = count / msrl_seconds;
  state.counters["sac_updates_per_s"] = count / sac_seconds;
}

// A step of acting, by the policy and with a plan; against `most` microseconds for what the plan
// takes beyond `policies` times the policy's own.
void Plan(benchmark::State& state, const std::string& env, PlanKind plan, double policies,
          double most) {
  const auto width = static_cast<int>(state.range(0));
  Player sac(env, std::nullopt, width);
  Player msrl(env, plan, width);
  double sac_seconds = 0.0;
  double msrl_seconds = 0.0;
  for (auto _ : state) {
    sac_seconds += Seconds([&] { sac.Act(); });
    msrl_seconds += Seconds([&] { msrl.Act(); });
    // other places, same experience for both
    for (int i = 0; i < kTurn; ++i) {
      sac.Step();
      msrl.Step();
    }
  }
  const auto count = static_cast<double>(state.iterations() * kTurn);
  const double act = 1e6 * sac_seconds / count;
  const double planned = 1e6 * msrl_seconds / count;
  const double beyond = planned - policies * act;
  state.counters["act_us"] = act;
  state.counters["plan_us"] = planned;
  state.counters["beyond_us"] = beyond;
  state.counters["ratio"] = most / std::max(1e-9, beyond);
}

// Bytes of features and matrices for 100,000 transitions in the widest action code.
void MatrixState(benchmark::State& state) {
  const auto env = MakeEnv("humanoid");
  MsrlSettings settings;
  OffPolicyConfig config;
  config.replay_size = 100'000;
  double bytes = 0.0;
  for (auto _ : state) {
    const OffPolicyMemory memory(env->spec(), config, MakeBranchSettings(settings), 0);
    bytes = static_cast<double>(memory.replay().MatrixBytes());
  }
  state.counters["MB"] = bytes / 1e6;
  state.counters["ratio"] = 70e6 / bytes;
}
BENCHMARK(MatrixState)->Unit(benchmark::kMillisecond);

void Widths(benchmark::internal::Benchmark* benchmark) {
  for (const int width : {64, 128, 256}) benchmark->Arg(width);
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(Update, hopper, "hopper", PlanKind::kOff)->Apply(Widths);
BENCHMARK_CAPTURE(Update, reacher, "reacher", PlanKind::kOff)->Apply(Widths);
BENCHMARK_CAPTURE(Update, hopper_stays, "hopper", PlanKind::kOff, Branch::kStays)->Apply(Widths);
BENCHMARK_CAPTURE(Update, hopper_gone, "hopper", PlanKind::kOff, Branch::kIsGone)->Apply(Widths);
BENCHMARK_CAPTURE(Update, hopper_model, "hopper", PlanKind::kModel)->Apply(Widths);
BENCHMARK_CAPTURE(Plan, library, "hopper", PlanKind::kLibrary, 2.0, 60.0)->Apply(Widths);
BENCHMARK_CAPTURE(Plan, model, "hopper", PlanKind::kModel, 0.0, 150.0)->Apply(Widths);

}  // namespace

std::vector<Promise> Promises() {
  std::vector<Promise> list;
  for (const char* env : {"hopper", "reacher"}) {
    for (const int width : {64, 128, 256}) {
      list.push_back({StrCat("SAC update / MSRL update, ", env, ", width ", width), "",
                      StrCat("Update/", env, "/", width), 1.0 / 1.3});
    }
  }
  for (const int width : {64, 128, 256}) {
    list.push_back({StrCat("60 us / (step with the library - 2 x policy step), width ", width), "",
                    StrCat("Plan/library/", width), 1.0});
  }
  list.push_back({"150 us / step with the model, width 64", "", "Plan/model/64", 1.0});
  list.push_back({"70 MB / matrix state of 100,000 transitions", "", "MatrixState", 1.0});
  return list;
}

}  // namespace msrl::bench
