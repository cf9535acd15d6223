#include "msrl/sweep/task.h"

#include <cstdio>
#include <memory>
#include <string>

#include "msrl/cli/commands.h"
#include "msrl/run/stop_signal.h"
#include "msrl/sweep/local_pool.h"

namespace msrl::cli {
namespace {

struct TaskArguments {
  std::string directory;
  std::string task;
  TaskOptions options;
};

// The log is for people: where it cannot be written, the task goes on.
void Say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void CarryOut(TaskArguments& arguments, const Program& program) {
  InstallStopSignals();
  arguments.options.stop = StopRequested;
  arguments.options.say = Say;
  try {
    const SweepDirectory directory(arguments.directory);
    if (RunTask(directory, arguments.task, program.registries, arguments.options) ==
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
  CLI::App* command = app.add_subcommand("task", "One task of a sweep, which starts these");
  command->group("");  // nothing that one types
  command->footer(
      "Exit codes: 0 it is there, 75 stopped with a checkpoint, 73 another process is at it;\n"
      "all others are failures, with the reason on stderr and in the sweep's logs.");
  const auto arguments = std::make_shared<TaskArguments>();
  command->add_option("DIR", arguments->directory, "Directory of the sweep")->required();
  command->add_option("TASK", arguments->task, "What it makes, e.g. reacher/msrl/100")->required();
  command
      ->add_option("--checkpoint-seconds", arguments->options.checkpoint_seconds,
                   "Time between checkpoints (default 60)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--any-version", arguments->options.any_version,
                    "Go on with a run that another msrl began");
  command->callback([arguments, &program] { CarryOut(*arguments, program); });
}

}  // namespace msrl::cli
