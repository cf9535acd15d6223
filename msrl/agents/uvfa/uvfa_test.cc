#include "msrl/agents/uvfa/uvfa.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "msrl/testing/plain_module.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

TEST(Uvfa, ValueIsTheProductOfTwoStreams) {
  Rng rng(1, "init");
  Uvfa module({.stream_width = 5, .stream_features = 4}, {}, rng);
  Randomise(module.parameters(), rng);
  TeachingGraph teaching(module, 2);
  const auto states = [](int w) { return w == 0 ? ValueModule::kTrainingLength : 3; };
  FillRandomWindows(teaching, rng, states);
  ExpectLossOfFormula(
      module, teaching, states, [](const PlainTensors& w, const Eigen::MatrixXd& window) {
        Eigen::VectorXd v(window.cols());
        for (Index t = 0; t < window.cols(); ++t) {
          Eigen::VectorXd x = window.col(t).head(kStateChannels);
          for (const int slot : {2, 3, 7}) x[slot] = x[kGeometrySize + slot] = 0.0;
          const Eigen::VectorXd c = window.col(t).tail(kGoalChannels);
          v[t] = PlainMlp(w, "state", 2, true, x).dot(PlainMlp(w, "goal", 2, true, c)) / 2.0 +
                 w("bias")(0, 0);
        }
        return v;
      });
}

TEST(Uvfa, LooksAtOneStateAndTheGoal) {
  Rng rng(1, "init");
  Uvfa module({.stream_width = 8, .stream_features = 4}, {}, rng);
  ExpectCausal(module, /*looks_back=*/false);
  ReadingGraph reading(module, 1);
  auto channels = reading.graph.input(reading.windows.channels);
  channels = RandomMatrix(kChannels, 1, rng);
  const auto value = [&] {
    reading.Forward();
    return reading.graph.value(reading.slots.value)(0, 0);
  };
  const float before = value();
  channels(2, 0) += 1.0F;          // the goal's offset is c's to say
  channels(kActionAt, 0) += 1.0F;  // V, not Q
  channels(kRewardAt, 0) += 1.0F;
  EXPECT_EQ(value(), before);
  channels(kGoalAt, 0) += 1.0F;
  EXPECT_NE(value(), before);
}

TEST(Uvfa, HasTheSizeOfThePage) {
  Rng rng(1, "init");
  EXPECT_EQ(Uvfa({}, {}, rng).parameters().size(), 2U * 87'616 + 1);
}

TEST(Uvfa, RescalesItsValue) {
  Rng rng(1, "init");
  Uvfa module({.stream_width = 8, .stream_features = 4}, {}, rng);
  ExpectRescales(module);
}

}  // namespace
}  // namespace msrl
