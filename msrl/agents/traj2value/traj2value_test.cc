#include <gtest/gtest.h>

#include <vector>

#include "msrl/agents/traj2value/traj2value_rnn.h"
#include "msrl/agents/traj2value/traj2value_transformer.h"
#include "msrl/testing/plain_module.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

int FullOrThree(int w) { return w == 0 ? ValueModule::kTrainingLength : 3; }

Eigen::VectorXd Token(const Eigen::MatrixXd& window, Index t) {
  Eigen::VectorXd token = window.col(t).head(kTokenChannels);
  token[kRewardAt] *= 100.0;
  return token;
}

double Head(const PlainTensors& w, const Eigen::VectorXd& h) {
  return w.Linear("value", PlainSilu(w.Linear("head", h)))[0];
}

TEST(Traj2ValueRnn, ValueIsThatOfAGatedMemory) {
  Rng rng(1, "init");
  constexpr int kWidth = 4;
  Traj2ValueRnn module({.token_width = 5, .memory_width = kWidth, .head_width = 3}, {}, rng);
  Randomise(module.parameters(), rng);
  TeachingGraph teaching(module, 2);
  FillRandomWindows(teaching, rng, FullOrThree);
  ExpectLossOfFormula(
      module, teaching, FullOrThree, [](const PlainTensors& w, const Eigen::MatrixXd& window) {
        Eigen::VectorXd v(window.cols());
        Eigen::VectorXd h = Eigen::VectorXd::Zero(kWidth);
        for (Index t = 0; t < window.cols(); ++t) {
          const Eigen::VectorXd token = Token(window, t);
          const Eigen::VectorXd x = PlainSilu(w.Norm(w.Linear("token", token), "token.norm"));
          const Eigen::VectorXd in = w.Linear("memory.input", x);
          const Eigen::VectorXd own = w.Linear("memory.hidden", h);
          const Eigen::VectorXd reset = PlainSigmoid(in.head(kWidth) + own.head(kWidth));
          const Eigen::VectorXd keep =
              PlainSigmoid(in.segment(kWidth, kWidth) + own.segment(kWidth, kWidth));
          const Eigen::VectorXd fresh =
              (in.tail(kWidth) + reset.cwiseProduct(own.tail(kWidth))).array().tanh();
          h = fresh + keep.cwiseProduct(h - fresh);
          v[t] = Head(w, h);
        }
        return v;
      });
}

TEST(Traj2ValueTransformer, ValueIsThatOfCausalBlocks) {
  Rng rng(1, "init");
  const Traj2ValueTransformerShape shape{.head_size = 2, .heads = 2, .blocks = 2, .head_width = 3};
  Traj2ValueTransformer module(shape, {}, rng);
  Randomise(module.parameters(), rng);
  TeachingGraph teaching(module, 2);
  FillRandomWindows(teaching, rng, FullOrThree);
  const auto value = [&](const PlainTensors& w, const Eigen::MatrixXd& window) {
    const Index states = window.cols();
    const Index width = shape.width();
    Eigen::MatrixXd x(width, states);
    for (Index t = 0; t < states; ++t) {
      x.col(t) = w.Linear("token", Token(window, t)) + w("position").col(t);
    }
    for (const std::string block : {"blocks.0", "blocks.1"}) {
      Eigen::MatrixXd qkv(3 * width, states);
      for (Index t = 0; t < states; ++t) {
        qkv.col(t) =
            w.Linear(block + ".attention.qkv", w.Norm(x.col(t), block + ".attention.norm"));
      }
      for (Index t = 0; t < states; ++t) {
        Eigen::VectorXd seen = Eigen::VectorXd::Zero(width);
        for (Index head = 0; head < shape.heads; ++head) {
          const Index row = head * shape.head_size;
          Eigen::VectorXd weight(t + 1);
          for (Index k = 0; k <= t; ++k) {
            weight[k] = std::exp(qkv.col(t)
                                     .segment(row, shape.head_size)
                                     .dot(qkv.col(k).segment(width + row, shape.head_size)) /
                                 std::sqrt(static_cast<double>(shape.head_size)));
          }
          for (Index k = 0; k <= t; ++k) {
            seen.segment(row, shape.head_size) +=
                weight[k] / weight.sum() * qkv.col(k).segment(2 * width + row, shape.head_size);
          }
        }
        x.col(t) += w.Linear(block + ".attention.out", seen);
      }
      for (Index t = 0; t < states; ++t) {
        const Eigen::VectorXd wide = PlainSilu(
            w.Linear(block + ".perceptron.0", w.Norm(x.col(t), block + ".perceptron.norm")));
        x.col(t) += w.Linear(block + ".perceptron.1", wide);
      }
    }
    Eigen::VectorXd v(states);
    for (Index t = 0; t < states; ++t) v[t] = Head(w, w.Norm(x.col(t), "norm"));
    return v;
  };
  ExpectLossOfFormula(module, teaching, FullOrThree, value);
}

template <typename Module>
class Traj2Value : public ::testing::Test {};
using Modules = ::testing::Types<Traj2ValueRnn, Traj2ValueTransformer>;
TYPED_TEST_SUITE(Traj2Value, Modules);

TYPED_TEST(Traj2Value, LooksBackAndNotAhead) {
  Rng rng(1, "init");
  TypeParam module({}, {}, rng);
  ExpectCausal(module, /*looks_back=*/true);
}

TYPED_TEST(Traj2Value, IsNotToldTheGoalApart) {
  Rng rng(1, "init");
  TypeParam module({}, {}, rng);
  ReadingGraph reading(module, 1);
  auto channels = reading.graph.input(reading.windows.channels);
  channels = RandomMatrix(kChannels, module.context(), rng);
  reading.graph.input(reading.windows.end)(0, 0) = 15.0F;
  reading.Forward();
  const float before = reading.graph.value(reading.slots.value)(0, 0);
  channels.bottomRows(kGoalChannels).setZero();
  reading.Forward();
  EXPECT_EQ(reading.graph.value(reading.slots.value)(0, 0), before);
}

TYPED_TEST(Traj2Value, RescalesItsValue) {
  Rng rng(1, "init");
  TypeParam module({}, {}, rng);
  ExpectRescales(module);
}

TEST(Traj2ValueSizes, AreThoseOfTheTable) {
  Rng rng(1, "init");
  EXPECT_EQ(Traj2ValueRnn({}, {}, rng).parameters().size(), 183'225U);
  EXPECT_EQ(Traj2ValueTransformer({}, {}, rng).parameters().size(), 181'885U);
}

}  // namespace
}  // namespace msrl
