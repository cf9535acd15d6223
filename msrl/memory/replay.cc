#include "msrl/memory/replay.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/files/memory.h"

namespace msrl {

using Eigen::Index;
using internal::PackedRank1Update;
using internal::PackedSize;

namespace {

std::uint64_t BytesWhenFull(const ReplayConfig& config) {
  std::int64_t state =
      sizeof(float) * (config.observation_size + config.feature_size + config.action_size + 1) + 1;
  std::int64_t anchors = 0;
  if (config.lift != nullptr) {
    const int code = config.one_hot_code ? 1 : config.code_size;
    state += sizeof(double) * (config.lift->d() + code + 1);
    anchors = sizeof(double) * PackedSize(config.lift->m()) *
              (config.capacity / std::max<std::int64_t>(1, config.anchor_every) + 2);
  }
  return static_cast<std::uint64_t>(config.capacity * state + anchors);
}

}  // namespace

Replay::Replay(ReplayConfig config) : config_(std::move(config)) {
  if (config_.capacity < 2 || config_.capacity > 1'000'000'000) {
    throw UserError(StrCat("a replay of ", config_.capacity,
                           " states is impossible; between 2 and 1e9 are possible"));
  }
  MSRL_CHECK(config_.observation_size > 0 && config_.action_size > 0 && config_.feature_size >= 0);
  const std::int64_t n = config_.capacity;
  // tables take their memory as they fill: without this a run would end hours later
  RequireMemory(BytesWhenFull(config_), StrCat("a replay of ", n, " states"));
  observation_.Allocate(n, config_.observation_size);
  features_.Allocate(n, config_.feature_size);
  action_.Allocate(n, config_.action_size);
  reward_.Allocate(n, 1);
  flags_.Allocate(n, 1);
  if (!HasMatrices()) return;
  MSRL_CHECK(!config_.pieces, "pieces have no matrices");
  const Lift& lift = *config_.lift;
  if (config_.one_hot_code) config_.code_size = 1;
  MSRL_CHECK(config_.code_size > 0 && config_.code_size <= lift.q() && config_.anchor_every > 0);
  geometry_.Allocate(n, lift.d());
  code_.Allocate(n, config_.code_size);
  lift_reward_.Allocate(n, 1);
  anchors_.Allocate(n / config_.anchor_every + 2, PackedSize(lift.m()));
  oldest_.assign(static_cast<std::size_t>(PackedSize(lift.m())), 0.0);
  psi_.resize(lift.m());
  wide_code_.resize(lift.q());
}

void Replay::EvictOldest() {
  if (IsStep(first_)) {
    --transitions_;
    if (HasMatrices()) {
      RebuildPsi(first_, psi_);
      PackedRank1Update(psi_.data(), psi_.size(), oldest_.data());
    }
  } else {
    std::fill(oldest_.begin(), oldest_.end(), 0.0);
  }
  ++first_;
}

void Replay::Push(const ReplayState& state, std::uint8_t flags) {
  MSRL_CHECK_EQ(state.observation.size(), static_cast<std::size_t>(config_.observation_size));
  MSRL_CHECK_EQ(state.features.size(), static_cast<std::size_t>(config_.feature_size));
  if (end_ - first_ == config_.capacity) EvictOldest();
  const std::int64_t slot = Slot(end_);
  std::transform(state.observation.begin(), state.observation.end(), observation_.Row(slot).begin(),
                 [](double v) { return static_cast<float>(v); });
  std::copy(state.features.begin(), state.features.end(), features_.Row(slot).begin());
  flags_.data[slot] = flags;
  // an empty place must not carry what was here before: checkpoints hold all of it
  std::ranges::fill(action_.Row(slot), 0.0f);
  reward_.data[slot] = 0.0f;
  if (HasMatrices()) {
    MSRL_CHECK_EQ(state.geometry.size(), static_cast<std::size_t>(config_.lift->d()));
    MSRL_CHECK(state.matrix != nullptr && state.matrix->lift()->id() == config_.lift->id());
    std::ranges::copy(state.geometry, geometry_.Row(slot).begin());
    std::ranges::fill(code_.Row(slot), 0.0);
    lift_reward_.data[slot] = 0.0;
    if (end_ % config_.anchor_every == 0) {
      std::ranges::copy(state.matrix->packed(), anchors_.Row(AnchorSlot(end_)).begin());
    }
  }
  ++end_;
}

bool Replay::GoesOnWith(const ReplayState& state) const {
  const std::int64_t slot = Slot(end_ - 1);
  const auto same = [](float a, auto b) { return a == static_cast<float>(b); };
  return std::ranges::equal(observation_.Row(slot), state.observation, same) &&
         (!config_.pieces || std::ranges::equal(features_.Row(slot), state.features, same));
}

void Replay::Add(const ReplayStep& step) {
  MSRL_CHECK_EQ(step.action.size(), static_cast<std::size_t>(config_.action_size));
  if (open_ && !GoesOnWith(step.before)) {
    MSRL_CHECK(config_.pieces, "a step does not begin where the step before ended");
    Flags(end_ - 2) |= kTruncated;
    open_ = false;
  }
  if (!open_) Push(step.before, kFirst);
  const std::int64_t slot = Slot(end_ - 1);
  std::ranges::copy(step.action, action_.Row(slot).begin());
  reward_.data[slot] = static_cast<float>(step.reward);
  if (HasMatrices()) {
    MSRL_CHECK_EQ(step.code.size(), static_cast<std::size_t>(config_.lift->q()));
    if (config_.one_hot_code) {
      const auto one = std::ranges::find(step.code, 1.0);
      MSRL_CHECK(one != step.code.end(), "the action code is not one-hot");
      code_.data[slot] = static_cast<double>(one - step.code.begin());
    } else {
      std::ranges::copy(step.code.first(static_cast<std::size_t>(config_.code_size)),
                        code_.Row(slot).begin());
      for (const double rest : step.code.subspan(static_cast<std::size_t>(config_.code_size))) {
        MSRL_CHECK(rest == 0.0, "the action code is longer than it was said to be");
      }
    }
    lift_reward_.data[slot] = step.lift_reward;
  }
  flags_.data[slot] =
      static_cast<std::uint8_t>(flags_.data[slot] | kStep | (step.terminated ? kTerminated : 0) |
                                (step.truncated ? kTruncated : 0));
  ++transitions_;
  Push(step.after, 0);
  open_ = !step.terminated && !step.truncated;
}

ReplayBatch Replay::MakeBatch(int size) const {
  ReplayBatch batch;
  batch.observation.resize(config_.observation_size, size);
  batch.features.resize(config_.feature_size, size);
  batch.action.resize(config_.action_size, size);
  batch.reward.resize(size);
  batch.continues.resize(size);
  batch.next_observation.resize(config_.observation_size, size);
  batch.next_features.resize(config_.feature_size, size);
  batch.row.resize(static_cast<std::size_t>(size));
  return batch;
}

SequenceBatch Replay::MakeSequences(int sequences, int length) const {
  MSRL_CHECK(sequences > 0 && length > 0);
  const Index steps = Index{sequences} * length;
  SequenceBatch batch;
  batch.observation.resize(config_.observation_size, steps + sequences);
  batch.features.resize(config_.feature_size, steps + sequences);
  batch.action.resize(config_.action_size, steps);
  batch.reward.resize(steps);
  batch.continues.resize(steps);
  batch.inside.resize(steps);
  batch.first.resize(sequences);
  batch.steps.resize(static_cast<std::size_t>(sequences));
  batch.row.resize(static_cast<std::size_t>(sequences));
  return batch;
}

RecordBatch Replay::MakeRecords(int sequences, int length) const {
  MSRL_CHECK(sequences > 0 && length > 0);
  const Index states = Index{sequences} * length;
  RecordBatch batch;
  batch.observation.resize(config_.observation_size, states);
  batch.features.resize(config_.feature_size, states);
  batch.action.resize(config_.action_size, states);
  batch.reward.resize(states);
  batch.first.resize(states);
  batch.last.resize(states);
  batch.terminal.resize(states);
  batch.row.resize(static_cast<std::size_t>(sequences));
  return batch;
}

std::int64_t Replay::DrawStep(Rng& rng) const {
  MSRL_CHECK_GT(transitions_, 0);
  // rows that are no steps, at most every other one, are drawn again: what remains is uniform
  for (;;) {
    const std::int64_t row = first_ + rng.Index(end_ - first_);
    if (IsStep(row)) return row;
  }
}

void Replay::Sample(Rng& rng, ReplayBatch& batch, Index column, Index count) const {
  MSRL_CHECK(column >= 0 && count >= 0 && column + count <= batch.size());
  for (const Index end = column + count; column < end; ++column) {
    Read(DrawStep(rng), column, batch);
  }
}

void Replay::Sample(Rng& rng, SequenceBatch& batch) const {
  for (Index i = 0; i < batch.sequences(); ++i) Read(DrawStep(rng), i, batch);
}

void Replay::Sample(Rng& rng, RecordBatch& batch) const {
  const std::int64_t starts = end_ - first_ - batch.length() + 1;
  MSRL_CHECK_GT(starts, 0);
  for (Index i = 0; i < batch.sequences(); ++i) Read(first_ + rng.Index(starts), i, batch);
}

void Replay::Read(std::int64_t row, Index column, ReplayBatch& batch) const {
  MSRL_CHECK(row >= first_ && row < end_ && IsStep(row), "row ", row);
  const std::int64_t slot = Slot(row);
  const std::int64_t next = Slot(row + 1);
  const auto copy = [column](std::span<const float> values, Eigen::MatrixXf& out) {
    std::ranges::copy(values, out.data() + column * out.rows());
  };
  copy(observation_.Row(slot), batch.observation);
  copy(features_.Row(slot), batch.features);
  copy(action_.Row(slot), batch.action);
  copy(observation_.Row(next), batch.next_observation);
  copy(features_.Row(next), batch.next_features);
  batch.reward[column] = reward_.data[slot];
  batch.continues[column] = (flags_.data[slot] & kTerminated) != 0 ? 0.0f : 1.0f;
  batch.row[static_cast<std::size_t>(column)] = row;
}

void Replay::Read(std::int64_t row, Index sequence, SequenceBatch& batch) const {
  MSRL_CHECK(row >= first_ && row < end_ && IsStep(row), "row ", row);
  const auto copy = [](std::span<const float> values, Index column, Eigen::MatrixXf& out) {
    std::ranges::copy(values, out.data() + column * out.rows());
  };
  const auto i = static_cast<std::size_t>(sequence);
  batch.row[i] = row;
  batch.first[sequence] = (Flags(row) & kFirst) != 0 ? 1.0f : 0.0f;
  batch.steps[i] = 0;
  for (Index t = 0;; ++t) {
    const Index column = batch.Column(t) + sequence;
    copy(observation_.Row(Slot(row)), column, batch.observation);
    copy(features_.Row(Slot(row)), column, batch.features);
    if (t == batch.length()) break;
    // the row of an episode's last state has no step, and an action of zeros
    const bool inside = IsStep(row);
    copy(action_.Row(Slot(row)), column, batch.action);
    batch.reward[column] = reward_.data[Slot(row)];
    batch.continues[column] = inside && (Flags(row) & kTerminated) == 0 ? 1.0f : 0.0f;
    batch.inside[column] = inside ? 1.0f : 0.0f;
    if (!inside) continue;
    ++batch.steps[i];
    ++row;
  }
}

void Replay::Read(std::int64_t row, Index sequence, RecordBatch& batch) const {
  batch.row[static_cast<std::size_t>(sequence)] = row;
  for (Index t = 0; t < batch.length(); ++t, ++row) {
    const Index column = batch.Column(t) + sequence;
    const auto copy = [column](std::span<const float> values, Eigen::MatrixXf& out) {
      std::ranges::copy(values, out.data() + column * out.rows());
    };
    copy(observation_.Row(Slot(row)), batch.observation);
    copy(features_.Row(Slot(row)), batch.features);
    copy(action_.Row(Slot(row)), batch.action);
    const bool first = (Flags(row) & kFirst) != 0;
    // the step that led here, if it is kept
    const bool arrived = !first && row > first_;
    const std::uint8_t before = arrived ? Flags(row - 1) : std::uint8_t{0};
    batch.reward[column] = arrived ? reward_.data[Slot(row - 1)] : 0.0f;
    batch.first[column] = first ? 1.0f : 0.0f;
    batch.last[column] = (before & (kTerminated | kTruncated)) != 0 ? 1.0f : 0.0f;
    batch.terminal[column] = (before & kTerminated) != 0 ? 1.0f : 0.0f;
  }
}

void Replay::SetFeatures(std::int64_t row, std::span<const float> features) {
  MSRL_CHECK(row >= first_ && row < end_, "row ", row);
  MSRL_CHECK_EQ(features.size(), static_cast<std::size_t>(config_.feature_size));
  std::ranges::copy(features, features_.Row(Slot(row)).begin());
}

void Replay::RebuildPsi(std::int64_t row, Eigen::VectorXd& psi) const {
  MSRL_CHECK(HasMatrices() && row >= first_ && row < end_ && IsStep(row), "row ", row);
  const std::int64_t slot = Slot(row);
  wide_code_.setZero();
  if (config_.one_hot_code) {
    wide_code_[static_cast<Index>(code_.data[slot])] = 1.0;
  } else {
    std::ranges::copy(code_.Row(slot), wide_code_.data());
  }
  const Eigen::Map<const Eigen::VectorXd> x(geometry_.Row(slot).data(), geometry_.width);
  const Eigen::Map<const Eigen::VectorXd> x_next(geometry_.Row(Slot(row + 1)).data(),
                                                 geometry_.width);
  config_.lift->Apply(x, wide_code_, lift_reward_.data[slot], x_next, psi);
}

SegmentMatrix Replay::RebuildMatrix(std::int64_t row) const {
  MSRL_CHECK(HasMatrices() && row >= first_ && row < end_, "row ", row);
  // back to where the matrix is known
  std::int64_t known = row;
  while ((Flags(known) & kFirst) == 0 && known % config_.anchor_every != 0 && known != first_) {
    --known;
  }
  std::vector<double> packed(oldest_.size(), 0.0);
  if ((Flags(known) & kFirst) != 0) {
    // zero
  } else if (known == first_) {
    packed = oldest_;
  } else {
    std::ranges::copy(anchors_.Row(AnchorSlot(known)), packed.begin());
  }
  for (; known < row; ++known) {
    RebuildPsi(known, psi_);
    PackedRank1Update(psi_.data(), psi_.size(), packed.data());
  }
  return SegmentMatrix::FromPacked(config_.lift, std::move(packed));
}

std::int64_t Replay::MatrixBytes() const {
  return features_.bytes() + geometry_.bytes() + code_.bytes() + lift_reward_.bytes() +
         anchors_.bytes() + static_cast<std::int64_t>(oldest_.size() * sizeof(double));
}

void Replay::Visit(const Archive& state) {
  state.Same("capacity", config_.capacity);
  state.Same("anchor_every", config_.anchor_every);
  state.SameWord("lift", HasMatrices() ? config_.lift->id().value : 0, "is of another lift");
  if (state.loading()) *this = Replay(config_);
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  state.Int("first_row", first_, 0, kMost);
  state.Int("end_row", end_, 0, kMost);
  if (first_ != std::max<std::int64_t>(0, end_ - config_.capacity)) {
    state.Fail("first_row", "does not fit end_row");
  }
  state.Bool("open", open_);
  const std::int64_t used = std::min(end_, config_.capacity);
  observation_.Visit(state, "observation", used);
  features_.Visit(state, "features", used);
  action_.Visit(state, "action", used);
  reward_.Visit(state, "reward", used);
  flags_.Visit(state, "flags", used);
  if (HasMatrices()) {
    geometry_.Visit(state, "geometry", used);
    code_.Visit(state, "code", used);
    lift_reward_.Visit(state, "lift_reward", used);
    const std::int64_t anchors = (end_ + config_.anchor_every - 1) / config_.anchor_every;
    anchors_.Visit(state, "anchors", std::min(anchors_.rows, anchors));
  }
  state.Array("oldest_matrix", oldest_);
  if (!state.loading()) return;
  RequireConsistent(state);
  for (std::int64_t row = first_; row < end_; ++row) transitions_ += IsStep(row) ? 1 : 0;
}

void Replay::RequireConsistent(const Archive& state) const {
  for (std::int64_t row = first_; row < end_; ++row) {
    const bool step = IsStep(row);
    const bool ends = (Flags(row) & (kTerminated | kTruncated)) != 0;
    const bool last = row + 1 == end_;
    // the newest state has no step yet; what follows an end is the last state, then a first one
    const bool next_first = !last && (Flags(row + 1) & kFirst) != 0;
    if (Flags(row) >= 16 || (last && step) || (ends && !step) || (!last && step == next_first)) {
      state.Fail("flags", StrCat("are impossible at row ", row));
    }
    if (step && row + 2 < end_ && ends == IsStep(row + 1)) {
      state.Fail("flags", StrCat("don't end the episode at row ", row));
    }
    if (step && HasMatrices() && config_.one_hot_code) {
      const double index = code_.data[Slot(row)];
      if (!(index >= 0.0 && index < static_cast<double>(config_.lift->q()))) {
        state.Fail("code", StrCat("is impossible at row ", row));
      }
    }
  }
  const bool last_ends = end_ - first_ < 2 || (Flags(end_ - 2) & (kTerminated | kTruncated)) != 0;
  if (end_ == 1 || (end_ > 0 && open_ == last_ends) || (end_ == 0 && open_)) {
    state.Fail("open", "does not fit the newest states");
  }
}

}  // namespace msrl
