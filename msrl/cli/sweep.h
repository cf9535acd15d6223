// msrl sweep: environments x methods x seeds.
#ifndef MSRL_CLI_SWEEP_H_
#define MSRL_CLI_SWEEP_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddSweep(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_SWEEP_H_
