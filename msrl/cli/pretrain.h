// msrl pretrain: the matrix-value branch, trained on source episodes.
#ifndef MSRL_CLI_PRETRAIN_H_
#define MSRL_CLI_PRETRAIN_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddPretrain(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_PRETRAIN_H_
