#include "msrl/transfer/fitted_value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/rng.h"
#include "msrl/env/spec.h"
#include "msrl/testing/tolerance.h"
#include "msrl/transfer/collect.h"
#include "msrl/core/statistics.h"

namespace msrl {
namespace {

using testing::Tol;

// s' = 0.9 s + noise, r = s: V(s) = s / (1 - 0.99 * 0.9), linear in the observation.
EpisodeFile LinearProcess(int episodes, Index shortest) {
  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  Rng rng(1, "process");
  for (int k = 0; k < episodes; ++k) {
    const Index steps = shortest + k % shortest;  // or the last time would never be an example
    StoredEpisode e;
    e.env = "process";
    e.observations.resize(1, steps + 1);
    e.geometry.setZero(kGeometrySize, steps + 1);
    e.actions.setZero(1, steps);
    e.rewards.resize(steps);
    e.truncated = true;
    double s = rng.Normal();
    for (Index t = 0; t <= steps; ++t) {
      e.observations(0, t) = static_cast<float>(s);
      e.geometry(0, t) = static_cast<float>(s);
      if (t < steps) e.rewards[t] = s;
      s = 0.9 * s + 0.2 * rng.Normal();
    }
    file.episodes.push_back(e);
  }
  return file;
}

// Up to one constant: the mean reward of a sample, a hundredfold.
TEST(FittedValue, ComesNearerToTheValueThanOneEpisodeDoes) {
  EpisodeFile file = LinearProcess(400, 30);
  AddFittedValues(file, {.steps = 3});
  std::vector<double> fitted;
  std::vector<double> sampled;
  std::vector<double> value;
  for (const StoredEpisode& e : file.episodes) {
    const Eigen::VectorXf& v = e.values.at("fitted");
    ASSERT_EQ(v.size(), e.horizon() + 1);
    const Eigen::VectorXd exact = e.observations.row(0).cast<double>() / (1.0 - 0.99 * 0.9);
    const Eigen::VectorXd rest = DiscountedRest(e.rewards, exact[e.horizon()], 0.99);
    for (Index t = 0; t < e.horizon(); ++t) {
      fitted.push_back(v[t] - exact[t]);
      sampled.push_back(rest[t] - exact[t]);
      value.push_back(exact[t]);
    }
  }
  EXPECT_LT(MeanAndStd(fitted).std, 0.6 * MeanAndStd(sampled).std);
  EXPECT_LT(MeanAndStd(fitted).std, MeanAndStd(value).std);
}

TEST(FittedValue, BootstrapsWhereTruncatedAndNotWhereTerminated) {
  EpisodeFile file = LinearProcess(100, 20);
  for (StoredEpisode& e : file.episodes) e.rewards.setOnes();
  EpisodeFile ended = file;
  for (StoredEpisode& e : ended.episodes) {
    e.terminated = true;
    e.truncated = false;
  }
  AddFittedValues(file, {.iterations = 300});
  AddFittedValues(ended, {.iterations = 300});
  // a reward of 1 for ever is worth 100
  EXPECT_NEAR(file.episodes[3].values.at("fitted")[0], 100.0, Tol(5.0));
  EXPECT_EQ(ended.episodes[0].values.at("fitted")[20], 0.0F);
  EXPECT_NEAR(ended.episodes[0].values.at("fitted")[15], (1.0 - std::pow(0.99, 5)) / 0.01,
              Tol(1e-3));
}

}  // namespace
}  // namespace msrl
