#include "msrl/diagnose/descriptor_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msrl/core/segment.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/testing/tolerance.h"

namespace msrl::internal {
namespace {

using testing::Tol;

constexpr Index kActions = 3;

Lift::Ptr MakeLift(LiftKind kind) {
  LiftSpec spec;
  spec.kind = kind;
  spec.d = 2;
  spec.q = kActions;
  return Lift::Make(spec);
}

// One-hot actions and no rewards, as the walks of a maze have.
std::vector<SegmentMatrix> RandomMatrices(const Lift::Ptr& lift, int count, Rng& rng) {
  std::vector<SegmentMatrix> matrices;
  for (int n = 0; n < count; ++n) {
    const Index length = 1 + rng.Index(4);
    Segment segment{Eigen::MatrixXd(2, length + 1), Eigen::MatrixXd::Zero(kActions, length),
                    Eigen::VectorXd::Zero(length)};
    for (double& value : segment.x.reshaped()) value = rng.Normal();
    for (Index t = 0; t < length; ++t) segment.a(rng.Index(kActions), t) = 1.0;
    matrices.push_back(Describe(lift, segment));
  }
  return matrices;
}

// Frobenius distance over the rows and columns of some channels, entry by entry.
double PlainNearest(const SegmentMatrix& candidate, const std::vector<SegmentMatrix>& reachable,
                    const std::vector<Index>& channels) {
  double least = std::numeric_limits<double>::infinity();
  for (const SegmentMatrix& other : reachable) {
    double sum = 0.0;
    for (const Index i : channels) {
      for (const Index j : channels) sum += std::pow(candidate(i, j) - other(i, j), 2);
    }
    least = std::min(least, sum);
  }
  return std::sqrt(least);
}

std::vector<Index> ChannelsOf(const Lift& lift, const std::vector<std::string>& blocks) {
  std::vector<Index> channels;
  for (const std::string& name : blocks) {
    const LiftBlock& block = lift.FindBlock(name);
    for (Index i = 0; i < block.size; ++i) channels.push_back(block.offset + i);
  }
  return channels;
}

void ExpectDistancesOfWholeMatrices(LiftKind kind, const std::string& place,
                                    const std::vector<std::string>& without_displacement,
                                    const std::vector<std::string>& without_actions) {
  const Lift::Ptr lift = MakeLift(kind);
  Rng rng(3, "scan");
  const DescriptorScan scan(lift, rng);
  const std::vector<SegmentMatrix> reachable = RandomMatrices(lift, 40, rng);
  const std::vector<SegmentMatrix> candidates = RandomMatrices(lift, 10, rng);
  std::vector<std::string> all;
  for (const LiftBlock& block : lift->blocks()) all.push_back(block.name);
  const Index c = lift->FindBlock(place).offset;
  const std::vector<std::pair<std::string, std::vector<Index>>> expected = {
      {"full", ChannelsOf(*lift, all)},
      {"occupancy", {c, c + 1}},
      {"without displacement", ChannelsOf(*lift, without_displacement)},
      {"without actions", ChannelsOf(*lift, without_actions)}};
  ASSERT_EQ(scan.parts(), expected.size());
  for (std::size_t part = 0; part < expected.size(); ++part) {
    EXPECT_EQ(scan.name(part), expected[part].first);
    const std::vector<double> nearest =
        scan.Nearest(part, scan.Gather(candidates), scan.Gather(reachable));
    ASSERT_EQ(nearest.size(), candidates.size());
    for (std::size_t n = 0; n < candidates.size(); ++n) {
      EXPECT_GT(nearest[n], 0.0);
      EXPECT_NEAR(nearest[n], PlainNearest(candidates[n], reachable, expected[part].second),
                  Tol(1e-6))
          << expected[part].first;
    }
  }
}

TEST(DescriptorScan, DistancesAreThoseOfTheWholeMatrices) {
  ExpectDistancesOfWholeMatrices(LiftKind::kFull, "c", {"c", "xi_c", "1"}, {"c", "delta", "1"});
  ExpectDistancesOfWholeMatrices(LiftKind::kCompact, "x", {"x", "a", "1"}, {"x", "dx", "1"});
}

TEST(DescriptorScan, AReachableMatrixIsAtNoDistance) {
  const Lift::Ptr lift = MakeLift(LiftKind::kFull);
  Rng rng(4, "scan");
  const DescriptorScan scan(lift, rng);
  const Eigen::MatrixXd gathered = scan.Gather(RandomMatrices(lift, 20, rng));
  for (std::size_t part = 0; part < scan.parts(); ++part) {
    for (const double distance : scan.Nearest(part, gathered, gathered)) {
      EXPECT_LT(distance, Tol(1e-6));
    }
  }
}

TEST(DescriptorScan, HoldsEachEntryOnce) {
  const Lift::Ptr lift = MakeLift(LiftKind::kFull);
  Rng rng(5, "scan");
  const DescriptorScan scan(lift, rng);
  const Eigen::MatrixXd gathered = scan.Gather(RandomMatrices(lift, 1, rng));
  const Index m = lift->m();
  EXPECT_GT(gathered.rows(), 10);
  EXPECT_LT(gathered.rows(), m * (m + 1) / 2);
}

}  // namespace
}  // namespace msrl::internal
