// How a model over aligned slots, which is carried from task to task, sees a task and acts in it.
#ifndef MSRL_AGENTS_COMMON_SLOT_VIEW_H_
#define MSRL_AGENTS_COMMON_SLOT_VIEW_H_

#include <Eigen/Core>
#include <span>

#include "msrl/agents/agent.h"
#include "msrl/agents/common/aligned_channels.h"
#include "msrl/env/spec.h"

namespace msrl {

// What an agent sees of a state: its observation or, `aligned`, what all tasks share above that.
inline int SeenSize(const EnvSpec& spec, bool aligned) {
  return spec.observation_size + (aligned ? kStateChannels : 0);
}
// The next state of an episode, in `seen` (of SeenSize) if it is aligned. The same state again
// changes nothing.
EnvView See(const Situation& situation, bool aligned, ChannelWriter& writer,
            std::span<double> seen);

// Where the dimensions of an action go in the code that all tasks share, code x dimensions; those
// with one entry as their mean. UserError if there are more than entries.
Eigen::MatrixXf SlotsOf(const EnvSpec& spec);

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_SLOT_VIEW_H_
