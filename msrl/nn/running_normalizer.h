// Running mean and variance of observations or returns.
#ifndef MSRL_NN_RUNNING_NORMALIZER_H_
#define MSRL_NN_RUNNING_NORMALIZER_H_

#include <Eigen/Core>

#include "msrl/core/bytes.h"
#include "msrl/nn/mlp.h"

namespace msrl {

// Welford's and Chan's formulas in double: the order of the samples changes the result by rounding
// only. Before the first sample the mean is 0 and the variance 1.
class RunningNormalizer {
 public:
  // Normalised values are cut to [-clip, clip].
  explicit RunningNormalizer(int size, double clip = 10.0, double epsilon = 1e-8);

  int size() const { return static_cast<int>(mean_.size()); }
  double count() const { return count_; }
  const Eigen::VectorXd& mean() const { return mean_; }
  // What Normalize takes away, and what it then multiplies with.
  const Eigen::ArrayXf& offset() const { return offset_; }
  const Eigen::ArrayXf& factor() const { return factor_; }
  // Of the population: sum of squares / count.
  Eigen::VectorXd variance() const;

  // One sample per column. Samples with values that are not finite are an InvariantError.
  void Update(const ConstMatrixRef& samples);
  // As if the other's samples had been seen too.
  void Merge(const RunningNormalizer& other);

  // (x - mean) / sqrt(variance + epsilon), cut. In place is fine. No allocation.
  void Normalize(const ConstMatrixRef& samples, MatrixRef normalized) const;
  // x / sqrt(variance + epsilon), cut: for returns, whose mean must stay.
  void Scale(const ConstMatrixRef& samples, MatrixRef scaled) const;

  void Save(ByteWriter& writer) const;
  // UserError if the bytes are of another size or can't be statistics.
  void Load(ByteReader& reader);

 private:
  void Merge(double count, const Eigen::VectorXd& mean, const Eigen::VectorXd& squares);
  void UpdateFactors();

  double clip_;
  double epsilon_;
  double count_ = 0.0;
  Eigen::VectorXd mean_;
  Eigen::VectorXd squares_;  // sums of squared distances from the mean
  Eigen::VectorXd batch_mean_, batch_squares_;
  Eigen::ArrayXf offset_, factor_;  // mean and 1 / sqrt(variance + epsilon), as float
};

}  // namespace msrl

#endif  // MSRL_NN_RUNNING_NORMALIZER_H_
