#include "msrl/agents/dbc/dbc.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/testing/plain_module.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kLength = ValueModule::kTrainingLength;

Eigen::VectorXd Latent(const PlainTensors& w, const Eigen::VectorXd& column) {
  return w.Norm(PlainMlp(w, "encoder", 2, true, column.head(kStateChannels)), "encoder.norm");
}

struct Step {
  Eigen::VectorXd mu, sigma;
};
// The action is told by the state that it led to.
Step StepOf(const PlainTensors& w, const Eigen::VectorXd& z, const Eigen::VectorXd& next) {
  Step step;
  Eigen::VectorXd input(z.size() + kActionChannels);
  input << z, next.segment(kActionAt, kActionChannels);
  const Eigen::VectorXd head = PlainMlp(w, "transition", 1, true, input);
  const Index n = z.size();
  step.mu = head.head(n);
  step.sigma = 1e-4 + (10.0 - 1e-4) * PlainSigmoid(head.tail(n)).array();
  return step;
}

TEST(Dbc, LossAndGradientsAreThoseOfTheFormula) {
  Rng rng(1, "init");
  Dbc module({.encoder_width = 5,
              .latent_size = 3,
              .model_width = 4,
              .head_width = 3,
              .bisimulation_gamma = 0.8},
             {}, rng);
  Randomise(module.parameters(), rng);
  constexpr int kWindows = 3;
  TeachingGraph teaching(module, kWindows);
  const auto states = [](int w) { return w == 0 ? kLength : 4 * w; };
  FillRandomWindows(teaching, rng, states);
  const Eigen::MatrixXd channels = teaching.graph.input(teaching.windows.channels).cast<double>();
  const Doubles at = AsDoubles(module.parameters().values());
  const PlainTensors fixed{module.parameters().tensors(), at};
  const int steps = (kLength - 1) * kWindows;
  const double total = kLength + 4 + 8;
  int pairs = 0;
  const auto loss = [&](const Doubles& parameters) {
    const PlainTensors w{module.parameters().tensors(), parameters};
    const auto inside = [&](int c) { return c / kWindows < states(c % kWindows); };
    double sum = 0.0;
    for (int c = 0; c < kLength * kWindows; ++c) {
      if (!inside(c)) continue;
      const double v = PlainMlp(w, "value", 1, false, Latent(w, channels.col(c)))[0];
      sum += PlainHuber(v - static_cast<double>(teaching.graph.input(teaching.label)(0, c)));
    }
    for (int c = 0; c < steps; ++c) {
      if (!inside(c + kWindows)) continue;
      const Eigen::VectorXd next = channels.col(c + kWindows);
      const Step step = StepOf(w, Latent(fixed, channels.col(c)), next);
      const Eigen::VectorXd z_next = Latent(fixed, next);
      const Eigen::ArrayXd miss = (step.mu - z_next).array() / step.sigma.array();
      sum += (0.5 * miss.square() + step.sigma.array().log()).mean();
      sum += std::pow(PlainMlp(w, "reward", 1, true, step.mu)[0] - next[kRewardAt], 2);

      const int other = Dbc::Partner(c, steps, kWindows);
      if (!inside(other + kWindows)) continue;
      ++pairs;
      const Eigen::VectorXd other_next = channels.col(other + kWindows);
      const Step constant = StepOf(fixed, Latent(fixed, channels.col(c)), next);
      const Step other_constant = StepOf(fixed, Latent(fixed, channels.col(other)), other_next);
      const Eigen::ArrayXd later = ((constant.mu - other_constant.mu).array().square() +
                                    (constant.sigma - other_constant.sigma).array().square())
                                       .sqrt();
      const Eigen::ArrayXd apart =
          (Latent(w, channels.col(c)) - Latent(w, channels.col(other))).array().abs();
      sum +=
          0.5 *
          (apart - std::abs(next[kRewardAt] - other_next[kRewardAt]) - 0.8 * later).square().mean();
    }
    return sum / total;
  };
  ExpectLossAndGradients(module, teaching, loss);
  EXPECT_GT(pairs, 5);
}

// Two rooms, in which nothing changes and every step gives the room's reward, looked at from four
// sides in turn. Sides of one room are bisimilar, and the rooms are |r_1 - r_2| / (1 - gamma)
// apart.
TEST(Dbc, DistancesBecomeTheBisimulationMetric) {
  Rng rng(1, "init");
  const double gamma = 0.5;
  Dbc module({.encoder_width = 48,
              .latent_size = 6,
              .model_width = 48,
              .head_width = 8,
              .bisimulation_gamma = gamma},
             {}, rng);
  constexpr int kSides = 4;
  constexpr int kStates = 2 * kSides;
  constexpr int kWindows = 32;
  const Eigen::MatrixXf shown = RandomMatrix(kStateChannels, kStates, rng);
  const auto reward = [](int state) { return state < kSides ? 0.0F : 0.3F; };
  const auto distances = [&] {
    ReadingGraph reading(module, kStates);
    for (int s = 0; s < kStates; ++s) {
      reading.graph.input(reading.windows.channels).col(s).head(kStateChannels) = shown.col(s);
      reading.graph.input(reading.windows.end)(0, s) = static_cast<float>(s);
    }
    reading.Forward();
    const Eigen::MatrixXf z = reading.graph.value(reading.slots.z);
    Eigen::MatrixXd apart(kStates, kStates);
    for (int i = 0; i < kStates; ++i) {
      for (int j = 0; j < kStates; ++j) {
        apart(i, j) = static_cast<double>((z.col(i) - z.col(j)).cwiseAbs().mean());
      }
    }
    return apart;
  };
  Eigen::MatrixXd exact(kStates, kStates);
  for (int i = 0; i < kStates; ++i) {
    for (int j = 0; j < kStates; ++j) {
      exact(i, j) = std::abs(static_cast<double>(reward(i) - reward(j))) / (1.0 - gamma);
    }
  }
  EXPECT_GT((distances() - exact).cwiseAbs().maxCoeff(), 0.3);
  TeachingGraph teaching(module, kWindows);
  auto channels = teaching.graph.input(teaching.windows.channels);
  constexpr int kUpdates = 3000;
  for (int k = 0; k < kUpdates; ++k) {
    channels.setZero();
    for (int w = 0; w < kWindows; ++w) {
      const auto start = static_cast<int>(rng.Index(kStates));
      for (int t = 0; t < kLength; ++t) {
        auto column = channels.col(t * kWindows + w);
        column.head(kStateChannels) = shown.col(start / kSides * kSides + (start + t) % kSides);
        if (t > 0) column[kRewardAt] = reward(start);
      }
    }
    teaching.graph.input(teaching.weight).setConstant(1.0F / (kLength * kWindows));
    teaching.Learn(1e-3 * (1.0 - static_cast<double>(k) / kUpdates));
  }
  EXPECT_LT((distances() - exact).cwiseAbs().maxCoeff(), 0.06);  // a tenth of what is between rooms
}

TEST(Dbc, LooksAtOneState) {
  Rng rng(1, "init");
  Dbc module({}, {}, rng);
  ExpectCausal(module, /*looks_back=*/false);
}

TEST(Dbc, HasTheSizeOfTheTable) {
  Rng rng(1, "init");
  EXPECT_EQ(Dbc({}, {}, rng).parameters().size(), 175'964U);
}

TEST(Dbc, RescalesItsValue) {
  Rng rng(1, "init");
  Dbc module({}, {}, rng);
  ExpectRescales(module);
}

}  // namespace
}  // namespace msrl
