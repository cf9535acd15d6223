#include "msrl/inspect/value_theory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/symmetric_eigen.h"

namespace msrl {
namespace {

constexpr double kRounding = 1e-12;
constexpr int kMinSlopePoints = 3;

SegmentMatrix Scaled(SegmentMatrix matrix, double factor) {
  matrix *= factor;
  return matrix;
}

void RequireValid(const Ladder& ladder) {
  MSRL_CHECK(ladder.first > 0.0 && ladder.rungs >= kMinSlopePoints, "ladder from ", ladder.first,
             " with ", ladder.rungs, " rungs");
}

// Least squares through the points above the rounding of numbers of size `magnitude`.
void FitSlope(double magnitude, ErrorCurve& curve) {
  const double floor = kRounding * (1.0 + magnitude);
  std::vector<double> x, y;
  for (std::size_t i = 0; i < curve.size.size(); ++i) {
    if (curve.error[i] <= floor) continue;
    x.push_back(std::log(curve.size[i]));
    y.push_back(std::log(curve.error[i]));
  }
  curve.exact = x.empty();
  if (std::ssize(x) < kMinSlopePoints) return;
  const auto n = static_cast<double>(x.size());
  double mean_x = 0.0;
  double mean_y = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0.0;
  double xy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  curve.slope = xy / xx;
}

// The packed triangle with entries off the diagonal times sqrt(2): Euclidean products are
// Frobenius products.
Eigen::VectorXd Isometric(const SegmentMatrix& matrix) {
  Eigen::VectorXd values = Eigen::Map<const Eigen::VectorXd>(
      matrix.packed().data(), static_cast<Index>(matrix.packed().size()));
  for (Index j = 0, k = 0; j < matrix.dim(); ++j, ++k) {
    for (Index i = 0; i < j; ++i, ++k) values[k] *= std::numbers::sqrt2;
  }
  return values;
}

SegmentMatrix FromIsometric(const Lift::Ptr& lift, Eigen::VectorXd values) {
  for (Index j = 0, k = 0; j < lift->m(); ++j, ++k) {
    for (Index i = 0; i < j; ++i, ++k) values[k] /= std::numbers::sqrt2;
  }
  return SegmentMatrix::FromPacked(lift, {values.begin(), values.end()});
}

// `share` 0.5: the median. 0 if there is nothing.
double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// At least one curve, all of the same ladder.
ErrorSummary Summarise(const std::vector<ErrorCurve>& curves) {
  ErrorSummary summary;
  std::vector<double> slopes;
  for (const ErrorCurve& curve : curves) {
    if (curve.slope) slopes.push_back(*curve.slope);
    summary.exact += curve.exact ? 1 : 0;
  }
  for (std::size_t k = 0; k < curves[0].error.size(); ++k) {
    std::vector<double> errors;
    for (const ErrorCurve& curve : curves) errors.push_back(curve.error[k]);
    summary.median_errors.push_back(Quantile(std::move(errors), 0.5));
  }
  summary.curves = static_cast<int>(slopes.size());
  summary.slope_median = Quantile(slopes, 0.5);
  summary.slope_low = Quantile(slopes, 0.1);
  return summary;
}

}  // namespace

BranchValue::BranchValue(const ValueBranch& branch, const MatrixFeatures& features)
    : features_(features), network_(branch.network()) {
  if (!(branch.info().features == features.options()) ||
      branch.feature_count() != features.size()) {
    throw UserError(StrCat("the branch was trained on features '", branch.info().features.Name(),
                           "' (", branch.feature_count(), "), these are '",
                           features.options().Name(), "' (", features.size(), ")"));
  }
}

double BranchValue::Value(const SegmentMatrix& z) const {
  Eigen::VectorXd input(features_.size());
  features_.Compute(z, std::span(input.data(), static_cast<std::size_t>(input.size())));
  return network_.Forward(input).output[0];
}

SegmentMatrix BranchValue::Gradient(const SegmentMatrix& z) const {
  Eigen::VectorXd input(features_.size());
  features_.Compute(z, std::span(input.data(), static_cast<std::size_t>(input.size())));
  const Eigen::VectorXd gradient = network_.InputGradient(input, Eigen::VectorXd::Ones(1));
  return features_.Pullback(z, {gradient.data(), static_cast<std::size_t>(gradient.size())});
}

ErrorCurve FirstOrderError(const MatrixValue& value, const SegmentMatrix& z,
                           const SegmentMatrix& increment, const Ladder& ladder) {
  RequireValid(ladder);
  const double at_z = value.Value(z);
  const double slope = value.Gradient(z).Inner(increment);
  const double norm = increment.Norm();
  ErrorCurve curve;
  double magnitude = std::abs(at_z);
  for (int k = 0; k < ladder.rungs; ++k) {
    const double e = std::ldexp(ladder.first, -k);
    const double there = value.Value(z + Scaled(increment, e));
    curve.size.push_back(e * norm);
    curve.error.push_back(std::abs(there - at_z - e * slope));
    magnitude = std::max(magnitude, std::abs(there));
  }
  FitSlope(magnitude, curve);
  return curve;
}

ErrorCurve AdditivityError(const MatrixValue& value, const SegmentMatrix& z,
                           const SegmentMatrix& first, const SegmentMatrix& second,
                           const Ladder& ladder) {
  RequireValid(ladder);
  const double at_z = value.Value(z);
  const double norm = first.Norm() + second.Norm();
  ErrorCurve curve;
  double magnitude = std::abs(at_z);
  for (int k = 0; k < ladder.rungs; ++k) {
    const double e = std::ldexp(ladder.first, -k);
    const SegmentMatrix h_1 = Scaled(first, e);
    const SegmentMatrix h_2 = Scaled(second, e);
    const double v_1 = value.Value(z + h_1);
    const double v_2 = value.Value(z + h_2);
    const double both = value.Value(z + h_1 + h_2);
    curve.size.push_back(e * norm);
    curve.error.push_back(std::abs((both - v_1) - (v_2 - at_z)));
    magnitude = std::max({magnitude, std::abs(v_1), std::abs(v_2), std::abs(both)});
  }
  FitSlope(magnitude, curve);
  return curve;
}

IncrementSpan::IncrementSpan(std::span<const SegmentMatrix> increments) {
  MSRL_CHECK(!increments.empty());
  lift_ = increments[0].lift();
  const auto size = static_cast<Index>(increments[0].packed().size());
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(size, size);
  for (const SegmentMatrix& increment : increments) {
    RequireSameLift(*increment.lift(), *lift_, "span of increments");
    const Eigen::VectorXd h = Isometric(increment);
    gram.selfadjointView<Eigen::Lower>().rankUpdate(h);
  }
  gram.triangularView<Eigen::StrictlyUpper>() = gram.transpose();
  const internal::SymmetricEigen eigen = internal::DecomposeSymmetric(gram);
  const double largest = eigen.values[size - 1];
  MSRL_CHECK(largest > 0.0, "all increments are zero");
  // squares of singular values: what is below this cannot be told from rounding
  const auto rank = static_cast<Index>(
      (eigen.values.array() > 1e-12 * static_cast<double>(size) * largest).count());
  basis_ = eigen.vectors.rightCols(rank).rowwise().reverse();
  energies_ = eigen.values.tail(rank).reverse();
}

Eigen::VectorXd IncrementSpan::Project(const SegmentMatrix& matrix) const {
  RequireSameLift(*matrix.lift(), *lift_, "span of increments");
  return basis_.transpose() * Isometric(matrix);
}

NullAnalysis IncrementSpan::Analyse(const SegmentMatrix& gradient) const {
  const Eigen::VectorXd c = Project(gradient);
  NullAnalysis result;
  result.gradient_norm = gradient.Norm();
  result.within_span = c.norm();
  if (result.within_span > kRounding * result.gradient_norm) {
    const double seen = energies_.dot(c.cwiseAbs2()) / c.squaredNorm();
    result.null_share = 1.0 - seen / energy();
  }
  return result;
}

std::vector<SegmentMatrix> IncrementSpan::ValueNullDirections(const SegmentMatrix& gradient,
                                                              int most) const {
  const Eigen::VectorXd c = Project(gradient);
  const bool relevant = c.norm() > kRounding * gradient.Norm();
  // energy restricted to what is orthogonal to W; W's own direction is pushed below everything
  Eigen::MatrixXd energy = energies_.asDiagonal();
  if (relevant) {
    const Eigen::VectorXd q = c.normalized();
    const Eigen::MatrixXd project = Eigen::MatrixXd::Identity(rank(), rank()) - q * q.transpose();
    energy = (project * energy * project - energies_[0] * q * q.transpose()).eval();
  }
  const internal::SymmetricEigen eigen = internal::DecomposeSymmetric(energy);
  std::vector<SegmentMatrix> directions;
  const int count = std::min(most, rank() - (relevant ? 1 : 0));
  for (int k = 0; k < count; ++k) {
    directions.push_back(FromIsometric(lift_, basis_ * eigen.vectors.col(rank() - 1 - k)));
  }
  return directions;
}

ValueTheoryReport StudyValue(const MatrixValue& value, std::span<const SegmentMatrix> prefixes,
                             std::span<const SegmentMatrix> increments, const Ladder& ladder) {
  const std::vector<const MatrixValue*> values(prefixes.size(), &value);
  return StudyValues(values, prefixes, increments, ladder);
}

ValueTheoryReport StudyValues(std::span<const MatrixValue* const> values,
                              std::span<const SegmentMatrix> prefixes,
                              std::span<const SegmentMatrix> increments, const Ladder& ladder) {
  MSRL_CHECK_EQ(prefixes.size(), values.size());
  MSRL_CHECK_EQ(prefixes.size(), increments.size());
  RequireValid(ladder);
  MSRL_CHECK_GE(std::ssize(prefixes), 2);
  const IncrementSpan span(increments);
  ValueTheoryReport report;
  report.states = static_cast<int>(prefixes.size());
  report.increment_rank = span.rank();
  std::vector<ErrorCurve> first_order, additivity;
  double error = 0.0;
  double change = 0.0;
  int same_sign = 0;
  const auto n = static_cast<double>(prefixes.size());
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const SegmentMatrix& z = prefixes[i];
    const SegmentMatrix& h = increments[i];
    const MatrixValue& value = *values[i];
    first_order.push_back(FirstOrderError(value, z, h, ladder));
    additivity.push_back(
        AdditivityError(value, z, h, increments[(i + 1) % increments.size()], ladder));

    const SegmentMatrix gradient = value.Gradient(z);
    const double foretold = gradient.Inner(h);
    const double real = value.Value(z + h) - value.Value(z);
    error += std::abs(real - foretold);
    change += std::abs(real);
    same_sign += (real > 0.0) == (foretold > 0.0) ? 1 : 0;

    const NullAnalysis null = span.Analyse(gradient);
    report.gradient_norm += null.gradient_norm / n;
    report.null_share += null.null_share / n;
    if (null.gradient_norm > 0.0) {
      const double share = null.within_span / null.gradient_norm;
      report.gradient_share_in_span += share * share / n;
    }
  }
  for (int k = 0; k < ladder.rungs; ++k) report.factors.push_back(std::ldexp(ladder.first, -k));
  report.first_order = Summarise(first_order);
  report.additivity = Summarise(additivity);
  report.first_order_relative_error = change > 0.0 ? error / change : 0.0;
  report.sign_agreement = same_sign / n;
  return report;
}

