// The page's data: one JSON object, and the page with it.
#ifndef MSRL_REPORT_PAGE_DATA_H_
#define MSRL_REPORT_PAGE_DATA_H_

#include <string>
#include <string_view>
#include <vector>

#include "msrl/report/analysis.h"
#include "msrl/report/exhibits.h"
#include "msrl/report/fairness.h"

namespace msrl::report {

struct PageHeader {
  std::string created = {};  // UTC, ISO 8601
  std::string host = {};
  std::vector<std::string> commands = {};  // that make this report
};

// Format "msrl-report" 1 (docs/report.md). Figures have six significant digits. Always valid
// UTF-8.
std::string ToPageData(const RunRecords& records, const Analysis& analysis,
                       const std::vector<FairnessItem>& fairness, const Exhibits& exhibits,
                       const PageHeader& header);

// The template with the data in it. Nothing in the data can end the script element it is put into:
// every '<' becomes \u003c. InvariantError unless the template has exactly one place for it.
std::string FillPage(std::string_view page_template, std::string_view data);

}  // namespace msrl::report

#endif  // MSRL_REPORT_PAGE_DATA_H_
