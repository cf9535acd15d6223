// Ends episodes that last too long.
#ifndef MSRL_ENV_TIME_LIMIT_H_
#define MSRL_ENV_TIME_LIMIT_H_

#include <memory>

#include "msrl/env/env.h"

namespace msrl {

// Sets `truncated`, and nothing else, on step number horizon() of an episode. Also the place where
// stepping outside an episode is refused (UserError).
class TimeLimit : public Env {
 public:
  explicit TimeLimit(std::unique_ptr<Env> env);

  void Reset(std::uint64_t seed) override;
  StepResult Step(const Action& action) override;
  std::vector<std::byte> Snapshot() const override;
  void Restore(std::span<const std::byte> bytes) override;

  const EnvSpec& spec() const override { return env_->spec(); }
  EnvView observation() const override { return env_->observation(); }
  EnvView geometry() const override { return env_->geometry(); }
  std::optional<bool> Success() const override { return env_->Success(); }
  std::string fault() const override { return env_->fault(); }
  int horizon() const override { return env_->horizon(); }
  std::string InstanceText() const override { return env_->InstanceText(); }
  Expert* expert() override { return env_->expert(); }
  Env& Unwrapped() override { return env_->Unwrapped(); }

  int elapsed_steps() const { return elapsed_; }

 private:
  std::unique_ptr<Env> env_;
  int elapsed_ = 0;
  bool running_ = false;
};

}  // namespace msrl

#endif  // MSRL_ENV_TIME_LIMIT_H_
