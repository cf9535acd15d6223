#include "msrl/diagnose/descriptor_scan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "msrl/core/segment.h"
#include "msrl/diagnose/evaluation.h"

namespace msrl::internal {
namespace {

// A generic matrix: entries that vanish or are equal here do so for all one-hot actions. No two
// actions are equally frequent, since the compact lift counts them.
SegmentMatrix Typical(const Lift::Ptr& lift, Rng& rng) {
  const Index length = std::max<Index>(20, lift->q() * (lift->q() + 1) / 2 + 1);
  Segment segment{Eigen::MatrixXd(lift->d(), length + 1), Eigen::MatrixXd::Zero(lift->q(), length),
                  Eigen::VectorXd::Zero(length)};
  for (double& value : segment.x.reshaped()) value = rng.Normal();
  Index t = 1;  // the first step has no action
  for (Index i = 0; i < lift->q(); ++i) {
    for (Index n = 0; n <= i; ++n) segment.a(i, t++) = 1.0;
  }
  return Describe(lift, segment);
}

// Of blocks named as in the full lift.
std::vector<Index> Channels(const Lift& lift, const std::vector<std::string>& blocks) {
  std::vector<Index> channels;
  for (const std::string& name : BlocksOf(lift, blocks)) {
    const LiftBlock& block = lift.FindBlock(name);
    for (Index i = 0; i < block.size; ++i) channels.push_back(block.offset + i);
  }
  return channels;
}

}  // namespace

DescriptorScan::DescriptorScan(const Lift::Ptr& lift, Rng& rng) : typical_(Typical(lift, rng)) {
  std::vector<std::string> all;
  for (const LiftBlock& block : lift->blocks()) all.push_back(block.name);
  AddPart("full", Channels(*lift, all));
  AddPart("occupancy", {0, 1});  // of the place, which comes first
  AddPart("without displacement", Channels(*lift, {{"c", "xi_c", "1"}}));
  AddPart("without actions", Channels(*lift, {{"c", "delta", "1"}}));
}

Eigen::MatrixXd DescriptorScan::Gather(std::span<const SegmentMatrix> matrices) const {
  Eigen::MatrixXd values(std::ssize(entries_), std::ssize(matrices));
  for (std::size_t n = 0; n < matrices.size(); ++n) {
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      values(static_cast<Index>(k), static_cast<Index>(n)) =
          matrices[n](entries_[k].first, entries_[k].second);
    }
  }
  return values;
}

std::vector<double> DescriptorScan::Nearest(std::size_t part, const Eigen::MatrixXd& candidates,
                                            const Eigen::MatrixXd& reachable) const {
  const Part& p = parts_[part];
  const Eigen::VectorXd weights =
      Eigen::Map<const Eigen::VectorXd>(p.counts.data(), std::ssize(p.counts)).cwiseSqrt();
  const Eigen::MatrixXd gallery = weights.asDiagonal() * reachable(p.rows, Eigen::all);
  const Eigen::MatrixXd queries = weights.asDiagonal() * candidates(p.rows, Eigen::all);
  const Eigen::VectorXd norms = gallery.colwise().squaredNorm();
  const Eigen::MatrixXd products = gallery.transpose() * queries;
  std::vector<double> nearest;
  for (Index n = 0; n < queries.cols(); ++n) {
    const double squared = (norms - 2.0 * products.col(n)).minCoeff();
    nearest.push_back(std::sqrt(std::max(0.0, squared + queries.col(n).squaredNorm())));
  }
  return nearest;
}

void DescriptorScan::AddPart(std::string name, const std::vector<Index>& channels) {
  std::map<Index, double> counts;
  for (std::size_t j = 0; j < channels.size(); ++j) {
    for (std::size_t i = 0; i <= j; ++i) {
      const double value = typical_(channels[i], channels[j]);
      if (value == 0.0) continue;
      const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
        return std::abs(typical_(entry.first, entry.second) - value) < 1e-11;
      });
      const Index row = same - entries_.begin();
      if (same == entries_.end()) entries_.emplace_back(channels[i], channels[j]);
      counts[row] += i == j ? 1.0 : 2.0;
    }
  }
  Part part{.name = std::move(name), .rows = {}, .counts = {}};
  for (const auto& [row, count] : counts) {
    part.rows.push_back(row);
    part.counts.push_back(count);
  }
  parts_.push_back(std::move(part));
}

}  // namespace msrl::internal
