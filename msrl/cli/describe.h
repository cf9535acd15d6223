// msrl describe: what the matrix of a trajectory says.
#ifndef MSRL_CLI_DESCRIBE_H_
#define MSRL_CLI_DESCRIBE_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddDescribe(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_DESCRIBE_H_
