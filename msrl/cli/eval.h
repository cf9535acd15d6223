// msrl eval: how good the agent of a run is.
#ifndef MSRL_CLI_EVAL_H_
#define MSRL_CLI_EVAL_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddEval(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_EVAL_H_
