// Ends episodes that last too long.
#ifndef MSRL_ENV_TIME_LIMIT_H_
#define MSRL_ENV_TIME_LIMIT_H_

#include "msrl/env/env_wrapper.h"

namespace msrl {

// Sets `truncated`, and nothing else, on step number horizon() of an episode. Also the place where
// stepping outside an episode is refused (UserError).
class TimeLimit : public EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;

  void Reset(std::uint64_t seed) override;
  StepResult Step(const Action& action) override;
  std::vector<std::byte> Snapshot() const override;
  void Restore(std::span<const std::byte> bytes) override;

  int elapsed_steps() const { return elapsed_; }

 private:
  int elapsed_ = 0;
  bool running_ = false;
};

}  // namespace msrl

#endif  // MSRL_ENV_TIME_LIMIT_H_
