// msrl sweep: environments x methods x seeds.
#ifndef APPS_MSRL_SWEEP_H_
#define APPS_MSRL_SWEEP_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddSweep(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_SWEEP_H_
