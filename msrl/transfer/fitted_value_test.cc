#include "msrl/transfer/fitted_value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/rng.h"
#include "msrl/core/statistics.h"
#include "msrl/env/spec.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/collect.h"

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
  FittedValue(file, {.steps = 3}).AddTo(file);
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
  FittedValue(file, {.iterations = 300}).AddTo(file);
  FittedValue(ended, {.iterations = 300}).AddTo(ended);
  // a reward of 1 for ever is worth 100
  EXPECT_NEAR(file.episodes[3].values.at("fitted")[0], 100.0, Tol(5.0));
  EXPECT_EQ(ended.episodes[0].values.at("fitted")[20], 0.0F);
  EXPECT_NEAR(ended.episodes[0].values.at("fitted")[15], (1.0 - std::pow(0.99, 5)) / 0.01,
              Tol(1e-3));
}

// One V for all episodes, whichever come with them; a fit of some is another V.
TEST(FittedValue, ValuesEpisodesByTheRegressionOfOthers) {
  EpisodeFile all = LinearProcess(300, 20);
  EpisodeFile some = all;
  some.episodes.erase(some.episodes.begin(), some.episodes.begin() + 250);
  EpisodeFile own = some;
  const FittedValue fit(all);
  fit.AddTo(all);
  fit.AddTo(some);
  FittedValue(own).AddTo(own);
  for (std::size_t k = 0; k < some.episodes.size(); ++k) {
    const StoredEpisode& e = some.episodes[k];
    for (const char* target : {"fitted", "regression"}) {
      const Eigen::VectorXf& expected = all.episodes[250 + k].values.at(target);
      EXPECT_LT((e.values.at(target) - expected).cwiseAbs().maxCoeff(), Tol(1e-3)) << target;
      EXPECT_GT((own.episodes[k].values.at(target) - expected).cwiseAbs().maxCoeff(), 0.1);
    }
    // the return of the last step ends in V
    const Index last = e.horizon() - 1;
    EXPECT_NEAR(e.values.at("fitted")[last],
                e.rewards[last] + 0.99 * e.values.at("regression")[last + 1], Tol(1e-4));
  }
  some.episodes[0].env = "another";
  EXPECT_NE(testing::UserErrorText([&] { fit.AddTo(some); }).find("another"), std::string::npos);
}

}  // namespace
}  // namespace msrl
