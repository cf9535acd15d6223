// msrl agents and msrl config: the agents and their settings.
#ifndef APPS_MSRL_AGENTS_H_
#define APPS_MSRL_AGENTS_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Add the subcommands; each runs when chosen.
void AddAgents(CLI::App& app);
void AddConfig(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_AGENTS_H_
