// What is done, under way and left of a sweep.
#ifndef MSRL_CLI_STATUS_H_
#define MSRL_CLI_STATUS_H_

#include <string>

#include "msrl/sweep/ledger.h"

namespace msrl::cli {

// A row per environment and method: how many runs are finished, failed and so on, and the mean
// return of the last evaluations of those that are finished.
std::string SummaryTable(const Ledger& ledger);
// A line per failure, and one for what waits for it.
std::string FailureList(const Ledger& ledger);

}  // namespace msrl::cli

#endif  // MSRL_CLI_STATUS_H_
