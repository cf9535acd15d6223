// msrl pretrain: the matrix-value branch, trained on source episodes.
#ifndef APPS_MSRL_PRETRAIN_H_
#define APPS_MSRL_PRETRAIN_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddPretrain(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_PRETRAIN_H_
