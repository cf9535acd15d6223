// msrl task: one piece of a sweep, as the sweep's workers run it.
#ifndef MSRL_CLI_TASK_H_
#define MSRL_CLI_TASK_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddTask(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_TASK_H_
