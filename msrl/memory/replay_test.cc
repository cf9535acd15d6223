#include "msrl/memory/replay.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;

constexpr int kObservation = 3;
constexpr int kAction = 2;
constexpr int kFeatures = 4;

// A made-up environment: random numbers, prefix matrices accumulated step by step.
class Source {
 public:
  Source(Lift::Ptr lift, bool one_hot, std::uint64_t seed)
      : lift_(std::move(lift)),
        one_hot_(one_hot),
        rng_(seed, "source"),
        before_(lift_),
        after_(lift_) {}

  struct State {
    std::array<double, kObservation> observation{};
    std::array<float, kFeatures> features{};
    std::array<double, 8> geometry{};
    std::optional<SegmentMatrix> matrix;
  };
  struct Step {
    State before, after;
    std::array<float, kAction> action{};
    std::array<double, 10> code{};
    double reward = 0.0;
    bool terminated = false, truncated = false;
    Eigen::VectorXd psi;
  };

  Step Next(double p_end) {
    Step step;
    if (!running_) {
      state_ = Draw(SegmentMatrix(lift_));
      running_ = true;
    }
    step.before = state_;
    for (float& v : step.action) v = static_cast<float>(rng_.Normal());
    if (one_hot_) {
      step.code[static_cast<std::size_t>(rng_.Index(10))] = 1.0;
    } else {
      for (std::size_t i = 0; i < 6; ++i) step.code[i] = rng_.Uniform(-1, 1);
    }
    step.reward = rng_.Normal();
    step.terminated = rng_.Bernoulli(p_end);
    step.truncated = rng_.Bernoulli(p_end);
    step.after = Draw(*state_.matrix);
    step.psi.resize(lift_->m());
    lift_->Apply(Map(step.before.geometry), Map(step.code), 0.5 * step.reward,
                 Map(step.after.geometry), step.psi);
    step.after.matrix->AddStep(step.psi);
    state_ = step.after;
    running_ = !step.terminated && !step.truncated;
    return step;
  }

  static ReplayState View(const State& state) {
    return {state.observation, state.features, state.geometry, &*state.matrix};
  }
  static ReplayStep View(const Step& step) {
    ReplayStep view;
    view.before = View(step.before);
    view.after = View(step.after);
    view.action = step.action;
    view.code = step.code;
    view.reward = step.reward;
    view.lift_reward = 0.5 * step.reward;
    view.terminated = step.terminated;
    view.truncated = step.truncated;
    return view;
  }

 private:
  template <std::size_t N>
  static Eigen::Map<const Eigen::VectorXd> Map(const std::array<double, N>& values) {
    return {values.data(), static_cast<Index>(N)};
  }
  State Draw(SegmentMatrix matrix) {
    State state;
    for (double& v : state.observation) v = rng_.Normal();
    for (float& v : state.features) v = static_cast<float>(rng_.Normal());
    for (double& v : state.geometry) v = rng_.Normal();
    state.matrix = std::move(matrix);
    return state;
  }

  Lift::Ptr lift_;
  bool one_hot_;
  Rng rng_;
  SegmentMatrix before_, after_;
  State state_;
  bool running_ = false;
};

Lift::Ptr TestLift() { return Lift::Make({LiftKind::kCompact, 8, 10, {}}); }

ReplayConfig TestConfig(std::int64_t capacity, bool one_hot, int anchor_every) {
  ReplayConfig config;
  config.capacity = capacity;
  config.observation_size = kObservation;
  config.action_size = kAction;
  config.feature_size = kFeatures;
  config.lift = TestLift();
  config.one_hot_code = one_hot;
  config.code_size = 6;
  config.anchor_every = anchor_every;
  return config;
}

// What a replay must hold: every row that was ever stored, in order.
struct ModelRow {
  std::optional<Source::Step> step;  // empty: last state of an episode, or the newest
  Source::State state;
};

