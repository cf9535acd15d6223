// How diagnostics are scored: noise, descriptors cut down to blocks, ridge classifiers.
#ifndef MSRL_DIAGNOSE_EVALUATION_H_
#define MSRL_DIAGNOSE_EVALUATION_H_

#include <Eigen/Core>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

// The rows `slots` of the states, each observed with independent Gaussian noise.
Segment ObserveNoisily(const Segment& segment, std::span<const int> slots, double deviation,
                       Rng& rng);

// The same transitions walked back: states and steps in reverse order, actions and rewards kept
// with their transition.
Segment WalkedBack(const Segment& segment);

// Blocks of the full lift by their names in this one. The compact lift has positions where the full
// one has midpoints, and actions where that has their products with places and displacements.
std::vector<std::string> BlocksOf(const Lift& lift, std::span<const std::string> full);

// The entries of a matrix whose row and column both lie in the named blocks, as a vector. With all
// blocks this is the whole descriptor; with "c" alone it is occupancy.
Eigen::VectorXd BlockEntries(const SegmentMatrix& matrix, std::span<const std::string> blocks);

// What a diagnostic reads off a matrix; as many numbers for every matrix of one lift.
using FeatureMap = std::function<Eigen::VectorXd(const SegmentMatrix&)>;

// The features of many matrices, one column each. InvariantError if they differ in number.
Eigen::MatrixXd StackColumns(std::span<const SegmentMatrix> matrices, const FeatureMap& features);

// |M(whole) - M(first part) - M(second part)|_F for a cut in the middle.
double AdditiveError(const Lift::Ptr& lift, const Segment& segment);

// Scales every coordinate to unit variance over a set of examples (columns).
class Standardizer {
 public:
  explicit Standardizer(const Eigen::MatrixXd& examples);
  Eigen::MatrixXd operator()(const Eigen::MatrixXd& examples) const;

 private:
  Eigen::VectorXd mean_;
  Eigen::VectorXd inverse_deviation_;
};

// Linear regression on one-hot labels with a quadratic penalty: a classifier in closed form.
// Examples are columns; features are standardised inside.
class RidgeClassifier {
 public:
  RidgeClassifier(const Eigen::MatrixXd& examples, std::span<const int> labels, int classes,
                  double penalty);
  // classes x examples
  Eigen::MatrixXd Scores(const Eigen::MatrixXd& examples) const;
  // Share of examples whose highest score is their label's.
  double Accuracy(const Eigen::MatrixXd& examples, std::span<const int> labels) const;

 private:
  Standardizer standardize_;
  Eigen::MatrixXd weights_;  // classes x features
  Eigen::VectorXd bias_;
};

// Index of the column of `gallery` nearest to the query.
Index Nearest(const Eigen::VectorXd& query, const Eigen::MatrixXd& gallery);

}  // namespace msrl

#endif  // MSRL_DIAGNOSE_EVALUATION_H_
