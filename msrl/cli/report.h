// msrl report: what a folder of runs shows.
#ifndef MSRL_CLI_REPORT_H_
#define MSRL_CLI_REPORT_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddReport(CLI::App& app);

}  // namespace msrl::app

#endif  // MSRL_CLI_REPORT_H_
