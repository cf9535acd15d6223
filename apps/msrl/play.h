// msrl play: one episode, filmed.
#ifndef APPS_MSRL_PLAY_H_
#define APPS_MSRL_PLAY_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddPlay(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_PLAY_H_
