// A program with an environment of its own that has every command of msrl:
//   own_env train --env own-pendulum --agent sac --steps 20000
//   own_env play runs/own-pendulum/sac/0 --video pendulum.mp4
#include <algorithm>
#include <cmath>
#include <numbers>

#include "msrl/builtin/builtin.h"
#include "msrl/cli/main.h"
#include "msrl/env/painter.h"

namespace {

constexpr double kStep = 0.05;  // s
constexpr double kTopSpeed = 8.0;
constexpr double kTurn = 2.0 * std::numbers::pi;

// A rod on a hinge with a motor too weak to lift it: it has to be swung up, and held there.
class OwnPendulum : public msrl::EnvBase {
 public:
  OwnPendulum() : EnvBase(MakeSpec(), /*options=*/"") {}

  msrl::StepResult Step(const msrl::Action& action) override {
    double torque = 0.0;
    msrl::RequireClipped(spec_, action, {&torque, 1});
    const double cost = angle_ * angle_ + 0.1 * speed_ * speed_ + 0.004 * torque * torque;
    speed_ += kStep * (15.0 * std::sin(angle_) + 6.0 * torque);
    speed_ = std::clamp(speed_, -kTopSpeed, kTopSpeed);
    angle_ = std::remainder(angle_ + kStep * speed_, kTurn);
    Publish();
    return {.reward = -cost};  // the step limit ends the episode
  }
  std::optional<bool> Success() const override { return std::abs(angle_) < 0.2; }

  bool has_sketch() const override { return true; }
  void Sketch(msrl::Painter& painter) const override {
    painter.Look({0.0, 0.0}, 2.6);
    msrl::DrawRuler(painter, 0.5);
    painter.Disc({0.0, 1.0}, 0.12, msrl::kGoalColour);
    painter.Capsule({0.0, 0.0}, Tip(), 0.04, msrl::kLimbColour);
    painter.Disc(Tip(), 0.1, msrl::kBodyColour);
  }

 private:
  static msrl::EnvSpec MakeSpec() {
    msrl::EnvSpec spec;
    spec.id = spec.family = "own-pendulum";
    spec.description = "swing a rod up with a weak motor";
    spec.observation_size = 3;
    spec.action = {msrl::ActionKind::kContinuous, 1};
    spec.step_limit = 200;
    spec.dt = kStep;
    spec.reward_scale = spec.geometry_unit[4] = spec.geometry_unit[5] = kTopSpeed;
    spec.reward_low = -17.0;
    spec.reward_high = 0.0;
    spec.has_success = true;
    return spec;
  }
  msrl::Vec2 Tip() const { return {std::sin(angle_), std::cos(angle_)}; }

  // The episode of a seed: hanging, nearly at rest.
  void Begin(std::uint64_t seed) override {
    msrl::Rng rng(seed, "own-pendulum");
    angle_ = std::remainder(kTurn / 2.0 + rng.Uniform(-0.5, 0.5), kTurn);
    speed_ = rng.Uniform(-0.5, 0.5);
  }
  // What the agent sees, and the eight slots with their shared meaning (msrl/env/spec.h).
  void Publish() override {
    const msrl::Vec2 tip = Tip();
    const double speed = speed_ / kTopSpeed;
    observation_ << tip, speed;
    geometry_ = {tip.x(),         tip.y(),          -tip.x(), 1.0 - tip.y(),
                 tip.y() * speed, -tip.x() * speed, tip.x(),  *Success() ? 1.0 : 0.0};
  }
  // For checkpoints in the middle of an episode.
  void WriteState(msrl::ByteWriter& writer) const override {
    for (const double value : {angle_, speed_}) writer.Double(value);
  }
  void ReadState(msrl::ByteReader& reader, std::uint64_t seed) override {
    const double angle = reader.FiniteDouble();
    const double speed = reader.FiniteDouble();
    reader.RequireEnd();
    EnsureInstance(seed);
    angle_ = angle, speed_ = speed;
  }

  double angle_ = 0.0;  // 0 is up
  double speed_ = 0.0;
};

}  // namespace

int main(int argc, char** argv) {
  msrl::Registries registries = msrl::BuiltinRegistries();
  registries.envs.Add(msrl::MakeEnvEntry<OwnPendulum>("own-pendulum"));
  return msrl::Main(argc, argv, registries);
}
