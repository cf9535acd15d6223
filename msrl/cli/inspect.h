// msrl inspect: what the critic of a run has learned about matrices.
#ifndef MSRL_CLI_INSPECT_H_
#define MSRL_CLI_INSPECT_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddInspect(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_INSPECT_H_