void ExpectEqualsModel(const Replay& replay, const std::vector<ModelRow>& model) {
  const auto total = static_cast<std::int64_t>(model.size());
  RC_ASSERT(replay.end_row() == total);
  RC_ASSERT(replay.first_row() == std::max<std::int64_t>(0, total - replay.config().capacity));
  ReplayBatch batch = replay.MakeBatch(1);
  Eigen::VectorXd psi(replay.config().lift->m());
  std::int64_t steps = 0;
  for (std::int64_t row = replay.first_row(); row < total; ++row) {
    const ModelRow& expected = model[static_cast<std::size_t>(row)];
    RC_ASSERT(replay.IsStep(row) == expected.step.has_value());
    RC_ASSERT(replay.RebuildMatrix(row) == *expected.state.matrix);
    if (!expected.step) continue;
    ++steps;
    replay.Read(row, 0, batch);
    replay.RebuildPsi(row, psi);
    RC_ASSERT(psi == expected.step->psi);
    RC_ASSERT(batch.reward[0] == static_cast<float>(expected.step->reward));
    RC_ASSERT(batch.continues[0] == (expected.step->terminated ? 0.0f : 1.0f));
    for (Index i = 0; i < kObservation; ++i) {
      const auto k = static_cast<std::size_t>(i);
      RC_ASSERT(batch.observation(i, 0) == static_cast<float>(expected.state.observation[k]));
      RC_ASSERT(batch.next_observation(i, 0) ==
                static_cast<float>(expected.step->after.observation[k]));
    }
    for (Index i = 0; i < kFeatures; ++i) {
      const auto k = static_cast<std::size_t>(i);
      RC_ASSERT(batch.features(i, 0) == expected.state.features[k]);
      RC_ASSERT(batch.next_features(i, 0) == expected.step->after.features[k]);
    }
    for (Index i = 0; i < kAction; ++i) {
      RC_ASSERT(batch.action(i, 0) == expected.step->action[static_cast<std::size_t>(i)]);
    }
  }
  RC_ASSERT(replay.size() == steps);
}

void AddToBoth(Replay& replay, std::vector<ModelRow>& model, const Source::Step& step, bool& open) {
  replay.Add(Source::View(step));
  if (!open) model.push_back({});
  model.back() = {step, step.before};
  model.push_back({std::nullopt, step.after});
  open = !step.terminated && !step.truncated;
}

RC_GTEST_PROP(Replay, HoldsWhatANaiveListHolds, ()) {
  const bool one_hot = *rc::gen::arbitrary<bool>();
  const auto capacity = *rc::gen::inRange<std::int64_t>(2, 40);
  const int anchor_every = *rc::gen::inRange(1, 12);
  const int steps = *rc::gen::inRange(0, 120);
  const double p_end = *rc::gen::element(0.0, 0.02, 0.2, 0.7);
  const int reload_at = *rc::gen::inRange(0, 120);
  Source source(TestLift(), one_hot, *rc::gen::arbitrary<std::uint64_t>());
  Replay replay(TestConfig(capacity, one_hot, anchor_every));
  std::vector<ModelRow> model;
  bool open = false;
  for (int t = 0; t < steps; ++t) {
    if (t == reload_at) {
      const std::string bytes = Archived(replay);
      Replay loaded(replay.config());
      Unarchive(bytes, loaded);
      RC_ASSERT(Archived(loaded) == bytes);
      replay = std::move(loaded);
    }
    AddToBoth(replay, model, source.Next(p_end), open);
  }
  ExpectEqualsModel(replay, model);
  if (replay.size() == 0) return;
  // two copies of a stream draw the same batch, before and after a round trip
  Replay loaded(replay.config());
  Unarchive(Archived(replay), loaded);
  Rng a(1, "replay");
  Rng b(1, "replay");
  ReplayBatch x = replay.MakeBatch(16);
  ReplayBatch y = replay.MakeBatch(16);
  replay.Sample(a, x);
  loaded.Sample(b, y);
  RC_ASSERT(x.row == y.row);
  RC_ASSERT(x.next_features == y.next_features);
  for (const std::int64_t row : x.row) RC_ASSERT(replay.IsStep(row));
}

