#include "msrl/mujoco/ant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

constexpr double kControlCost = 0.5;
constexpr double kContactCost = 5e-4;
constexpr double kLargestForceShown = 1.0;  // the reference clips there
constexpr double kStartNoise = 0.1;
constexpr double kLowest = 0.2;
constexpr double kHighest = 1.0;
constexpr double kLength = 4.0;        // m, unit of length
constexpr double kNominalSpeed = 4.0;  // m/s, what slot 2 aims at
constexpr int kBodies = 13;            // without the world

bool IsHealthy(double height) { return kLowest <= height && height <= kHighest; }

double ClippedForce(double force) {
  return std::clamp(force, -kLargestForceShown, kLargestForceShown);
}

}  // namespace

MujocoEnv::Setup Ant::MakeSetup(std::string id, int extra_observations,
                                const MujocoConfig& config) {
  Setup setup;
  EnvSpec& spec = setup.spec;
  spec.id = std::move(id);
  spec.family = "ant";
  spec.description = "four-legged robot runs as fast as it can (Gymnasium)";
  spec.observation_size = (config.is_v4() ? 27 : 27 + 6 * kBodies) + extra_observations;
  spec.action = {ActionKind::kContinuous, kSizes.nu};
  spec.step_limit = 1000;
  spec.frame_skip = 5;
  spec.dt = 0.05;
  spec.reward_low = -std::numeric_limits<double>::infinity();
  spec.reward_high = std::numeric_limits<double>::infinity();
  spec.reward_scale = 4.0;
  spec.geometry_unit = {kLength, kLength, kSpeedUnit, kSpeedUnit, kSpeedUnit, kSpeedUnit, 1, 1};
  spec.observation_bound = 1e4;  // speeds
  setup.options = IdentityText(ListFields(config));
  setup.contact_forces = !config.is_v4();
  setup.memory_size = kMemorySize;
  return setup;
}

Ant::Ant(const MujocoConfig& config)
    : Ant(
          [&] {
            Setup setup = MakeSetup("ant", 0, config);
            setup.spec.terminates = [](std::span<const double> o) { return !IsHealthy(o[0]); };
            SetMeasuredReturns(setup.spec);
            setup.model = TaskModel(config, "ant", ModelText("ant"), kSizes);
            return setup;
          }(),
          config) {}

Ant::Ant(Setup setup, const MujocoConfig& config)
    : MujocoEnv(std::move(setup)),
      is_v4_(config.is_v4()),
      torso_(RequireId(model(), mjOBJ_BODY, "torso")) {
  if (model().nbody != kBodies + 1) {
    throw UserError(
        StrCat(spec_.id, ": the model has ", model().nbody - 1, " bodies, an ant has ", kBodies));
  }
}

void Ant::Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) {
  for (double& q : qpos) q += rng.Uniform(-kStartNoise, kStartNoise);
  for (double& v : qvel) v = kStartNoise * rng.Normal();
}

void Ant::Begun() {
  memory()[kStartX] = qpos()[0];
  memory()[kStartY] = qpos()[1];
  memory()[kLastX] = body_position(torso_)[0];
}

Outcome Ant::Judge(std::span<const double> control) {
  const double before = memory()[kLastX];
  const double after = memory()[kLastX] = body_position(torso_)[0];
  const double speed = (after - before) / spec_.dt;
  const bool healthy = IsHealthy(qpos()[2]);
  double reward = speed + (healthy || is_v4_ ? 1.0 : 0.0) - kControlCost * SquaredNorm(control);
  if (!is_v4_) {
    double sum = 0.0;
    for (int i = 6; i < 6 * model().nbody; ++i) {
      sum += ClippedForce(data().cfrc_ext[i]) * ClippedForce(data().cfrc_ext[i]);
    }
    reward -= kContactCost * sum;
  }
  return {reward, !healthy};
}

double* Ant::ShowBody() {
  double* o = std::copy(qpos().begin() + 2, qpos().end(), observation_.data());
  o = std::copy(qvel().begin(), qvel().end(), o);
  if (!is_v4_) {
    o = std::transform(data().cfrc_ext + 6, data().cfrc_ext + 6 * (kBodies + 1), o, ClippedForce);
  }
  return o;
}

double Ant::Tilt() const {
  const auto q = qpos();
  return 2.0 * (q[4] * q[6] + q[3] * q[5]);
}

void Ant::Show() {
  ShowBody();
  const auto q = qpos();
  const auto v = qvel();
  geometry_ = {InUnits(q[0] - memory()[kStartX], kLength),
               InUnits(q[1] - memory()[kStartY], kLength),
               InUnits(kNominalSpeed - v[0], kSpeedUnit),
               InUnits(-v[1], kSpeedUnit),
               InUnits(v[0], kSpeedUnit),
               InUnits(v[1], kSpeedUnit),
               Tilt(),
               0.0};
}

}  // namespace msrl
