#include "msrl/testing/toy_envs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "msrl/core/bytes.h"
#include "msrl/core/rng.h"
#include "msrl/env/time_limit.h"

namespace msrl::testing {
namespace {

EnvSpec ToySpec(const char* id, int observation_size, ActionSpec action, int step_limit) {
  EnvSpec spec;
  spec.id = id;
  spec.family = "toy";
  spec.description = "a task with a known optimum";
  spec.observation_size = observation_size;
  spec.action = action;
  spec.step_limit = step_limit;
  return spec;
}

// One number as the state, and a stream for what is random.
class ToyEnv : public EnvBase {
 public:
  explicit ToyEnv(EnvSpec spec) : EnvBase(std::move(spec), "") {}

  StepResult Step(const Action& action) override {
    const StepResult result = Move(action);
    Publish();
    return result;
  }

 protected:
  virtual double Draw() = 0;
  virtual StepResult Move(const Action& action) = 0;
  virtual void Show() = 0;

  double OneAction(const Action& action) const {
    double value = 0.0;
    RequireClipped(spec_, action, std::span(&value, 1));
    return value;
  }
  void ShowOneHot() {
    observation_.setZero();
    observation_[static_cast<Eigen::Index>(state_)] = 1.0;
  }

  double state_ = 0.0;
  Rng rng_{0, "toy"};

 private:
  void Begin(std::uint64_t seed) override {
    rng_ = Rng(seed, "toy");
    state_ = Draw();
  }
  void WriteState(ByteWriter& writer) const override {
    writer.Double(state_);
    writer.RngState(rng_.state());
  }
  void ReadState(ByteReader& reader, std::uint64_t seed) override {
    const double state = reader.FiniteDouble();
    const Rng rng(reader.RngState());
    reader.RequireEnd();
    EnsureInstance(seed);
    state_ = state;
    rng_ = rng;
  }
  void Publish() override {
    Show();
    geometry_[0] = state_;
  }
};

class IdentityBox : public ToyEnv {
 public:
  IdentityBox() : ToyEnv(ToySpec("toy-identity-box", 1, {ActionKind::kContinuous, 1}, 20)) {
    spec_.reward_low = -4.0;
    spec_.reward_high = 0.0;
  }

 private:
  double Draw() override { return rng_.Uniform(-1.0, 1.0); }
  StepResult Move(const Action& action) override {
    const double error = OneAction(action) - state_;
    state_ = Draw();
    return {.reward = -error * error};
  }
  void Show() override { observation_[0] = state_; }
};

class IdentityIndex : public ToyEnv {
 public:
  IdentityIndex() : ToyEnv(ToySpec("toy-identity-index", 4, {ActionKind::kDiscrete, 4}, 20)) {}

 private:
  double Draw() override { return static_cast<double>(rng_.Index(4)); }
  StepResult Move(const Action& action) override {
    const double reward = RequireIndex(spec_, action) == static_cast<int>(state_) ? 1.0 : 0.0;
    state_ = Draw();
    return {.reward = reward};
  }
  void Show() override { ShowOneHot(); }
};

enum TwoStatesAction { kStay, kChange, kLeave };
constexpr std::array<double, 2> kStayReward = {0.2, 1.0};
constexpr double kLeaveReward = 3.0;

class TwoStatesEnv : public ToyEnv {
 public:
  TwoStatesEnv()
      : ToyEnv(ToySpec("toy-two-states", 2, {ActionKind::kDiscrete, TwoStates::kActions}, 10)) {
    spec_.reward_scale = TwoStates::kRewardScale;
    spec_.gamma = TwoStates::kGamma;
    spec_.reward_high = kLeaveReward * TwoStates::kRewardScale;
  }

 private:
  double Draw() override { return static_cast<double>(rng_.Index(2)); }
  StepResult Move(const Action& action) override {
    StepResult result;
    switch (RequireIndex(spec_, action)) {
      case kStay:
        result.reward = kStayReward[state_ == 0.0 ? 0 : 1];
        break;
      case kChange:
        state_ = 1.0 - state_;
        break;
      default:
        result.reward = kLeaveReward;
        result.terminated = true;
    }
    result.reward *= spec_.reward_scale;
    return result;
  }
  void Show() override { ShowOneHot(); }
};

class ScalarLqrEnv : public ToyEnv {
 public:
  ScalarLqrEnv() : ToyEnv(ToySpec("toy-lqr", 1, {ActionKind::kContinuous, 1}, 10)) {
    spec_.gamma = ScalarLqr::kGamma;
    spec_.reward_low = -13.0;
    spec_.reward_high = 0.0;
  }

 private:
  double Draw() override { return rng_.Uniform(-0.5, 0.5); }
  StepResult Move(const Action& action) override {
    const double u = OneAction(action);
    const double reward = -(state_ * state_ + ScalarLqr::kCost * u * u);
    state_ += ScalarLqr::kB * u;
    return {.reward = reward};
  }
  void Show() override { observation_[0] = state_; }
};

template <typename Toy>
std::unique_ptr<Env> Make() {
  return std::make_unique<TimeLimit>(std::make_unique<Toy>());
}

}  // namespace

std::unique_ptr<Env> MakeIdentity(ActionKind kind) {
  return kind == ActionKind::kDiscrete ? Make<IdentityIndex>() : Make<IdentityBox>();
}

std::unique_ptr<Env> MakeTwoStates() { return Make<TwoStatesEnv>(); }

double TwoStates::Q(int state, int action) {
  // best is to stay in state 1 for ever, and to change over to it
  const double in_one = kStayReward[1] / (1.0 - kGamma);
  const std::array<double, 2> value = {kGamma * in_one, in_one};
  switch (action) {
    case kStay:
      return kStayReward[state == 0 ? 0 : 1] + kGamma * value[state == 0 ? 0 : 1];
    case kChange:
      return kGamma * value[state == 0 ? 1 : 0];
    default:
      return kLeaveReward;
  }
}

std::unique_ptr<Env> MakeScalarLqr() { return Make<ScalarLqrEnv>(); }

double ScalarLqr::P() {
  double p = 1.0;
  for (int i = 0; i < 200; ++i) {
    const double cross = kGamma * kB * p;
    p = 1.0 + kGamma * p - cross * cross / (kCost + kGamma * kB * kB * p);
  }
  return p;
}

double ScalarLqr::K() { return kGamma * kB * P() / (kCost + kGamma * kB * kB * P()); }

double ScalarLqr::Q(double x, double u) {
  const double next = x + kB * u;
  return -(x * x + kCost * u * u) - kGamma * P() * next * next;
}

}  // namespace msrl::testing
