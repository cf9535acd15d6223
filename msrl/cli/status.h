// msrl status: what is done, under way and left of a sweep.
#ifndef MSRL_CLI_STATUS_H_
#define MSRL_CLI_STATUS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "msrl/sweep/ledger.h"

namespace msrl::app {

// Adds the subcommand; it runs when chosen.
void AddStatus(CLI::App& app);

// "12 s", "3:20 min", "2:05 h".
std::string Duration(double seconds);

// A row per environment and method: how many runs are finished, failed and so on, and the mean
// return of the last evaluations of those that are finished.
std::string SummaryTable(const Ledger& ledger);
// A line per failure, and one for what waits for it.
std::string FailureList(const Ledger& ledger);

}  // namespace msrl::app

#endif  // MSRL_CLI_STATUS_H_
