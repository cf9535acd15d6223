// Can obstruction be learned from what is observed where a prefix ends, without the instance?
#ifndef MSRL_DIAGNOSE_LEARNED_OBSTRUCTION_H_
#define MSRL_DIAGNOSE_LEARNED_OBSTRUCTION_H_

#include <cstdint>

#include "msrl/diagnose/diagnostic.h"

namespace msrl::internal {

// AUROC of ridge regression, trained on mazes of the training split, on single transitions appended
// to prefixes in held-out ones; beside it what the transition tells without the observation.
// Transitions as the lift has them: with products of action and displacement, or without.
SeedOutcome LearnedProxy(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind);

}  // namespace msrl::internal

#endif  // MSRL_DIAGNOSE_LEARNED_OBSTRUCTION_H_
