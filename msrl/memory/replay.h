// What was experienced, for learning from it again.
//
//   Replay replay(config);
//   replay.Add(step);                                 // every step, as it happens
//   ReplayBatch batch = replay.MakeBatch(256);        // of any size
//   replay.Sample(rng, batch);                        // single transitions
//   SequenceBatch sequences = replay.MakeSequences(/*sequences=*/16, /*length=*/64);
//   replay.Sample(rng, sequences);                    // pieces of episodes
//
// A recurrent world model (Dreamer) keeps what it inferred of a state in `features`, and takes
// records: states in the order in which they were lived, across the ends of episodes. It starts
// from the features of the first record, forgets where one is `first`, and writes back what it
// infers now:
//   RecordBatch records = replay.MakeRecords(/*sequences=*/16, /*length=*/65);
//   replay.Sample(rng, records);
//   replay.SetFeatures(records.row[0] + 1, inferred);
// A model without memory (TD-MPC) encodes the states of t = 0 of sequences and rolls the actions
// out, weighted by `inside`. A model that imagines transitions (MBPO) keeps them in a second replay
// with `pieces` and fills one batch from both:
//   real.Sample(rng, batch, 0, 13);
//   imagined.Sample(rng, batch, 13, 243);
// n-step returns come from sequences of length n, with k <= n the steps of a sequence:
//   y = sum_{t<k} gamma^t r_t + gamma^k continues_{k-1} V(o_k)
#ifndef MSRL_MEMORY_REPLAY_H_
#define MSRL_MEMORY_REPLAY_H_

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "msrl/core/lift.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/files/state.h"
#include "msrl/memory/lazy_table.h"

namespace msrl {

struct ReplayConfig {
  // States kept; an episode of T steps takes T + 1 of them. At least 2.
  std::int64_t capacity = 100'000;
  int observation_size = 0;
  int action_size = 0;  // numbers per action; an index is one number
  // Numbers per state that the caller computes from its matrix when the state is reached.
  int feature_size = 0;

  // Null: no matrices. Otherwise geometry, action code and scaled reward are kept in double, from
  // which every prefix matrix can be rebuilt to the last bit.
  Lift::Ptr lift = nullptr;
  // Action codes are one-hot (kept as an index), or have this many leading numbers and zeros then.
  bool one_hot_code = false;
  int code_size = 0;
  // A full matrix is kept every so many states: the most steps that a rebuild adds up.
  int anchor_every = 512;

  // A step need not go on where the step before ended: one that does not begins a new piece, as if
  // the step before had been truncated. For a model's roll-outs; without matrices.
  bool pieces = false;
};

// A state as it is handed in. Matrix parts are ignored if the replay keeps none.
struct ReplayState {
  std::span<const double> observation;
  std::span<const float> features = {};
  std::span<const double> geometry = {};  // lift.d
  const SegmentMatrix* matrix = nullptr;  // of the steps before this state
};

struct ReplayStep {
  ReplayState before;
  std::span<const float> action;
  double reward = 0.0;  // as sampled, in float
  bool terminated = false;
  bool truncated = false;
  ReplayState after;  // the true successor, also where the episode ends
  // What the lift was given: lift.q numbers and the scaled reward.
  std::span<const double> code = {};
  double lift_reward = 0.0;
};

// One column per sample.
struct ReplayBatch {
  Eigen::MatrixXf observation;
  Eigen::MatrixXf features;
  Eigen::MatrixXf action;
  Eigen::RowVectorXf reward;
  Eigen::RowVectorXf continues;  // 1 - terminated: whether the successor's value counts
  Eigen::MatrixXf next_observation;
  Eigen::MatrixXf next_features;
  std::vector<std::int64_t> row;  // for RebuildMatrix
  // How much the policy should take the action over; empty: it should not. The caller's to fill.
  Eigen::RowVectorXf lesson;

  Eigen::Index size() const { return reward.size(); }
  bool has_lessons() const { return lesson.size() > 0; }
};

// Sequences of one length, each from a single episode. Time by time: the columns of one time are
// side by side, one per sequence.
//
// A sequence that meets the end of its episode, or the newest state, has fewer steps. What follows
// is filling: the last state again, and zeros.
struct SequenceBatch {
  // of states: (length + 1) * sequences columns
  Eigen::MatrixXf observation;
  Eigen::MatrixXf features;
  // of steps: length * sequences columns
  Eigen::MatrixXf action;
  Eigen::RowVectorXf reward;
  Eigen::RowVectorXf continues;  // 1 - terminated
  Eigen::RowVectorXf inside;     // 1, or 0 for filling
  // of sequences
  Eigen::RowVectorXf first;       // 1 if it begins where its episode does
  std::vector<int> steps;         // 1 to length
  std::vector<std::int64_t> row;  // of the first state, for RebuildMatrix

  Eigen::Index sequences() const { return first.size(); }
  Eigen::Index length() const { return reward.size() / sequences(); }
  // Where the columns of a time begin, for middleCols(Column(t), sequences()).
  Eigen::Index Column(Eigen::Index time) const { return time * sequences(); }
};

// Stretches of one length of what was lived, where the last state of an episode is followed by the
// first of the next. Time by time like sequences: length * sequences columns.
struct RecordBatch {
  Eigen::MatrixXf observation;
  Eigen::MatrixXf features;
  Eigen::MatrixXf action;         // taken from here; zeros if none was
  Eigen::RowVectorXf reward;      // received on arriving here; 0 if nobody knows
  Eigen::RowVectorXf first;       // 1 where an episode begins
  Eigen::RowVectorXf last;        // 1 where one ended
  Eigen::RowVectorXf terminal;    // ... by termination
  std::vector<std::int64_t> row;  // of each sequence's first state

