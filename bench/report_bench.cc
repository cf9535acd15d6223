// How long a report of many runs takes, stage by stage. Makes run directories with made-up results.
//   report_bench [RUNS [FOLDER]]: 500 runs of 100 evaluations and 1,000 metric lines each. With a
//   folder they stay there, for `msrl report FOLDER`.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "msrl/builtin/builtin.h"
#include "msrl/core/rng.h"
#include "msrl/env_list/env_list.h"
#include "msrl/report/analysis.h"
#include "msrl/report/exports.h"
#include "msrl/report/fairness.h"
#include "msrl/report/tables.h"
#include "msrl/testing/synthetic_runs.h"

namespace {

namespace fs = std::filesystem;
using msrl::report::Analysis;
using msrl::report::RunRecords;

constexpr double kWanted = 10.0;  // seconds for 500 runs
constexpr std::int64_t kSteps = 100'000;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Tasks x methods x five seeds.
void Make(const fs::path& folder, int runs) {
  msrl::report::SyntheticSweep sweep;
  sweep.envs = {"antmaze-umaze", "reacher", "walker2d", "hopper", "humanoid"};
  sweep.steps = kSteps;
  sweep.seeds = {100, 101, 102, 103, 104};
  const char* const roles[] = {"transfer", "scratch", "baseline", "control", "ablation"};
  const int methods = std::max(1, runs / 25);
  for (int m = 0; m < methods; ++m) {
    const std::string role = roles[m % 5];
    sweep.methods.push_back(
        {"method-" + std::to_string(m), role == "baseline" ? "sac" : "msrl", role});
  }
  msrl::report::WriteSyntheticSweep(folder, sweep);
  msrl::Rng rng(1, "report-bench");
  for (const std::string& env : sweep.envs) {
    for (const auto& method : sweep.methods) {
      for (const std::uint64_t seed : sweep.seeds) {
        msrl::report::SyntheticRun run{.env = env, .agent = method.agent, .seed = seed};
        run.steps = kSteps;
        run.eval_every = kSteps / 100;
        run.eval_episodes = 10;
        run.metric_lines = 1000;
        if (method.role == "transfer") run.predictor = 0.4;
        const double level = 100.0 * rng.Uniform();
        run.mean_return = [&rng, level](std::int64_t step) {
          return level * (1.0 - std::exp(-4.0 * static_cast<double>(step) / kSteps)) + rng.Normal();
        };
        msrl::report::WriteSyntheticRun(folder / env / method.name / std::to_string(seed), run);
      }
    }
  }
}

}  // namespace

// report_bench [RUNS]
int main(int argc, char** argv) {
  // options of the other benchmarks are a request for a short run
  const bool brief = argc > 1 && argv[1][0] == '-';
  const int runs = brief ? 25 : argc > 1 ? std::atoi(argv[1]) : 500;
  const fs::path folder =
      fs::temp_directory_path() / ("msrl_report_bench_" + std::to_string(getpid()));
  const double begin = Seconds();
  Make(folder, runs);
  const double made = Seconds();
  const RunRecords records = msrl::report::ReadRunRecords(folder, msrl::BuiltinAgents());
  const double read = Seconds();
  const Analysis analysis = msrl::report::Analyse(records, msrl::BuiltinRegistries());
  const double analysed = Seconds();
  const auto fairness = msrl::report::CheckFairness(records, analysis);
  std::size_t bytes = 0;
  for (const auto& table : msrl::report::MakeTables(records, analysis, fairness)) {
    bytes += msrl::report::ToText(table).size();
  }
  const double printed = Seconds();
  const std::size_t page =
      msrl::report::ToPageData(records, analysis, fairness, {}, {"", "", {}}).size();
  const double done = Seconds();
  std::printf(
      "%zu runs (made in %.1f s): records %.2f s, analysis %.2f s, tables %.2f s (%zu kB), ",
      records.runs.size(), made - begin, read - made, analysed - read, printed - analysed,
      bytes / 1000);
  std::printf("page data %.2f s (%zu kB); in all %.2f s (wanted: %.0f)\n", done - printed,
              page / 1000, done - made, kWanted);
  fs::remove_all(folder);
  return done - made < kWanted ? 0 : 1;
}
