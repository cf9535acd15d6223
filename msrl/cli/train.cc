#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/progress.h"
#include "msrl/core/check.h"
#include "msrl/run/runner.h"
#include "msrl/run/start_from.h"
#include "msrl/run/stop_signal.h"

namespace msrl::cli {
namespace {

constexpr const char* kCheckpointHelp =
    "Steps (5000) or time (90s, 5m) between checkpoints (default 300s)";

struct TrainOptions : OptionList {
  std::string& env = Required("--env", "Environment");
  std::string& agent = Required("--agent", "Agent");
  std::string& run = Text("--run", "Directory (default runs/ENV/AGENT/SEED)");
  std::string& init = Text("--init", "Branch (pretrain --out) that the critic starts from");
  bool& unaligned = Flag("--unaligned", "Take a branch of another lift (a control)");
  std::string& library =
      Text("--library", "Segments that the agent starts with: a library, or a run that has one");
  std::vector<std::string>& settings = Repeated("--set", "key=value: setting of the agent");
  std::vector<std::string>& env_settings = Repeated("--env-set", "key=value: option of the env");
  RunSpec& spec = Fields(RunSpec());  // the others of its fields
  std::string& checkpoint_every = Text("--checkpoint-every", kCheckpointHelp, "300s");
};

struct ResumeOptions : OptionList {
  std::string& run = Required("DIR", "Directory of the run");
  std::int64_t& steps =
      Option<std::int64_t>("--steps", "A new budget of environment steps", 0, CLI::PositiveNumber);
  std::string& checkpoint_every = Text("--checkpoint-every", kCheckpointHelp, "300s");
  bool& lost_lines =
      Flag("--lost-lines", "Continue though lines of metrics.jsonl or evals.jsonl are gone");
  bool& same_version = Flag("--same-version", "Refuse to continue what another msrl began");
};

// "5000" is steps; "90s" and "5m" are times.
RunOptions ParseCheckpointEvery(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const bool steps = unit.empty() && value >= 1.0 && value <= 1e12 &&
                     value == static_cast<double>(static_cast<std::int64_t>(value));
  const bool time = (unit == "s" || unit == "m") && value >= 0.0 && value <= 1e9;
  if (error != std::errc() || (!steps && !time)) {
    throw UserError(
        StrCat("--checkpoint-every '", text, "' is neither steps (5000) nor a time (90s, 5m)"));
  }
  RunOptions options;
  if (steps) options.checkpoint_steps = static_cast<std::int64_t>(value);
  if (time) options.checkpoint_seconds = unit == "m" ? 60.0 * value : value;
  return options;
}

std::string Describe(const RunProgress& progress) {
  const double share = static_cast<double>(progress.step) / static_cast<double>(progress.steps);
  std::string text =
      fmt::format("step {} of {} ({:.0f} %)", progress.step, progress.steps, 100.0 * share);
  if (progress.evaluating) text += "  evaluating";
  if (progress.steps_per_second) {
    text += fmt::format("  training {:.0f} steps/s", *progress.steps_per_second);
  }
  if (progress.last_return) text += fmt::format("  return {:.4g}", *progress.last_return);
  if (progress.last_eval_return) {
    text += fmt::format("  evaluation {:.4g}", *progress.last_eval_return);
  }
  if (progress.seconds_left) text += "  " + Duration(*progress.seconds_left) + " left";
  return text;
}

void Carry(RunDirectory& directory, RunOptions options, const Program& program) {
  LiveText display;
  RunProgress last;
  options.on_progress = [&](const RunProgress& now) {
    last = now;
    if (display.Due(now.seconds)) display.Show({Describe(now)});
  };
  options.on_warning = [&](const std::string& text) { display.Say(program.name + ": " + text); };
  options.on_notice = [&display](const std::string& text) { display.Say(text); };
  options.stop = StopRequested;
  InstallStopSignals();
  Runner runner(directory, program.registries, std::move(options));
  const std::string path = directory.path().string();
  if (runner.step() > 0 && runner.step() < directory.spec().steps) {
    display.Say(fmt::format("going on at step {}", runner.step()));
  }
  const RunOutcome outcome = runner.Run();
  display.Clear();
  switch (outcome) {
    case RunOutcome::kAlreadyFinished:
      fmt::print("{} has finished its {} steps; for more: {} resume {} --steps N\n", path,
                 directory.spec().steps, program.name, path);
      return;
    case RunOutcome::kFinished:
      fmt::print(
          "finished {} steps in {}, {:.0f} % of it evaluations{}: {}\n", runner.step(),
          Duration(last.seconds), 100.0 * last.evaluation_seconds / std::max(1e-9, last.seconds),
          last.last_eval_return ? fmt::format(", evaluation return {:.4g}", *last.last_eval_return)
                                : "",
          path);
      return;
    case RunOutcome::kInterrupted:
      display.Say(fmt::format("stopped at step {} with a checkpoint; continue with: {} resume {}",
                              runner.step(), program.name, path));
      throw ExitRequest{kInterrupted};
  }
}

void RunTrain(TrainOptions& options, const Program& program) {
  RunOptions how = ParseCheckpointEvery(options.checkpoint_every);
  options.spec.env = options.env;
  options.spec.env_settings = options.env_settings;
  options.spec.agent = options.agent;
  options.spec.agent_settings = options.settings;
  RunStart start;
  if (options.unaligned && options.init.empty()) {
    throw UserError("--unaligned says how to take --init, which is missing");
  }
  if (!options.init.empty()) {
    const Artefact artefact = Artefact::Read(options.init);
    StartFrom(artefact, options.unaligned, program.registries, options.spec);
    start.init = artefact.contents();
  }
  if (!options.library.empty()) {
    start.library = SegmentsFile(options.library, program.warn);
    StartWithSegments(start.library, options.library, program.registries, options.spec);
  }
  const RunSpec spec = Resolve(options.spec, program.registries);
  if (options.run.empty())
    options.run = fmt::format("runs/{}/{}/{}", spec.env, spec.agent, spec.seed);
  RunDirectory directory = RunDirectory::Create(options.run, spec, program.registries, start);
  Carry(directory, std::move(how), program);
}

void RunResume(const ResumeOptions& options, const Program& program) {
  RunOptions how = ParseCheckpointEvery(options.checkpoint_every);
  RunDirectory directory = RunDirectory::OpenForWriting(options.run);
  const CodeRecord& last = directory.code().back();
  const CodeRecord ours = ThisCode(program.registries, 0);
  if (options.same_version && !last.SameCode(ours)) {
    throw UserError(StrCat(options.run, " was made by ", last.Describe(), ", this is ",
                           ours.Describe(), "; without --same-version it continues all the same"));
  }
  if (options.steps > 0 && options.steps != directory.spec().steps) {
    directory.SetSteps(options.steps, program.registries);
  }
  if (options.lost_lines) how.lost_lines = LostLines::kGoOnWithout;
  Carry(directory, std::move(how), program);
}

}  // namespace

void AddTrain(CLI::App& app, const Program& program) {
  CLI::App* train = AddCommand(app, program, "train", "Train an agent in an environment", RunTrain);
  train->get_option("--steps")->required();
  train->footer(
      "Ctrl-C writes a checkpoint and stops; the command resume continues with the same results.\n"
      "The commands agents and envs list what there is, config AGENT its settings.");
  AddCommand(app, program, "resume", "Continue a run that was stopped or killed", RunResume);
}

}  // namespace msrl::cli
