// Continuous environments made from a model: a value that knows the instance and moves a state.
#ifndef MSRL_ENV_MODEL_ENV_H_
#define MSRL_ENV_MODEL_ENV_H_

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/env/env.h"
#include "msrl/env/goal_task.h"
#include "msrl/env/instance.h"
#include "msrl/env/painter.h"
#include "msrl/env/walls.h"

namespace msrl {

// Reward of a target task: at the goal alone, or more the nearer it is.
enum class GoalReward { kSparse, kDense };
constexpr auto EnumNames(GoalReward) { return Names("sparse", "dense"); }

// A model's own controllers are tried from a state; the best discounted sum of reward / scale
// counts.
struct RolloutResult {
  double value = 0.0;
  int controller = 0;
};

// The discounted return of one controller. The part past `steps` is estimated from the mean reward
// of the last tenth.
template <typename Model>
double RolloutValue(const Model& model, typename Model::State state, int controller, int steps,
                    double gamma) {
  const int tail = std::max(steps / 10, 1);
  double sum = 0.0;
  double discount = 1.0;
  double last = 0.0;
  for (int t = 0; t < steps; ++t) {
    const Outcome outcome = model.Advance(state, model.Control(state, controller), nullptr);
    sum += discount * outcome.reward;
    discount *= gamma;
    if (outcome.terminated) return sum;
    if (t >= steps - tail) last += outcome.reward;
  }
  return sum + discount * (last / tail) / (1.0 - gamma);
}

template <typename Model>
RolloutResult BestRollout(const Model& model, const typename Model::State& state, int steps,
                          double gamma) {
  RolloutResult best{RolloutValue(model, state, 0, steps, gamma), 0};
  for (int controller = 1; controller < Model::kControllers; ++controller) {
    const double value = RolloutValue(model, state, controller, steps, gamma);
    if (value > best.value) best = {value, controller};
  }
  return best;
}

// What a snapshot says of the options that it was made with. One that came later (kLater) counts
// only where it is not as before, so that snapshots from before stay readable.
template <typename Config>
std::string IdentityOf(const Config& config) {
  std::vector<ConfigField> fields = ListFields(config);
  if constexpr (requires { Config::kLater; }) {
    const std::vector<ConfigField> before = ListFields(Config{});
    std::erase_if(fields, [&before](const ConfigField& field) {
      const auto same = [&field](const ConfigField& other) {
        return other.key == field.key && other.value == field.value;
      };
      return field.key == Config::kLater && std::ranges::any_of(before, same);
    });
  }
  return IdentityText(fields);
}

// Needs of a Model:
//   Config, State (a struct of doubles with a Fields list), kId, kControllers
//   static EnvSpec Spec(const Config&)         UserError on impossible options
//   static Model Draw(const Config&, seed)     the instance, with members `start`, `layout`,
//                                              `horizon` and `slot_mask`
//   Outcome Advance(State&, Vec2, Rng* noise)  one step; noise may be null
//   void Observe(State, observation, geometry) what is seen
//   Vec2 Control(State, i), Vec2 Worst(State)  scripted actions
//   optional<bool> Success(State)
//   map<string, double> HiddenFacts()          Env::HiddenFacts
//   void Sketch(State, Painter&)               Env::Sketch
template <typename Model>
class ModelEnv : public EnvBase, private Expert {
 public:
  using Config = typename Model::Config;
  using State = typename Model::State;
  static constexpr int kRolloutSteps = 150;
  // Far beyond what an episode can reach, far below what overflows.
  static constexpr double kMaxStateMagnitude = 1e6;

  explicit ModelEnv(Config config)
      : EnvBase(Model::Spec(config), IdentityOf(config)), config_(std::move(config)) {}

  StepResult Step(const Action& action) override {
    Vec2 clipped;
    RequireClipped(spec_, action, std::span(clipped.data(), 2));
    const Outcome outcome = model_.Advance(state_, clipped, &noise_);
    Publish();
    return {.reward = outcome.reward, .terminated = outcome.terminated, .truncated = false};
  }
  std::optional<bool> Success() const override { return model_.Success(state_); }
  int horizon() const override { return model_.horizon; }
  std::string InstanceText() const override { return model_.layout; }
  Expert* expert() override { return this; }
  std::map<std::string, double> HiddenFacts() const override { return model_.HiddenFacts(); }
  bool has_sketch() const override { return true; }
  void Sketch(Painter& painter) const override { model_.Sketch(state_, painter); }

  const Model& model() const { return model_; }
  const State& state() const { return state_; }

 private:
  void Begin(std::uint64_t seed) override {
    model_ = Model::Draw(config_, seed);
    state_ = model_.start;
    noise_ = Rng(seed, "noise");
    controller_.reset();
  }
  void WriteState(ByteWriter& writer) const override {
    State copy = state_;
    copy.Fields([&](double& value) { writer.Double(value); });
    writer.RngState(noise_.state());
  }
  void ReadState(ByteReader& reader, std::uint64_t seed) override {
    State state;
    state.Fields([&](double& value) {
      value = reader.FiniteDouble();
      if (std::abs(value) > kMaxStateMagnitude) {
        throw UserError(StrCat(spec_.id, ": snapshot holds ", value, ", which no state can be"));
      }
    });
    const Rng noise(reader.RngState());
    reader.RequireEnd();
    EnsureInstance(seed);
    state_ = state;
    noise_ = noise;
  }
  void Publish() override {
    model_.Observe(state_, std::span(observation_.data(), observation_.size()), geometry_);
    ApplySlotMask(model_.slot_mask, geometry_);
  }

  void Best(ActionBuffer& action) override {
    // chosen once, from the start: an action must not depend on when it is first asked for
    if (!controller_) {
      controller_ = BestRollout(model_, model_.start, kRolloutSteps, spec_.gamma).controller;
    }
    const Vec2 best = model_.Control(state_, *controller_);
    std::copy_n(best.data(), 2, action.values().begin());
  }
  void Worst(ActionBuffer& action) override {
    const Vec2 worst = model_.Worst(state_);
    std::copy_n(worst.data(), 2, action.values().begin());
  }
  double Value() override {
    return BestRollout(model_, state_, kRolloutSteps, spec_.gamma).value / spec_.reward_scale;
  }

  Config config_;
  Model model_;
  State state_;
  Rng noise_{0, "noise"};
  std::optional<int> controller_;
};

inline Vec2 Clipped(const Vec2& v) { return v.cwiseMax(-1.0).cwiseMin(1.0); }

// At most `length` long.
inline Vec2 Shortened(const Vec2& v, double length) {
  const double norm = v.norm();
  return norm > length ? Vec2(v * (length / norm)) : v;
}

}  // namespace msrl

#endif  // MSRL_ENV_MODEL_ENV_H_
