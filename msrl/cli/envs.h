// msrl envs: the environments and their options.
#ifndef MSRL_CLI_ENVS_H_
#define MSRL_CLI_ENVS_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddEnvs(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_ENVS_H_
