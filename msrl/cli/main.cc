#include "msrl/cli/main.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/memory.h"
#include "msrl/nn/runtime.h"
#include "msrl/run/run_spec.h"

namespace msrl::cli {
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
    if (depth == argc) return StrCat(chosen->get_name(), " needs a command");
    for (const CLI::App* command : commands) known.push_back(command->get_name());
    return StrCat("unknown command '", argv[depth], "'", DidYouMean(argv[depth], known));
  }
  const std::string message = error.what();
  for (int i = 1; i < argc; ++i) {
    const std::string argument(argv[i]);
    const std::string name = argument.substr(0, argument.find('='));
    const bool unknown = std::find(known.begin(), known.end(), name) == known.end();
    if (name.starts_with("--") && unknown && message.find(name) != std::string::npos) {
      std::string hint = DidYouMean(name, known);
      if (hint.empty() && std::find(known.begin(), known.end(), "--set") != known.end()) {
        std::string key = name.substr(2);
        std::ranges::replace(key, '-', '_');
        hint = StrCat("; settings are given as --set ", key, "=VALUE");
      }
      return StrCat("unknown option '", name, "'", hint);
    }
  }
  return message;
}

// "msrl train": the command whose help says more.
std::string CommandLine(const CLI::App& app) {
  std::string line = app.get_name();
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    line += " " + command->get_name();
  }
  return line;
}

int Run(int argc, char** argv, const Registries& registries) {
  UseOneThread();
  Program program;
  std::error_code unknown;
  program.file = std::filesystem::read_symlink(kThisProgram, unknown).string();
  if (unknown) program.file = argv[0];
  const bool typed = std::string_view(argv[0]) != kThisProgram;
  program.name = std::filesystem::path(typed ? argv[0] : program.file).filename().string();
  program.registries = registries;
  program.warn = [&program](const std::string& text) {
    std::fputs((program.name + ": " + text + "\n").c_str(), stderr);  // it can be a closed pipe
  };
  const auto fail = [&program](int code, const std::string& message) {
    program.warn(message);
    return code;
  };
  CLI::App app(
      "Matrix-Space Reinforcement Learning\n\n"
      "Trajectory segments become positive semidefinite matrices M = sum of psi psi^T over their\n"
      "lifted transitions. Matrices add when segments are joined, glue where they overlap, and "
      "can\n"
      "be compared, stored and reused across tasks.",
      program.name);
  app.set_version_flag("--version", StrCat("msrl ", BuildVersion()));
  app.require_subcommand(1);
  app.footer(fmt::format(
      "Start here:\n"
      "  {0} describe examples/trajectories.jsonl      what a matrix says about a trajectory\n"
      "  {0} diagnose                                  what matrices show of the source tasks\n"
      "  {0} train --env reacher --agent sac --steps 20000       learn a task, a run in runs/\n"
      "  {0} play hopper --video hopper.mp4            watch an environment\n"
      "  {0} describe --help                           input format and options",
      program.name));
  // in the order of the help
  for (const auto add :
       {AddDescribe, AddDiagnose, AddEnvs,  AddEnvCheck, AddCollect, AddDataset, AddPretrain,
        AddProbe,    AddLibrary,  AddTrain, AddEval,     AddReplay,  AddExport,  AddInspect,
        AddAgents,   AddPlay,     AddSweep, AddStatus,   AddTask,    AddReport,  AddCompletion}) {
    add(app, program);
  }

  if (argc == 1) {
    fmt::print("{}", app.help());
    return 0;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help and --version
  } catch (const CLI::ParseError& error) {
    return fail(kUserError,
                StrCat(Explain(app, error, argc, argv), " (see ", CommandLine(app), " --help)"));
  } catch (const ExitRequest& request) {
    return request.code;
  } catch (const RunError& error) {
    return fail(kBadNumber, error.what());
  } catch (const StorageError& error) {
    return fail(kNoSpace, error.what());
  } catch (const MemoryError& error) {
    return fail(kNoMemory, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kNoMemory, StrCat("there is not enough memory; ", AvailableMemory() / 1'000'000,
                                  " MB are available now"));
  } catch (const UserError& error) {
    return fail(kUserError, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(kUserError, StrCat(error.path1().string(), ": ", error.code().message()));
  } catch (const std::system_error& error) {
    return fail(kUserError, StrCat("cannot write the output: ", error.what()));
  } catch (const std::exception& error) {
    return fail(kDefect, StrCat("internal error, please report it: ", error.what()));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail(kUserError, "cannot write the output");
  }
  return 0;
}

}  // namespace
}  // namespace msrl::cli

namespace msrl {

int Main(int argc, char** argv, const Registries& registries) {
  return cli::Run(argc, argv, registries);
}

}  // namespace msrl
