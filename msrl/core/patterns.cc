#include "msrl/core/patterns.h"

#include <cmath>
#include <limits>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// |x'|^2 belongs to one end of a step: neither even nor odd.
constexpr const char* kEndOfStep = "p";

bool IsOdd(const LiftBlock& block) {
  return block.name == "delta" || block.name == "dx" || block.name == "xi_delta";
}

// The geometric blocks in midpoint form.
struct Geometry {
  Eigen::MatrixXd cc, cd, dd;
  Eigen::VectorXd d1;
  double horizon;

  explicit Geometry(const SegmentMatrix& matrix) {
    const SegmentMatrix form = MidpointForm(matrix);
    const std::string c = form.lift()->blocks()[0].name;
    const std::string d = form.lift()->blocks()[1].name;
    cc = form.Block(c, c);
    cd = form.Block(c, d);
    dd = form.Block(d, d);
    d1 = form.Block(d, "1");
    horizon = form.HorizonEntry();
  }

  Eigen::MatrixXd SymmetricIncidence() const { return cd + cd.transpose(); }
  // Cauchy-Schwarz: |M_{delta 1}| <= this
  double TransportScale() const { return std::sqrt(std::abs(horizon * dd.trace())); }
  // |M_{c delta}|_F <= this
  double IncidenceScale() const { return std::sqrt(std::abs(cc.trace() * dd.trace())); }
};

PatternResidual Residual(std::string name, double squares, double squared_scale) {
  return {std::move(name), std::sqrt(squares), std::sqrt(squared_scale)};
}

PatternResidual ActionPartitionFull(const SegmentMatrix& matrix) {
  const Index d = matrix.lift()->d();
  const Index q = matrix.lift()->q();
  struct TensorBlock {
    const char* row;
    const char* column;
    const char* tensor_row;
    const char* tensor_column;
  };
  constexpr TensorBlock kBlocks[] = {{"c", "c", "xi_c", "xi_c"},
                                     {"c", "delta", "xi_c", "xi_delta"},
                                     {"delta", "c", "xi_delta", "xi_c"},
                                     {"delta", "delta", "xi_delta", "xi_delta"}};
  double squares = 0.0;
  double squared_scale = 0.0;
  for (const TensorBlock& names : kBlocks) {
    const Eigen::MatrixXd plain = matrix.Block(names.row, names.column);
    const Eigen::MatrixXd mixed = matrix.Block(names.row, names.tensor_column);
    const Eigen::MatrixXd tensor = matrix.Block(names.tensor_row, names.tensor_column);
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(d, d);
    for (Index a = 0; a < q; ++a) {
      const auto mixed_a = mixed.middleCols(a * d, d);
      sum += mixed_a;
      for (Index b = 0; b < q; ++b) {
        const auto tensor_ab = tensor.block(a * d, b * d, d, d);
        squares += a == b ? (tensor_ab - mixed_a).squaredNorm() : tensor_ab.squaredNorm();
      }
    }
    squares += (sum - plain).squaredNorm();
    squared_scale += plain.squaredNorm() + mixed.squaredNorm() + tensor.squaredNorm();
  }
  return Residual("action-partition", squares, squared_scale);
}

PatternResidual ActionPartitionCompact(const SegmentMatrix& matrix) {
  const Eigen::MatrixXd aa = matrix.Block("a", "a");
  const Eigen::VectorXd a1 = matrix.Block("a", "1");
  const double horizon = matrix.HorizonEntry();
  const Eigen::MatrixXd counts = a1.asDiagonal();
  const double missing = a1.sum() - horizon;
  return Residual("action-partition", (aa - counts).squaredNorm() + missing * missing,
                  aa.squaredNorm() + a1.squaredNorm() + horizon * horizon);
}

}  // namespace

SegmentMatrix MidpointForm(const SegmentMatrix& matrix) {
  const Lift& lift = *matrix.lift();
  if (lift.kind() == LiftKind::kFull) return matrix;
  const Index d = lift.d();
  // L M L^T with L = identity + (half of the dx rows added to the x rows)
  Eigen::MatrixXd dense = matrix.Dense();
  dense.topRows(d) += 0.5 * dense.middleRows(d, d);
  dense.leftCols(d) += 0.5 * dense.middleCols(d, d);
  const Eigen::MatrixXd symmetric = 0.5 * (dense + dense.transpose());
  return SegmentMatrix::FromDense(matrix.lift(), symmetric);
}

PatternResidual ReversalParity(const SegmentMatrix& matrix) {
  const SegmentMatrix form = MidpointForm(matrix);
  double squares = 0.0;
  double even_trace = 0.0;
  double odd_trace = 0.0;
  for (const LiftBlock& row : form.lift()->blocks()) {
    if (row.name == kEndOfStep) continue;
    (IsOdd(row) ? odd_trace : even_trace) += form.Block(row.name, row.name).trace();
    if (IsOdd(row)) continue;
    for (const LiftBlock& column : form.lift()->blocks()) {
      if (IsOdd(column)) squares += form.Block(row.name, column.name).squaredNorm();
    }
  }
  return Residual("reversal-parity", squares, std::abs(even_trace * odd_trace));
}

PatternResidual GeometricReversalParity(const SegmentMatrix& matrix) {
  const Geometry geometry(matrix);
  return Residual("geometric-reversal-parity",
                  geometry.cd.squaredNorm() + geometry.d1.squaredNorm(),
                  std::pow(geometry.IncidenceScale(), 2) + std::pow(geometry.TransportScale(), 2));
}

