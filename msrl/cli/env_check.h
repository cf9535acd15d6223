// msrl env-check: a MuJoCo task against recorded trajectories.
#ifndef MSRL_CLI_ENV_CHECK_H_
#define MSRL_CLI_ENV_CHECK_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddEnvCheck(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_ENV_CHECK_H_
