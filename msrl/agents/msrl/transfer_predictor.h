// Will a branch help here? Asked of random steps, before any learning.
#ifndef MSRL_AGENTS_MSRL_TRANSFER_PREDICTOR_H_
#define MSRL_AGENTS_MSRL_TRANSFER_PREDICTOR_H_

#include "msrl/memory/replay.h"
#include "msrl/value/value_branch.h"

namespace msrl {

struct TransferPredictor {
  // Pearson correlation of F(Z_{t+10}) - F(Z_t) with the progress |g_t| - |g_{t+10}|, where g is
  // the geometry's "where is the goal" (slots 2 and 3); 0 if either never varies.
  double correlation = 0.0;
  // Root mean square of F(Z_{t+10}) - F(Z_t): how loudly the branch speaks.
  double amplitude = 0.0;
  std::int64_t pairs = 0;
  double mean = 0.0;                // of F
  double distance_amplitude = 0.0;  // as amplitude, of |g|
  // Correlation of F with the discounted rewards of the rest of the episode, both less their
  // episode's mean; of whole episodes, without their first state. 0 if either never varies.
  double return_correlation = 0.0;
  // Where steps terminated an episode: how many, mean F there, and by how many amplitudes F has
  // changed over the last kPredictorGap steps of these episodes. An F that knows what a fall is
  // falls.
  std::int64_t ends = 0;
  double end_value = 0.0;
  double fall = 0.0;
  // By how many amplitudes F is higher in the mean than where episodes ended; 0 if none did.
  double height() const {
    return ends > 0 && amplitude > 0.0 ? (mean - end_value) / amplitude : 0.0;
  }
};

// Over all pairs of states kPredictorGap steps apart in a replay with matrices.
inline constexpr int kPredictorGap = 10;
inline constexpr double kPredictorGamma = 0.99;
TransferPredictor PredictTransfer(const ValueBranch& branch, const Replay& replay);

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_TRANSFER_PREDICTOR_H_