// A sequence as the naive list has it: the steps from a row on, while there are any.
void ExpectSequence(const SequenceBatch& batch, Index i, const std::vector<ModelRow>& model) {
  const auto start = static_cast<std::size_t>(batch.row[static_cast<std::size_t>(i)]);
  const bool first = start == 0 || !model[start - 1].step;
  RC_ASSERT(batch.first[i] == (first ? 1.0f : 0.0f));
  std::size_t row = start;
  double nstep = 0.0;
  double expected_nstep = 0.0;
  for (Index t = 0; t <= batch.length(); ++t) {
    const Index column = batch.Column(t) + i;
    for (Index k = 0; k < kObservation; ++k) {
      RC_ASSERT(batch.observation(k, column) ==
                static_cast<float>(model[row].state.observation[static_cast<std::size_t>(k)]));
    }
    for (Index k = 0; k < kFeatures; ++k) {
      RC_ASSERT(batch.features(k, column) ==
                model[row].state.features[static_cast<std::size_t>(k)]);
    }
    if (t == batch.length()) break;
    const std::optional<Source::Step>& step = model[row].step;
    RC_ASSERT(batch.inside[column] == (step ? 1.0f : 0.0f));
    RC_ASSERT(batch.reward[column] == (step ? static_cast<float>(step->reward) : 0.0f));
    RC_ASSERT(batch.continues[column] == (step && !step->terminated ? 1.0f : 0.0f));
    for (Index k = 0; k < kAction; ++k) {
      RC_ASSERT(batch.action(k, column) ==
                (step ? step->action[static_cast<std::size_t>(k)] : 0.0f));
    }
    nstep += std::pow(0.9, static_cast<double>(t)) * static_cast<double>(batch.reward[column]);
    if (!step) continue;
    expected_nstep += std::pow(0.9, static_cast<double>(row - start)) *
                      static_cast<double>(static_cast<float>(step->reward));
    ++row;
  }
  RC_ASSERT(batch.steps[static_cast<std::size_t>(i)] == static_cast<int>(row - start));
  RC_ASSERT(nstep == expected_nstep);  // the sum of n-step returns
}

RC_GTEST_PROP(Replay, SequencesAreThoseOfANaiveList, ()) {
  const auto capacity = *rc::gen::inRange<std::int64_t>(2, 40);
  const double p_end = *rc::gen::element(0.0, 0.02, 0.2, 0.7);
  const int steps = *rc::gen::inRange(1, 120);
  const int length = *rc::gen::inRange(1, 12);
  const int count = *rc::gen::inRange(1, 9);
  Source source(TestLift(), false, *rc::gen::arbitrary<std::uint64_t>());
  Replay replay(TestConfig(capacity, false, 4));
  std::vector<ModelRow> model;
  bool open = false;
  for (int t = 0; t < steps; ++t) AddToBoth(replay, model, source.Next(p_end), open);
  SequenceBatch batch = replay.MakeSequences(count, length);
  RC_ASSERT(batch.sequences() == count);
  RC_ASSERT(batch.length() == length);
  Index place = 0;
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (!replay.IsStep(row)) continue;
    replay.Read(row, place, batch);
    RC_ASSERT(batch.row[static_cast<std::size_t>(place)] == row);
    ExpectSequence(batch, place, model);
    place = (place + 1) % count;
  }

  // drawn as single transitions are, before and after a round trip
  Replay loaded(replay.config());
  Unarchive(Archived(replay), loaded);
  Rng a(1, "replay");
  Rng b(1, "replay");
  Rng c(1, "replay");
  ReplayBatch single = replay.MakeBatch(count);
  SequenceBatch again = loaded.MakeSequences(count, length);
  replay.Sample(a, single);
  replay.Sample(b, batch);
  loaded.Sample(c, again);
  RC_ASSERT(batch.row == single.row);
  RC_ASSERT(a.state() == b.state());
  for (Index i = 0; i < count; ++i) ExpectSequence(batch, i, model);
  RC_ASSERT(again.row == batch.row);
  RC_ASSERT(again.observation == batch.observation);
  RC_ASSERT(again.reward == batch.reward);
}

