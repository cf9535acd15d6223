// The report's page without data, built from msrl/report/page.
#ifndef MSRL_REPORT_PAGE_TEMPLATE_H_
#define MSRL_REPORT_PAGE_TEMPLATE_H_

#include <string_view>

namespace msrl::report {

// A whole HTML file with one place for the data (FillPage). Empty if this msrl was built without
// npm.
std::string_view PageTemplate();

}  // namespace msrl::report

#endif  // MSRL_REPORT_PAGE_TEMPLATE_H_
