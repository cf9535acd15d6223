// The interface of every learning agent.
//
// An agent plays several episodes at once, of training and of evaluation (play.h). So it keeps
// nothing of an episode in itself: the prefix matrix is in the situation, and all else that an
// agent has to remember until the episode ends is in the episode's carry.
#ifndef MSRL_AGENTS_AGENT_H_
#define MSRL_AGENTS_AGENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "msrl/agents/metrics.h"
#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/env/env.h"
#include "msrl/files/state.h"

namespace msrl {

class Artefact;
struct FeedForwardPolicy;
class Replay;
class SegmentLibrary;
class Simulator;

// Where an episode is. Views: valid until the tracker that made it moves on.
struct Situation {
  EnvView observation;
  EnvView geometry;
  const SegmentMatrix& matrix;  // Z: of all steps of the episode so far
  int step = 0;                 // how many those are
};

// What an agent remembers of one episode: a recurrent state, a running return, a plan that waits
// for its outcome. The agent makes it, the episode's tracker keeps it. The base remembers nothing.
class Carry {
 public:
  virtual ~Carry() = default;

  // As before the first step of an episode. No allocation.
  virtual void Begin() {}
  // What the next step depends on. Checkpoints lie between an Observe and the next Act.
  virtual void Visit(const Archive& /*state*/) {}
};

// The carry as the agent that made it knows it.
template <typename Own>
Own& CarryAs(Carry& carry) {
  auto* const own = dynamic_cast<Own*>(&carry);
  MSRL_CHECK(own != nullptr, "the carry is another agent's");
  return *own;
}

// An episode that waits for an action.
struct Turn {
  Situation situation;
  Carry& carry;
  Rng& rng;  // all randomness of the choice
  ActionBuffer& out;
  // In training, of an agent that wants one; it follows this episode. Null otherwise.
  Simulator* simulator = nullptr;
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
  kEvaluate,  // as well as it can; changes nothing but the carry
};

// The run cannot go on: a loss, a parameter or an observation is no number any more. The message
// names it; the runner adds the step.
class RunError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// RunError that names `what` and the first bad entry, unless all values are finite.
void RequireFinite(std::string_view what, std::span<const float> values);
void RequireFinite(std::string_view what, std::span<const double> values);

// The steps of training that an agent keeps. Rewards are scaled_reward.
struct KeptExperience {
  const Replay* replay = nullptr;  // null: it keeps none
  int first = 0;                   // where in a state the environment's observation begins
};

// For every step of training the runner calls Act, Observe and Update, in this order.
class Agent {
 public:
  virtual ~Agent() = default;

  // What the matrices are made with.
  virtual LiftKind lift_kind() const { return LiftKind::kCompact; }
  // Numbers that are trained.
  virtual std::int64_t parameter_count() const = 0;

  // Of an episode that has not begun.
  virtual std::unique_ptr<Carry> MakeCarry() const { return std::make_unique<Carry>(); }

  // Whether its turns in training should come with a simulator (simulator.h). It must do without
  // one as well.
  virtual bool wants_simulator() const { return false; }

  // Chooses an action in every turn, bit for bit as if they came one after the other. No allocation
  // after the first calls.
  void Act(std::span<const Turn> turns, ActMode mode);
  void Act(const Turn& turn, ActMode mode) { ActInBatch({&turn, 1}, mode); }
  // Takes in what happened, with the carry that Act had. No allocation after the first calls.
  virtual void Observe(const Experience& experience, Carry& carry) = 0;
  // The gradient steps that are due now: none, one or, if a batch is complete, many. RunError if a
  // number goes bad.
  virtual void Update() = 0;

  // Before the first step: starts from what was learned elsewhere. UserError if it doesn't fit, or
  // if this agent takes nothing over (AgentEntry::takes).
  virtual void Initialise(const Artefact& artefact);
  // Before the first step: starts with the segments of a library. UserError that names `source` if
  // they don't fit, or if this agent asks no library.
  virtual void TakeSegments(const SegmentLibrary& library, std::string_view source);
  // What it does in evaluations, if that is a function of the observation alone; else a UserError
  // that says why not. See feed_forward.h.
  virtual FeedForwardPolicy ExportPolicy() const;
  // What it learns from again, as long as it is kept.
  virtual KeptExperience Kept() const { return {}; }
  // Something to tell the user once, mostly nothing.
  virtual std::string TakeNotice() { return {}; }

  // Means since the last call.
  virtual void DrainMetrics(MetricSink& sink) = 0;

  // All that Act, Observe and Update will ever depend on besides carries: networks, optimisers,
  // replay, counters, random streams, metrics not yet drained. An agent that was read goes on bit
  // for bit. Reading is into an agent made with the same spec and settings; UserError on what does
  // not fit.
  virtual void Visit(const Archive& state) = 0;

 protected:
  // As Act, of at most kMaxTurns.
  static constexpr int kMaxTurns = 64;
  virtual void ActInBatch(std::span<const Turn> turns, ActMode mode) = 0;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_AGENT_H_
