// msrl play: one episode, filmed.
#ifndef MSRL_CLI_PLAY_H_
#define MSRL_CLI_PLAY_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddPlay(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_PLAY_H_
