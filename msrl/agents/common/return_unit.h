// How large the returns of a task are, told by the first of its episodes.
#ifndef MSRL_AGENTS_COMMON_RETURN_UNIT_H_
#define MSRL_AGENTS_COMMON_RETURN_UNIT_H_

#include "msrl/memory/replay.h"

namespace msrl {

// P95 - P5 of the discounted rests of all steps that are kept, as source rewards are scaled
// (msrl/transfer/source_sequences.h): past a truncation an episode goes on with the mean of its
// last 15 rewards. 1 if that is less than 1e-3: nothing to speak of was met yet.
double ReturnUnit(const Replay& replay, double gamma);

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_RETURN_UNIT_H_
