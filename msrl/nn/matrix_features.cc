#include "msrl/nn/matrix_features.h"

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

float Cut(double value, double bound) {
  return static_cast<float>(std::clamp(value, -bound, bound));
}

}  // namespace

std::string MatrixFeatureOptions::Name() const {
  return std::string(all_entries ? "all" : "selected") + (endpoints ? "+endpoints" : "");
}

MatrixFeatureOptions MatrixFeatureOptions::FromName(std::string_view name) {
  std::vector<std::string> known;
  for (const bool all : {false, true}) {
    for (const bool endpoints : {true, false}) {
      const MatrixFeatureOptions options{all, endpoints};
      if (options.Name() == name) return options;
      known.push_back(options.Name());
    }
  }
  throw UserError(StrCat("unknown features '", name, "'", DidYouMean(name, known),
                         " (selected+endpoints, selected, all+endpoints, all)"));
}

MatrixFeatures::MatrixFeatures(Lift::Ptr lift, const MatrixFeatureOptions& options)
    : lift_(std::move(lift)), options_(options), d_(static_cast<int>(lift_->d())) {
  if (lift_->kind() == LiftKind::kFull || d_ > kMaxSlots) {
    throw UserError(StrCat("matrix features need a compact lift with at most ", kMaxSlots,
                           " geometry slots, got ", lift_->Describe()));
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
}

std::vector<std::string> MatrixFeatures::Names() const {
  std::vector<std::string> names;
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
  for (const char* end : {"x0", "xT"}) {
    for (int i = 0; i < d_; ++i) names.push_back(StrCat(end, "[", i, "]"));
  }
  for (int j = 0; j < d_; ++j) {
    for (int i = 0; i <= j; ++i) names.push_back(StrCat("D[", i, ",", j, "]"));
  }
  names.emplace_back("ends");
  return names;
}

void MatrixFeatures::Compute(const SegmentMatrix& matrix, std::span<float> out) const {
  MSRL_CHECK_EQ(std::ssize(out), size_);
  if (matrix.lift() != lift_) RequireSameLift(*matrix.lift(), *lift_, "matrix features");
  const internal::FlushDenormals flush;
  const double* const packed = matrix.packed().data();
  const double horizon = matrix.HorizonEntry();
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
  if (options_.endpoints) ComputeEndpoints(packed, horizon, out.data() + count + 1);
}

void MatrixFeatures::ComputeEndpoints(const double* packed, double horizon, float* out) const {
  const int d = d_;
  const Index constant = lift_->constant_offset();
  float* const first = out;
  float* const last = out + d;
  float* const product = out + 2 * d;
  float& exact = out[2 * d + d * (d + 1) / 2];

  std::array<double, kMaxSlots> move;
  double square = 0.0;
  double size = 0.0;
  for (int i = 0; i < d; ++i) {
    move[i] = packed[PackedIndex(d + i, constant)];
    square += move[i] * move[i];
    size += packed[PackedIndex(i, i)] + packed[PackedIndex(d + i, d + i)];
  }
  // along = S d with S = D - d d^T
  std::array<double, kMaxSlots> along{};
  for (int j = 0, k = 0; j < d; ++j) {
    const double* const dx_column = packed + PackedIndex(0, d + j);  // x_0..x_d, dx_0..dx_j
    for (int i = 0; i <= j; ++i, ++k) {
      const double cross = packed[PackedIndex(j, d + i)];
      const double full = dx_column[i] + cross + dx_column[d + i];
      product[k] = Cut(full, kProductBound);
      const double s = full - move[i] * move[j];
      along[i] += s * move[j];
      if (i != j) along[j] += s * move[i];
    }
  }
  const bool determined =
      horizon > 0.0 && square * horizon > kClosedPath * kClosedPath * size && square > 1e-200;
  double twice = 0.0;
  for (int i = 0; i < d; ++i) twice += along[i] * move[i];
  for (int i = 0; i < d; ++i) {
    double x_0 = 0.0;
    double x_T = 0.0;
    if (determined) {
      x_0 = (along[i] - move[i] * twice / (2.0 * square)) / square;
      x_T = x_0 + move[i];
    } else if (horizon > 0.0) {
      x_0 = x_T = packed[PackedIndex(i, constant)] / horizon;
    }
    first[i] = Cut(kEndpointGain * x_0, kEndpointBound);
    last[i] = Cut(kEndpointGain * x_T, kEndpointBound);
  }
  exact = determined ? 1.0F : 0.0F;
}

}  // namespace msrl
