// Tasks where history matters: what an episode is about is drawn as ever, but nobody is told.
#ifndef MSRL_ENV_HIDDEN_H_
#define MSRL_ENV_HIDDEN_H_

#include <array>
#include <memory>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/env/env_registry.h"
#include "msrl/env/env_wrapper.h"

namespace msrl {

enum class HiddenThing {
  kNothing,
  kGoal,   // the goal's entries of the observation and slots 2, 3 and 7 read 0
  kGains,  // every action dimension is multiplied by a factor of either sign, drawn per episode
};
constexpr auto EnumNames(HiddenThing) { return Names("nothing", "goal", "gains"); }

struct HiddenOptions {
  HiddenThing hidden = HiddenThing::kNothing;

  template <typename V>
  void Fields(V&& visit) {
    visit("hidden", hidden,
          "what neither observation nor geometry tells: the episode's goal, or the factor (0.5 to "
          "1, either sign) that each action dimension is multiplied by");
  }
};

class Hidden : public EnvWrapper {
 public:
  static constexpr double kSmallestGain = 0.5;

  // UserError if the environment has nothing of the kind, or if there is nothing to hide.
  Hidden(std::unique_ptr<Env> env, HiddenThing thing);

  const EnvSpec& spec() const override { return spec_; }
  void Reset(std::uint64_t seed) override;
  StepResult Step(const Action& action) override;
  EnvView observation() const override { return EnvView(observation_.data(), observation_.size()); }
  EnvView geometry() const override { return EnvView(geometry_.data(), kGeometrySize); }
  std::vector<std::byte> Snapshot() const override;
  void Restore(std::span<const std::byte> bytes) override;
  std::map<std::string, double> HiddenFacts() const override;
  // The inner environment's does not know the gains.
  Expert* expert() override { return thing_ == HiddenThing::kGains ? nullptr : inner().expert(); }

 private:
  void Publish();

  HiddenThing thing_;
  EnvSpec spec_;
  Eigen::VectorXd observation_;
  std::array<double, kGeometrySize> geometry_{};
  std::array<double, kMaxActionSize> gain_{};
};

// The row of a continuous target with the option `hidden` beside its own.
EnvEntry WithHidden(const EnvEntry& entry);

}  // namespace msrl

#endif  // MSRL_ENV_HIDDEN_H_
