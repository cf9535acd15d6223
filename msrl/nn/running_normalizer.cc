#include "msrl/nn/running_normalizer.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {

RunningNormalizer::RunningNormalizer(int size, double clip, double epsilon)
    : clip_(clip), epsilon_(epsilon) {
  MSRL_CHECK_GE(size, 1);
  MSRL_CHECK(clip > 0.0 && epsilon > 0.0, "clip is ", clip, ", epsilon is ", epsilon);
  mean_ = squares_ = batch_mean_ = batch_squares_ = Eigen::VectorXd::Zero(size);
  UpdateFactors();
}

Eigen::VectorXd RunningNormalizer::variance() const {
  if (count_ == 0.0) return Eigen::VectorXd::Ones(size());
  return squares_ / count_;
}

void RunningNormalizer::UpdateFactors() {
  offset_ = mean_.cast<float>();
  if (count_ == 0.0) {
    factor_.setConstant(size(), static_cast<float>(1.0 / std::sqrt(1.0 + epsilon_)));
  } else {
    factor_ = (squares_.array() / count_ + epsilon_).rsqrt().cast<float>();
  }
}

void RunningNormalizer::Update(const ConstMatrixRef& samples) {
  MSRL_CHECK_EQ(samples.rows(), mean_.size());
  if (samples.cols() == 0) return;
  MSRL_CHECK(samples.allFinite(), "samples must be finite");
  const auto n = static_cast<double>(samples.cols());
  batch_mean_.setZero();
  for (Eigen::Index b = 0; b < samples.cols(); ++b) batch_mean_ += samples.col(b).cast<double>();
  batch_mean_ /= n;
  batch_squares_.setZero();
  for (Eigen::Index b = 0; b < samples.cols(); ++b) {
    batch_squares_.array() += (samples.col(b).cast<double>() - batch_mean_).array().square();
  }
  Merge(n, batch_mean_, batch_squares_);
}

void RunningNormalizer::Merge(const RunningNormalizer& other) {
  MSRL_CHECK_EQ(other.size(), size());
  if (other.count_ > 0.0) Merge(other.count_, other.mean_, other.squares_);
}

void RunningNormalizer::Merge(double count, const Eigen::VectorXd& mean,
                              const Eigen::VectorXd& squares) {
  const double total = count_ + count;
  squares_.array() += squares.array() + (mean - mean_).array().square() * (count_ * count / total);
  mean_ += (mean - mean_) * (count / total);
  count_ = total;
  UpdateFactors();
}

void RunningNormalizer::Normalize(const ConstMatrixRef& samples, MatrixRef normalized) const {
  MSRL_CHECK_EQ(samples.rows(), mean_.size());
  const auto limit = static_cast<float>(clip_);
  for (Eigen::Index b = 0; b < samples.cols(); ++b) {
    normalized.col(b) =
        ((samples.col(b).array() - offset_) * factor_).max(-limit).min(limit).matrix();
  }
}

void RunningNormalizer::Scale(const ConstMatrixRef& samples, MatrixRef scaled) const {
  MSRL_CHECK_EQ(samples.rows(), mean_.size());
  const auto limit = static_cast<float>(clip_);
  for (Eigen::Index b = 0; b < samples.cols(); ++b) {
    scaled.col(b) = (samples.col(b).array() * factor_).max(-limit).min(limit).matrix();
  }
}

void RunningNormalizer::Save(ByteWriter& writer) const {
  writer.I64(size());
  writer.Double(count_);
  for (const double value : mean_) writer.Double(value);
  for (const double value : squares_) writer.Double(value);
}

void RunningNormalizer::Load(ByteReader& reader) {
  RunningNormalizer loaded(size(), clip_, epsilon_);
  reader.I64In(size(), size());
  loaded.count_ = reader.FiniteDouble();
  for (double& value : loaded.mean_) value = reader.FiniteDouble();
  for (double& value : loaded.squares_) value = reader.FiniteDouble();
  if (loaded.count_ < 0.0 || (loaded.squares_.array() < 0.0).any()) {
    throw UserError("normaliser: counts and squares must not be negative; the file is damaged");
  }
  loaded.UpdateFactors();
  *this = std::move(loaded);
}

}  // namespace msrl
