#include "msrl/sweep/task.h"

#include <cstdio>
#include <string>

#include "msrl/cli/commands.h"
#include "msrl/run/stop_signal.h"
#include "msrl/sweep/local_pool.h"

namespace msrl::cli {
namespace {

struct TaskArguments : OptionList {
  std::string& directory = Required("DIR", "Directory of the sweep");
  std::string& task = Required("TASK", "What it makes, e.g. reacher/msrl/100");
  double& checkpoint_seconds =
      Option("--checkpoint-seconds", "Time between checkpoints (default 60)", 60.0,
             CLI::NonNegativeNumber);
  bool& any_version = Flag("--any-version", "Continue a run that another msrl began");
};

// The log is for people: where it cannot be written, the task goes on.
void Say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void CarryOut(const TaskArguments& arguments, const Program& program) {
  InstallStopSignals();
  const TaskOptions options{.checkpoint_seconds = arguments.checkpoint_seconds,
                            .any_version = arguments.any_version,
                            .stop = StopRequested,
                            .say = Say};
  try {
    const SweepDirectory directory(arguments.directory);
    if (RunTask(directory, arguments.task, program.registries, options) ==
        TaskOutcome::kInterrupted) {
      throw ExitRequest{kTaskInterrupted};
    }
  } catch (const LeaseError& error) {
    Say(error.what());
    throw ExitRequest{kTaskLeased};
  }
}

}  // namespace

void AddTask(CLI::App& app, const Program& program) {
  CLI::App* command =
      AddCommand(app, program, "task", "One task of a sweep, which starts these", CarryOut);
  command->group("");  // nothing that one types
  command->footer(
      "Exit codes: 0 it is there, 75 stopped with a checkpoint, 73 another process is at it;\n"
      "all others are failures, with the reason on stderr and in the sweep's logs.");
}

}  // namespace msrl::cli
