// Fitted evaluation of the behaviour behind a set of episodes.
#ifndef MSRL_TRANSFER_FITTED_VALUE_H_
#define MSRL_TRANSFER_FITTED_VALUE_H_

#include <Eigen/Core>
#include <map>
#include <string>

#include "msrl/datasets/episode_file.h"

namespace msrl {

struct FittedValueOptions {
  int steps = 10;          // n of the n-step returns
  int iterations = 40;     // the error shrinks by gamma^n in each
  double ridge = 1e-3;     // per sample, on standardised features
  int max_rows = 200'000;  // states per family that the regression sees
};

// V of each family: linear in the observation, the prefix-matrix features and their squares;
// repeatedly V := ridge regression on n-step returns that bootstrap with the V before (truncated
// episodes too; terminated ones end with 0).
class FittedValue {
 public:
  explicit FittedValue(const EpisodeFile& file, const FittedValueOptions& options = {});

  // Adds to every episode values["regression"], V itself, and values["fitted"], the n-step return
  // with V at its end. UserError on a family that the fit did not see, or with other observations.
  void AddTo(EpisodeFile& file) const;

 private:
  struct Regression {
    Eigen::VectorXf mean, factor;  // of each feature: (feature - mean) * factor, cut
    Eigen::VectorXf weights;
    float bound = 0.0F;  // on |V|
  };

  FittedValueOptions options_;
  std::map<std::string, Regression> families_;
};

}  // namespace msrl

#endif  // MSRL_TRANSFER_FITTED_VALUE_H_
