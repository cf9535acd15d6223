#include "msrl/core/gauge.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/patterns.h"
#include "msrl/core/symmetric_eigen.h"

namespace msrl {
namespace {

// Eigenvalues below this share of the largest count as zero: directions the segment never took.
constexpr double kRankTolerance = 1e-10;

bool IsOrthogonal(const Eigen::MatrixXd& u) {
  return (u.transpose() * u - Eigen::MatrixXd::Identity(u.rows(), u.cols())).norm() <= 1e-9;
}

// e = |a|^2 and p = |x'|^2 over the first two slots keep their values under rotations only.
void RequireKeepsSquares(const Lift& lift, const Gauge& gauge) {
  if (lift.HasBlock("e") && !IsOrthogonal(gauge.U)) {
    throw UserError(StrCat("the lift ", LiftKindName(lift.kind()),
                           " allows orthogonal U only: others change |a|^2"));
  }
  if (lift.kind() == LiftKind::kCompactSquares &&
      (!IsOrthogonal(gauge.S.topLeftCorner(2, 2)) ||
       gauge.S.topRightCorner(2, lift.d() - 2).norm() > 1e-9)) {
    throw UserError(
        "the lift compact-squares allows S only that turn the first two slots among themselves: "
        "others change |x'|^2");
  }
}

void RequireFits(const Gauge& gauge, Index d, Index q) {
  if (gauge.S.rows() != d || gauge.S.cols() != d || gauge.U.rows() != q || gauge.U.cols() != q) {
    throw UserError(StrCat("gauge needs S of ", d, " x ", d, " and U of ", q, " x ", q, ", got ",
                           gauge.S.rows(), " x ", gauge.S.cols(), " and ", gauge.U.rows(), " x ",
                           gauge.U.cols()));
  }
}

// rows <- H rows, block by block; (U (x) S) acts as S on each of the q groups, then U across them.
void ApplyToRows(const Lift& lift, const Gauge& gauge, Eigen::MatrixXd& matrix) {
  const Index d = lift.d();
  const Index q = lift.q();
  for (const LiftBlock& block : lift.blocks()) {
    auto rows = matrix.middleRows(block.offset, block.size);
    switch (block.role) {
      case BlockRole::kGeometry:
        rows = (gauge.S * rows).eval();
        break;
      case BlockRole::kAction:
        rows = (gauge.U * rows).eval();
        break;
      case BlockRole::kActionGeometry: {
        Eigen::MatrixXd transformed(block.size, matrix.cols());
        for (Index k = 0; k < q; ++k) {
          transformed.middleRows(k * d, d).noalias() = gauge.S * rows.middleRows(k * d, d);
        }
        rows.setZero();
        for (Index k = 0; k < q; ++k) {
          for (Index l = 0; l < q; ++l) {
            rows.middleRows(k * d, d) += gauge.U(k, l) * transformed.middleRows(l * d, d);
          }
        }
        break;
      }
      case BlockRole::kInvariant:
        break;
    }
  }
}

// W with W A W^T = identity on the range of A and zero elsewhere; A symmetric PSD.
Eigen::MatrixXd Whitener(const Eigen::MatrixXd& a) {
  if (a.size() == 0) return a;
  const internal::SymmetricEigen eigen = internal::DecomposeSymmetric(a);
  const double cutoff = kRankTolerance * std::max(eigen.values.maxCoeff(), 0.0);
  Eigen::VectorXd scale = eigen.values;
  for (double& value : scale) value = value > cutoff ? 1.0 / std::sqrt(value) : 0.0;
  return scale.asDiagonal() * eigen.vectors.transpose();
}

class FeatureList {
 public:
  void Add(double value) { values_.push_back(value); }
  void Add(const Eigen::VectorXd& values) {
    values_.insert(values_.end(), values.begin(), values.end());
  }
  void AddSpectrum(const Eigen::MatrixXd& symmetric) {
    Add(internal::DecomposeSymmetric(symmetric).values);
  }
  void AddSquaredSingularValues(const Eigen::MatrixXd& matrix) {
    const bool wide = matrix.cols() > matrix.rows();
    AddSpectrum(wide ? Eigen::MatrixXd(matrix * matrix.transpose())
                     : Eigen::MatrixXd(matrix.transpose() * matrix));
  }
  // Upper triangle of V^T V.
  void AddGram(const Eigen::MatrixXd& vectors) {
    const Eigen::MatrixXd gram = vectors.transpose() * vectors;
    for (Index j = 0; j < gram.cols(); ++j) {
      for (Index i = 0; i <= j; ++i) Add(gram(i, j));
    }
  }
  Eigen::VectorXd Done() const {
    return Eigen::Map<const Eigen::VectorXd>(values_.data(), static_cast<Index>(values_.size()));
  }

