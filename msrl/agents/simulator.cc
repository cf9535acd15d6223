#include "msrl/agents/simulator.h"

#include "msrl/core/check.h"

namespace msrl {

void Simulator::Follow(const Env& env) {
  followed_ = &env;
  here_.clear();
}

StepResult Simulator::Try(const Action& action) {
  MSRL_CHECK(followed_ != nullptr, "there is no environment to begin from");
  if (here_.empty()) here_ = followed_->Snapshot();
  twin_->Restore(here_);
  ++steps_;
  return twin_->Step(action);
}

}  // namespace msrl
