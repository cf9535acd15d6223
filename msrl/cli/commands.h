// The commands. Each function adds its own, which run when chosen and end with an exception if they
// do not succeed (main.cc).
#ifndef MSRL_CLI_COMMANDS_H_
#define MSRL_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "msrl/cli/option_list.h"
#include "msrl/run/registries.h"

namespace msrl::cli {

// This very executable, even if its file is replaced while it runs.
inline constexpr const char* kThisProgram = "/proc/self/exe";

// The program that has the commands. It outlives them.
struct Program {
  std::string name;  // what one types
  std::string file;  // its executable, for other machines and for what is installed beside it
  Registries registries;
  std::function<void(const std::string&)> warn;  // "NAME: text" on stderr
};

void AddAgents(CLI::App& app, const Program& program);
void AddCollect(CLI::App& app, const Program& program);
void AddCompletion(CLI::App& app, const Program& program);
void AddDataset(CLI::App& app, const Program& program);
void AddDescribe(CLI::App& app, const Program& program);
void AddDiagnose(CLI::App& app, const Program& program);
void AddEnvCheck(CLI::App& app, const Program& program);
void AddEnvs(CLI::App& app, const Program& program);
void AddEval(CLI::App& app, const Program& program);
void AddExport(CLI::App& app, const Program& program);
void AddInspect(CLI::App& app, const Program& program);
void AddLibrary(CLI::App& app, const Program& program);
void AddPlay(CLI::App& app, const Program& program);
void AddPretrain(CLI::App& app, const Program& program);
void AddProbe(CLI::App& app, const Program& program);
void AddReplay(CLI::App& app, const Program& program);
void AddReport(CLI::App& app, const Program& program);
void AddStatus(CLI::App& app, const Program& program);
void AddSweep(CLI::App& app, const Program& program);
void AddTask(CLI::App& app, const Program& program);
void AddTrain(CLI::App& app, const Program& program);

// A command that calls `run` with its options (option_list.h) once it is chosen.
template <typename Options>
CLI::App* AddCommand(CLI::App& parent, const Program& program, const char* name,
                     const char* meaning, void (*run)(Options&, const Program&)) {
  CLI::App* command = parent.add_subcommand(name, meaning);
  const std::shared_ptr<Options> options(new std::remove_const_t<Options>{{OptionList{command}}});
  command->callback([options, run, &program] { run(*options, program); });
  return command;
}

// What scripts and schedulers can rely on (docs/running.md).
inline constexpr int kDefect = 1;
inline constexpr int kUserError = 2;
inline constexpr int kSweepFailures = 3;
inline constexpr int kBadNumber = 6;
inline constexpr int kNoSpace = 7;
inline constexpr int kNoMemory = 8;
inline constexpr int kInterrupted = 75;

// Thrown by a command that has said all it has to say, with an exit code that is no error of the
// input.
struct ExitRequest {
  int code;
};

// Sweeps that come along and those of MSRL_CONFIGS, by name.
std::vector<std::string> Presets(const Program& program);

// The word, between quotes if a shell would take it apart.
std::string Quoted(const std::string& word);
// "12 s", "3:20 min", "2:05 h".
std::string Duration(double seconds);

}  // namespace msrl::cli

#endif  // MSRL_CLI_COMMANDS_H_
