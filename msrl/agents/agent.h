// The interface of every learning agent.
//
// The runner plays the environments: it lifts every transition and accumulates the prefix matrix of
// the episode (EpisodeTracker), in training and in evaluation. So an agent keeps no state of an
// episode, and one agent can act in several environments at once.
#ifndef MSRL_AGENTS_AGENT_H_
#define MSRL_AGENTS_AGENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "msrl/agents/metrics.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/env/env.h"
#include "msrl/files/state.h"

namespace msrl {

// Where an episode is. Views: valid until the tracker that made it moves on.
struct Situation {
  EnvView observation;
  EnvView geometry;
  const SegmentMatrix& matrix;  // Z: of all steps of the episode so far
  int step = 0;                 // how many those are
};

// One transition with what the lift made of it.
struct Experience {
  Situation before;
  Action action;
  std::span<const double> action_code;  // kActionCodeSize
  double reward = 0.0;                  // the environment's
  double scaled_reward = 0.0;           // reward / reward_scale: what the lift and values use
  std::span<const double> psi;
  Situation after;  // the true successor, also where the episode ends
  bool terminated = false;
  bool truncated = false;
};

enum class ActMode {
  kExplore,   // while learning
  kEvaluate,  // as well as it can; must not change what later training depends on
};

// The run cannot go on: a loss, a parameter or an observation is no number any more. The message
// names it; the runner adds the step.
class RunError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// RunError that names `what` and the first bad entry, unless all values are finite.
void RequireFinite(std::string_view what, std::span<const float> values);
void RequireFinite(std::string_view what, std::span<const double> values);

// For every step of training the runner calls Act, Observe and Update, in this order.
class Agent {
 public:
  virtual ~Agent() = default;

  // What the matrices are made with.
  virtual LiftKind lift_kind() const { return LiftKind::kCompact; }
  // Numbers that are trained.
  virtual std::int64_t parameter_count() const = 0;

  // Chooses an action; all randomness comes from `rng`. No allocation after the first calls.
  virtual void Act(const Situation& situation, ActMode mode, Rng& rng, ActionBuffer& out) = 0;
  // Takes in what happened. No allocation after the first calls.
  virtual void Observe(const Experience& experience) = 0;
  // The gradient steps that are due now: none, one or, if a batch is complete, many. RunError if a
  // number goes bad.
  virtual void Update() = 0;

  // Before the first step: starts from what was learned elsewhere, the contents of a file that
  // `source` names. UserError if they don't fit, or if this agent takes nothing over.
  virtual void Initialise(std::span<const std::byte> contents, std::string_view source);
  // Something to tell the user once, mostly nothing.
  virtual std::string TakeNotice() { return {}; }

  // Means since the last call.
  virtual void DrainMetrics(MetricSink& sink) = 0;

  // All that Act, Observe and Update will ever depend on: networks, optimisers, replay, counters,
  // random streams, metrics not yet drained. An agent that was read goes on bit for bit. Reading is
  // into an agent made with the same spec and settings; UserError on what does not fit.
  virtual void Visit(const Archive& state) = 0;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_AGENT_H_