  Eigen::Index sequences() const { return static_cast<Eigen::Index>(row.size()); }
  Eigen::Index length() const { return reward.size() / sequences(); }
  Eigen::Index Column(Eigen::Index time) const { return time * sequences(); }
};

// A ring of states. The successor of a step is the next state of the ring, so states are stored
// once; the last state of an episode has a row of its own. Rows are numbered from 0 for ever; those
// in [first_row(), end_row()) are kept.
class Replay {
 public:
  // UserError on impossible sizes. Memory is reserved here and touched as it fills.
  explicit Replay(ReplayConfig config);

  const ReplayConfig& config() const { return config_; }
  // Transitions that can be sampled.
  std::int64_t size() const { return transitions_; }
  std::int64_t first_row() const { return first_; }
  std::int64_t end_row() const { return end_; }
  // Whether a step was taken from this row; else it is the end of an episode or the newest state.
  bool IsStep(std::int64_t row) const { return (Flags(row) & kStep) != 0; }
  // Whether an episode begins at this row.
  bool IsFirst(std::int64_t row) const { return (Flags(row) & kFirst) != 0; }

  // Whether the step from this row ended its episode, and how.
  bool IsTerminated(std::int64_t row) const { return (Flags(row) & kTerminated) != 0; }
  bool IsTruncated(std::int64_t row) const { return (Flags(row) & kTruncated) != 0; }

  // Unless the step before ended its episode, `before` must be that step's `after` (or begins a
  // piece). No allocation.
  void Add(const ReplayStep& step);

  // Batches of the right sizes.
  ReplayBatch MakeBatch(int size) const;
  SequenceBatch MakeSequences(int sequences, int length) const;
  RecordBatch MakeRecords(int sequences, int length) const;
  // Fills every column with a transition drawn uniformly, with replacement; size() > 0. No
  // allocation.
  void Sample(Rng& rng, ReplayBatch& batch) const { Sample(rng, batch, 0, batch.size()); }
  // The same for `count` columns from `column` on.
  void Sample(Rng& rng, ReplayBatch& batch, Eigen::Index column, Eigen::Index count) const;
  // Fills every sequence from a step on that is drawn likewise. No allocation.
  void Sample(Rng& rng, SequenceBatch& batch) const;
  // Fills every stretch from a state on that is drawn uniformly among those that have as many
  // states as it wants. There must be one. No allocation.
  void Sample(Rng& rng, RecordBatch& batch) const;
  // Fills one column with the transition of a row for which IsStep.
  void Read(std::int64_t row, Eigen::Index column, ReplayBatch& batch) const;
  // Fills one sequence from such a row on.
  void Read(std::int64_t row, Eigen::Index sequence, SequenceBatch& batch) const;

  std::span<const float> observation(std::int64_t row) const { return observation_.Row(Slot(row)); }
  // Of a row for which IsStep.
  std::span<const float> action(std::int64_t row) const { return action_.Row(Slot(row)); }
  float reward(std::int64_t row) const { return reward_.data[Slot(row)]; }
  // What is known of a kept state now.
  std::span<const float> features(std::int64_t row) const { return features_.Row(Slot(row)); }
  void SetFeatures(std::int64_t row, std::span<const float> features);

  // The matrix of all steps of the episode before this row, bit for bit as it was accumulated, also
  // if the episode's beginning is no longer kept. Adds up at most anchor_every steps.
  SegmentMatrix RebuildMatrix(std::int64_t row) const;
  // psi (of size lift.m) of the step at a row for which IsStep, bit for bit.
  void RebuildPsi(std::int64_t row, Eigen::VectorXd& psi) const;

  // The geometry of a row, if the replay keeps matrices.
  std::span<const double> geometry(std::int64_t row) const { return geometry_.Row(Slot(row)); }

  // Bytes reserved for features and matrices.
  std::int64_t MatrixBytes() const;

  // UserError if the state is of a replay with other sizes or another lift.
  void Visit(const Archive& state);

 private:
  enum Flag : std::uint8_t {
    kStep = 1,
    kTerminated = 2,
    kTruncated = 4,
    kFirst = 8,  // first state of an episode
  };
  template <typename T>
  using Table = LazyTable<T>;

  std::int64_t Slot(std::int64_t row) const { return row % config_.capacity; }
  std::int64_t AnchorSlot(std::int64_t row) const {
    return row / config_.anchor_every % anchors_.rows;
  }
  std::uint8_t& Flags(std::int64_t row) const { return flags_.data[Slot(row)]; }
  bool HasMatrices() const { return config_.lift != nullptr; }
  std::int64_t DrawStep(Rng& rng) const;
  void Read(std::int64_t row, Eigen::Index sequence, RecordBatch& batch) const;
  bool GoesOnWith(const ReplayState& state) const;
  void Push(const ReplayState& state, std::uint8_t flags);
  void EvictOldest();
  void RequireConsistent(const Archive& state) const;

  ReplayConfig config_;
  std::int64_t first_ = 0;
  std::int64_t end_ = 0;
  std::int64_t transitions_ = 0;
  bool open_ = false;  // the newest state is one from which an episode goes on

  Table<float> observation_;
  Table<float> features_;
  Table<float> action_;
  Table<float> reward_;
  Table<std::uint8_t> flags_;
  Table<double> geometry_;
  Table<double> code_;
  Table<double> lift_reward_;
  Table<double> anchors_;
  // the matrix before the oldest row: what its forgotten beginning amounts to
  std::vector<double> oldest_;
  mutable Eigen::VectorXd psi_;
  mutable Eigen::VectorXd wide_code_;
};

}  // namespace msrl

#endif  // MSRL_MEMORY_REPLAY_H_
