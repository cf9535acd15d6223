#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/run/runner.h"

namespace msrl::cli {
namespace {

struct EvalOptions {
  std::string run;
  int episodes = 20;
  std::uint64_t seed = 0;
  int threads = 1;
  bool json = false;
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
    nlohmann::ordered_json json;
    json["env"] = spec.env;
    json["agent"] = spec.agent;
    json["episodes"] = options.episodes;
    json["seed"] = options.seed;
    json["mean_return"] = result.MeanReturn();
    json["std_return"] = result.StdReturn();
    json["mean_length"] = result.MeanLength();
    if (normalised) json["normalised_return"] = *normalised;
    if (result.successes) json["success_rate"] = result.SuccessRate();
    json["returns"] = result.returns;
    json["lengths"] = result.lengths;
    fmt::print("{}\n", json.dump(2));
    return;
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
  CLI::App* command = app.add_subcommand("eval", "Evaluate the agent of a run, without learning");
  const auto options = std::make_shared<EvalOptions>();
  command->add_option("DIR", options->run, "Directory of the run")->required();
  command->add_option("--episodes", options->episodes, "Episodes (default 20)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--seed", options->seed, "Which episodes (default 0)");
  command->add_option("--threads", options->threads, "Threads for the episodes (default 1)")
      ->check(CLI::Range(1, 256));
  command->add_flag("--json", options->json, "As JSON, with every return");
  command->callback([options, &program] { RunEval(*options, program); });
}

}  // namespace msrl::cli
