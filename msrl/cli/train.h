// msrl train and msrl resume.
#ifndef MSRL_CLI_TRAIN_H_
#define MSRL_CLI_TRAIN_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Add the subcommands; each runs when chosen.
void AddTrain(CLI::App& app);
void AddResume(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_TRAIN_H_
