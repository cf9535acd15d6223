#include "msrl/diagnose/evaluation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "msrl/core/check.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

TEST(RidgeClassifier, LearnsASeparableProblemAndNotNoise) {
  Rng rng(0, "ridge");
  const auto draw = [&](int count, bool informative, std::vector<int>& labels) {
    Eigen::MatrixXd examples(3, count);
    labels.clear();
    for (int n = 0; n < count; ++n) {
      labels.push_back(static_cast<int>(rng.Index(3)));
      for (int i = 0; i < 3; ++i) {
        examples(i, n) = rng.Normal() + (informative && labels.back() == i ? 8.0 : 0.0);
      }
    }
    return examples;
  };
  std::vector<int> train_labels;
  std::vector<int> labels;
  Eigen::MatrixXd train = draw(500, true, train_labels);
  Eigen::MatrixXd test = draw(500, true, labels);
  EXPECT_GT(RidgeClassifier(train, train_labels, 3, 1e-3).Accuracy(test, labels), 0.99);
  train = draw(500, false, train_labels);
  test = draw(500, false, labels);
  EXPECT_LT(RidgeClassifier(train, train_labels, 3, 1e-3).Accuracy(test, labels), 0.45);
}

TEST(StackColumns, HoldsTheFeaturesInOrder) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 0, {}});
  std::vector<SegmentMatrix> matrices;
  for (const Index steps : {2, 5}) {
    matrices.push_back(Describe(lift, {Eigen::MatrixXd::Zero(1, steps + 1),
                                       Eigen::MatrixXd(0, steps), Eigen::VectorXd::Zero(steps)}));
  }
  const auto features = [](const SegmentMatrix& matrix) -> Eigen::VectorXd {
    return Eigen::Vector2d(matrix.HorizonEntry(), 1.0);
  };
  EXPECT_EQ(StackColumns(matrices, features), (Eigen::Matrix2d() << 2, 5, 1, 1).finished());
  EXPECT_EQ(StackColumns({}, features).size(), 0);
  const auto ragged = [](const SegmentMatrix& matrix) -> Eigen::VectorXd {
    return Eigen::VectorXd::Zero(static_cast<Index>(matrix.HorizonEntry()));
  };
  EXPECT_THROW(StackColumns(matrices, ragged), InvariantError);
}

TEST(Standardizer, IgnoresConstantCoordinates) {
  Eigen::MatrixXd examples(2, 3);
  examples << 1, 2, 3, 7, 7, 7;
  const Eigen::MatrixXd scaled = Standardizer(examples)(examples);
  EXPECT_NEAR(scaled.row(0).squaredNorm() / 3, 1.0, Tol(1e-12));
  EXPECT_EQ(scaled.row(1).norm(), 0.0);
}

TEST(BlockEntries, PicksRowsAndColumns) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 1, {}});
  SegmentMatrix matrix(lift);
  Eigen::VectorXd psi(6);
  psi << 2, 3, 5, 7, 11, 1;  // c, delta, xi_c, xi_delta, r, 1
  matrix.AddStep(psi);
  const std::vector<std::string> blocks{"c", "1"};
  EXPECT_EQ(BlockEntries(matrix, blocks), Eigen::Vector3d(4, 2, 1));
}

TEST(WalkedBack, TurnsTransitionsRound) {
  Segment segment{Eigen::MatrixXd(1, 3), Eigen::MatrixXd(1, 2), Eigen::VectorXd(2)};
  segment.x << 0, 1, 3;
  segment.a << 5, 6;
  segment.r << 7, 8;
  const Segment back = WalkedBack(segment);
  EXPECT_EQ(back.x, (Eigen::MatrixXd(1, 3) << 3, 1, 0).finished());
  EXPECT_EQ(back.a, (Eigen::MatrixXd(1, 2) << 6, 5).finished());
  EXPECT_EQ(back.r, Eigen::Vector2d(8, 7));
}

TEST(ObserveNoisily, AddsTheNoiseItSays) {
  Segment still{Eigen::MatrixXd::Constant(3, 20'001, 2.0), Eigen::MatrixXd(0, 20'000),
                Eigen::VectorXd::Zero(20'000)};
  Rng rng(1, "noise");
  constexpr std::array kSlots{2};
  const Segment seen = ObserveNoisily(still, kSlots, 0.5, rng);
  ASSERT_EQ(seen.x.rows(), 1);
  const double variance = (seen.x.array() - 2.0).square().mean();
  EXPECT_NEAR(variance, 0.25, 5 * 0.25 * std::sqrt(2.0 / 20'000));
}

}  // namespace
}  // namespace msrl