// States in the order of the naive list, with the step that led to each.
RC_GTEST_PROP(Replay, RecordsAreThoseOfANaiveList, ()) {
  const auto capacity = *rc::gen::inRange<std::int64_t>(2, 40);
  const double p_end = *rc::gen::element(0.0, 0.02, 0.2, 0.7);
  const int steps = *rc::gen::inRange(1, 120);
  const int count = *rc::gen::inRange(1, 9);
  Source source(TestLift(), false, *rc::gen::arbitrary<std::uint64_t>());
  Replay replay(TestConfig(capacity, false, 4));
  std::vector<ModelRow> model;
  bool open = false;
  for (int t = 0; t < steps; ++t) AddToBoth(replay, model, source.Next(p_end), open);
  // features that became known later
  const std::int64_t changed = replay.first_row() + steps % (replay.end_row() - replay.first_row());
  model[static_cast<std::size_t>(changed)].state.features = {9.0f, 8.0f, 7.0f, 6.0f};
  replay.SetFeatures(changed, model[static_cast<std::size_t>(changed)].state.features);

  const auto kept = static_cast<int>(replay.end_row() - replay.first_row());
  const int length = *rc::gen::inRange(1, kept + 1);
  RecordBatch batch = replay.MakeRecords(count, length);
  RC_ASSERT(batch.sequences() == count);
  RC_ASSERT(batch.length() == length);
  Rng rng(1, "replay");
  replay.Sample(rng, batch);
  for (Index i = 0; i < count; ++i) {
    const std::int64_t start = batch.row[static_cast<std::size_t>(i)];
    RC_ASSERT(start >= replay.first_row() && start + length <= replay.end_row());
    for (Index t = 0; t < length; ++t) {
      const Index column = batch.Column(t) + i;
      const auto row = static_cast<std::size_t>(start + t);
      const bool first = row == 0 || !model[row - 1].step;
      const bool known = static_cast<std::int64_t>(row) > replay.first_row() && !first;
      const auto arrived = known ? model[row - 1].step : std::optional<Source::Step>();
      RC_ASSERT(batch.first[column] == (first ? 1.0f : 0.0f));
      RC_ASSERT(batch.reward[column] == (arrived ? static_cast<float>(arrived->reward) : 0.0f));
      RC_ASSERT(batch.terminal[column] == (arrived && arrived->terminated ? 1.0f : 0.0f));
      RC_ASSERT(batch.last[column] ==
                (arrived && (arrived->terminated || arrived->truncated) ? 1.0f : 0.0f));
      for (std::size_t k = 0; k < kObservation; ++k) {
        RC_ASSERT(batch.observation(static_cast<Index>(k), column) ==
                  static_cast<float>(model[row].state.observation[k]));
      }
      for (std::size_t k = 0; k < kFeatures; ++k) {
        RC_ASSERT(batch.features(static_cast<Index>(k), column) == model[row].state.features[k]);
      }
      for (std::size_t k = 0; k < kAction; ++k) {
        RC_ASSERT(batch.action(static_cast<Index>(k), column) ==
                  (model[row].step ? model[row].step->action[k] : 0.0f));
      }
    }
  }
}

TEST(Replay, RecordsAreDrawnUniformly) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(30, false, 4));
  for (int t = 0; t < 100; ++t) replay.Add(Source::View(source.Next(0.2)));
  std::vector<int> count(26, 0);
  Rng rng(1, "replay");
  RecordBatch batch = replay.MakeRecords(100, 5);
  constexpr int kBatches = 500;
  for (int i = 0; i < kBatches; ++i) {
    replay.Sample(rng, batch);
    for (const std::int64_t row : batch.row) {
      ++count.at(static_cast<std::size_t>(row - replay.first_row()));
    }
  }
  const double expected = 100.0 * kBatches / 26.0;
  for (const int got : count) EXPECT_NEAR(got, expected, 5 * std::sqrt(expected));
}

