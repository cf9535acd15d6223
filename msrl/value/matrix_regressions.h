// What Z is sufficient for, as features: ridge regressions between its channels (core/ridge.h).
// Averages show how reward and state go together only through a division that networks find hard to
// learn; here it is done.
//
// In this order, with the position the first two slots and s(v) = symlog(4 v), v cut to +-50:
//   r~x         s(slope) of the reward on each x (with effort, if the lift has it)
//   r~x way     the slope on the position, as a direction
//   r~x top     symlog of where a reward that falls with the distance has its top, from the mean
//               position: -(mean reward without effort) slope / |slope|^2, cut to +-5
//   r~x error   s(standard error) of the slope on the position
//   r~dx        s(slope) of the reward on each dx (with effort)
//   r~dx way    the slope on the position's change, as a direction
//   r~all       s(slope) of the reward on each x, dx, a and effort together
//   dx~a        s(slope) of the motion slots' change (4, 5) on each of the first four actions
//   sd          s(standard deviation) of the reward, of what r~x leaves, of what r~all leaves
// and, if the lift has squares, of the fit of a reward that falls with a distance
// (core/distance_fit.h):
//   goal        the goal minus where the path ends, cut to +-2.5
//   goal told   how much of it comes from the data: of the position's coefficients, of |x'|^2's
//   goal fit    -log10(share that is not explained + 1e-8) / 4
//   goal steep  s(u^2)
// All zero below two transitions.
#ifndef MSRL_VALUE_MATRIX_REGRESSIONS_H_
#define MSRL_VALUE_MATRIX_REGRESSIONS_H_

#include <string>
#include <vector>

#include "msrl/core/lift.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

class MatrixRegressions {
 public:
  static constexpr int kMaxChannels = 36;

  // UserError on lifts without action or reward, with fewer than six slots, or with more channels
  // than kMaxChannels.
  explicit MatrixRegressions(const Lift& lift);

  int size() const;
  std::vector<std::string> Names() const;
  // size() numbers. `last` is the position where the path ends. No allocation.
  template <typename Real>
  void Compute(const SegmentMatrix& z, const double* last, Real* out) const;
  // Adds the derivatives with respect to the stored triangle of Z (see MatrixFeatures::Pullback),
  // and those with respect to `last`.
  void PullBack(const SegmentMatrix& z, const double* last, const double* d_out, double* d_packed,
                double* d_last) const;

 private:
  int d_, q_;
  int reward_;
  bool squares_;                                     // whether the lift has them
  std::vector<int> state_, change_, all_, actions_;  // channels regressed on
};

}  // namespace msrl

#endif  // MSRL_VALUE_MATRIX_REGRESSIONS_H_
