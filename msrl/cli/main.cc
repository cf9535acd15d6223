// The command line. Exit codes: 0 done, 1 a defect of ours or a check that failed, 2 a mistake in
// the input, 3 runs of a sweep failed, 6 a number went bad in training, 7 no space on the disk,
// 73 another process is at the task, 75 stopped with a checkpoint.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/cli/agents.h"
#include "msrl/cli/collect.h"
#include "msrl/cli/describe.h"
#include "msrl/cli/diagnose.h"
#include "msrl/cli/env_check.h"
#include "msrl/cli/envs.h"
#include "msrl/cli/eval.h"
#include "msrl/cli/exit_request.h"
#include "msrl/cli/inspect.h"
#include "msrl/cli/library.h"
#include "msrl/cli/play.h"
#include "msrl/cli/pretrain.h"
#include "msrl/cli/report.h"
#include "msrl/cli/status.h"
#include "msrl/cli/sweep.h"
#include "msrl/cli/task.h"
#include "msrl/cli/train.h"
#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/nn/runtime.h"

namespace {

// The message of a parse error, with the nearest known name if an argument is a likely typo.
std::string Explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* chosen = &app;
  int depth = 1;
  for (; !chosen->get_subcommands().empty(); ++depth) chosen = chosen->get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : chosen->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  if (const auto commands = chosen->get_subcommands({}); !commands.empty()) {
    if (depth == argc) return msrl::StrCat(chosen->get_name(), " needs a command");
    for (const CLI::App* command : commands) known.push_back(command->get_name());
    return msrl::StrCat("unknown command '", argv[depth], "'",
                        msrl::DidYouMean(argv[depth], known));
  }
  const std::string message = error.what();
  for (int i = 1; i < argc; ++i) {
    const std::string argument(argv[i]);
    const std::string name = argument.substr(0, argument.find('='));
    const bool unknown = std::find(known.begin(), known.end(), name) == known.end();
    if (name.starts_with("--") && unknown && message.find(name) != std::string::npos) {
      return message + msrl::DidYouMean(name, known);
    }
  }
  return message;
}

// To stderr, come what may: it can be a closed pipe.
int Fail(int code, const std::string& message) {
  std::fputs(("msrl: " + message + "\n").c_str(), stderr);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  msrl::UseOneThread();
  CLI::App app(
      "msrl: Matrix-Space Reinforcement Learning\n\n"
      "Trajectory segments become positive semidefinite matrices M = sum of psi psi^T over their\n"
      "lifted transitions. Matrices add when segments are joined, glue where they overlap, and "
      "can\n"
      "be compared, stored and reused across tasks.",
      "msrl");
  app.set_version_flag("--version", "msrl " MSRL_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Start here:\n"
      "  msrl describe examples/trajectories.jsonl      what a matrix says about a trajectory\n"
      "  msrl diagnose                                  what matrices show of the source tasks\n"
      "  msrl train --env reacher --agent sac --steps 20000       learn a task, a run in runs/\n"
      "  msrl play hopper --video hopper.mp4            watch an environment\n"
      "  msrl describe --help                           input format and options");
  msrl::app::AddDescribe(app);
  msrl::app::AddDiagnose(app);
  msrl::app::AddEnvs(app);
  msrl::app::AddEnvCheck(app);
  msrl::app::AddCollect(app);
  msrl::app::AddPretrain(app);
  msrl::app::AddLibrary(app);
  msrl::app::AddTrain(app);
  msrl::app::AddResume(app);
  msrl::app::AddEval(app);
  msrl::app::AddInspect(app);
  msrl::app::AddAgents(app);
  msrl::app::AddConfig(app);
  msrl::app::AddPlay(app);
  msrl::app::AddSweep(app);
  msrl::app::AddStatus(app);
  msrl::app::AddTask(app);
  msrl::app::AddReport(app);

  if (argc == 1) {
    fmt::print("{}", app.help());
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help and --version
  } catch (const CLI::ParseError& error) {
    return Fail(msrl::app::kUserError, Explain(app, error, argc, argv) + " (see msrl --help)");
  } catch (const msrl::app::ExitRequest& request) {
    return request.code;
  } catch (const msrl::RunError& error) {
    return Fail(msrl::app::kBadNumber, error.what());
  } catch (const msrl::StorageError& error) {
    return Fail(msrl::app::kNoSpace, error.what());
  } catch (const msrl::UserError& error) {
    return Fail(msrl::app::kUserError, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return Fail(msrl::app::kUserError,
                msrl::StrCat(error.path1().string(), ": ", error.code().message()));
  } catch (const std::system_error& error) {
    return Fail(msrl::app::kUserError, msrl::StrCat("cannot write the output: ", error.what()));
  } catch (const std::exception& error) {
    return Fail(msrl::app::kDefect,
                msrl::StrCat("internal error, please report it: ", error.what()));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(msrl::app::kUserError, "cannot write the output");
  }
  return 0;
}
