// What a reader must know before the figures: policies that do nothing and lead, and windows that
// are filled with random steps.
#ifndef MSRL_REPORT_CAUTIONS_H_
#define MSRL_REPORT_CAUTIONS_H_

#include "msrl/report/analysis.h"

namespace msrl::report {

// From this share of the few-shot window on, random steps before learning are worth a word.
inline constexpr double kMuchWarmUp = 0.1;

// Fills in the cautions of an analysis whose runs are scored.
void AddCautions(Analysis& analysis);

}  // namespace msrl::report

#endif  // MSRL_REPORT_CAUTIONS_H_
