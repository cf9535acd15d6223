#include "msrl/value/matrix_regressions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "msrl/core/check.h"
#include "msrl/core/distance_fit.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/core/ridge.h"

namespace msrl {
namespace {

using Moments = ChannelMoments<MatrixRegressions::kMaxChannels>;
using Fit = Ridge<MatrixRegressions::kMaxChannels>;
using Vector = Moments::Vector;

constexpr int kPlane = 2;        // slots of the position
constexpr int kMotion = 4;       // the first slot of the motion
constexpr int kMostActions = 4;  // whose effect on the motion is shown
constexpr double kGain = 4.0;
constexpr double kSlopeBound = 50.0;
constexpr double kTopBound = 5.0;
constexpr double kSoft = 1e-3;  // keeps directions and tops of slopes near zero small
constexpr int kGoalFeatures = 7;
constexpr double kGoalBound = 2.5;
constexpr double kLeastUnexplained = 1e-8;
constexpr double kFitUnit = 4.0;

double SymLog(double v) { return std::copysign(std::log1p(std::abs(v)), v); }
double SymLogSlope(double v) { return 1.0 / (1.0 + std::abs(v)); }

double ShownSlope(double v) { return SymLog(kGain * std::clamp(v, -kSlopeBound, kSlopeBound)); }
// d ShownSlope / dv.
double SlopeOfShown(double v) {
  return std::abs(v) < kSlopeBound ? kGain * SymLogSlope(kGain * v) : 0.0;
}

// The slope on the position as a direction: b / (|b| + soft).
std::array<double, kPlane> Way(const Vector& slope) {
  const double length = std::hypot(slope[0], slope[1]);
  return {slope[0] / (length + kSoft), slope[1] / (length + kSoft)};
}
void PullWayBack(const Vector& slope, const double* d_way, Vector& d_slope) {
  const double length = std::hypot(slope[0], slope[1]);
  const double along = slope[0] * d_way[0] + slope[1] * d_way[1];
  for (int i = 0; i < kPlane; ++i) {
    d_slope[i] += d_way[i] / (length + kSoft);
    if (length > 0.0) {
      d_slope[i] -= along * slope[i] / (length * (length + kSoft) * (length + kSoft));
    }
  }
}

}  // namespace

MatrixRegressions::MatrixRegressions(const Lift& lift)
    : d_(static_cast<int>(lift.d())),
      q_(static_cast<int>(lift.q())),
      squares_(lift.kind() == LiftKind::kCompactSquares) {
  if (lift.kind() == LiftKind::kFull || !lift.HasBlock("a") || !lift.HasBlock("r") ||
      d_ < kMotion + kPlane || lift.m() > kMaxChannels) {
    throw UserError(StrCat("regressions need a compact lift with actions, reward, at least ",
                           kMotion + kPlane, " slots and at most ", kMaxChannels, " channels, got ",
                           lift.Describe()));
  }
  reward_ = static_cast<int>(lift.FindBlock("r").offset);
  for (int i = 0; i < d_; ++i) {
    state_.push_back(i);
    change_.push_back(d_ + i);
  }
  for (int i = 0; i < 2 * d_ + q_; ++i) all_.push_back(i);
  for (int i = 0; i < std::min(q_, kMostActions); ++i) actions_.push_back(2 * d_ + i);
  if (lift.HasBlock("e")) {
    const auto effort = static_cast<int>(lift.FindBlock("e").offset);
    for (std::vector<int>* const channels : {&state_, &change_, &all_}) {
      channels->push_back(effort);
    }
  }
}

int MatrixRegressions::size() const {
  return 2 * d_ + 4 * kPlane + static_cast<int>(all_.size()) +
         kPlane * static_cast<int>(actions_.size()) + 3 + (squares_ ? kGoalFeatures : 0);
}

std::vector<std::string> MatrixRegressions::Names() const {
  std::vector<std::string> names;
  const auto plane = [&names](const char* what) {
    for (int i = 0; i < kPlane; ++i) names.push_back(StrCat(what, "[", i, "]"));
  };
  for (int i = 0; i < d_; ++i) names.push_back(StrCat("r~x[", i, "]"));
  plane("r~x way");
  plane("r~x top");
  plane("r~x error");
  for (int i = 0; i < d_; ++i) names.push_back(StrCat("r~dx[", i, "]"));
  plane("r~dx way");
  for (std::size_t i = 0; i < all_.size(); ++i) names.push_back(StrCat("r~all[", i, "]"));
  for (int k = 0; k < kPlane; ++k) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      names.push_back(StrCat("dx[", kMotion + k, "]~a[", i, "]"));
    }
  }
  for (const char* of : {"r", "r~x", "r~all"}) names.push_back(StrCat("sd ", of));
  if (squares_) {
    plane("goal");
    for (const char* of : {"told[0]", "told[1]", "told[2]", "fit", "steep"}) {
      names.push_back(StrCat("goal ", of));
    }
  }
  return names;
}

