// msrl collect: source episodes with values, in a file.
#ifndef APPS_MSRL_COLLECT_H_
#define APPS_MSRL_COLLECT_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddCollect(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_COLLECT_H_
