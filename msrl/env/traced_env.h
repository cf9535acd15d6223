// An environment that remembers how its present episode came about.
#ifndef MSRL_ENV_TRACED_ENV_H_
#define MSRL_ENV_TRACED_ENV_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "msrl/env/env_wrapper.h"

namespace msrl {

// All that is needed to play an episode again, with what its last step saw.
struct EpisodeTrace {
  std::uint64_t seed = 0;
  std::vector<std::byte> snapshot;  // where it was taken up; empty: at the reset with the seed
  std::vector<double> actions;      // one after the other; a discrete one is its index
  std::vector<double> before;       // the observation that the last of them was played in
  std::optional<double> reward;     // of the last one; none if its step did not return
};

// Numbers of an action in a trace.
int ActionWidth(const ActionSpec& spec);

// Each step copies its action and the observation before it. No allocation but for an episode
// longer than those before.
class TracedEnv : public EnvWrapper {
 public:
  explicit TracedEnv(std::unique_ptr<Env> env) : EnvWrapper(std::move(env)) {}

  void Reset(std::uint64_t seed) override;
  StepResult Step(const Action& action) override;
  std::vector<std::byte> Snapshot() const override { return inner().Snapshot(); }
  void Restore(std::span<const std::byte> bytes) override;

  const EpisodeTrace& trace() const { return trace_; }

 private:
  void Begin();

  EpisodeTrace trace_;
};

// Plays the episode in another environment of the same kind and options; `visit` sees it after
// every step. UserError if the trace is of another kind.
void PlayAgain(const EpisodeTrace& trace, Env& env,
               const std::function<void(const Action&, const StepResult&)>& visit);

}  // namespace msrl

#endif  // MSRL_ENV_TRACED_ENV_H_