 private:
  std::vector<double> values_;
};

// Midpoint-like block P, displacement-like block D and their couplings, all moved by the same
// matrix.
struct Pair {
  Eigen::MatrixXd pp, pd, dd;
  Eigen::MatrixXd to_scalars;  // columns: P and D against r (if any) and 1
};

Eigen::MatrixXd AddPairFeatures(const Pair& pair, FeatureList& features) {
  // pp + dd/4 is half the second moment of both ends of the steps: its range holds P and D
  const Eigen::MatrixXd w = Whitener(pair.pp + 0.25 * pair.dd);
  const Eigen::MatrixXd incidence = w * pair.pd * w.transpose();
  features.AddSpectrum(w * pair.dd * w.transpose());
  features.AddSpectrum(0.5 * (incidence + incidence.transpose()));
  features.AddSquaredSingularValues(0.5 * (incidence - incidence.transpose()));
  features.AddGram(w * pair.to_scalars);
  return w;
}

}  // namespace

Gauge Gauge::Identity(Index d, Index q) {
  return {Eigen::MatrixXd::Identity(d, d), Eigen::MatrixXd::Identity(q, q)};
}

Gauge Gauge::Inverse() const {
  const auto invert = [](const Eigen::MatrixXd& matrix, const char* name) -> Eigen::MatrixXd {
    if (matrix.size() == 0) return matrix;
    const Eigen::FullPivLU<Eigen::MatrixXd> lu(matrix);
    if (!lu.isInvertible()) throw UserError(StrCat("gauge factor ", name, " is singular"));
    return lu.inverse();
  };
  return {invert(S, "S"), invert(U, "U")};
}

SegmentMatrix ApplyGauge(const SegmentMatrix& matrix, const Gauge& gauge) {
  const Lift& lift = *matrix.lift();
  RequireFits(gauge, lift.d(), lift.q());
  RequireKeepsSquares(lift, gauge);
  // H M H^T = H (H M)^T for symmetric M
  Eigen::MatrixXd dense = matrix.Dense();
  ApplyToRows(lift, gauge, dense);
  dense.transposeInPlace();
  ApplyToRows(lift, gauge, dense);
  const Eigen::MatrixXd symmetric = 0.5 * (dense + dense.transpose());
  return SegmentMatrix::FromDense(matrix.lift(), symmetric);
}

Segment ApplyGauge(const Segment& segment, const Gauge& gauge) {
  RequireFits(gauge, segment.x.rows(), segment.a.rows());
  return {gauge.S * segment.x, gauge.U * segment.a, segment.r};
}

Eigen::VectorXd CongruenceInvariants(const SegmentMatrix& matrix) {
  const Lift& lift = *matrix.lift();
  const SegmentMatrix midpoint = MidpointForm(matrix);
  const Lift& form = *midpoint.lift();
  const std::string p = form.blocks()[0].name;
  const std::string d = form.blocks()[1].name;
  const bool has_reward = form.HasBlock("r");

  const auto to_scalars = [&](const std::string& a, const std::string& b) {
    const Eigen::MatrixXd a1 = midpoint.Block(a, "1");
    const Eigen::MatrixXd b1 = midpoint.Block(b, "1");
    Eigen::MatrixXd columns(a1.rows(), has_reward ? 4 : 2);
    if (has_reward) {
      columns << a1, b1, midpoint.Block(a, "r"), midpoint.Block(b, "r");
    } else {
      columns << a1, b1;
    }
    return columns;
  };

  FeatureList features;
  // the scalars don't move at all
  features.Add(midpoint.HorizonEntry());
  if (has_reward) {
    features.Add(midpoint.Block("r", "1")(0, 0));
    features.Add(midpoint.Block("r", "r")(0, 0));
  }
  const Eigen::MatrixXd w = AddPairFeatures(
      {midpoint.Block(p, p), midpoint.Block(p, d), midpoint.Block(d, d), to_scalars(p, d)},
      features);

  if (lift.kind() == LiftKind::kFull && lift.q() > 0) {
    const Eigen::MatrixXd v =
        AddPairFeatures({midpoint.Block("xi_c", "xi_c"), midpoint.Block("xi_c", "xi_delta"),
                         midpoint.Block("xi_delta", "xi_delta"), to_scalars("xi_c", "xi_delta")},
                        features);
    features.AddSquaredSingularValues(v * midpoint.Block("xi_c", p) * w.transpose());
    features.AddSquaredSingularValues(v * midpoint.Block("xi_delta", d) * w.transpose());
  } else if (form.HasBlock("a") && lift.q() > 0) {
    const Eigen::MatrixXd v = Whitener(midpoint.Block("a", "a"));
    features.AddSquaredSingularValues(v * midpoint.Block("a", p) * w.transpose());
    features.AddSquaredSingularValues(v * midpoint.Block("a", d) * w.transpose());
    Eigen::MatrixXd columns(lift.q(), has_reward ? 2 : 1);
    if (has_reward) {
      columns << midpoint.Block("a", "1"), midpoint.Block("a", "r");
    } else {
      columns << midpoint.Block("a", "1");
    }
    features.AddGram(v * columns);
  }
  return features.Done();
}

}  // namespace msrl
