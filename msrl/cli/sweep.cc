#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/progress.h"
#include "msrl/cli/status.h"
#include "msrl/core/check.h"
#include "msrl/run/stop_signal.h"
#include "msrl/sweep/local_pool.h"
#include "msrl/sweep/slurm.h"

namespace msrl::cli {
namespace {

namespace fs = std::filesystem;
using State = TaskEntry::State;

struct SweepArguments : OptionList {
  std::string& spec = Required("SPEC", "File (TOML) or preset");
  std::string& out = Text("--out", "Directory (default runs/NAME)");
  std::string& executor = Option<std::string>("--executor", "local | slurm (default local)",
                                              "local", CLI::IsMember({"local", "slurm"}));
  int& jobs =
      Option("--jobs", "Processes at a time (default: one per core)", 0, CLI::Range(1, 10'000));
  double& checkpoint_seconds =
      Option("--checkpoint-seconds", "Time between checkpoints of a run (default 60)",
             PoolOptions().checkpoint_seconds, CLI::NonNegativeNumber);
  std::vector<std::string>& only =
      Repeated("--only", "Only these: env=NAME,method=NAME,seed=NUMBER, each any number of times");
  std::string& partition = Text("--partition", "Slurm: partition");
  std::string& time = Text("--time", "Slurm: time limit; what is cut continues later");
  std::string& memory = Text("--mem", "Slurm: memory per task, e.g. 4G");
  std::vector<std::string>& slurm_arguments =
      Repeated("--slurm-arg", "Slurm: an option for sbatch");
  bool& dry_run = Flag("--dry-run", "Check everything, say what would be done");
  bool& retry = Flag("--retry", "Also those that failed before");
  bool& fail_fast = Flag("--fail-fast", "Stop at the first failure");
  bool& any_version = Flag("--any-version", "Continue runs that another msrl began");

  bool on_slurm() const { return executor == "slurm"; }
};

// Folders that hold presets, the first that has one wins.
std::vector<fs::path> PresetFolders(const Program& program) {
  std::vector<fs::path> folders;
  if (const char* chosen = std::getenv("MSRL_CONFIGS")) folders.emplace_back(chosen);
  folders.push_back(fs::path(program.file).parent_path().parent_path() / MSRL_DATA_DIR / "configs");
  folders.emplace_back(MSRL_SOURCE_CONFIGS);
  return folders;
}

fs::path FindSpec(const std::string& name, const Program& program) {
  std::error_code error;
  if (fs::is_regular_file(name, error)) return name;
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) {
    throw UserError(StrCat("there is no file ", name));
  }
  for (const fs::path& folder : PresetFolders(program)) {
    const fs::path file = folder / (name + ".toml");
    if (fs::is_regular_file(file, error)) return file;
  }
  const std::vector<std::string> known = Presets(program);
  throw UserError(
      StrCat("'", name, "' is neither a file nor a preset", DidYouMean(name, known),
             known.empty() ? "" : fmt::format(" (presets: {})", fmt::join(known, ", "))));
}

std::string Describe(const TaskEntry& entry) {
  std::string text = "  " + entry.task.path;
  if (entry.state == State::kElsewhere) {
    return text + "  " + entry.record.holder.value_or(LeaseHolder{}).Describe();
  }
  if (entry.task.kind == SweepTask::Kind::kRun && entry.record.steps > 0) {
    text += fmt::format("  step {} of {}", entry.record.step, entry.record.steps);
  }
  if (entry.record.steps_per_second > 0.0) {
    text += fmt::format("  {:.0f} steps/s", entry.record.steps_per_second);
  }
  return text + "  " + Duration(SecondsSince(entry.started));
}

// A line about the sweep, on a terminal with some about what is under way.
std::vector<std::string> Overview(const Ledger& ledger, int jobs, double seconds, bool terminal) {
  constexpr std::size_t kMostTasks = 12;
  constexpr std::size_t kWidth = 110;
  const TaskCounts runs = ledger.Runs();
  const TaskCounts preparations = ledger.Preparations();
  std::string text = fmt::format("{} of {} runs done, {} running, {} failed, {} waiting", runs.done,
                                 runs.total(), runs.running, runs.failed, runs.waiting);
  if (preparations.done < preparations.total()) {
    text += fmt::format("; {} of {} preparations done", preparations.done, preparations.total());
  }
  text += "  " + Duration(seconds);
  if (const auto left = ledger.SecondsLeft(jobs)) text += ", about " + Duration(*left) + " left";
  if (!terminal) return {text};
  std::vector<std::string> lines{text.substr(0, kWidth)};
  for (const TaskEntry& entry : ledger.entries()) {
    if (entry.state != State::kRunning && entry.state != State::kElsewhere) continue;
    if (lines.size() > kMostTasks) break;
    lines.push_back(Describe(entry).substr(0, kWidth));
  }
  return lines;
}

// What would be done, and what is there already.
void PrintPlan(const Ledger& ledger) {
  const SweepPlan& plan = ledger.plan();
  std::int64_t steps = 0;
  for (const TaskEntry& entry : ledger.entries()) {
    if (!entry.wanted || entry.task.kind != SweepTask::Kind::kRun) continue;
    if (entry.state == State::kDone) continue;
    steps += plan.envs[plan.runs[entry.task.item].env].steps - entry.record.step;
  }
  const TaskCounts preparations = ledger.Preparations();
  fmt::print("{}: environments {}, methods {}, seeds {}\n\n{}\n", plan.name, plan.envs.size(),
             plan.methods.size(), plan.seeds.size(), SummaryTable(ledger));
  for (const TaskEntry& entry : ledger.entries()) {
    if (entry.task.kind == SweepTask::Kind::kRun || !entry.wanted) continue;
    fmt::print("{} {}\n", entry.state == State::kDone ? "there  " : "to make", entry.task.path);
  }
  const TaskCounts runs = ledger.Runs();
  fmt::print("{}{} of {} runs to do, {} steps; nothing was changed\n",
             preparations.total() > 0 ? "\n" : "", runs.total() - runs.done, runs.total(), steps);
}

std::vector<std::string> SbatchOptions(const SweepArguments& arguments) {
  std::vector<std::string> options = arguments.slurm_arguments;
  const auto add = [&options](const char* name, const std::string& value) {
    if (!value.empty()) options.push_back(StrCat("--", name, "=", value));
  };
  add("partition", arguments.partition);
  add("time", arguments.time);
  add("mem", arguments.memory);
  return options;
}

// The sweep as a whole, for its records.
std::string CommandOf(const SweepArguments& arguments, const Program& program) {
  std::string command = fmt::format("{} sweep {} --out {}", program.name, Quoted(arguments.spec),
                                    Quoted(arguments.out));
  if (arguments.on_slurm()) command += " --executor slurm";
  if (arguments.jobs > 0) command += fmt::format(" --jobs {}", arguments.jobs);
  const auto add = [&command](const char* name, const std::string& value) {
    if (!value.empty()) command += fmt::format(" --{}={}", name, Quoted(value));
  };
  add("partition", arguments.partition);
  add("time", arguments.time);
  add("mem", arguments.memory);
  for (const std::string& option : arguments.slurm_arguments) add("slurm-arg", option);
  return command;
}

// What to type to go on. Options that are for one time only are left out.
std::string CommandToGoOn(const SweepArguments& arguments, const Program& program) {
  std::string command = CommandOf(arguments, program);
  for (const std::string& only : arguments.only) command += " --only " + Quoted(only);
  if (arguments.any_version) command += " --any-version";
  if (arguments.checkpoint_seconds != PoolOptions().checkpoint_seconds) {
    command += fmt::format(" --checkpoint-seconds {}", arguments.checkpoint_seconds);
  }
  return command;
}

void RunSweep(SweepArguments& arguments, const Program& program) {
  if (arguments.on_slurm()) {
    RequireSlurm();
  } else if (!SbatchOptions(arguments).empty()) {
    throw UserError("--partition, --time, --mem and --slurm-arg need --executor slurm");
  }
  const SweepSpec spec = ReadSweepSpec(FindSpec(arguments.spec, program));
  SweepPlan plan = MakePlan(spec, program.registries);
  if (arguments.out.empty()) arguments.out = "runs/" + plan.name;
  while (arguments.out.size() > 1 && arguments.out.ends_with('/')) arguments.out.pop_back();
  plan.command = CommandOf(arguments, program);
  const std::string only = fmt::format("{}", fmt::join(arguments.only, ","));
  const SweepSelection selection = SweepSelection::Parse(only, plan);
  if (std::none_of(plan.runs.begin(), plan.runs.end(),
                   [&](const PlannedRun& run) { return selection.Has(plan, run); })) {
    throw UserError(StrCat("--only ", only, ": the sweep has no such run"));
  }
  const SweepDirectory directory(arguments.out);
  PrepareOptions prepare;
  prepare.any_version = arguments.any_version;
  prepare.warn = program.warn;
  RequireFits(directory, plan, program.registries, prepare);
  if (arguments.dry_run) {
    PrintPlan(Ledger(directory, plan, selection));
    return;
  }
  InstallStopSignals();
  const Lease lease = TakeDirectory(directory, plan);
  Ledger ledger(directory, plan, selection);
  if (arguments.retry) ledger.Retry();
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int jobs = arguments.jobs > 0 ? arguments.jobs : arguments.on_slurm() ? 0 : cores;
  LiveText display;
  const auto start = std::chrono::steady_clock::now();
  PoolOptions pool;
  pool.worker = {arguments.on_slurm() ? program.file : kThisProgram, "task"};
  pool.jobs = jobs;
  pool.checkpoint_seconds = arguments.checkpoint_seconds;
  pool.any_version = arguments.any_version;
  pool.fail_fast = arguments.fail_fast;
  pool.stop = StopRequested;
  pool.show = [&](const Ledger& now) {
    const double seconds = SecondsSince(start);
    if (!display.Due(seconds)) return;
    display.Show(Overview(now, jobs, seconds, display.terminal()));
  };
  pool.say = [&display](const std::string& text) { display.Say(text); };
  const TaskCounts before = ledger.Runs();
  fmt::print(stderr, "{}: {} runs{} in {}, {}\n", plan.name, before.total(),
             before.done > 0 ? fmt::format(" ({} done before)", before.done) : "", arguments.out,
             arguments.on_slurm() ? "on Slurm" : fmt::format("{} at a time", jobs));
  const SweepOutcome outcome = arguments.on_slurm()
                                   ? RunOnSlurm(ledger, {pool, SbatchOptions(arguments)})
                                   : RunLocally(ledger, pool);
  display.Clear();
  const TaskCounts runs = ledger.Runs();
  const std::string again = CommandToGoOn(arguments, program);
  if (outcome == SweepOutcome::kInterrupted && arguments.on_slurm()) {
    std::string jobs_left;
    for (const std::string& job : SubmittedJobs(directory)) jobs_left += " " + job;
    fmt::print(stderr,
               "stopped watching: {} of {} runs done, jobs stay in the queue (scancel{}); continue "
               "with: {}\n",
               runs.done, runs.total(), jobs_left, again);
    throw ExitRequest{kInterrupted};
  }
  if (outcome == SweepOutcome::kInterrupted) {
    fmt::print(stderr,
               "stopped: {} of {} runs done, the others have checkpoints; continue with: {}\n",
               runs.done, runs.total(), again);
    throw ExitRequest{kInterrupted};
  }
  fmt::print("\n{}\n{} of {} runs finished in {}\n", SummaryTable(ledger), runs.done, runs.total(),
             Duration(SecondsSince(start)));
  if (outcome == SweepOutcome::kFailures) {
    fmt::print("{}logs: {}/logs; try failed ones again: {} --retry\n", FailureList(ledger),
               arguments.out, again);
    std::fflush(stdout);
    throw ExitRequest{kSweepFailures};
  }
  fmt::print("report: {} report {}\n", program.name, Quoted(arguments.out));
}

}  // namespace

std::vector<std::string> Presets(const Program& program) {
  std::vector<std::string> known;
  std::error_code error;
  for (const fs::path& folder : PresetFolders(program)) {
    if (!fs::is_directory(folder, error)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".toml") known.push_back(entry.path().stem().string());
    }
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

void AddSweep(CLI::App& app, const Program& program) {
  CLI::App* command =
      AddCommand(app, program, "sweep",
                 "Environments x methods x seeds, resumable (docs/sweeps.md)", RunSweep);
  command->footer(StrCat(
      "SPEC is a file, or a preset: ", fmt::format("{}", fmt::join(Presets(program), ", ")),
      ".\nThe same command continues where it was stopped or killed: finished runs are kept, "
      "others\n"
      "continue from their checkpoints.\n"
      "Exit codes: 0 all runs finished, 3 some failed, 75 stopped; the same command continues."));
}

}  // namespace msrl::cli