template <typename Real>
void MatrixRegressions::Compute(const SegmentMatrix& z, const double* last, Real* out) const {
  if (z.HorizonEntry() < 2.0) {
    std::fill_n(out, size(), Real{0});
    return;
  }
  const auto put = [&out](double value) { *out++ = static_cast<Real>(value); };
  const Moments moments(z);

  const Fit on_state(moments, state_, reward_);
  const Vector& slope = on_state.slope();
  for (int i = 0; i < d_; ++i) put(ShownSlope(slope[i]));
  for (const double way : Way(slope)) put(way);
  double reward = moments.mean[reward_];
  if (on_state.size() > d_) reward -= slope[d_] * moments.mean[state_.back()];
  const double steep = slope[0] * slope[0] + slope[1] * slope[1] + kSoft;
  for (int i = 0; i < kPlane; ++i) {
    put(SymLog(std::clamp(-reward * slope[i] / steep, -kTopBound, kTopBound)));
  }
  for (int i = 0; i < kPlane; ++i) put(ShownSlope(on_state.Error(i)));

  const Fit on_change(moments, change_, reward_);
  for (int i = 0; i < d_; ++i) put(ShownSlope(on_change.slope()[i]));
  for (const double way : Way(on_change.slope())) put(way);

  const Fit on_all(moments, all_, reward_);
  for (Index i = 0; i < on_all.size(); ++i) put(ShownSlope(on_all.slope()[i]));
  for (int k = 0; k < kPlane; ++k) {
    const Fit effect(moments, actions_, d_ + kMotion + k);
    for (Index i = 0; i < effect.size(); ++i) put(ShownSlope(effect.slope()[i]));
  }
  put(ShownSlope(std::sqrt(std::max(0.0, moments.covariance(reward_, reward_)))));
  put(ShownSlope(std::sqrt(on_state.variance())));
  put(ShownSlope(std::sqrt(on_all.variance())));

  if (!squares_) return;
  const DistanceFit distance(z);
  const Eigen::Vector2d goal = distance.Goal();
  for (int i = 0; i < kPlane; ++i) put(std::clamp(goal[i] - last[i], -kGoalBound, kGoalBound));
  for (const double told : distance.Told()) put(std::clamp(told, 0.0, 1.0));
  put(-std::log10(distance.Unexplained() + kLeastUnexplained) / kFitUnit);
  put(ShownSlope(distance.Steepness()));
}

template void MatrixRegressions::Compute<float>(const SegmentMatrix&, const double*, float*) const;
template void MatrixRegressions::Compute<double>(const SegmentMatrix&, const double*,
                                                 double*) const;

