// msrl agents and msrl config: the agents and their settings.
#ifndef MSRL_CLI_AGENTS_H_
#define MSRL_CLI_AGENTS_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Add the subcommands; each runs when chosen.
void AddAgents(CLI::App& app);
void AddConfig(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_AGENTS_H_
