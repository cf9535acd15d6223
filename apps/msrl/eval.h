// msrl eval: how good the agent of a run is.
#ifndef APPS_MSRL_EVAL_H_
#define APPS_MSRL_EVAL_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddEval(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_EVAL_H_
