#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "msrl/agents/common/off_policy.h"
#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/msrl/transfer_predictor.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/cli/commands.h"
#include "msrl/cli/option_list.h"
#include "msrl/core/check.h"
#include "msrl/inspect/climb.h"

namespace msrl::cli {
namespace {

struct ProbeOptions : OptionList {
  std::string& env = Required("ENV", "Environment");
  std::string& branch =
      Required("BRANCH", "File of msrl pretrain: a value branch or a goal reading");
  std::vector<std::string>& settings = Repeated("--set", "key=value: an option of the environment");
  int& steps = Option("--steps", "Random steps (default 3000)", 3000, CLI::Range(100, 10'000'000));
  bool& unaligned = Flag("--unaligned", "Take a branch of another lift (a control)");
  ClimbOptions& climb = Fields(ClimbOptions());
};

// What F says about random steps.
TransferPredictor Predict(Env& env, const ValueBranch& branch, const ProbeOptions& options) {
  const EnvSpec& spec = env.spec();
  const Lift::Ptr lift = CompactLift(LiftKindFromName(branch.info().lift_kind));
  OffPolicyConfig config;
  config.replay_size = 2 * options.steps + 2;
  OffPolicyMemory memory(
      spec, config,
      BranchSettings{.lift = lift, .features = branch.info().features, .shape = branch.shape()},
      options.climb.seed);
  EpisodeTracker tracker(spec, lift);
  Rng rng(options.climb.seed, "probe");
  ActionBuffer action(spec.action);
  bool over = true;
  for (int t = 0; t < options.steps; ++t) {
    if (over) {
      env.Reset(rng.NextU64());
      tracker.Begin(env);
    }
    DrawUniformAction(spec.action, rng, action);
    const StepResult result = env.Step(action.view());
    memory.Observe(tracker.Advance(action.view(), result, env));
    over = result.terminated || result.truncated;
  }
  return PredictTransfer(branch, memory.replay());
}

// A way of judging per line.
void PrintClimbs(const ProbeOptions& options, const EnvEntry& entry, const MatrixNetwork& network,
                 std::initializer_list<ClimbBy> ways) {
  const auto make = [&] { return MakeEnv(entry, options.settings); };
  const bool has_success = make()->spec().has_success;
  const bool reading = dynamic_cast<const GoalReading*>(&network) != nullptr;
  fmt::print(
      "\nThe best of {} actions held {} steps in the true simulator, {} episodes, by:\n"
      "  {:<16} {:>10}  {:>8}  {:>7}{}\n",
      options.climb.candidates, options.climb.horizon, options.climb.episodes, "", "return", "s.e.",
      "success", reading ? "  goal told" : "");
  for (const ClimbBy by : ways) {
    const ClimbResult result = Climb(make, network, by, options.climb);
    fmt::print("  {:<16} {:>10.2f}  {:>8.2f}  {:>7}{}\n", EnumName(by), result.mean,
               result.standard_error, has_success ? fmt::format("{:.2f}", result.success) : "-",
               reading ? fmt::format("  {:>9.2f}", result.told) : "");
    std::fflush(stdout);
  }
  if (reading) {
    fmt::print(
        "\nGoal told: share of the variance of the goal's offset that is read from Z (R2).\n");
  }
}

void ProbeBranch(const ProbeOptions& options, const EnvEntry& entry, const Artefact& artefact,
                 LiftId lift) {
  const ValueBranch branch = ValueBranch::From(
      artefact, lift, options.unaligned ? Alignment::kUnaligned : Alignment::kAligned);
  const std::unique_ptr<Env> env = MakeEnv(entry, options.settings);
  const TransferPredictor said = Predict(*env, branch, options);
  fmt::print("{} in {}, over {} random steps:\n", options.branch, options.env, options.steps);
  fmt::print("  F follows progress       {:+.2f}  (correlation over 10 steps)\n", said.correlation);
  fmt::print("  F follows the return     {:+.2f}  (correlation within episodes)\n",
             said.return_correlation);
  if (said.ends > 0) {
    fmt::print("  F before an end          {:+.2f}  amplitudes over the last 10 steps ({} ends)\n",
               said.fall, said.ends);
    fmt::print("  F above its ends         {:+.2f}  amplitudes in the mean (setting height)\n",
               said.height());
  }
  fmt::print("  amplitude                {:.3g}\n", said.amplitude);
  PrintClimbs(options, entry, branch,
              {ClimbBy::kRandom, ClimbBy::kRewards, ClimbBy::kBranch, ClimbBy::kBranchAndRewards,
               ClimbBy::kDistance});
}

void RunProbe(const ProbeOptions& options, const Program& program) {
  const EnvEntry& entry = program.registries.envs.Find(options.env);
  const Artefact artefact = Artefact::Read(options.branch);
  const LiftId lift = CompactLift(LiftKindFromName(artefact.header().lift_kind))->id();
  if (artefact.header().kind != GoalReading::kKind) {
    return ProbeBranch(options, entry, artefact, lift);
  }
  fmt::print("{} in {}\n", options.branch, options.env);
  PrintClimbs(options, entry, GoalReading::From(artefact, lift),
              {ClimbBy::kRandom, ClimbBy::kRewards, ClimbBy::kReading, ClimbBy::kDistance});
}

}  // namespace

void AddProbe(CLI::App& app, const Program& program) {
  AddCommand(
      app, program, "probe",
      "What a value branch or a goal reading knows of a task, in seconds and before any learning",
      RunProbe);
}

}  // namespace msrl::cli
