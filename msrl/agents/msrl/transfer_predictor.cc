#include "msrl/agents/msrl/transfer_predictor.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "msrl/core/statistics.h"

namespace msrl {
namespace {

struct State {
  std::int64_t row = 0;
  double value = 0.0;     // F
  double distance = 0.0;  // |g|
  double reward = 0.0;
  bool terminated = false;
  double end_value = 0.0;  // F of the successor, if terminated
};

// Every state from which a step was taken.
std::vector<State> JudgeStates(const ValueBranch& branch, const Replay& replay) {
  constexpr int kBatch = 64;
  ReplayBatch batch = replay.MakeBatch(kBatch);
  MlpTape tape(branch.spec(), kBatch);
  std::vector<State> states;
  std::vector<State> pending;
  const auto judge = [&] {
    if (pending.empty()) return;
    const Eigen::Index count = std::ssize(pending);
    const auto f = branch.Forward(batch.features.leftCols(count), tape);
    for (Eigen::Index i = 0; i < count; ++i) {
      pending[static_cast<std::size_t>(i)].value = static_cast<double>(f(0, i));
    }
    const auto after = branch.Forward(batch.next_features.leftCols(count), tape);
    for (Eigen::Index i = 0; i < count; ++i) {
      pending[static_cast<std::size_t>(i)].end_value = static_cast<double>(after(0, i));
    }
    states.insert(states.end(), pending.begin(), pending.end());
    pending.clear();
  };
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (!replay.IsStep(row)) continue;
    const Eigen::Index column = std::ssize(pending);
    replay.Read(row, column, batch);
    const auto g = replay.geometry(row);
    pending.push_back({.row = row,
                       .distance = std::hypot(g[2], g[3]),
                       .reward = static_cast<double>(batch.reward[column]),
                       .terminated = batch.continues[column] == 0.0F});
    if (pending.size() == kBatch) judge();
  }
  judge();
  return states;
}

// Pairs of numbers that may go together.
struct Sample {
  std::vector<double> x, y;

  void Add(double at_x, double at_y) {
    x.push_back(at_x);
    y.push_back(at_y);
  }
};

double RootMeanSquare(std::span<const double> values) {
  if (values.empty()) return 0.0;
  double squares = 0.0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// F against the discounted rest of an episode, whose states are `episode`.
void CompareWithReturns(std::span<const State> episode, Sample& sample) {
  std::vector<double> rest(episode.size() + 1, 0.0);
  for (std::size_t i = episode.size(); i-- > 0;) {
    rest[i] = episode[i].reward + kPredictorGamma * rest[i + 1];
  }
  const auto count = static_cast<double>(episode.size());
  double mean_f = 0.0, mean_rest = 0.0;
  for (std::size_t i = 0; i < episode.size(); ++i) {
    mean_f += episode[i].value / count;
    mean_rest += rest[i] / count;
  }
  // the first state has no matrix yet
  for (std::size_t i = 1; i < episode.size(); ++i) {
    sample.Add(episode[i].value - mean_f, rest[i] - mean_rest);
  }
}

}  // namespace

TransferPredictor PredictTransfer(const ValueBranch& branch, const Replay& replay) {
  const std::vector<State> states = JudgeStates(branch, replay);
  TransferPredictor result;
  Sample progress;
  for (std::size_t i = 0; i + kPredictorGap < states.size(); ++i) {
    const State& before = states[i];
    const State& after = states[i + kPredictorGap];
    // rows of one episode follow each other; its last state has a row, but no step
    if (after.row != before.row + kPredictorGap) continue;
    progress.Add(after.value - before.value, before.distance - after.distance);
  }
  result.pairs = std::ssize(progress.x);
  result.amplitude = RootMeanSquare(progress.x);
  result.correlation = PearsonCorrelation(progress.x, progress.y);
  result.distance_amplitude = RootMeanSquare(progress.y);
  for (const State& state : states) {
    result.mean += state.value / static_cast<double>(states.size());
  }

  Sample returns;
  std::int64_t falls = 0;
  for (std::size_t begin = 0; begin < states.size();) {
    std::size_t end = begin + 1;
    while (end < states.size() && states[end].row == states[end - 1].row + 1) ++end;
    const std::span episode(&states[begin], end - begin);
    // the newest episode may go on
    if (end < states.size()) CompareWithReturns(episode, returns);
    const State& last = episode.back();
    if (last.terminated) {
      ++result.ends;
      result.end_value += last.end_value;
      if (std::ssize(episode) >= kPredictorGap) {
        ++falls;
        result.fall += last.end_value - episode[episode.size() - kPredictorGap].value;
      }
    }
    begin = end;
  }
  result.return_correlation = PearsonCorrelation(returns.x, returns.y);
  if (result.ends > 0) result.end_value /= static_cast<double>(result.ends);
  if (falls > 0 && result.amplitude > 0.0) {
    result.fall /= static_cast<double>(falls) * result.amplitude;
  }
  return result;
}

}  // namespace msrl
