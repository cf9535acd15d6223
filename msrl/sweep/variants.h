// Lists in settings and random search: one [[method]] or [[env]] of the file becomes several.
#ifndef MSRL_SWEEP_VARIANTS_H_
#define MSRL_SWEEP_VARIANTS_H_

#include "msrl/agents/agent.h"
#include "msrl/agents/registry.h"
#include "msrl/sweep/sweep_spec.h"

namespace msrl {

// The same sweep without lists and without a search. An environment or method that has lists is
// there once for each combination of their values, called NAME-KEY-VALUE; a method that is searched
// once for each trial, NAME-trial-1, .... A list in [settings] multiplies the methods whose agent
// has the setting, unless they set it themselves. What is drawn depends on the search's seed, the
// setting and the number of the trial alone: trials of two methods have the same values, and more
// trials or settings change none of the others. UserError "file:line: what".
SweepSpec WithVariants(SweepSpec spec, const AgentRegistry& agents);

}  // namespace msrl

#endif  // MSRL_SWEEP_VARIANTS_H_
