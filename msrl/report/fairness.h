// The paper's fairness checklist ("Transfer fairness checklist"), worked out from what the runs
// recorded about themselves.
#ifndef MSRL_REPORT_FAIRNESS_H_
#define MSRL_REPORT_FAIRNESS_H_

#include <optional>
#include <string>
#include <vector>

#include "msrl/report/analysis.h"

namespace msrl::report {

struct FairnessItem {
  std::string item = {};        // what is controlled, as the paper calls it
  std::optional<bool> ok = {};  // empty: not applicable
  std::string found = {};       // in words, with numbers
};

// The paper's nine items, then one of our own: the code version.
std::vector<FairnessItem> CheckFairness(const RunRecords& records, const Analysis& analysis);

}  // namespace msrl::report

#endif  // MSRL_REPORT_FAIRNESS_H_