SegmentMatrix ReverseEdges(const SegmentMatrix& matrix) {
  const Lift& lift = *matrix.lift();
  if (lift.HasBlock(kEndOfStep)) {
    throw UserError("the lift compact-squares has no reversed edges: |x|^2 is not in it");
  }
  Eigen::MatrixXd dense = matrix.Dense();
  if (lift.kind() == LiftKind::kFull) {
    for (const LiftBlock& block : lift.blocks()) {
      if (!IsOdd(block)) continue;
      dense.middleRows(block.offset, block.size) *= -1.0;
      dense.middleCols(block.offset, block.size) *= -1.0;
    }
  } else {
    // the reversed edge starts at x + dx and moves by -dx
    const Index d = lift.d();
    dense.topRows(d) += dense.middleRows(d, d);
    dense.middleRows(d, d) *= -1.0;
    dense.leftCols(d) += dense.middleCols(d, d);
    dense.middleCols(d, d) *= -1.0;
  }
  const Eigen::MatrixXd symmetric = 0.5 * (dense + dense.transpose());
  return SegmentMatrix::FromDense(matrix.lift(), symmetric);
}

PatternResidual EdgeReversal(const SegmentMatrix& matrix, const SegmentMatrix& reversed) {
  return {"edge-reversal", reversed.Distance(ReverseEdges(matrix)),
          reversed.Norm() + matrix.Norm()};
}

PatternResidual PathTelescoping(const SegmentMatrix& matrix, const Eigen::VectorXd& x_0,
                                const Eigen::VectorXd& x_T) {
  const Geometry geometry(matrix);
  MSRL_CHECK_EQ(x_0.size(), geometry.d1.size());
  MSRL_CHECK_EQ(x_T.size(), geometry.d1.size());
  const Eigen::VectorXd first_order = geometry.d1 - (x_T - x_0);
  const Eigen::MatrixXd second_order =
      geometry.SymmetricIncidence() - (x_T * x_T.transpose() - x_0 * x_0.transpose());
  const double first_scale = geometry.TransportScale() + x_0.norm() + x_T.norm();
  const double second_scale =
      2.0 * geometry.IncidenceScale() + x_0.squaredNorm() + x_T.squaredNorm();
  return Residual("path-telescoping", first_order.squaredNorm() + second_order.squaredNorm(),
                  first_scale * first_scale + second_scale * second_scale);
}

PatternResidual PathTelescoping(const SegmentMatrix& matrix) {
  const Endpoints ends = RecoverEndpoints(matrix);
  if (ends.defined) return PathTelescoping(matrix, ends.x_0, ends.x_T);
  // a closed path: where it starts does not matter, the telescoped sums vanish
  PatternResidual closed = CycleSkewness(matrix);
  closed.name = "path-telescoping";
  return closed;
}

PatternResidual CycleSkewness(const SegmentMatrix& matrix) {
  const Geometry geometry(matrix);
  return Residual(
      "cycle-skewness", geometry.SymmetricIncidence().squaredNorm() + geometry.d1.squaredNorm(),
      4.0 * std::pow(geometry.IncidenceScale(), 2) + std::pow(geometry.TransportScale(), 2));
}

Eigen::MatrixXd Circulation(const SegmentMatrix& matrix) {
  const Geometry geometry(matrix);
  return 0.5 * (geometry.cd - geometry.cd.transpose());
}

PatternResidual ActionPartition(const SegmentMatrix& matrix) {
  const Lift& lift = *matrix.lift();
  if (lift.q() == 0 || lift.kind() == LiftKind::kCompactNoAction) {
    throw UserError("the action partition needs a lift with an action channel");
  }
  return lift.kind() == LiftKind::kFull ? ActionPartitionFull(matrix)
                                        : ActionPartitionCompact(matrix);
}

std::vector<PatternResidual> AllPatterns(const SegmentMatrix& matrix) {
  std::vector<PatternResidual> patterns{ReversalParity(matrix), GeometricReversalParity(matrix),
                                        PathTelescoping(matrix), CycleSkewness(matrix)};
  const Lift& lift = *matrix.lift();
  if (lift.q() > 0 && lift.kind() != LiftKind::kCompactNoAction) {
    patterns.push_back(ActionPartition(matrix));
  }
  return patterns;
}

Endpoints RecoverEndpoints(const SegmentMatrix& matrix) {
  const Geometry geometry(matrix);
  const Eigen::VectorXd& d = geometry.d1;
  const double norm = d.norm();
  // worst case of summing T rounded products
  const double unit = (geometry.horizon + 16.0) * std::numeric_limits<double>::epsilon();
  const double transport_error = unit * geometry.TransportScale();
  Endpoints ends;
  ends.amplification = 1.5 / norm;
  ends.defined = norm > transport_error;
  if (!ends.defined) {
    ends.error_bound = std::numeric_limits<double>::infinity();
    return ends;
  }
  const Eigen::MatrixXd s = geometry.SymmetricIncidence() - d * d.transpose();
  const Eigen::VectorXd direction = d / norm;
  const Eigen::VectorXd along = s * direction;
  ends.x_0 = (along - 0.5 * direction * direction.dot(along)) / norm;
  ends.x_T = ends.x_0 + d;
  const double incidence_error =
      unit * (2.0 * geometry.IncidenceScale() + geometry.dd.trace()) + 2.0 * norm * transport_error;
  const double size = std::max(ends.x_0.norm(), ends.x_T.norm());
  ends.error_bound =
      ends.amplification * incidence_error + 3.0 * size * transport_error / norm + transport_error;
  return ends;
}

}  // namespace msrl
