#include "msrl/memory/replay.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
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

std::string Encode(const Replay& replay) {
  TensorFileBuilder builder;
  replay.Save(StateWriter(builder));
  return builder.Encode();
}

void Decode(const std::string& bytes, Replay& replay) {
  const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
  std::set<std::string> used;
  const StateReader reader(file, used);
  replay.Load(reader);
  reader.RequireAllUsed();
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
      const std::string bytes = Encode(replay);
      Replay loaded(replay.config());
      Decode(bytes, loaded);
      RC_ASSERT(Encode(loaded) == bytes);
      replay = std::move(loaded);
    }
    AddToBoth(replay, model, source.Next(p_end), open);
  }
  ExpectEqualsModel(replay, model);
  if (replay.size() == 0) return;
  // two copies of a stream draw the same batch, before and after a round trip
  Replay loaded(replay.config());
  Decode(Encode(replay), loaded);
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
  Rng rng(1, "replay");
  replay.Add(Source::View(steps[0]));
  const std::int64_t before = AllocationCount();
  for (std::size_t t = 1; t < steps.size(); ++t) {
    replay.Add(Source::View(steps[t]));
    replay.Sample(rng, batch);
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
  Decode(Encode(replay), loaded);
  EXPECT_EQ(Encode(loaded), Encode(replay));
}

TEST(Replay, ForeignOrImpossibleStateIsRefused) {
  Source source(TestLift(), false, 3);
  Replay replay(TestConfig(20, false, 8));
  for (int t = 0; t < 30; ++t) replay.Add(Source::View(source.Next(0.1)));
  const std::string bytes = Encode(replay);
  Replay other_capacity(TestConfig(21, false, 8));
  EXPECT_NE(UserErrorText([&] { Decode(bytes, other_capacity); }).find("capacity"),
            std::string::npos);
  ReplayConfig config = TestConfig(20, false, 8);
  config.lift = Lift::Make({LiftKind::kCompactNoReward, 8, 10, {}});
  Replay other_lift(config);
  EXPECT_NE(UserErrorText([&] { Decode(bytes, other_lift); }).find("lift"), std::string::npos);
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
      Decode(builder.Encode(), replay);
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
