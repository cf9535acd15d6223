#include "msrl/diagnose/evaluation.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "msrl/core/check.h"

namespace msrl {

Segment ObserveNoisily(const Segment& segment, std::span<const int> slots, double deviation,
                       Rng& rng) {
  Segment seen{Eigen::MatrixXd(static_cast<Index>(slots.size()), segment.x.cols()), segment.a,
               segment.r};
  for (Index t = 0; t < segment.x.cols(); ++t) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      seen.x(static_cast<Index>(i), t) = segment.x(slots[i], t) + deviation * rng.Normal();
    }
  }
  return seen;
}

Segment WalkedBack(const Segment& segment) {
  return {segment.x.rowwise().reverse(), segment.a.rowwise().reverse(), segment.r.reverse()};
}

std::vector<std::string> BlocksOf(const Lift& lift, std::span<const std::string> full) {
  static const std::map<std::string, std::string> compact{
      {"c", "x"}, {"delta", "dx"}, {"xi_c", "a"}, {"xi_delta", "a"}};
  std::vector<std::string> names;
  for (const std::string& name : full) {
    const auto found = compact.find(name);
    const bool same = lift.kind() == LiftKind::kFull || found == compact.end();
    const std::string& here = same ? name : found->second;
    if (std::find(names.begin(), names.end(), here) == names.end()) names.push_back(here);
  }
  return names;
}

Eigen::VectorXd BlockEntries(const SegmentMatrix& matrix, std::span<const std::string> blocks) {
  std::vector<Index> channels;
  for (const std::string& name : blocks) {
    const LiftBlock& block = matrix.lift()->FindBlock(name);
    for (Index i = 0; i < block.size; ++i) channels.push_back(block.offset + i);
  }
  const auto count = static_cast<Index>(channels.size());
  Eigen::VectorXd entries(count * (count + 1) / 2);
  Index k = 0;
  for (std::size_t j = 0; j < channels.size(); ++j) {
    for (std::size_t i = 0; i <= j; ++i) entries[k++] = matrix(channels[i], channels[j]);
  }
  return entries;
}

Eigen::MatrixXd StackColumns(std::span<const SegmentMatrix> matrices, const FeatureMap& features) {
  Eigen::MatrixXd columns;
  for (std::size_t n = 0; n < matrices.size(); ++n) {
    const Eigen::VectorXd values = features(matrices[n]);
    if (n == 0) columns.resize(values.size(), std::ssize(matrices));
    MSRL_CHECK_EQ(values.size(), columns.rows());
    columns.col(static_cast<Index>(n)) = values;
  }
  return columns;
}

double AdditiveError(const Lift::Ptr& lift, const Segment& segment) {
  const Index half = segment.horizon() / 2;
  const SegmentMatrix parts = Describe(lift, Restrict(segment, {0, half})) +
                              Describe(lift, Restrict(segment, {half, segment.horizon()}));
  return Describe(lift, segment).Distance(parts);
}

Standardizer::Standardizer(const Eigen::MatrixXd& examples) {
  MSRL_CHECK_GT(examples.cols(), 0);
  mean_ = examples.rowwise().mean();
  const Eigen::VectorXd variance =
      (examples.colwise() - mean_).rowwise().squaredNorm() / static_cast<double>(examples.cols());
  inverse_deviation_ = variance;
  // a coordinate that never varies says nothing: leave it out
  const double cutoff = 1e-18 * std::max(variance.size() > 0 ? variance.maxCoeff() : 0.0, 1e-300);
  for (double& value : inverse_deviation_) value = value > cutoff ? 1.0 / std::sqrt(value) : 0.0;
}

Eigen::MatrixXd Standardizer::operator()(const Eigen::MatrixXd& examples) const {
  return inverse_deviation_.asDiagonal() * (examples.colwise() - mean_);
}

RidgeClassifier::RidgeClassifier(const Eigen::MatrixXd& examples, std::span<const int> labels,
                                 int classes, double penalty)
    : standardize_(examples) {
  MSRL_CHECK_EQ(examples.cols(), static_cast<Index>(labels.size()));
  const Eigen::MatrixXd x = standardize_(examples);
  Eigen::MatrixXd y = Eigen::MatrixXd::Zero(classes, x.cols());
  for (std::size_t n = 0; n < labels.size(); ++n) y(labels[n], static_cast<Index>(n)) = 1.0;
  bias_ = y.rowwise().mean();
  Eigen::MatrixXd gram = x * x.transpose();
  gram.diagonal().array() += penalty * static_cast<double>(x.cols());
  const Eigen::MatrixXd moments = x * (y.colwise() - bias_).transpose();
  weights_ = gram.ldlt().solve(moments).transpose();
}

Eigen::MatrixXd RidgeClassifier::Scores(const Eigen::MatrixXd& examples) const {
  return (weights_ * standardize_(examples)).colwise() + bias_;
}

double RidgeClassifier::Accuracy(const Eigen::MatrixXd& examples,
                                 std::span<const int> labels) const {
  const Eigen::MatrixXd scores = Scores(examples);
  int right = 0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    Index best = 0;
    scores.col(static_cast<Index>(n)).maxCoeff(&best);
    right += best == labels[n] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

Index Nearest(const Eigen::VectorXd& query, const Eigen::MatrixXd& gallery) {
  Index best = 0;
  (gallery.colwise() - query).colwise().squaredNorm().minCoeff(&best);
  return best;
}

}  // namespace msrl
