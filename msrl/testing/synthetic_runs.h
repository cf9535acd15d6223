// Run directories with made-up results, as a real run leaves them: for tests and benchmarks.
#ifndef MSRL_TESTING_SYNTHETIC_RUNS_H_
#define MSRL_TESTING_SYNTHETIC_RUNS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace msrl::report {

struct SyntheticRun {
  std::string env = "reacher";  // ids in the registries
  std::string agent = "sac";
  std::uint64_t seed = 100;
  std::int64_t steps = 1000;
  std::int64_t eval_every = 100;
  int eval_episodes = 2;
  std::function<double(std::int64_t step)> mean_return = [](std::int64_t) { return 0.0; };
  std::optional<double> success_rate = {};
  std::string state = "finished";
  std::int64_t stop = -1;  // last step; -1: the budget
  int metric_lines = 10;
  std::optional<double> predictor = {};
  std::string init = {};  // contents of the branch file that it started from
};

// Writes run.json, status.json, evals.jsonl, metrics.jsonl and timing.jsonl into the folder.
void WriteSyntheticRun(const std::filesystem::path& folder, const SyntheticRun& run);

struct SyntheticMethod {
  std::string name, agent, role;
  std::string paper = {};
  std::string title = {};
  std::string variant_of = {};
  std::vector<std::string> varied = {};
};

struct SyntheticSweep {
  std::string name = "synthetic";
  std::vector<std::string> envs;
  std::vector<SyntheticMethod> methods;
  std::vector<std::uint64_t> seeds;
  std::int64_t steps = 1000;
};

// Writes sweep.json; its runs are ENV/METHOD/SEED.
void WriteSyntheticSweep(const std::filesystem::path& folder, const SyntheticSweep& sweep);

}  // namespace msrl::report

#endif  // MSRL_TESTING_SYNTHETIC_RUNS_H_
