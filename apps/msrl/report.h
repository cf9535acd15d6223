// msrl report: what a folder of runs shows.
#ifndef APPS_MSRL_REPORT_H_
#define APPS_MSRL_REPORT_H_

#include <CLI/CLI.hpp>

namespace msrl::app {

void AddReport(CLI::App& app);

}  // namespace msrl::app

#endif  // APPS_MSRL_REPORT_H_
