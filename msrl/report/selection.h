// Which variant of a method did best: of lists in settings or of a random search (docs/sweeps.md).
#ifndef MSRL_REPORT_SELECTION_H_
#define MSRL_REPORT_SELECTION_H_

#include "msrl/report/analysis.h"

namespace msrl::report {

// Fills in the selections of an analysis whose runs are scored: one per method of the sweep's file
// that has several variants with a score. Variants are compared by the mean few-shot AUC over the
// tasks and seeds that all of them have; in a single task that cannot be normalised by the few-shot
// return.
void AddSelections(Analysis& analysis);

}  // namespace msrl::report

#endif  // MSRL_REPORT_SELECTION_H_