void MatrixRegressions::PullBack(const SegmentMatrix& z, const double* last, const double* d_out,
                                 double* d_packed, double* d_last) const {
  const double horizon = z.HorizonEntry();
  if (horizon < 2.0) return;
  const Moments moments(z);
  const Index m = z.dim();
  Moments::Matrix d_covariance = Moments::Matrix::Zero(m, m);
  Vector d_mean = Vector::Zero(m);
  double d_horizon = 0.0;
  // sd = ShownSlope(sqrt(v)): the derivative with respect to v
  const auto d_of_variance = [](double variance, double d_shown) {
    const double sd = std::sqrt(std::max(0.0, variance));
    return sd > 0.0 ? d_shown * SlopeOfShown(sd) / (2.0 * sd) : 0.0;
  };
  const double* const d_goal = d_out + size() - kGoalFeatures;  // if there are any
  const double* const d_sd = (squares_ ? d_goal : d_out + size()) - 3;

  const Fit on_state(moments, state_, reward_);
  const Vector& slope = on_state.slope();
  Vector d_slope = Vector::Zero(on_state.size());
  for (int i = 0; i < d_; ++i) d_slope[i] += *d_out++ * SlopeOfShown(slope[i]);
  PullWayBack(slope, d_out, d_slope);
  d_out += kPlane;
  const bool effort = on_state.size() > d_;
  const double without = effort ? moments.mean[state_.back()] : 0.0;
  const double reward = moments.mean[reward_] - (effort ? slope[d_] * without : 0.0);
  const double steep = slope[0] * slope[0] + slope[1] * slope[1] + kSoft;
  double d_reward = 0.0;
  double d_steep = 0.0;
  for (int i = 0; i < kPlane; ++i) {
    const double d_shown = *d_out++;
    const double top = -reward * slope[i] / steep;
    if (std::abs(top) >= kTopBound) continue;
    const double d_top = d_shown * SymLogSlope(top);
    d_reward -= d_top * slope[i] / steep;
    d_slope[i] -= d_top * reward / steep;
    d_steep -= d_top * top / steep;
  }
  for (int i = 0; i < kPlane; ++i) d_slope[i] += 2.0 * d_steep * slope[i];
  d_mean[reward_] += d_reward;
  if (effort) {
    d_slope[d_] -= d_reward * without;
    d_mean[state_.back()] -= d_reward * slope[d_];
  }
  double d_variance = d_of_variance(on_state.variance(), d_sd[1]);
  for (int i = 0; i < kPlane; ++i) {
    const double error = on_state.Error(i);
    on_state.PullErrorBack(i, *d_out++ * SlopeOfShown(error), d_variance, d_covariance, d_horizon);
  }
  on_state.PullBack(d_slope, d_variance, d_covariance, d_horizon);

  const Fit on_change(moments, change_, reward_);
  Vector d_change = Vector::Zero(on_change.size());
  for (int i = 0; i < d_; ++i) d_change[i] += *d_out++ * SlopeOfShown(on_change.slope()[i]);
  PullWayBack(on_change.slope(), d_out, d_change);
  d_out += kPlane;
  on_change.PullBack(d_change, 0.0, d_covariance, d_horizon);

  const Fit on_all(moments, all_, reward_);
  Vector d_all(on_all.size());
  for (Index i = 0; i < on_all.size(); ++i) d_all[i] = *d_out++ * SlopeOfShown(on_all.slope()[i]);
  on_all.PullBack(d_all, d_of_variance(on_all.variance(), d_sd[2]), d_covariance, d_horizon);
  for (int k = 0; k < kPlane; ++k) {
    const Fit effect(moments, actions_, d_ + kMotion + k);
    Vector d_effect(effect.size());
    for (Index i = 0; i < effect.size(); ++i) {
      d_effect[i] = *d_out++ * SlopeOfShown(effect.slope()[i]);
    }
    effect.PullBack(d_effect, 0.0, d_covariance, d_horizon);
  }
  d_covariance(reward_, reward_) += d_of_variance(moments.covariance(reward_, reward_), d_sd[0]);

  // C = Z / T - mean mean^T, mean = the constant's column / T, T = the last entry
  d_mean -= 2.0 * d_covariance * moments.mean;
  for (Index j = 0; j < m; ++j) {
    for (Index i = 0; i <= j; ++i) {
      const double d_entry = (i == j ? 1.0 : 2.0) * d_covariance(i, j) / horizon;
      const Index at = internal::PackedIndex(i, j);
      d_packed[at] += d_entry;
      d_horizon -= d_entry * z.packed()[static_cast<std::size_t>(at)] / horizon;
    }
    d_packed[internal::PackedIndex(j, m - 1)] += d_mean[j] / horizon;
    d_horizon -= d_mean[j] * moments.mean[j] / horizon;
  }
  d_packed[internal::PackedIndex(m - 1, m - 1)] += d_horizon;

  if (!squares_) return;
  const DistanceFit distance(z);
  const Eigen::Vector2d goal = distance.Goal();
  Eigen::Vector2d d_place(0.0, 0.0);
  for (int i = 0; i < kPlane; ++i) {
    if (std::abs(goal[i] - last[i]) >= kGoalBound) continue;
    d_place[i] = d_goal[i];
    d_last[i] -= d_goal[i];
  }
  const double d_unexplained =
      -d_goal[5] / (kFitUnit * std::numbers::ln10 * (distance.Unexplained() + kLeastUnexplained));
  distance.PullBack(d_place, d_goal[6] * SlopeOfShown(distance.Steepness()),
                    {d_goal[2], d_goal[3], d_goal[4]}, d_unexplained, d_packed);
}

}  // namespace msrl