RC_GTEST_PROP(Replay, PiecesAreThoseOfANaiveList, ()) {
  // few different states, so that some steps go on by chance
  struct Isolated {
    double before, after;
    float feature;
    bool terminated;
  };
  const auto capacity = *rc::gen::inRange<std::int64_t>(2, 30);
  const int steps = *rc::gen::inRange(1, 100);
  const int reload_at = *rc::gen::inRange(0, 100);
  Rng rng(*rc::gen::arbitrary<std::uint64_t>(), "pieces");
  ReplayConfig config;
  config.capacity = capacity;
  config.observation_size = config.action_size = config.feature_size = 1;
  config.pieces = true;
  Replay replay(config);
  std::vector<Isolated> all;
  std::vector<bool> goes_on;
  for (int t = 0; t < steps; ++t) {
    if (t == reload_at) {
      Replay loaded(config);
      Unarchive(Archived(replay), loaded);
      RC_ASSERT(Archived(loaded) == Archived(replay));
      replay = std::move(loaded);
    }
    const Isolated one{static_cast<double>(rng.Index(3)), static_cast<double>(rng.Index(3)),
                       static_cast<float>(rng.Index(2)), rng.Bernoulli(0.2)};
    goes_on.push_back(!all.empty() && !all.back().terminated && all.back().after == one.before &&
                      all.back().feature == one.feature);
    all.push_back(one);
    const auto number = static_cast<float>(t);
    ReplayStep step;
    step.before = {.observation = {&one.before, 1}, .features = {&one.feature, 1}};
    step.after = {.observation = {&one.after, 1}, .features = {&one.feature, 1}};
    step.action = {&number, 1};
    step.reward = t;
    step.terminated = one.terminated;
    replay.Add(step);
  }
  // the newest are there, in order
  RC_ASSERT(replay.size() >= std::min<std::int64_t>(steps, capacity / 2));
  auto number = static_cast<std::size_t>(steps - replay.size());
  ReplayBatch batch = replay.MakeBatch(1);
  SequenceBatch sequence = replay.MakeSequences(1, 3);
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (!replay.IsStep(row)) continue;
    const Isolated& one = all[number];
    replay.Read(row, 0, batch);
    RC_ASSERT(batch.action(0, 0) == static_cast<float>(number));
    RC_ASSERT(batch.observation(0, 0) == static_cast<float>(one.before));
    RC_ASSERT(batch.next_observation(0, 0) == static_cast<float>(one.after));
    RC_ASSERT(batch.continues[0] == (one.terminated ? 0.0f : 1.0f));
    replay.Read(row, 0, sequence);
    int expected = 1;
    while (expected < 3 && number + static_cast<std::size_t>(expected) < all.size() &&
           goes_on[number + static_cast<std::size_t>(expected)]) {
      ++expected;
    }
    RC_ASSERT(sequence.steps[0] == expected);
    ++number;
  }
  RC_ASSERT(number == all.size());
}

TEST(Replay, DrawsInAFixedOrder) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(30, false, 4));
  for (int t = 0; t < 100; ++t) replay.Add(Source::View(source.Next(0.2)));
  Rng rng(1, "replay");
  Rng plain = rng;
  ReplayBatch batch = replay.MakeBatch(64);
  replay.Sample(rng, batch);
  std::vector<std::int64_t> rows;
  while (rows.size() < 64) {
    const std::int64_t row =
        replay.first_row() + plain.Index(replay.end_row() - replay.first_row());
    if (replay.IsStep(row)) rows.push_back(row);
  }
  EXPECT_EQ(batch.row, rows);
  EXPECT_EQ(rng.state(), plain.state());
}

TEST(Replay, ABatchCanBeFilledFromTwo) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(30, false, 4));
  for (int t = 0; t < 20; ++t) replay.Add(Source::View(source.Next(0.2)));
  Rng rng(1, "replay");
  ReplayBatch batch = replay.MakeBatch(8);
  std::ranges::fill(batch.row, -1);
  replay.Sample(rng, batch, 2, 5);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(batch.row[i] >= 0, i >= 2 && i < 7) << i;
}

TEST(Replay, SamplesUniformly) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(30, false, 4));
  for (int t = 0; t < 100; ++t) replay.Add(Source::View(source.Next(0.2)));
  ASSERT_LT(replay.size(), 29);  // some rows are ends of episodes
  std::vector<int> count(30, 0);
  Rng rng(1, "replay");
  ReplayBatch batch = replay.MakeBatch(100);
  constexpr int kBatches = 2000;
  for (int i = 0; i < kBatches; ++i) {
    replay.Sample(rng, batch);
    for (const std::int64_t row : batch.row) {
      ++count[static_cast<std::size_t>(row - replay.first_row())];
    }
  }
  const double expected = 100.0 * kBatches / static_cast<double>(replay.size());
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    const int got = count[static_cast<std::size_t>(row - replay.first_row())];
    if (replay.IsStep(row)) {
      EXPECT_NEAR(got, expected, 5 * std::sqrt(expected));
    } else {
      EXPECT_EQ(got, 0);
    }
  }
}

TEST(Replay, AddAndSampleDoNotAllocate) {
  Source source(TestLift(), false, 3);
  std::vector<Source::Step> steps;
  for (int t = 0; t < 200; ++t) steps.push_back(source.Next(0.1));
  Replay replay(TestConfig(50, false, 8));
  ReplayBatch batch = replay.MakeBatch(32);
  SequenceBatch sequences = replay.MakeSequences(4, 8);
  RecordBatch records = replay.MakeRecords(4, 2);
  Rng rng(1, "replay");
  replay.Add(Source::View(steps[0]));
  const std::int64_t before = AllocationCount();
  for (std::size_t t = 1; t < steps.size(); ++t) {
    replay.Add(Source::View(steps[t]));
    replay.Sample(rng, batch);
    replay.Sample(rng, sequences);
    replay.Sample(rng, records);
    replay.SetFeatures(records.row[0], steps[t].before.features);
  }
  EXPECT_EQ(AllocationCount(), before);
}

