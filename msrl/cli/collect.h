// msrl collect: source episodes with values, in a file.
#ifndef MSRL_CLI_COLLECT_H_
#define MSRL_CLI_COLLECT_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddCollect(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_COLLECT_H_
