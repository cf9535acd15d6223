// msrl library: makes segment libraries from episode files and looks into them.
#ifndef APPS_MSRL_LIBRARY_H_
#define APPS_MSRL_LIBRARY_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddLibrary(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_LIBRARY_H_
