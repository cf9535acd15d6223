#include "msrl/core/segment_matrix.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/core/symmetric_eigen.h"

namespace msrl {

using internal::PackedIndex;
using internal::PackedSize;

SegmentMatrix::SegmentMatrix(Lift::Ptr lift) : lift_(std::move(lift)) {
  MSRL_CHECK(lift_ != nullptr);
  packed_.assign(static_cast<std::size_t>(PackedSize(dim())), 0.0);
}

SegmentMatrix SegmentMatrix::FromDense(Lift::Ptr lift, const Eigen::MatrixXd& dense) {
  SegmentMatrix result(std::move(lift));
  const Index m = result.dim();
  if (dense.rows() != m || dense.cols() != m) {
    throw UserError(
        StrCat("matrix is ", dense.rows(), " x ", dense.cols(), ", the lift needs ", m, " x ", m));
  }
  if (!dense.allFinite()) throw UserError("matrix has an entry that is not finite");
  const double tolerance = 1e-12 * dense.cwiseAbs().maxCoeff();
  for (Index j = 0; j < m; ++j) {
    for (Index i = 0; i <= j; ++i) {
      if (std::abs(dense(i, j) - dense(j, i)) > tolerance) {
        throw UserError(StrCat("matrix is not symmetric: entry (", i, ",", j, ") is ", dense(i, j),
                               ", (", j, ",", i, ") is ", dense(j, i)));
      }
      result.packed_[static_cast<std::size_t>(PackedIndex(i, j))] = dense(i, j);
    }
  }
  return result;
}

SegmentMatrix SegmentMatrix::FromPacked(Lift::Ptr lift, std::vector<double> packed) {
  SegmentMatrix result(std::move(lift));
  if (packed.size() != result.packed_.size()) {
    throw UserError(StrCat("packed matrix has ", packed.size(), " numbers, the lift needs ",
                           result.packed_.size()));
  }
  for (const double value : packed) {
    if (!std::isfinite(value)) throw UserError("packed matrix has an entry that is not finite");
  }
  result.packed_ = std::move(packed);
  return result;
}

double SegmentMatrix::operator()(Index i, Index j) const {
  MSRL_CHECK(i >= 0 && j >= 0 && i < dim() && j < dim(), "(", i, ",", j, ") of ", dim());
  return packed_[static_cast<std::size_t>(PackedIndex(i, j))];
}

double SegmentMatrix::HorizonEntry() const { return packed_.back(); }

std::int64_t SegmentMatrix::Horizon() const {
  const double value = HorizonEntry();
  MSRL_CHECK(value >= 0.0 && value == std::floor(value), "M_11 is ", value);
  return static_cast<std::int64_t>(value);
}

void SegmentMatrix::AddStep(const Eigen::Ref<const Eigen::VectorXd>& psi) {
  MSRL_CHECK_EQ(psi.size(), dim());
  internal::PackedRank1Update(psi.data(), dim(), packed_.data());
}

void SegmentMatrix::AddSteps(const Eigen::Ref<const Eigen::MatrixXd>& psi) {
  MSRL_CHECK_EQ(psi.rows(), dim());
  internal::PackedSyrk(psi.data(), dim(), psi.cols(), psi.outerStride(), packed_.data());
}

void SegmentMatrix::AddPacked(std::span<const double> packed) {
  MSRL_CHECK_EQ(packed.size(), packed_.size());
  for (std::size_t k = 0; k < packed_.size(); ++k) packed_[k] += packed[k];
}

void SegmentMatrix::ReplaceChannel(Index k, double u, Index i, double v, Index j) {
  MSRL_CHECK(i != k && j != k);
  const auto at = [this](Index row, Index column) -> double& {
    return packed_[static_cast<std::size_t>(PackedIndex(row, column))];
  };
  for (Index c = 0; c < dim(); ++c) {
    if (c != k) at(k, c) = u * at(i, c) + v * at(j, c);
  }
  at(k, k) = u * at(k, i) + v * at(k, j);
}

void SegmentMatrix::SetZero() { std::fill(packed_.begin(), packed_.end(), 0.0); }

SegmentMatrix& SegmentMatrix::operator+=(const SegmentMatrix& other) {
  RequireSameLift(*lift_, *other.lift_, "cannot add matrices");
  for (std::size_t k = 0; k < packed_.size(); ++k) packed_[k] += other.packed_[k];
  return *this;
}

SegmentMatrix& SegmentMatrix::operator-=(const SegmentMatrix& other) {
  RequireSameLift(*lift_, *other.lift_, "cannot subtract matrices");
  for (std::size_t k = 0; k < packed_.size(); ++k) packed_[k] -= other.packed_[k];
  return *this;
}

SegmentMatrix& SegmentMatrix::operator*=(double factor) {
  for (double& value : packed_) value *= factor;
  return *this;
}

bool SegmentMatrix::operator==(const SegmentMatrix& other) const {
  return lift_->id() == other.lift_->id() && packed_ == other.packed_;
}

double SegmentMatrix::Inner(const SegmentMatrix& other) const {
  RequireSameLift(*lift_, *other.lift_, "cannot compare matrices");
  double sum = 0.0;
  std::size_t k = 0;
  for (Index j = 0; j < dim(); ++j) {
    double above = 0.0;
    for (Index i = 0; i < j; ++i, ++k) above += packed_[k] * other.packed_[k];
    sum += 2.0 * above + packed_[k] * other.packed_[k];
    ++k;
  }
  return sum;
}

double SegmentMatrix::Distance(const SegmentMatrix& other) const {
  RequireSameLift(*lift_, *other.lift_, "cannot compare matrices");
  double sum = 0.0;
  std::size_t k = 0;
  for (Index j = 0; j < dim(); ++j) {
    double above = 0.0;
    for (Index i = 0; i < j; ++i, ++k) {
      const double difference = packed_[k] - other.packed_[k];
      above += difference * difference;
    }
    const double difference = packed_[k] - other.packed_[k];
    sum += 2.0 * above + difference * difference;
    ++k;
  }
  return std::sqrt(sum);
}

double SegmentMatrix::Norm() const { return std::sqrt(Inner(*this)); }

double SegmentMatrix::Trace() const {
  double sum = 0.0;
  for (Index i = 0; i < dim(); ++i) sum += packed_[static_cast<std::size_t>(PackedIndex(i, i))];
  return sum;
}

Eigen::MatrixXd SegmentMatrix::Dense() const {
  Eigen::MatrixXd dense(dim(), dim());
  std::size_t k = 0;
  for (Index j = 0; j < dim(); ++j) {
    for (Index i = 0; i <= j; ++i, ++k) dense(i, j) = dense(j, i) = packed_[k];
  }
  return dense;
}

Eigen::MatrixXd SegmentMatrix::Block(std::string_view rows, std::string_view columns) const {
  const LiftBlock& row = lift_->FindBlock(rows);
  const LiftBlock& column = lift_->FindBlock(columns);
  Eigen::MatrixXd block(row.size, column.size);
  for (Index j = 0; j < column.size; ++j) {
    for (Index i = 0; i < row.size; ++i) {
      block(i, j) =
          packed_[static_cast<std::size_t>(PackedIndex(row.offset + i, column.offset + j))];
    }
  }
  return block;
}

Eigen::VectorXd SegmentMatrix::Eigenvalues() const {
  return internal::DecomposeSymmetric(Dense()).values;
}

bool SegmentMatrix::IsPsd(double tolerance) const {
  const Eigen::VectorXd eigenvalues = Eigenvalues();
  return eigenvalues.minCoeff() >= -tolerance * eigenvalues.cwiseAbs().maxCoeff();
}

}  // namespace msrl