std::vector<GradientBlock> GradientBlocks(std::span<const SegmentMatrix> gradients) {
  MSRL_CHECK(!gradients.empty());
  const Lift& lift = *gradients[0].lift();
  const auto count = static_cast<double>(gradients.size());
  double total = 0.0;
  for (const SegmentMatrix& gradient : gradients) {
    MSRL_CHECK(gradient.lift()->id() == lift.id());
    total += gradient.Inner(gradient);
  }
  std::vector<GradientBlock> blocks;
  for (std::size_t i = 0; i < lift.blocks().size(); ++i) {
    for (std::size_t j = i; j < lift.blocks().size(); ++j) {
      GradientBlock block{.rows = lift.blocks()[i].name, .columns = lift.blocks()[j].name};
      double squares = 0.0;
      for (const SegmentMatrix& gradient : gradients) {
        squares += gradient.Block(block.rows, block.columns).squaredNorm();
      }
      if (i != j) squares *= 2.0;
      block.norm = std::sqrt(squares / count);
      block.share = total > 0.0 ? squares / total : 0.0;
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

std::vector<GradientEntry> LargestEntries(std::span<const SegmentMatrix> gradients, int most) {
  MSRL_CHECK(!gradients.empty());
  const Lift& lift = *gradients[0].lift();
  const std::vector<std::string> labels = lift.Labels();
  const auto count = static_cast<double>(gradients.size());
  std::vector<GradientEntry> entries;
  for (Index j = 0; j < lift.m(); ++j) {
    for (Index i = 0; i <= j; ++i) {
      GradientEntry entry;
      entry.name = labels[static_cast<std::size_t>(i)] + "*" + labels[static_cast<std::size_t>(j)];
      double squares = 0.0;
      for (const SegmentMatrix& gradient : gradients) {
        const double derivative = (i == j ? 1.0 : 2.0) * gradient(i, j);
        entry.mean += derivative / count;
        squares += derivative * derivative;
        entry.positive += derivative > 0.0 ? 1.0 / count : 0.0;
      }
      entry.rms = std::sqrt(squares / count);
      if (entry.rms > 0.0) entries.push_back(std::move(entry));
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const GradientEntry& a, const GradientEntry& b) { return a.rms > b.rms; });
  entries.resize(std::min(entries.size(), static_cast<std::size_t>(std::max(most, 0))));
  return entries;
}

}  // namespace msrl
