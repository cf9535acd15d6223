#include "msrl/value/matrix_features.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/runtime.h"

namespace msrl {
namespace {

using internal::PackedIndex;
constexpr int kMaxSlots = 16;

template <typename Real>
Real Cut(double value, double bound) {
  return static_cast<Real>(std::clamp(value, -bound, bound));
}

// d Cut(value) / d value.
double CutSlope(double value, double bound) { return std::abs(value) < bound ? 1.0 : 0.0; }

}  // namespace

// Not initialised where every used entry is written: this is on the hot path.
struct MatrixFeatures::Endpoints {
  std::array<double, kMaxSlots> move;                      // d = x_T - x_0
  std::array<double, kMaxSlots*(kMaxSlots + 1) / 2> full;  // D
  std::array<double, kMaxSlots> along{};                   // S d with S = D - d d^T
  double square = 0.0;                                     // |d|^2
  double twice = 0.0;                                      // d^T S d
  bool determined = false;
  std::array<double, kMaxSlots> first;
  std::array<double, kMaxSlots> last;
};

std::string MatrixFeatureOptions::Name() const {
  for (const FeatureSet set : EnumValues<FeatureSet>()) {
    if (Of(set) == *this) return std::string(EnumName(set));
  }
  MSRL_CHECK(false, "features without a name");
}

MatrixFeatureOptions MatrixFeatureOptions::FromName(std::string_view name) {
  return Of(ParseEnum<FeatureSet>("features", name));
}

MatrixFeatures::MatrixFeatures(Lift::Ptr lift, const MatrixFeatureOptions& options)
    : lift_(std::move(lift)), options_(options), d_(static_cast<int>(lift_->d())) {
  if (lift_->kind() == LiftKind::kFull || d_ > kMaxSlots) {
    throw UserError(StrCat("matrix features need a compact lift with at most ", kMaxSlots,
                           " geometry slots, got ", lift_->Describe()));
  }
  if (options_.only_state) {
    size_ = d_;
    return;
  }
  const Index m = lift_->m();
  const Index reward = lift_->HasBlock("r") ? lift_->FindBlock("r").offset : -1;
  for (Index j = 0; j < m; ++j) {
    for (Index i = 0; i <= j; ++i) {
      const bool selected = i == j || j == m - 1 || i == reward || j == reward;
      if (options_.all_entries || selected) {
        entries_.push_back(static_cast<std::int32_t>(PackedIndex(i, j)));
      }
    }
  }
  size_ = average_count() + 1;
  if (options_.endpoints) size_ += 2 * d_ + d_ * (d_ + 1) / 2 + 1;
  if (options_.regressions) size_ += regressions_.emplace(*lift_).size();
}

std::vector<std::string> MatrixFeatures::Names() const {
  std::vector<std::string> names;
  const auto add_state = [&](const char* end) {
    for (int i = 0; i < d_; ++i) names.push_back(StrCat(end, "[", i, "]"));
  };
  if (options_.only_state) {
    add_state("xT");
    return names;
  }
  const std::vector<std::string> labels = lift_->Labels();
  std::size_t next = 0;
  std::int32_t packed = 0;
  for (std::size_t j = 0; j < labels.size(); ++j) {
    for (std::size_t i = 0; i <= j; ++i, ++packed) {
      if (next == entries_.size() || entries_[next] != packed) continue;
      names.push_back(labels[i] + "*" + labels[j]);
      ++next;
    }
  }
  names.emplace_back("log(1+T)");
  if (!options_.endpoints) return names;
  add_state("x0");
  add_state("xT");
  for (int j = 0; j < d_; ++j) {
    for (int i = 0; i <= j; ++i) names.push_back(StrCat("D[", i, ",", j, "]"));
  }
  names.emplace_back("ends");
  if (regressions_) {
    for (std::string& name : regressions_->Names()) names.push_back(std::move(name));
  }
  return names;
}

void MatrixFeatures::Compute(const SegmentMatrix& matrix, std::span<float> out) const {
  MSRL_CHECK_EQ(std::ssize(out), size_);
  if (matrix.lift() != lift_) RequireSameLift(*matrix.lift(), *lift_, "matrix features");
  const internal::FlushDenormals flush;
  const double* const packed = matrix.packed().data();
  const double horizon = matrix.HorizonEntry();
  if (options_.only_state) return WriteLastState(packed, horizon, out.data());
  const double factor = kAverageGain / (horizon + kDamping);
  const std::size_t count = entries_.size();
  // log(1 + |v|) of all at once, then the signs
  constexpr std::size_t kChunk = 128;
  std::array<float, kChunk> value;
  for (std::size_t start = 0; start < count; start += kChunk) {
    const std::size_t n = std::min(kChunk, count - start);
    float* const part = out.data() + start;
    for (std::size_t k = 0; k < n; ++k) {
      value[k] = static_cast<float>(factor * packed[entries_[start + k]]);
      part[k] = 1.0F + std::abs(value[k]);
    }
    internal::ActiveKernels().log(part, part, n);
    for (std::size_t k = 0; k < n; ++k) part[k] = std::copysign(part[k], value[k]);
  }
  out[count] = static_cast<float>(std::log1p(horizon) / kLogHorizonUnit);
  WriteRest(matrix, out.data());
}

void MatrixFeatures::Compute(const SegmentMatrix& matrix, std::span<double> out) const {
  MSRL_CHECK_EQ(std::ssize(out), size_);
  if (matrix.lift() != lift_) RequireSameLift(*matrix.lift(), *lift_, "matrix features");
  const double* const packed = matrix.packed().data();
  const double horizon = matrix.HorizonEntry();
  if (options_.only_state) return WriteLastState(packed, horizon, out.data());
  const double factor = kAverageGain / (horizon + kDamping);
  const std::size_t count = entries_.size();
  for (std::size_t k = 0; k < count; ++k) {
    const double value = factor * packed[entries_[k]];
    out[k] = std::copysign(std::log1p(std::abs(value)), value);
  }
  out[count] = std::log1p(horizon) / kLogHorizonUnit;
  WriteRest(matrix, out.data());
}

MatrixFeatures::Endpoints MatrixFeatures::FindEndpoints(const double* packed,
                                                        double horizon) const {
  const int d = d_;
  const Index constant = lift_->constant_offset();
  Endpoints ends;
  auto& move = ends.move;
  auto& along = ends.along;
  double size = 0.0;
  for (int i = 0; i < d; ++i) {
    move[i] = packed[PackedIndex(d + i, constant)];
    ends.square += move[i] * move[i];
    size += packed[PackedIndex(i, i)] + packed[PackedIndex(d + i, d + i)];
  }
  for (int j = 0, k = 0; j < d; ++j) {
    const double* const dx_column = packed + PackedIndex(0, d + j);  // x_0..x_d, dx_0..dx_j
    for (int i = 0; i <= j; ++i, ++k) {
      const double cross = packed[PackedIndex(j, d + i)];
      ends.full[k] = dx_column[i] + cross + dx_column[d + i];
      const double s = ends.full[k] - move[i] * move[j];
      along[i] += s * move[j];
      if (i != j) along[j] += s * move[i];
    }
  }
  ends.determined = horizon > 0.0 && ends.square * horizon > kClosedPath * kClosedPath * size &&
                    ends.square > 1e-200;
  for (int i = 0; i < d; ++i) ends.twice += along[i] * move[i];
  for (int i = 0; i < d; ++i) {
    if (ends.determined) {
      ends.first[i] = (along[i] - move[i] * ends.twice / (2.0 * ends.square)) / ends.square;
      ends.last[i] = ends.first[i] + move[i];
    } else {
      const double sum = packed[PackedIndex(i, constant)];
      ends.first[i] = ends.last[i] = horizon > 0.0 ? sum / horizon : 0.0;
    }
  }
  return ends;
}

template <typename Real>
void MatrixFeatures::WriteLastState(const double* packed, double horizon, Real* out) const {
  const Endpoints ends = FindEndpoints(packed, horizon);
  for (int i = 0; i < d_; ++i) out[i] = Cut<Real>(kEndpointGain * ends.last[i], kEndpointBound);
}

template <typename Real>
void MatrixFeatures::WriteRest(const SegmentMatrix& matrix, Real* out) const {
  if (!options_.endpoints) return;
  const Endpoints ends = FindEndpoints(matrix.packed().data(), matrix.HorizonEntry());
  WriteEndpoints(ends, out + average_count() + 1);
  if (regressions_) regressions_->Compute(matrix, ends.last.data(), out + regressions_begin());
}

template <typename Real>
void MatrixFeatures::WriteEndpoints(const Endpoints& ends, Real* out) const {
  for (int i = 0; i < d_; ++i) {
    out[i] = Cut<Real>(kEndpointGain * ends.first[i], kEndpointBound);
    out[d_ + i] = Cut<Real>(kEndpointGain * ends.last[i], kEndpointBound);
  }
  const int products = d_ * (d_ + 1) / 2;
  for (int k = 0; k < products; ++k) out[2 * d_ + k] = Cut<Real>(ends.full[k], kProductBound);
  out[2 * d_ + products] = ends.determined ? Real{1} : Real{0};
}

SegmentMatrix MatrixFeatures::Pullback(const SegmentMatrix& matrix,
                                       std::span<const double> d_features) const {
  MSRL_CHECK_EQ(std::ssize(d_features), size_);
  if (matrix.lift() != lift_) RequireSameLift(*matrix.lift(), *lift_, "matrix features");
  const double* const packed = matrix.packed().data();
  const double horizon = matrix.HorizonEntry();
  // derivatives with respect to the stored triangle
  std::vector<double> gradient(matrix.packed().size(), 0.0);
  if (options_.only_state) {
    std::vector<double> d_ends(static_cast<std::size_t>(2 * d_ + d_ * (d_ + 1) / 2 + 1), 0.0);
    std::copy(d_features.begin(), d_features.end(), d_ends.begin() + d_);
    PullEndpointsBack(packed, horizon, d_ends.data(), {}, gradient.data());
  } else {
    PullAveragesBack(packed, horizon, d_features.data(), gradient.data());
    std::array<double, 2> d_end{};
    if (regressions_) {
      const Endpoints ends = FindEndpoints(packed, horizon);
      regressions_->PullBack(matrix, ends.last.data(), d_features.data() + regressions_begin(),
                             gradient.data(), d_end.data());
    }
    if (options_.endpoints) {
      PullEndpointsBack(packed, horizon, d_features.data() + entries_.size() + 1, d_end,
                        gradient.data());
    }
  }
  for (Index j = 0, k = 0; j < lift_->m(); ++j, ++k) {
    for (Index i = 0; i < j; ++i, ++k) gradient[static_cast<std::size_t>(k)] *= 0.5;
  }
  return SegmentMatrix::FromPacked(lift_, std::move(gradient));
}

void MatrixFeatures::PullAveragesBack(const double* packed, double horizon, const double* d_out,
                                      double* d_packed) const {
  const double factor = kAverageGain / (horizon + kDamping);
  const std::size_t count = entries_.size();
  double& d_horizon = d_packed[PackedIndex(lift_->constant_offset(), lift_->constant_offset())];
  for (std::size_t k = 0; k < count; ++k) {
    const double value = factor * packed[entries_[k]];
    const double d_value = d_out[k] / (1.0 + std::abs(value));
    d_packed[entries_[k]] += d_value * factor;
    d_horizon -= d_value * value / (horizon + kDamping);
  }
  d_horizon += d_out[count] / (kLogHorizonUnit * (1.0 + horizon));
}

void MatrixFeatures::PullEndpointsBack(const double* packed, double horizon, const double* d_out,
                                       const std::array<double, 2>& d_end, double* d_packed) const {
  const int d = d_;
  const Index constant = lift_->constant_offset();
  const Endpoints ends = FindEndpoints(packed, horizon);
  const auto& move = ends.move;
  const auto& along = ends.along;

  std::array<double, kMaxSlots> d_first{};  // through x_0, which is also in x_T
  std::array<double, kMaxSlots> d_move{};
  for (int i = 0; i < d; ++i) {
    const double first = kEndpointGain * CutSlope(kEndpointGain * ends.first[i], kEndpointBound);
    const double last = kEndpointGain * CutSlope(kEndpointGain * ends.last[i], kEndpointBound);
    double d_last = last * d_out[d + i];
    if (i < std::ssize(d_end)) d_last += d_end[static_cast<std::size_t>(i)];
    d_first[i] = first * d_out[i] + d_last;
    if (ends.determined) d_move[i] = d_last;
  }
  // x_0 = along / s - d (d . along) / (2 s^2), s = |d|^2
  std::array<double, kMaxSlots> d_along{};
  double d_square = 0.0;
  if (ends.determined) {
    const double s = ends.square;
    double along_first = 0.0;
    double move_first = 0.0;
    for (int i = 0; i < d; ++i) {
      along_first += along[i] * d_first[i];
      move_first += move[i] * d_first[i];
    }
    const double d_twice = -move_first / (2.0 * s * s);
    for (int i = 0; i < d; ++i) {
      d_along[i] = d_first[i] / s + d_twice * move[i];
      d_move[i] += d_twice * along[i] - d_first[i] * ends.twice / (2.0 * s * s);
    }
    d_square = -along_first / (s * s) + move_first * ends.twice / (s * s * s);
  } else if (horizon > 0.0) {
    for (int i = 0; i < d; ++i) {
      d_packed[PackedIndex(i, constant)] += d_first[i] / horizon;
      d_packed[PackedIndex(constant, constant)] -=
          d_first[i] * packed[PackedIndex(i, constant)] / (horizon * horizon);
    }
  }
  // along = S d, S = D - d d^T, D_ij = Z_{x_i dx_j} + Z_{x_j dx_i} + Z_{dx_i dx_j}
  for (int j = 0, k = 0; j < d; ++j) {
    for (int i = 0; i <= j; ++i, ++k) {
      const double s_entry = ends.full[k] - move[i] * move[j];
      double d_s = d_along[i] * move[j];
      d_move[j] += s_entry * d_along[i];
      if (i != j) {
        d_s += d_along[j] * move[i];
        d_move[i] += s_entry * d_along[j];
      }
      d_move[i] -= d_s * move[j];
      d_move[j] -= d_s * move[i];
      const double d_full = d_s + d_out[2 * d + k] * CutSlope(ends.full[k], kProductBound);
      d_packed[PackedIndex(i, d + j)] += d_full;
      d_packed[PackedIndex(j, d + i)] += d_full;
      d_packed[PackedIndex(d + i, d + j)] += d_full;
    }
  }
  for (int i = 0; i < d; ++i) {
    d_packed[PackedIndex(d + i, constant)] += d_move[i] + 2.0 * d_square * move[i];
  }
}

}  // namespace msrl
