// A second environment of the task, in which an agent may try what an action would lead to.
#ifndef MSRL_AGENTS_SIMULATOR_H_
#define MSRL_AGENTS_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "msrl/env/env.h"
#include "msrl/files/state.h"

namespace msrl {

// Lent to agents that ask for it, in training only. Every try is a step of the task that no budget
// of the run has paid for, so it is counted.
class Simulator {
 public:
  // `twin` is made as the environment that will be followed.
  explicit Simulator(std::unique_ptr<Env> twin) : twin_(std::move(twin)) {}

  // Tries begin where `env` is now, until the next call; it must not move in between.
  void Follow(const Env& env);
  // One step from there. UserError on an action that does not fit. Costs a snapshot (the first
  // time), a Restore and a step; allocates.
  StepResult Try(const Action& action);
  // Where the last try has led to.
  EnvView geometry() const { return twin_->geometry(); }

  // How many tries there were.
  std::int64_t steps() const { return steps_; }
  void Visit(const Archive& state) { state.Int("steps", steps_, 0); }

 private:
  std::unique_ptr<Env> twin_;
  const Env* followed_ = nullptr;
  std::vector<std::byte> here_;  // empty: not asked for yet
  std::int64_t steps_ = 0;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_SIMULATOR_H_
