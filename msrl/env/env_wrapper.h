// An environment around another: shows and does what the inner one does.
#ifndef MSRL_ENV_ENV_WRAPPER_H_
#define MSRL_ENV_ENV_WRAPPER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/env/env.h"

namespace msrl {

class EnvWrapper : public Env {
 public:
  explicit EnvWrapper(std::unique_ptr<Env> env) : env_(std::move(env)) {
    MSRL_CHECK(env_ != nullptr);
  }

  const EnvSpec& spec() const override { return env_->spec(); }
  EnvView observation() const override { return env_->observation(); }
  EnvView geometry() const override { return env_->geometry(); }
  std::optional<bool> Success() const override { return env_->Success(); }
  std::string fault() const override { return env_->fault(); }
  int horizon() const override { return env_->horizon(); }
  std::string InstanceText() const override { return env_->InstanceText(); }
  std::map<std::string, double> HiddenFacts() const override { return env_->HiddenFacts(); }
  bool has_sketch() const override { return env_->has_sketch(); }
  void Sketch(Painter& painter) const override { env_->Sketch(painter); }
  Expert* expert() override { return env_->expert(); }
  Env& Unwrapped() override { return env_->Unwrapped(); }

 protected:
  Env& inner() { return *env_; }
  const Env& inner() const { return *env_; }

 private:
  std::unique_ptr<Env> env_;
};

}  // namespace msrl

#endif  // MSRL_ENV_ENV_WRAPPER_H_
