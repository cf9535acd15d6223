#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"
#include "msrl/run/runner.h"

namespace msrl::cli {
namespace {

struct EvalOptions : OptionList {
  std::string& run = Required("DIR", "Directory of the run");
  int& episodes = Option("--episodes", "Episodes (default 20)", 20, CLI::Range(1, 1'000'000));
  std::uint64_t& seed = Option<std::uint64_t>("--seed", "Which episodes (default 0)", 0);
  int& threads = Option("--threads", "Threads for the episodes (default 1)", 1, CLI::Range(1, 256));
  bool& json = Flag("--json", "As JSON, with every return");
};

void RunEval(const EvalOptions& options, const Program& program) {
  const RunDirectory directory = RunDirectory::OpenForReading(options.run);
  const RunSpec& spec = directory.spec();
  const std::unique_ptr<Agent> agent = LoadAgent(directory, program.registries, program.warn);
  BatchEnv envs = MakeEvaluationEnvs(spec, program.registries, options.episodes, options.threads);
  const EvalResult result =
      Evaluate(*agent, envs, options.episodes, options.seed, "eval-command", {}).value();
  const std::optional<double> normalised = NormalisedReturn(envs.spec(), result.MeanReturn());
  if (options.json) {
    Json json{{"env", spec.env},
              {"agent", spec.agent},
              {"episodes", options.episodes},
              {"seed", options.seed},
              {"mean_return", result.MeanReturn()},
              {"std_return", result.StdReturn()},
              {"mean_length", result.MeanLength()}};
    if (normalised) json["normalised_return"] = *normalised;
    if (result.successes) json["success_rate"] = result.SuccessRate();
    json["returns"] = result.returns;
    json["lengths"] = result.lengths;
    return PrintJson(json);
  }
  fmt::print("{} in {}: {} episodes, seed {}\n", spec.agent, spec.env, options.episodes,
             options.seed);
  fmt::print("  return  {:.4g} ± {:.2g} (mean and standard deviation of episodes)\n",
             result.MeanReturn(), result.StdReturn());
  if (normalised) fmt::print("  normalised return {:.3f}\n", *normalised);
  if (result.successes) fmt::print("  success {:.1f} %\n", 100.0 * result.SuccessRate());
  fmt::print("  length  {:.1f}\n", result.MeanLength());
}

}  // namespace

void AddEval(CLI::App& app, const Program& program) {
  AddCommand(app, program, "eval", "Evaluate the agent of a run, without learning", RunEval);
}

}  // namespace msrl::cli
