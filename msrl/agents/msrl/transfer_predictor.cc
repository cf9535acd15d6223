#include "msrl/agents/msrl/transfer_predictor.h"

#include <cmath>
#include <vector>

namespace msrl {
namespace {

struct State {
  std::int64_t row;
  double value;     // F
  double distance;  // |g|
};

// F and |g| of every state from which a step was taken.
std::vector<State> JudgeStates(const ValueBranch& branch, const Replay& replay) {
  constexpr int kBatch = 64;
  ReplayBatch batch = replay.MakeBatch(kBatch);
  MlpTape tape(branch.spec(), kBatch);
  Eigen::VectorXd psi(replay.config().lift->m());
  std::vector<State> states;
  std::vector<State> pending;
  const auto judge = [&] {
    if (pending.empty()) return;
    const auto f = branch.Forward(batch.features.leftCols(std::ssize(pending)), tape);
    for (std::size_t i = 0; i < pending.size(); ++i) {
      pending[i].value = static_cast<double>(f(0, static_cast<Eigen::Index>(i)));
      states.push_back(pending[i]);
    }
    pending.clear();
  };
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (!replay.IsStep(row)) continue;
    replay.Read(row, static_cast<Eigen::Index>(pending.size()), batch);
    // the compact lift begins with the geometry
    replay.RebuildPsi(row, psi);
    pending.push_back({row, 0.0, std::hypot(psi[2], psi[3])});
    if (pending.size() == kBatch) judge();
  }
  judge();
  return states;
}

}  // namespace

TransferPredictor PredictTransfer(const ValueBranch& branch, const Replay& replay) {
  const std::vector<State> states = JudgeStates(branch, replay);
  TransferPredictor result;
  double sum_f = 0.0, sum_p = 0.0, sum_ff = 0.0, sum_pp = 0.0, sum_fp = 0.0;
  for (std::size_t i = 0; i + kPredictorGap < states.size(); ++i) {
    const State& before = states[i];
    const State& after = states[i + kPredictorGap];
    // rows of one episode follow each other; its last state has a row, but no step
    if (after.row != before.row + kPredictorGap) continue;
    const double f = after.value - before.value;
    const double progress = before.distance - after.distance;
    ++result.pairs;
    sum_f += f;
    sum_p += progress;
    sum_ff += f * f;
    sum_pp += progress * progress;
    sum_fp += f * progress;
  }
  if (result.pairs == 0) return result;
  const auto n = static_cast<double>(result.pairs);
  result.amplitude = std::sqrt(sum_ff / n);
  const double var_f = sum_ff - sum_f * sum_f / n;
  const double var_p = sum_pp - sum_p * sum_p / n;
  if (var_f > 1e-12 * sum_ff && var_p > 1e-12 * sum_pp) {
    result.correlation = (sum_fp - sum_f * sum_p / n) / std::sqrt(var_f * var_p);
  }
  return result;
}

}  // namespace msrl
