// What networks see of a prefix matrix Z: bounded numbers of comparable size, the same for every
// environment with the same lift.
//
// In this order:
//   averages    symlog(4 Z_ij / (T + 10)) of the selected entries, packed order (column by column,
//               rows 0 to the diagonal). Selected: the column of the constant (means), the row and
//               column of the reward, the diagonal: 81 of the compact lift's 406.
//   log(1+T)    log(1 + T) / 7
//   with end points (2d + d(d+1)/2 + 1 more):
//   x0, xT      3 x_0 and 3 x_T, cut to +-12
//   D           x_T x_T^T - x_0 x_0^T, upper triangle column by column, cut to +-9
//   ends        1 if the end points are exact, else 0
//   with regressions: msrl/value/matrix_regressions.h
// or, of the set "state", x_T alone: what the present state shows of Z and nothing of the way
// there.
//
// symlog(v) = sign(v) log(1 + |v|). The end points come out of Z alone (msrl/core/patterns.h): its
// telescoping sums are d = x_T - x_0 and D. Where |d| <= 1e-6 times the root mean square of the
// states (a path that came back or never moved) they are not determined; x_0 and x_T are then both
// the mean state, which is exact for a path at rest. The empty segment has all features zero.
#ifndef MSRL_VALUE_MATRIX_FEATURES_H_
#define MSRL_VALUE_MATRIX_FEATURES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/lift.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/value/matrix_regressions.h"

namespace msrl {

enum class FeatureSet {
  kSelectedEndpoints,
  kSelected,
  kAllEndpoints,
  kAll,
  kSelectedRegressions,
  kAllRegressions,
  kState,
};
constexpr auto EnumNames(FeatureSet) {
  return Names("selected+endpoints", "selected", "all+endpoints", "all", "selected+regressions",
               "all+regressions", "state");
}

struct MatrixFeatureOptions {
  bool all_entries = false;  // all averages, not only the selected ones
  bool endpoints = true;
  bool regressions = false;  // with end points too
  bool only_state = false;   // x_T and none of the others

  static MatrixFeatureOptions Of(FeatureSet set) {
    using enum FeatureSet;
    const bool regressions = set == kSelectedRegressions || set == kAllRegressions;
    return {.all_entries = set == kAllEndpoints || set == kAll || set == kAllRegressions,
            .endpoints = set == kSelectedEndpoints || set == kAllEndpoints || regressions,
            .regressions = regressions,
            .only_state = set == kState};
  }
  // As EnumNames(FeatureSet).
  std::string Name() const;
  // UserError on an unknown name.
  static MatrixFeatureOptions FromName(std::string_view name);
  bool operator==(const MatrixFeatureOptions&) const = default;
};

class MatrixFeatures {
 public:
  static constexpr double kDamping = 10.0;
  static constexpr double kAverageGain = 4.0;
  static constexpr double kLogHorizonUnit = 7.0;
  static constexpr double kEndpointGain = 3.0;
  static constexpr double kEndpointBound = 12.0;
  static constexpr double kProductBound = 9.0;
  static constexpr double kClosedPath = 1e-6;

  // UserError on the full lift, which has no x block, on more than 16 geometry slots, and on
  // regressions that the lift has no channels for.
  explicit MatrixFeatures(Lift::Ptr lift, const MatrixFeatureOptions& options = {});

  const Lift::Ptr& lift() const { return lift_; }
  const MatrixFeatureOptions& options() const { return options_; }
  int size() const { return size_; }
  // E.g. "x[0]*r", "log(1+T)", "xT[3]", "D[0,1]", "ends".
  std::vector<std::string> Names() const;
  // The range of features that say nothing but where the path is now: xT.
  int last_state_begin() const {
    if (options_.only_state) return 0;
    return options_.endpoints ? average_count() + 1 + d_ : size_;
  }
  int last_state_end() const { return std::min(last_state_begin() + d_, size_); }

  // `out` has size() entries. Sums in double, logarithms in float; does not allocate. UserError if
  // the matrix has another lift.
  void Compute(const SegmentMatrix& matrix, std::span<float> out) const;
  // The same in double throughout: for derivatives, not for speed.
  void Compute(const SegmentMatrix& matrix, std::span<double> out) const;

  // The gradient with respect to Z of a function of the features with derivatives `d_features` at
  // Z: the symmetric G with dL = <G, dZ> = G.Inner(dZ) for every symmetric dZ. An entry off the
  // diagonal of G is half of the derivative with respect to that pair of entries, as in
  // FunctionalToMatrix. UserError if the matrix has another lift.
  //
  // Derivatives are those of the case that Z is in: features at or beyond their bound have none,
  // nor has "ends". On a closed path x0 and xT are the mean state and have its derivative, though
  // any step that opens the path makes them jump; the end points of the empty segment have none.
  SegmentMatrix Pullback(const SegmentMatrix& matrix, std::span<const double> d_features) const;

 private:
  // The end points, or what stands for them, before they are scaled and cut.
  struct Endpoints;

  int average_count() const { return static_cast<int>(entries_.size()); }
  // Where the regressions begin: the last features.
  int regressions_begin() const { return size_ - regressions_->size(); }
  Endpoints FindEndpoints(const double* packed, double horizon) const;
  template <typename Real>
  void WriteLastState(const double* packed, double horizon, Real* out) const;
  template <typename Real>
  void WriteEndpoints(const Endpoints& ends, Real* out) const;
  // What comes after the averages.
  template <typename Real>
  void WriteRest(const SegmentMatrix& matrix, Real* out) const;
  void PullAveragesBack(const double* packed, double horizon, const double* d_out,
                        double* d_packed) const;
  // `d_end` is with respect to the last position, beyond what the features show of it.
  void PullEndpointsBack(const double* packed, double horizon, const double* d_out,
                         const std::array<double, 2>& d_end, double* d_packed) const;

  Lift::Ptr lift_;
  MatrixFeatureOptions options_;
  int d_ = 0;
  int size_ = 0;
  std::vector<std::int32_t> entries_;  // packed indices of the averages
  std::optional<MatrixRegressions> regressions_;
};

}  // namespace msrl

#endif  // MSRL_VALUE_MATRIX_FEATURES_H_
