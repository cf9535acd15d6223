// Fitted evaluation of the behaviour behind a set of episodes.
#ifndef MSRL_TRANSFER_FITTED_VALUE_H_
#define MSRL_TRANSFER_FITTED_VALUE_H_

#include "msrl/datasets/episode_file.h"

namespace msrl {

struct FittedValueOptions {
  int steps = 10;          // n of the n-step returns
  int iterations = 40;     // the error shrinks by gamma^n in each
  double ridge = 1e-3;     // per sample, on standardised features
  int max_rows = 200'000;  // states per family that the regression sees
};

// Adds values["fitted"] to every episode, family by family: V is linear in the observation, the
// prefix-matrix features and their squares; repeatedly V := ridge regression on n-step returns that
// bootstrap with the V before (truncated episodes too; terminated ones end with 0). The stored
// value is the n-step return with the last V.
void AddFittedValues(EpisodeFile& file, const FittedValueOptions& options = {});

}  // namespace msrl

#endif  // MSRL_TRANSFER_FITTED_VALUE_H_
