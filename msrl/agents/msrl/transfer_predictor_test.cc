#include "msrl/agents/msrl/transfer_predictor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "msrl/env/spec.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using ::msrl::testing::Tol;

// F(features) = sign * features[which], for features that are not negative.
ValueBranch OneFeature(int which, float sign) {
  BranchInfo info;
  info.lift = CompactLift()->id();
  ValueBranch branch(2, {.width = 1, .layers = 1, .layer_norm = false}, info);
  const auto w = branch.network().parameters();  // two weights, bias, weight, bias
  w[static_cast<std::size_t>(which)] = 1.0F;
  w[3] = sign;
  return branch;
}

// Episodes of `length` steps through states whose goal is `distance(rng, t)` away along slot 2. The
// features of a state are that distance and a number of its own.
// Episodes end by a time limit, or terminate; their last step is rewarded.
template <typename Distance>
Replay Record(int episodes, int length, const Distance& distance, int capacity = 100'000,
              bool terminates = false) {
  const Lift::Ptr lift = CompactLift();
  Replay replay({.capacity = capacity,
                 .observation_size = 1,
                 .action_size = 1,
                 .feature_size = 2,
                 .lift = lift,
                 .code_size = 1});
  Rng rng(1, "states");
  struct State {
    std::array<double, kGeometrySize> geometry{};
    std::array<float, 2> features{};
  };
  const auto draw = [&](int e, int t) {
    State state;
    state.geometry[2] = distance(rng, e, t);
    state.features = {static_cast<float>(state.geometry[2]), static_cast<float>(rng.Uniform())};
    return state;
  };
  const double observation = 0.0;
  const float action = 0.0F;
  const std::array<double, kActionCodeSize> code{};
  Eigen::VectorXd psi(lift->m());
  for (int e = 0; e < episodes; ++e) {
    SegmentMatrix z(lift);
    State now = draw(e, 0);
    for (int t = 0; t < length; ++t) {
      const State next = draw(e, t + 1);
      const SegmentMatrix before = z;
      lift->Apply(Eigen::Map<const Eigen::VectorXd>(now.geometry.data(), kGeometrySize),
                  Eigen::Map<const Eigen::VectorXd>(code.data(), kActionCodeSize), 0.0,
                  Eigen::Map<const Eigen::VectorXd>(next.geometry.data(), kGeometrySize), psi);
      z.AddStep(psi);
      replay.Add({.before = {.observation = {&observation, 1},
                             .features = now.features,
                             .geometry = now.geometry,
                             .matrix = &before},
                  .action = {&action, 1},
                  .reward = t + 1 == length ? 1.0 : 0.0,
                  .terminated = terminates && t + 1 == length,
                  .truncated = !terminates && t + 1 == length,
                  .after = {.observation = {&observation, 1},
                            .features = next.features,
                            .geometry = next.geometry,
                            .matrix = &z},
                  .code = code});
      now = next;
    }
  }
  return replay;
}

double Anywhere(Rng& rng, int, int) { return rng.Uniform(0.5, 2.0); }

TEST(PredictTransfer, OfBranchesThatAreKnown) {
  const Replay replay = Record(20, 60, Anywhere);
  // F = -distance: the value rises exactly as the goal comes near
  const TransferPredictor good = PredictTransfer(OneFeature(0, -1.0F), replay);
  EXPECT_NEAR(good.correlation, 1.0, Tol(1e-6));
  // of independent uniform distances: the root of twice their variance
  EXPECT_NEAR(good.amplitude, std::sqrt(2.0) * 1.5 / std::sqrt(12.0), 0.03);
  EXPECT_EQ(good.pairs, 20 * (60 - kPredictorGap));
  EXPECT_NEAR(PredictTransfer(OneFeature(0, 1.0F), replay).correlation, -1.0, Tol(1e-6));
  // F of something else
  const TransferPredictor other = PredictTransfer(OneFeature(1, 1.0F), replay);
  EXPECT_LT(std::abs(other.correlation), 0.15);
  EXPECT_NE(other.correlation, 0.0);
  EXPECT_GT(other.amplitude, 0.1);
  // F that says nothing
  const TransferPredictor silent = PredictTransfer(OneFeature(0, 0.0F), replay);
  EXPECT_EQ(silent.correlation, 0.0);
  EXPECT_EQ(silent.amplitude, 0.0);
}

TEST(PredictTransfer, PairsNeverStraddleEpisodes) {
  // nothing changes within an episode, everything from one to the next
  const Replay replay = Record(30, 12, [](Rng&, int e, int) { return 1.0 + e % 5; });
  const TransferPredictor predictor = PredictTransfer(OneFeature(0, -1.0F), replay);
  EXPECT_EQ(predictor.pairs, 30 * (12 - kPredictorGap));
  EXPECT_EQ(predictor.amplitude, 0.0);
  EXPECT_EQ(predictor.correlation, 0.0);
  // too short for any pair
  EXPECT_EQ(PredictTransfer(OneFeature(0, -1.0F), Record(30, kPredictorGap, Anywhere)).pairs, 0);
}

TEST(PredictTransfer, OfWhatTheReplayStillHas) {
  // 33 states are left: 7 of the steps of an episode without its beginning, then two whole ones
  const Replay replay = Record(10, 12, Anywhere, /*capacity=*/33);
  const TransferPredictor predictor = PredictTransfer(OneFeature(0, -1.0F), replay);
  EXPECT_EQ(predictor.pairs, 2 * (12 - kPredictorGap));
  EXPECT_NEAR(predictor.correlation, 1.0, Tol(1e-6));
}

TEST(PredictTransfer, WhatItSaysOfEnds) {
  const auto receding = [](Rng&, int, int t) { return 1.0 + 0.1 * t; };
  const Replay falls = Record(20, 30, receding, 100'000, /*terminates=*/true);
  const TransferPredictor knows = PredictTransfer(OneFeature(0, -1.0F), falls);
  EXPECT_EQ(knows.ends, 20);
  EXPECT_NEAR(knows.end_value, -4.0, Tol(1e-6));
  // ten steps of 0.1 each, in units of what ten steps usually change
  EXPECT_NEAR(knows.fall, -1.0, Tol(1e-6));
  EXPECT_NEAR(PredictTransfer(OneFeature(0, 1.0F), falls).fall, 1.0, Tol(1e-6));
  EXPECT_NEAR(knows.distance_amplitude, 1.0, Tol(1e-6));
  EXPECT_NEAR(knows.mean, -(1.0 + 0.1 * 14.5), Tol(1e-6));
  const TransferPredictor limit = PredictTransfer(OneFeature(0, -1.0F), Record(20, 30, receding));
  EXPECT_EQ(limit.ends, 0);
  EXPECT_EQ(limit.fall, 0.0);
}

TEST(PredictTransfer, WhatItSaysOfTheReturn) {
  // the reward is at the end, so what is left of the return rises all the way
  const auto receding = [](Rng&, int, int t) { return 1.0 + 0.1 * t; };
  const Replay replay = Record(20, 30, receding);
  EXPECT_GT(PredictTransfer(OneFeature(0, 1.0F), replay).return_correlation, 0.95);
  EXPECT_LT(PredictTransfer(OneFeature(0, -1.0F), replay).return_correlation, -0.95);
  EXPECT_LT(std::abs(PredictTransfer(OneFeature(1, 1.0F), replay).return_correlation), 0.2);
}

}  // namespace
}  // namespace msrl
