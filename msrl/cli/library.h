// msrl library: makes segment libraries from episode files and looks into them.
#ifndef MSRL_CLI_LIBRARY_H_
#define MSRL_CLI_LIBRARY_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddLibrary(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_LIBRARY_H_