TEST(Replay, MatrixStateOfAHundredThousandFitsSeventyMegabytes) {
  ReplayConfig config = TestConfig(100'000, false, 512);
  config.feature_size = 134;
  config.code_size = 10;  // the worst case
  EXPECT_EQ(config.lift->m(), 28);
  EXPECT_LE(Replay(config).MatrixBytes(), 70'000'000);
  EXPECT_GE(Replay(config).MatrixBytes(), 53'600'000);  // the features alone
}

TEST(Replay, AStepFromElsewhereIsADefect) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(50, false, 8));
  replay.Add(Source::View(source.Next(0.0)));
  source.Next(0.0);  // lost
  EXPECT_THROW(replay.Add(Source::View(source.Next(0.0))), InvariantError);
}

TEST(Replay, WithoutMatrices) {
  ReplayConfig config;
  config.capacity = 10;
  config.observation_size = 1;
  config.action_size = 1;
  Replay replay(config);
  for (int t = 0; t < 25; ++t) {
    const double x = t;
    const double y = t + 1;
    const float action = 1.0f;
    ReplayStep step;
    step.before.observation = {&x, 1};
    step.after.observation = {&y, 1};
    step.action = {&action, 1};
    step.reward = x;
    replay.Add(step);
  }
  EXPECT_EQ(replay.size(), 9);
  EXPECT_EQ(replay.MatrixBytes(), 0);
  Rng rng(1, "replay");
  ReplayBatch batch = replay.MakeBatch(5);
  replay.Sample(rng, batch);
  EXPECT_EQ(batch.next_observation.row(0), (batch.observation.row(0).array() + 1).matrix());
  Replay loaded(config);
  Unarchive(Archived(replay), loaded);
  EXPECT_EQ(Archived(loaded), Archived(replay));
}

TEST(Replay, ForeignOrImpossibleStateIsRefused) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(20, false, 8));
  for (int t = 0; t < 30; ++t) replay.Add(Source::View(source.Next(0.1)));
  const std::string bytes = Archived(replay);
  Replay other_capacity(TestConfig(21, false, 8));
  EXPECT_NE(UserErrorText([&] { Unarchive(bytes, other_capacity); }).find("capacity"),
            std::string::npos);
  ReplayConfig config = TestConfig(20, false, 8);
  config.lift = Lift::Make({LiftKind::kCompactNoReward, 8, 10, {}});
  Replay other_lift(config);
  EXPECT_NE(UserErrorText([&] { Unarchive(bytes, other_lift); }).find("lift"), std::string::npos);
  EXPECT_EQ(other_lift.size(), 0);
  EXPECT_NE(UserErrorText([] {
              ReplayConfig bad;
              bad.capacity = 1;
              Replay{bad};
            }).find("between 2 and"),
            std::string::npos);

  // flags that no sequence of steps makes: found even if the checksum is right
  const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
  for (int value = 0; value < 256; ++value) {
    TensorFileBuilder builder;
    std::vector<std::uint8_t> flags;
    for (const TensorInfo& info : file.tensors()) {
      if (info.type == TensorType::kF32)
        builder.Add(info.name, file.F32(info.name, info.shape), info.shape);
      if (info.type == TensorType::kF64)
        builder.Add(info.name, file.F64(info.name, info.shape), info.shape);
      if (info.type == TensorType::kI64)
        builder.Add(info.name, file.I64(info.name, info.shape), info.shape);
      if (info.type == TensorType::kU8) {
        const auto old = file.U8(info.name, info.shape);
        flags.assign(old.begin(), old.end());
        flags[15] = static_cast<std::uint8_t>(value);
        builder.Add(info.name, flags, info.shape);
      }
    }
    try {
      Unarchive(builder.Encode(), replay);
      ReplayBatch batch = replay.MakeBatch(8);
      Rng rng(1, "replay");
      replay.Sample(rng, batch);
      for (const std::int64_t row : batch.row) replay.RebuildMatrix(row);
    } catch (const UserError&) {
      // refused: fine
    }
  }
}

}  // namespace
}  // namespace msrl
