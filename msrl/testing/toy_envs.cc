#include "msrl/testing/toy_envs.h"

#include <algorithm>
#include <array>
#include <cmath>
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
  // What the geometry says.
  virtual double Position() const { return state_; }

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
    geometry_[0] = Position();
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

class BalanceEnv : public ToyEnv {
 public:
  explicit BalanceEnv(bool tells_end)
      : ToyEnv(ToySpec("toy-balance", 1, {ActionKind::kContinuous, 1}, 100)) {
    if (tells_end) {
      spec_.terminates = [](std::span<const double> o) { return HasFallen(o[0]); };
    }
  }

 private:
  static bool HasFallen(double x) { return std::abs(x) > 0.5; }
  double Draw() override { return rng_.Uniform(-0.3, 0.3); }
  StepResult Move(const Action& action) override {
    state_ = 1.1 * state_ + 0.1 * OneAction(action);
    return {.reward = 1.0, .terminated = HasFallen(state_)};
  }
  void Show() override { observation_[0] = state_; }
};

// The state is the cue times the number of the observation, from 1 on.
class RecallEnv : public ToyEnv {
 public:
  explicit RecallEnv(ActionKind kind)
      : ToyEnv(ToySpec(kind == ActionKind::kDiscrete ? "toy-recall-index" : "toy-recall-box", 1,
                       {kind, kind == ActionKind::kDiscrete ? 2 : 1}, 6)) {
    spec_.reward_low = -1.0;
    spec_.reward_high = 1.0;
  }

 private:
  double Draw() override { return rng_.Index(2) == 0 ? -1.0 : 1.0; }
  double Cue() const { return state_ > 0.0 ? 1.0 : -1.0; }
  bool IsFirst() const { return std::abs(state_) == 1.0; }

  StepResult Move(const Action& action) override {
    const double a = spec_.action.kind == ActionKind::kDiscrete ? RequireIndex(spec_, action)
                                                                : OneAction(action);
    const double reward = IsFirst() ? 0.0 : Cue() * a;
    state_ += Cue();
    return {.reward = reward};
  }
  void Show() override { observation_[0] = IsFirst() ? Cue() : 0.0; }
  double Position() const override { return observation_[0]; }
};

template <typename Toy, typename... Args>
std::unique_ptr<Env> Make(Args... args) {
  return std::make_unique<TimeLimit>(std::make_unique<Toy>(args...));
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

std::unique_ptr<Env> MakeBalance(bool tells_end) { return Make<BalanceEnv>(tells_end); }

std::unique_ptr<Env> MakeRecall(ActionKind kind) { return Make<RecallEnv>(kind); }

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
