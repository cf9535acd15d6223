#include "msrl/nn/running_normalizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

// Far from zero, where naive sums of squares lose everything.
Eigen::MatrixXf Samples(int columns) {
  Rng rng(1, "normalizer");
  Eigen::MatrixXf samples(2, columns);
  for (int b = 0; b < columns; ++b) {
    samples(0, b) = static_cast<float>(10'000.0 + rng.Normal());
    samples(1, b) = static_cast<float>(0.01 * rng.Normal() - 3.0);
  }
  return samples;
}

TEST(RunningNormalizerTest, AnyPartsGiveTheWholesStatistics) {
  const Eigen::MatrixXf samples = Samples(1000);
  const Eigen::MatrixXd exact = samples.cast<double>();
  const Eigen::VectorXd mean = exact.rowwise().mean();
  const Eigen::VectorXd variance = (exact.colwise() - mean).array().square().rowwise().mean();
  RunningNormalizer batches(2);
  for (int b = 0; b < 1000; b += 125) batches.Update(samples.middleCols(b, 125));
  RunningNormalizer single(2);
  for (int b = 0; b < 1000; ++b) single.Update(samples.col(b));
  RunningNormalizer merged(2);
  RunningNormalizer rest(2);
  merged.Update(samples.leftCols(300));
  rest.Update(samples.rightCols(700));
  merged.Merge(rest);
  merged.Merge(RunningNormalizer(2));
  for (const RunningNormalizer* n : {&batches, &single, &merged}) {
    EXPECT_EQ(n->count(), 1000.0);
    EXPECT_LT((n->mean() - mean).norm(), Tol(1e-9));
    EXPECT_LT((n->variance() - variance).norm(), Tol(1e-9));
  }
}

TEST(RunningNormalizerTest, NormalisesScalesAndClips) {
  RunningNormalizer normalizer(2, 1.5);
  const Eigen::MatrixXf samples = Samples(1000);
  Eigen::MatrixXf out(2, 1000);
  normalizer.Normalize(Eigen::MatrixXf::Constant(2, 1, 0.5F), out.leftCols(1));
  EXPECT_NEAR(out(0, 0), 0.5, Tol(1e-6));  // before the first sample
  normalizer.Update(samples);
  const std::int64_t before = testing::AllocationCount();
  normalizer.Normalize(samples, out);
  EXPECT_EQ(testing::AllocationCount(), before);
  EXPECT_EQ(out.maxCoeff(), 1.5F);
  EXPECT_EQ(out.minCoeff(), -1.5F);
  const double z =
      (samples(1, 7) - normalizer.mean()[1]) / std::sqrt(normalizer.variance()[1] + 1e-8);
  EXPECT_NEAR(out(1, 7), std::clamp(z, -1.5, 1.5), Tol(1e-3));
  normalizer.Scale(Eigen::MatrixXf::Constant(2, 1, 0.01F), out.leftCols(1));
  EXPECT_NEAR(out(1, 0), 0.01 / std::sqrt(normalizer.variance()[1] + 1e-8), Tol(1e-4));
}

TEST(RunningNormalizerTest, SavesAndLoads) {
  RunningNormalizer normalizer(2);
  normalizer.Update(Samples(50));
  ByteWriter writer;
  normalizer.Save(writer);
  RunningNormalizer loaded(2);
  ByteReader reader(writer.bytes(), "test");
  loaded.Load(reader);
  reader.RequireEnd();
  EXPECT_EQ(loaded.count(), 50.0);
  EXPECT_EQ(loaded.mean(), normalizer.mean());
  EXPECT_EQ(loaded.variance(), normalizer.variance());
  Eigen::MatrixXf a = Samples(3);
  Eigen::MatrixXf b = a;
  normalizer.Normalize(a, a);
  loaded.Normalize(b, b);
  EXPECT_EQ(a, b);

  RunningNormalizer other(3);
  ByteReader wrong(writer.bytes(), "test");
  EXPECT_THROW(other.Load(wrong), UserError);
  ByteReader short_reader(std::span(writer.bytes()).first(20), "test");
  EXPECT_THROW(loaded.Load(short_reader), UserError);
  EXPECT_EQ(loaded.count(), 50.0);
}

TEST(RunningNormalizerTest, RefusesWhatIsNotFinite) {
  RunningNormalizer normalizer(1);
  EXPECT_THROW(normalizer.Update(Eigen::MatrixXf::Constant(1, 2, NAN)), InvariantError);
  EXPECT_EQ(normalizer.count(), 0.0);
  EXPECT_THROW(normalizer.Update(Eigen::MatrixXf::Zero(2, 2)), InvariantError);
}

}  // namespace
}  // namespace msrl
