// Figures over all tasks together: learning curves and performance profiles, as rliable's.
#ifndef MSRL_REPORT_AGGREGATES_H_
#define MSRL_REPORT_AGGREGATES_H_

#include "msrl/report/analysis.h"

namespace msrl::report {

// Fills in aggregate_curves and profiles of an analysis whose runs are scored. Methods that lack a
// finished run in some task are left out: aggregates are always over the same tasks.
void AddAggregates(Analysis& analysis, const BootstrapOptions& bootstrap);

}  // namespace msrl::report

#endif  // MSRL_REPORT_AGGREGATES_H_
