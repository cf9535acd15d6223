// msrl envs: the environments and their options.
#ifndef APPS_MSRL_ENVS_H_
#define APPS_MSRL_ENVS_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddEnvs(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_ENVS_H_
