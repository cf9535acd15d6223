// A point on a line whose every step is known, for tests of models and planners: p' = p + 0.1 a,
// reward and contact within 0.1 of the goal at 0.5, an end below -0.9.
#ifndef MSRL_TESTING_POINT_WORLD_H_
#define MSRL_TESTING_POINT_WORLD_H_

#include <array>
#include <cmath>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/env/spec.h"
#include "msrl/memory/replay.h"
#include "msrl/value/matrix_features.h"

namespace msrl::testing {

struct PointWorld {
  static constexpr double kGoal = 0.5;
  static constexpr double kPace = 0.1;
  static constexpr int kActions = 3;  // discrete: -1, 0, 1

  static EnvSpec Spec(ActionKind kind) {
    EnvSpec spec;
    spec.id = "point-world";
    spec.observation_size = 2;
    spec.action = {kind, kind == ActionKind::kDiscrete ? kActions : 1};
    spec.step_limit = 100;
    return spec;
  }
  static double Next(double p, double a) { return p + kPace * a; }
  static bool AtGoal(double p) { return std::abs(kGoal - p) < 0.1; }
  static bool Ends(double p) { return p < -0.9; }
  static std::array<double, 2> Observation(double p) { return {p, 2.0 * p * p}; }
  static std::array<double, kGeometrySize> Geometry(double p) {
    return {p, 0.0, kGoal - p, 0.0, 0.0, 0.0, 0.0, AtGoal(p) ? 1.0 : 0.0};
  }

  // Random steps from places in [low, high], ten at a time.
  static Replay Record(ActionKind kind, int steps, Rng& rng, double low = -1.0, double high = 1.0) {
    const Lift::Ptr lift = CompactLift();
    const MatrixFeatures map(lift);
    const bool discrete = kind == ActionKind::kDiscrete;
    Replay replay({.capacity = 2 * steps + 2,
                   .observation_size = 2,
                   .action_size = 1,
                   .feature_size = map.size(),
                   .lift = lift,
                   .one_hot_code = discrete,
                   .code_size = discrete ? 0 : 1});
    const EnvSpec spec = Spec(kind);
    std::vector<float> before_features(static_cast<std::size_t>(map.size()));
    std::vector<float> after_features(before_features);
    Eigen::VectorXd psi(lift->m());
    SegmentMatrix z(lift);
    double p = 0.0;
    for (int t = 0, age = 0; t < steps; ++t) {
      if (age == 0) {
        p = rng.Uniform(low, high);
        z.SetZero();
      }
      const int index = static_cast<int>(rng.Index(kActions));
      const double a = discrete ? index - 1.0 : rng.Uniform(-1.0, 1.0);
      const double q = Next(p, a);
      std::array<double, kActionCodeSize> code{};
      EmbedAction(spec, discrete ? Action::Discrete(index) : Action::Continuous({&a, 1}), code);
      const auto from = Geometry(p);
      const auto to = Geometry(q);
      const auto o = Observation(p);
      const auto o_next = Observation(q);
      const SegmentMatrix before = z;
      const double reward = AtGoal(q) ? 1.0 : 0.0;
      lift->Apply(Eigen::Map<const Eigen::VectorXd>(from.data(), kGeometrySize),
                  Eigen::Map<const Eigen::VectorXd>(code.data(), kActionCodeSize), reward,
                  Eigen::Map<const Eigen::VectorXd>(to.data(), kGeometrySize), psi);
      z.AddStep(psi);
      map.Compute(before, std::span(before_features));
      map.Compute(z, std::span(after_features));
      const float action = discrete ? static_cast<float>(index) : static_cast<float>(a);
      age = Ends(q) || age == 9 ? 0 : age + 1;
      replay.Add({.before = {.observation = o,
                             .features = before_features,
                             .geometry = from,
                             .matrix = &before},
                  .action = {&action, 1},
                  .reward = reward,
                  .terminated = Ends(q),
                  .truncated = age == 0 && !Ends(q),
                  .after = {.observation = o_next,
                            .features = after_features,
                            .geometry = to,
                            .matrix = &z},
                  .code = code,
                  .lift_reward = reward});
      p = q;
    }
    return replay;
  }
};

}  // namespace msrl::testing

#endif  // MSRL_TESTING_POINT_WORLD_H_
