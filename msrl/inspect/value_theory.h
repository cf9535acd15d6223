// What the paper claims of values in matrix space, measured on a given value (Section 4 and
// appendix "Additional matrix-value consequences"): to first order Q(o, Z + H, a) = Q(o, Z, a) +
// <W, H> with the local gradient W = dQ/dZ, increments add up, and directions orthogonal to W are
// invisible. docs/value-theory.md
#ifndef MSRL_INSPECT_VALUE_THEORY_H_
#define MSRL_INSPECT_VALUE_THEORY_H_

#include <Eigen/Core>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/segment_matrix.h"
#include "msrl/nn/precise_mlp.h"
#include "msrl/value/matrix_features.h"
#include "msrl/value/value_branch.h"

namespace msrl {

// A value as a function of the matrix alone; observation and action are fixed inside. In double:
// the error of a linearisation is soon smaller than a float's rounding.
class MatrixValue {
 public:
  virtual ~MatrixValue() = default;
  virtual double Value(const SegmentMatrix& z) const = 0;
  // W: the symmetric matrix with dV = <W, dZ> (Frobenius).
  virtual SegmentMatrix Gradient(const SegmentMatrix& z) const = 0;
};

// F_eta(Z) of a branch, with its float parameters in double arithmetic.
class BranchValue : public MatrixValue {
 public:
  // The features must be those of the branch's info. UserError otherwise.
  BranchValue(const ValueBranch& branch, const MatrixFeatures& features);
  double Value(const SegmentMatrix& z) const override;
  SegmentMatrix Gradient(const SegmentMatrix& z) const override;

 private:
  MatrixFeatures features_;
  PreciseMlp network_;
};

// The increments are multiplied by first, first / 2, first / 4, ...
struct Ladder {
  double first = 0.25;
  int rungs = 10;
};

// How an error shrinks with the size of the increment.
struct ErrorCurve {
  std::vector<double> size;   // Frobenius norm of the increment, descending
  std::vector<double> error;  // absolute
  // Of log error against log size by least squares, over the rungs whose error is not mere
  // rounding; empty if fewer than three are left. The theorem wants more than 1; twice
  // differentiable values have 2.
  std::optional<double> slope;
  // All errors are mere rounding: below 1e-12 of the values involved.
  bool exact = false;
};

// |V(Z + eH) - V(Z) - e <W, H>| for e down the ladder.
ErrorCurve FirstOrderError(const MatrixValue& value, const SegmentMatrix& z,
                           const SegmentMatrix& increment, const Ladder& ladder = {});
// |[V(Z + eH1 + eH2) - V(Z)] - [V(Z + eH1) - V(Z)] - [V(Z + eH2) - V(Z)]|; size is e(|H1| + |H2|).
ErrorCurve AdditivityError(const MatrixValue& value, const SegmentMatrix& z,
                           const SegmentMatrix& first, const SegmentMatrix& second,
                           const Ladder& ladder = {});

struct NullAnalysis {
  double gradient_norm = 0.0;  // |W|
  double within_span = 0.0;    // norm of W's projection onto the span
  // Share of the increments' energy sum |H|^2 that lies in directions with <W, H> = 0.
  double null_share = 1.0;
};

// The span of real increments: the directions in which play can move Z.
class IncrementSpan {
 public:
  // InvariantError if there are none or all are zero; UserError if their lifts differ.
  explicit IncrementSpan(std::span<const SegmentMatrix> increments);

  int rank() const { return static_cast<int>(energies_.size()); }
  // sum |H|^2.
  double energy() const { return energies_.sum(); }

  // In the span only one direction matters to first order, the projection of W; all that is
  // orthogonal to it is value-null.
  NullAnalysis Analyse(const SegmentMatrix& gradient) const;
  // Orthonormal value-null directions that span all of them, those with most of the increments'
  // energy first; at most `most`. rank() - 1 if W has a part in the span, else rank().
  std::vector<SegmentMatrix> ValueNullDirections(const SegmentMatrix& gradient, int most) const;

 private:
  // Coordinates of the projection of a matrix.
  Eigen::VectorXd Project(const SegmentMatrix& matrix) const;

  Lift::Ptr lift_;
  Eigen::MatrixXd basis_;     // orthonormal columns
  Eigen::VectorXd energies_;  // of the increments along each
};

// The curves of many states.
struct ErrorSummary {
  std::vector<double> median_errors;  // rung by rung
  int curves = 0;                     // that have a slope
  double slope_median = 0.0;
  double slope_low = 0.0;  // tenth percentile
  int exact = 0;           // curves of mere rounding
};

// Figures over many states; what `inspect` prints.
struct ValueTheoryReport {
  int states = 0;
  std::vector<double> factors;  // rung by rung: what the increments are multiplied by
  ErrorSummary first_order;
  ErrorSummary additivity;
  // For whole increments, beyond the theorem: sum |error| / sum |V(Z + H) - V(Z)|.
  double first_order_relative_error = 0.0;
  // <W, H> against V(Z + H) - V(Z) of whole increments: share of equal signs.
  double sign_agreement = 0.0;
  int increment_rank = 0;
  double gradient_norm = 0.0;           // mean |W|
  double gradient_share_in_span = 0.0;  // mean of |projection of W|^2 / |W|^2
  double null_share = 0.0;              // mean share of increment energy that is value-null
};

// increments[i] belongs to prefixes[i], e.g. psi psi^T of the step taken there; its partner for
// additivity is the next one's. InvariantError unless there are as many of both, at least two.
ValueTheoryReport StudyValue(const MatrixValue& value, std::span<const SegmentMatrix> prefixes,
                             std::span<const SegmentMatrix> increments, const Ladder& ladder = {});
// The same with a value for every prefix: Q(o, ., a) of the state it belongs to.
ValueTheoryReport StudyValues(std::span<const MatrixValue* const> values,
                              std::span<const SegmentMatrix> prefixes,
                              std::span<const SegmentMatrix> increments, const Ladder& ladder = {});

// A block of W, e.g. x times dx; those off the diagonal stand for both of their places.
struct GradientBlock {
  std::string rows, columns;
  double norm = 0.0;   // Frobenius, root mean square over the gradients
  double share = 0.0;  // of sum |W|^2; all together 1, or 0 if there is no gradient
};
// In the order of the lift's blocks, upper triangle row by row. InvariantError if there are no
// gradients or their lifts differ.
std::vector<GradientBlock> GradientBlocks(std::span<const SegmentMatrix> gradients);

// A pair of channels: the derivative is that of Q with respect to Z_ij = Z_ji, both at once.
struct GradientEntry {
  std::string name;       // as in Lift::Labels, e.g. "x[2]*1"
  double mean = 0.0;      // derivative, over the gradients
  double rms = 0.0;       // root mean square
  double positive = 0.0;  // share of gradients where it is above zero
};
// Those with the largest root mean square first; at most `most`, none that is always zero.
std::vector<GradientEntry> LargestEntries(std::span<const SegmentMatrix> gradients, int most);

}  // namespace msrl

#endif  // MSRL_INSPECT_VALUE_THEORY_H_
