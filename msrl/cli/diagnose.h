// msrl diagnose: what the descriptor shows of the source environments.
#ifndef MSRL_CLI_DIAGNOSE_H_
#define MSRL_CLI_DIAGNOSE_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddDiagnose(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_DIAGNOSE_H_
