#include "msrl/agents/msrl/obstruction_proxy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <string>

#include "msrl/agents/agent.h"
#include "msrl/agents/episode_tracker.h"
#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/core/statistics.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/plain_learning.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"
#include "msrl/value/matrix_features.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::AsDoubles;
using ::msrl::testing::Doubles;
using ::msrl::testing::NumericGradient;
using ::msrl::testing::PlainNet;
using ::msrl::testing::Tol;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;

class MapSink : public MetricSink {
 public:
  explicit MapSink(ObstructionProxy& proxy) { proxy.DrainMetrics(*this); }
  void Add(std::string_view name, double value) override { values[std::string(name)] = value; }
  std::map<std::string, double> values;
};

// One composition: o, features of Z, tail, features of the segment.
struct Composition {
  Eigen::VectorXf o, z, tail, segment;
  bool obstructed = false;
  double entry_distance = 0.0;  // of the segment's first state from the present one
};

constexpr int kObservation = 3;
constexpr int kFeatures = 2;

ObstructionConfig SmallConfig() {
  ObstructionConfig config;
  config.width = 8;
  config.layers = 1;
  config.batch = 16;
  config.update_every = 2;
  config.memory = 64;
  config.min_each = 4;
  config.min_updates = 3;
  return config;
}

// Obstructed where the tail lies on the other side of zero.
Composition DrawComposition(Rng& rng) {
  const auto draw = [&rng](int size) {
    Eigen::VectorXf values(size);
    for (float& value : values) value = static_cast<float>(rng.Normal());
    return values;
  };
  Composition drawn{.o = draw(kObservation),
                    .z = draw(kFeatures),
                    .tail = draw(kObservation),
                    .segment = draw(kFeatures)};
  drawn.o *= 1000.0F;
  drawn.tail *= 1000.0F;
  drawn.obstructed = drawn.tail[0] > 0.0F;
  return drawn;
}

float PredictOne(ObstructionProxy& proxy, const Composition& c) {
  float probability = 0.0F;
  proxy.Predict(c.o, c.z, c.tail, c.segment, {&probability, 1});
  return probability;
}

void Feed(ObstructionProxy& proxy, const Composition& c, bool with_prediction = true) {
  std::optional<float> predicted;
  if (with_prediction) predicted = PredictOne(proxy, c);
  proxy.Add(c.o, c.z, c.tail, c.segment, c.obstructed, predicted);
}

TEST(ObstructionConfig, MistakesNameTheSetting) {
  const auto error = [](const char* assignment) {
    return UserErrorText([&] {
      ObstructionConfig config;
      SetField(config, assignment);
      ObstructionProxy(kObservation, kFeatures, config, 1);
    });
  };
  EXPECT_EQ(error("obstruction_threshold=1.5"),
            "setting 'obstruction_threshold' must be 0 to 1, got 1.5");
  EXPECT_EQ(error("obstruction_threshold=-0.1"),
            "setting 'obstruction_threshold' must be 0 to 1, got -0.1");
  for (const char* key : {"tolerance", "width", "layers", "batch", "learning_rate", "update_every",
                          "memory", "min_each"}) {
    EXPECT_NE(error((StrCat("obstruction_", key, "=0")).c_str()).find(StrCat("obstruction_", key)),
              std::string::npos);
  }
  EXPECT_NE(error("obstruction_memory=100").find("four times 'obstruction_min_each'"),
            std::string::npos);
  for (const double edge : {0.0, 1.0}) {
    ObstructionConfig config;
    config.threshold = edge;
    RequireInRange(config);
  }
}

TEST(OutcomeDiffers, IfOneSlotIsFurtherOffThanTheTolerance) {
  const std::array real{1.0, -2.0, 0.0};
  EXPECT_FALSE(OutcomeDiffers(real, real, 0.0));
  EXPECT_FALSE(OutcomeDiffers(real, std::array{1.25, -2.0, 0.0}, 0.25));
  EXPECT_TRUE(OutcomeDiffers(real, std::array{1.26, -2.0, 0.0}, 0.25));
  EXPECT_TRUE(OutcomeDiffers(real, std::array{1.0, -2.0, -0.3}, 0.25));
  EXPECT_TRUE(OutcomeDiffers(real, std::array{1.0, -2.0, std::nan("")}, 0.25));
  EXPECT_THROW(OutcomeDiffers(real, std::array{1.0}, 0.25), InvariantError);
}

TEST(ObstructionProxy, KeepsEverythingUntilItHasLearned) {
  ObstructionProxy proxy(kObservation, kFeatures, SmallConfig(), 1);
  Rng rng(1, "examples");
  EXPECT_FALSE(proxy.ready());
  EXPECT_TRUE(proxy.Keeps(1.0F));
  const auto add = [&](bool obstructed, int count) {
    for (int i = 0; i < count;) {
      const Composition drawn = DrawComposition(rng);
      if (drawn.obstructed != obstructed) continue;
      Feed(proxy, drawn);
      ++i;
    }
  };
  add(true, 3);
  add(false, 10);
  for (int i = 0; i < 20; ++i) proxy.Update();
  EXPECT_EQ(proxy.updates(), 0);
  add(true, 1);
  for (int i = 0; i < 5; ++i) proxy.Update();
  EXPECT_EQ(proxy.updates(), 2);
  EXPECT_FALSE(proxy.ready());
  proxy.Update();
  EXPECT_EQ(proxy.updates(), 3);
  EXPECT_TRUE(proxy.ready());
  EXPECT_TRUE(proxy.Keeps(0.55F));
  EXPECT_FALSE(proxy.Keeps(0.56F));
}

TEST(ObstructionProxy, UntrainedItSaysTheBaseRate) {
  ObstructionProxy proxy(kObservation, kFeatures, SmallConfig(), 1);
  Rng rng(2, "examples");
  EXPECT_NEAR(PredictOne(proxy, DrawComposition(rng)), 0.5, 0.02);
  for (int i = 0; i < 600; ++i) {
    Composition drawn = DrawComposition(rng);
    drawn.obstructed = i % 10 == 0;
    Feed(proxy, drawn);
    // real continuations are no candidates
    Feed(proxy, drawn, /*with_prediction=*/false);
  }
  EXPECT_EQ(proxy.base_rate(), (60.0 + 10.0) / (600.0 + 20.0));
  EXPECT_NEAR(PredictOne(proxy, DrawComposition(rng)), proxy.base_rate(), 0.02);
  // the last thousand count
  for (int i = 0; i < 1000; ++i) {
    Composition drawn = DrawComposition(rng);
    drawn.obstructed = i % 2 == 0;
    Feed(proxy, drawn);
  }
  EXPECT_EQ(proxy.base_rate(), 0.5);
}

TEST(ObstructionProxy, PredictsManyAsOneByOne) {
  ObstructionProxy proxy(kObservation, kFeatures, SmallConfig(), 1);
  Rng rng(3, "examples");
  for (int i = 0; i < 400; ++i) {
    Feed(proxy, DrawComposition(rng));
    proxy.Update();
  }
  constexpr int kCount = 150;  // more than one pass
  const Composition start = DrawComposition(rng);
  Eigen::MatrixXf tails(kObservation, kCount), segments(kFeatures, kCount);
  std::vector<float> expected, got(kCount);
  for (int i = 0; i < kCount; ++i) {
    Composition candidate = DrawComposition(rng);
    candidate.o = start.o;
    candidate.z = start.z;
    tails.col(i) = candidate.tail;
    segments.col(i) = candidate.segment;
    expected.push_back(PredictOne(proxy, candidate));
  }
  const std::string before = Archived(proxy);
  proxy.Predict(start.o, start.z, tails, segments, got);
  EXPECT_EQ(Archived(proxy), before) << "predicting changes nothing";
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(got[i], expected[i], Tol(1e-6));
  EXPECT_GT(*std::max_element(got.begin(), got.end()),
            *std::min_element(got.begin(), got.end()) + 0.01F);
}

// The first update against the formulas in double.
TEST(ObstructionProxy, DescendsTheCrossEntropy) {
  ObstructionConfig config = SmallConfig();
  config.batch = 2;
  config.update_every = 1;
  config.min_each = 1;
  config.memory = 4;
  config.weight_decay = 0.0;
  ObstructionProxy proxy(kObservation, kFeatures, config, 5);
  Rng rng(4, "examples");
  Composition yes = DrawComposition(rng);
  Composition no = DrawComposition(rng);
  yes.obstructed = true;
  no.obstructed = false;
  Feed(proxy, yes, false);
  Feed(proxy, no, false);

  // mean and deviation of the four observations
  const auto input = [&](const Composition& c) {
    Doubles x;
    for (const Eigen::VectorXf* part : {&c.o, &c.tail}) {
      for (int i = 0; i < kObservation; ++i) {
        Doubles seen;
        for (const Composition* each : {&yes, &no}) {
          seen.push_back(each->o[i]);
          seen.push_back(each->tail[i]);
        }
        double mean = 0.0, square = 0.0;
        for (const double v : seen) mean += v / 4.0;
        for (const double v : seen) square += (v - mean) * (v - mean) / 4.0;
        x.push_back(((*part)[i] - mean) / std::sqrt(square + 1e-8));
      }
    }
    for (const Eigen::VectorXf* part : {&c.z, &c.segment}) {
      for (const float v : *part) x.push_back(v);
    }
    return x;
  };
  const PlainNet net{{2 * (kObservation + kFeatures), config.width, 1}};
  const auto loss = [&](const Doubles& parameters) {
    const double l_yes = net(parameters, input(yes))[0];
    const double l_no = net(parameters, input(no))[0];
    return 0.5 * (std::log1p(std::exp(l_yes)) - l_yes + std::log1p(std::exp(l_no)));
  };
  Doubles parameters = AsDoubles(proxy.network().parameters());
  const double expected_loss = loss(parameters);
  testing::PlainAdam adam;
  adam.Step(parameters, NumericGradient(parameters, loss), config.learning_rate);
  proxy.Update();
  EXPECT_NEAR(MapSink(proxy).values.at("obstruction/loss"), expected_loss, Tol(1e-5));
  // Adam divides by the gradient's size: entries that are nearly zero may step either way
  const Doubles got = AsDoubles(proxy.network().parameters());
  int near = 0;
  for (std::size_t i = 0; i < got.size(); ++i) near += std::abs(got[i] - parameters[i]) < 1e-5;
  EXPECT_GE(near, static_cast<int>(0.95 * static_cast<double>(got.size())));
}

TEST(ObstructionProxy, RealContinuationsDoNotCrowdOutCandidates) {
  ObstructionConfig config = SmallConfig();
  config.memory = 32;
  ObstructionProxy proxy(kObservation, kFeatures, config, 1);
  Rng rng(5, "examples");
  Composition drawn = DrawComposition(rng);
  drawn.obstructed = true;
  Feed(proxy, drawn);
  drawn.obstructed = false;
  Feed(proxy, drawn);
  for (int i = 0; i < 100; ++i) Feed(proxy, drawn, /*with_prediction=*/false);
  EXPECT_EQ(proxy.obstructed_count(), 1);
  EXPECT_EQ(proxy.realizable_count(), 8 + 1);
}

// All candidates share a trait that real continuations lack; it must not count as obstruction.
TEST(ObstructionProxy, LearnsWhatIsObstructedNotWhatIsComposed) {
  ObstructionConfig config = SmallConfig();
  config.memory = 512;
  config.learning_rate = 1e-2;
  ObstructionProxy proxy(kObservation, kFeatures, config, 1);
  Rng rng(11, "examples");
  const auto draw = [&rng](float composed) {
    Composition drawn = DrawComposition(rng);
    drawn.z[0] = composed;
    return drawn;
  };
  for (int i = 0; i < 2000; ++i) {
    Feed(proxy, draw(1.0F));
    Composition real = draw(0.0F);
    real.obstructed = false;
    Feed(proxy, real, /*with_prediction=*/false);
    proxy.Update();
  }
  double obstructed = 0.0;
  double realized = 0.0;
  int count = 0;
  for (int i = 0; i < 200; ++i) {
    const Composition candidate = draw(1.0F);
    count += candidate.obstructed ? 1 : 0;
    (candidate.obstructed ? obstructed : realized) +=
        static_cast<double>(PredictOne(proxy, candidate));
  }
  EXPECT_GT(obstructed / count, 0.7);
  EXPECT_LT(realized / (200 - count), 0.3);
}

TEST(ObstructionProxy, MetricsAreThoseOfTheWindow) {
  ObstructionProxy proxy(kObservation, kFeatures, SmallConfig(), 1);
  Rng rng(6, "examples");
  EXPECT_TRUE(MapSink(proxy).values.empty());
  std::vector<double> probabilities;
  std::vector<std::uint8_t> outcomes;
  for (int i = 0; i < 1300; ++i) {
    const Composition drawn = DrawComposition(rng);
    const auto predicted = static_cast<float>(rng.Uniform());
    const bool obstructed = rng.Bernoulli(0.5 * predicted + 0.1);
    proxy.Add(drawn.o, drawn.z, drawn.tail, drawn.segment, obstructed, predicted);
    proxy.Add(drawn.o, drawn.z, drawn.tail, drawn.segment, false, std::nullopt);
    if (i < 300) continue;
    probabilities.push_back(static_cast<double>(predicted));
    outcomes.push_back(obstructed ? 1 : 0);
  }
  proxy.CountFiltered(std::array{0.9F, 0.2F});
  const std::map<std::string, double> metrics = MapSink(proxy).values;
  std::vector<double> positives, negatives;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    (outcomes[i] != 0 ? positives : negatives).push_back(probabilities[i]);
  }
  EXPECT_EQ(metrics.at("obstruction/auroc"), Auroc(positives, negatives));
  EXPECT_NEAR(metrics.at("obstruction/ece"), ExpectedCalibrationError(probabilities, outcomes),
              Tol(1e-12));
  EXPECT_NEAR(metrics.at("obstruction/brier"), BrierScore(probabilities, outcomes), Tol(1e-12));
  EXPECT_EQ(metrics.at("obstruction/base_rate"), static_cast<double>(positives.size()) / 1000.0);
  EXPECT_EQ(metrics.at("obstruction/removed"), 0.0) << "not ready";
  for (int i = 0; i < 6; ++i) proxy.Update();
  proxy.CountFiltered(std::array{0.9F, 0.2F, 0.3F, 0.55F});
  EXPECT_EQ(MapSink(proxy).values.at("obstruction/removed"), 0.25);
}

TEST(ObstructionProxy, GoesOnBitForBit) {
  const ObstructionConfig config = SmallConfig();
  ObstructionProxy proxy(kObservation, kFeatures, config, 1);
  const auto play = [](ObstructionProxy& player, Rng& rng, int steps) {
    for (int i = 0; i < steps; ++i) {
      Feed(player, DrawComposition(rng), i % 3 != 0);
      player.CountFiltered(std::array{static_cast<float>(rng.Uniform())});
      player.Update();
    }
  };
  // the rings: empty, part full, come round; the window too
  Rng rng(7, "examples");
  for (const int steps : {0, 21, 200, 1300}) {
    play(proxy, rng, steps);
    ObstructionProxy loaded(kObservation, kFeatures, config, 99);
    Unarchive(Archived(proxy), loaded);
    EXPECT_EQ(Archived(loaded), Archived(proxy));
    Rng fork = rng;
    play(proxy, rng, 40);
    play(loaded, fork, 40);
    EXPECT_EQ(Archived(loaded), Archived(proxy));
    EXPECT_EQ(MapSink(loaded).values, MapSink(proxy).values);
  }
}

TEST(ObstructionProxy, RefusesStateThatCannotBeItsOwn) {
  const ObstructionConfig config = SmallConfig();
  ObstructionProxy proxy(kObservation, kFeatures, config, 1);
  Rng rng(8, "examples");
  for (int i = 0; i < 10; ++i) Feed(proxy, DrawComposition(rng));
  const std::string bytes = Archived(proxy);
  ObstructionProxy other(kObservation + 1, kFeatures, config, 1);
  EXPECT_THROW(Unarchive(bytes, other), UserError);
  ObstructionConfig smaller = config;
  smaller.memory = 16;
  ObstructionProxy small(kObservation, kFeatures, smaller, 1);
  EXPECT_THROW(Unarchive(bytes, small), UserError);
}

TEST(ObstructionProxy, StopsAtNumbersThatAreNone) {
  ObstructionProxy proxy(kObservation, kFeatures, SmallConfig(), 1);
  Rng rng(9, "examples");
  Composition bad = DrawComposition(rng);
  bad.tail[1] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(proxy.Add(bad.o, bad.z, bad.tail, bad.segment, true, std::nullopt), RunError);
  EXPECT_EQ(proxy.obstructed_count(), 0);
}

TEST(ObstructionProxy, DoesNotAllocate) {
  ObstructionProxy proxy(kObservation, kFeatures, SmallConfig(), 1);
  Rng rng(10, "examples");
  std::vector<Composition> drawn;
  for (int i = 0; i < 50; ++i) drawn.push_back(DrawComposition(rng));
  for (const Composition& c : drawn) Feed(proxy, c);
  const Eigen::MatrixXf tails = Eigen::MatrixXf::Ones(kObservation, 100);
  const Eigen::MatrixXf segments = Eigen::MatrixXf::Ones(kFeatures, 100);
  std::vector<float> probability(100);
  for (int i = 0; i < 4; ++i) proxy.Update();
  const std::int64_t updates = proxy.updates();
  const std::int64_t before = AllocationCount();
  for (const Composition& c : drawn) {
    Feed(proxy, c);
    proxy.Predict(c.o, c.z, tails, segments, probability);
    proxy.CountFiltered(probability);
    proxy.Update();
  }
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(proxy.updates(), updates + 25);
}

// --- the check by simulation -----------------------------------------------------------------

// Puts the environment back, whatever happens.
class Excursion {
 public:
  explicit Excursion(Env& env) : env_(env), before_(env.Snapshot()) {}
  ~Excursion() { env_.Restore(before_); }
  Excursion(const Excursion&) = delete;
  Excursion& operator=(const Excursion&) = delete;

 private:
  Env& env_;
  std::vector<std::byte> before_;
};

// What the proxy should say: tries a composition in the environment itself and puts everything
// back.
class SimulationCheck {
 public:
  explicit SimulationCheck(double tolerance) : tolerance_(tolerance) {}

  // Plays the actions from the present state and compares with the tail's geometry (kGeometrySize).
  // True also if the episode terminates before the last action. Empty if a time limit cuts it
  // before: then nothing is known. The environment is afterwards as before, also after an
  // exception.
  std::optional<bool> Obstructed(Env& env, std::span<const ActionBuffer> actions,
                                 std::span<const double> tail_geometry) {
    const Excursion excursion(env);
    for (std::size_t t = 0; t < actions.size(); ++t) {
      const StepResult result = env.Step(actions[t].view());
      ++simulated_steps_;
      if (t + 1 == actions.size()) break;
      if (result.terminated) return true;
      if (result.truncated) return std::nullopt;
    }
    const EnvView real = env.geometry();
    return OutcomeDiffers({real.data(), static_cast<std::size_t>(real.size())}, tail_geometry,
                          tolerance_);
  }
  std::int64_t simulated_steps() const { return simulated_steps_; }

 private:
  double tolerance_;
  std::int64_t simulated_steps_ = 0;
};

class SimulationCheckOf : public ::testing::TestWithParam<const char*> {};

TEST_P(SimulationCheckOf, LeavesTheEnvironmentAlone) {
  const auto env = MakeEnv(GetParam());
  const auto twin = MakeEnv(GetParam());
  env->Reset(3);
  twin->Reset(3);
  Rng rng(1, "actions");
  ActionBuffer action(env->spec().action);
  SimulationCheck check(0.05);
  std::int64_t expected_steps = 0;
  for (int t = 0; t < 20; ++t) {
    std::vector<ActionBuffer> actions(5, action);
    for (ActionBuffer& each : actions) DrawUniformAction(env->spec().action, rng, each);
    // where these actions really lead
    const std::vector<std::byte> here = env->Snapshot();
    bool over = false;
    for (std::size_t i = 0; i < actions.size() && !over; ++i) {
      const StepResult result = env->Step(actions[i].view());
      over = (result.terminated || result.truncated) && i + 1 < actions.size();
    }
    Eigen::VectorXd tail = env->geometry();
    env->Restore(here);

    const Eigen::VectorXd observation = env->observation();
    if (!over) {
      EXPECT_EQ(check.Obstructed(*env, actions, {tail.data(), 8}), false);
      tail[0] += 0.06;
      EXPECT_EQ(check.Obstructed(*env, actions, {tail.data(), 8}), true);
      expected_steps += 10;
    }
    EXPECT_EQ(env->Snapshot(), here);
    EXPECT_EQ(Eigen::VectorXd(env->observation()), observation);

    DrawUniformAction(env->spec().action, rng, action);
    const StepResult got = env->Step(action.view());
    const StepResult expected = twin->Step(action.view());
    EXPECT_EQ(got.reward, expected.reward);
    EXPECT_EQ(env->Snapshot(), twin->Snapshot());
    EXPECT_EQ(Eigen::VectorXd(env->observation()), Eigen::VectorXd(twin->observation()));
    EXPECT_EQ(Eigen::VectorXd(env->geometry()), Eigen::VectorXd(twin->geometry()));
    if (got.terminated || got.truncated) break;
  }
  EXPECT_GE(expected_steps, 50);
  EXPECT_EQ(check.simulated_steps(), expected_steps);
}

INSTANTIATE_TEST_SUITE_P(All, SimulationCheckOf,
                         ::testing::Values("micro-grid", "point-rooms", "reacher", "hopper"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(SimulationCheck, KnowsEndsAndTimeLimits) {
  const std::string options[] = {"horizon=4", "kind=open", "reward=distance"};
  const auto env = MakeEnv("micro-grid", options);
  env->Reset(1);
  SimulationCheck check(0.05);
  ActionBuffer stay(env->spec().action);
  stay.set_index(4);
  const Eigen::VectorXd here = env->geometry();
  const std::span<const double> tail(here.data(), 8);
  EXPECT_EQ(check.Obstructed(*env, std::vector(4, stay), tail), false);
  EXPECT_EQ(check.Obstructed(*env, std::vector(5, stay), tail), std::nullopt);
  EXPECT_EQ(check.simulated_steps(), 8);

  // an action that the environment refuses: put back all the same
  const auto before = env->Snapshot();
  ActionBuffer wrong(env->spec().action);
  wrong.set_index(77);
  EXPECT_THROW(check.Obstructed(*env, std::vector{stay, wrong}, tail), UserError);
  EXPECT_EQ(env->Snapshot(), before);
  EXPECT_EQ(check.simulated_steps(), 9);

  // hopper falls long before fifty full actions are played
  const auto hopper = MakeEnv("hopper");
  hopper->Reset(1);
  ActionBuffer full(hopper->spec().action);
  for (double& value : full.values()) value = 1.0;
  const Eigen::VectorXd start = hopper->geometry();
  SimulationCheck other(0.05);
  EXPECT_EQ(other.Obstructed(*hopper, std::vector(200, full), {start.data(), 8}), true);
  EXPECT_LT(other.simulated_steps(), 200);
}

// --- learning in real environments -----------------------------------------------------------

// Plays the instance of the seed several times with mixed behaviour; `visit(situation)` sees every
// state that has a future, `saw(experience)` what came of it.
template <typename Visit, typename Saw>
void PlayEpisodes(Env& env, std::uint64_t instance, int episodes, Rng& rng, Visit visit, Saw saw) {
  EpisodeTracker tracker(env.spec(), CompactLift());
  for (int e = 0; e < episodes; ++e) {
    env.Reset(instance);
    tracker.Begin(env);
    Behaviour behaviour = MakeBehaviour(env, rng);
    for (bool running = true; running;) {
      const Action action = behaviour.Act();
      visit(tracker.situation());
      const StepResult result = env.Step(action);
      saw(tracker.Advance(action, result, env));
      running = !result.terminated && !result.truncated;
    }
  }
}

struct LibrarySegment {
  std::vector<ActionBuffer> actions;
  Eigen::VectorXd entry, tail_geometry;
  Eigen::VectorXf tail, features;
};

// Segments of one to three steps.
std::vector<LibrarySegment> CollectSegments(Env& env, std::uint64_t instance, int episodes,
                                            const MatrixFeatures& features, Rng& rng) {
  std::vector<LibrarySegment> library;
  LibrarySegment open;
  SegmentMatrix matrix(features.lift());
  std::size_t length = 0;
  Rng cuts(rng.NextU64(), "cuts");
  PlayEpisodes(
      env, instance, episodes, rng, [](const Situation&) {},
      [&](const Experience& seen) {
        if (open.actions.empty()) {
          open.entry = seen.before.geometry;
          matrix.SetZero();
          length = 1 + static_cast<std::size_t>(cuts.Index(3));
        }
        ActionBuffer action(env.spec().action);
        if (seen.action.kind() == ActionKind::kDiscrete) action.set_index(seen.action.index());
        std::ranges::copy(seen.action.values(), action.values().begin());
        open.actions.push_back(action);
        matrix.AddStep(Eigen::Map<const Eigen::VectorXd>(seen.psi.data(), matrix.dim()));
        if (open.actions.size() == length) {
          open.tail_geometry = seen.after.geometry;
          open.tail = seen.after.observation.cast<float>();
          open.features.resize(features.size());
          features.Compute(matrix,
                           {open.features.data(), static_cast<std::size_t>(features.size())});
          library.push_back(open);
          open.actions.clear();
        }
        if (seen.terminated || seen.truncated) open.actions.clear();
      });
  return library;
}

// In every instance: segments of four episodes, tried at the states of two others, wherever one of
// thirty drawn segments begins near enough.
std::vector<Composition> Compose(const char* id, const char* split, int instances,
                                 std::uint64_t seed) {
  constexpr double kTolerance = 0.1;
  constexpr double kContext = 0.5;
  const std::string options[] = {StrCat("split=", split)};
  const auto env = MakeEnv(id, options);
  const MatrixFeatures features(CompactLift());
  std::vector<Composition> compositions;
  SimulationCheck check(kTolerance);
  Rng rng(seed, "compositions");
  Eigen::VectorXf z(features.size());
  for (int i = 0; i < instances; ++i) {
    const std::uint64_t instance = rng.NextU64();
    const std::vector<LibrarySegment> library = CollectSegments(*env, instance, 4, features, rng);
    Rng candidates(rng.NextU64(), "candidates");
    PlayEpisodes(
        *env, instance, 2, rng,
        [&](const Situation& now) {
          for (int k = 0; k < 30; ++k) {
            const auto& segment =
                library[static_cast<std::size_t>(candidates.Index(std::ssize(library)))];
            const double distance = (segment.entry - now.geometry).norm();
            if (distance > kContext) continue;
            const std::optional<bool> obstructed =
                check.Obstructed(*env, segment.actions, {segment.tail_geometry.data(), 8});
            if (!obstructed) return;
            features.Compute(now.matrix, {z.data(), static_cast<std::size_t>(z.size())});
            compositions.push_back({now.observation.cast<float>(), z, segment.tail,
                                    segment.features, *obstructed, distance});
            return;
          }
        },
        [](const Experience&) {});
  }
  return compositions;
}

struct Scores {
  double auroc = 0.0, ece = 0.0, brier = 0.0;
};

Scores Evaluate(const std::vector<Composition>& compositions,
                const std::vector<double>& probabilities) {
  std::vector<double> positives, negatives;
  std::vector<std::uint8_t> outcomes;
  for (std::size_t i = 0; i < compositions.size(); ++i) {
    const bool obstructed = compositions[i].obstructed;
    outcomes.push_back(obstructed ? 1 : 0);
    (obstructed ? positives : negatives).push_back(probabilities[i]);
  }
  return {Auroc(positives, negatives), ExpectedCalibrationError(probabilities, outcomes),
          BrierScore(probabilities, outcomes)};
}

Scores Evaluate(ObstructionProxy& proxy, const std::vector<Composition>& compositions) {
  std::vector<double> probabilities;
  for (const Composition& c : compositions) {
    probabilities.push_back(static_cast<double>(PredictOne(proxy, c)));
  }
  return Evaluate(compositions, probabilities);
}

Scores TrainAndEvaluate(const std::vector<Composition>& train, const std::vector<Composition>& test,
                        std::int64_t updates, std::uint64_t seed) {
  const MatrixFeatures features(CompactLift());
  ObstructionProxy proxy(static_cast<int>(train[0].o.size()), features, {}, seed);
  for (const Composition& c : train) Feed(proxy, c);
  while (proxy.updates() < updates) proxy.Update();
  return Evaluate(proxy, test);
}

std::vector<Composition> WithShuffledLabels(std::vector<Composition> compositions, Rng& rng) {
  for (std::size_t i = compositions.size() - 1; i > 0; --i) {
    const auto j = static_cast<std::size_t>(rng.Index(static_cast<std::int64_t>(i) + 1));
    std::swap(compositions[i].obstructed, compositions[j].obstructed);
  }
  return compositions;
}

class ObstructionLearning : public ::testing::TestWithParam<const char*> {};

// Layouts of the held-out split, so nothing can be remembered. What single runs reach is in
// docs/obstruction.md.
TEST_P(ObstructionLearning, FindsObstructionInNewLayouts) {
  constexpr int kSeeds = 3;
  constexpr std::int64_t kUpdates = 2000;
  double trained = 0.0;
  double untrained = 0.0;
  double shuffled = 0.0;
  double brier = 0.0;
  double constant_brier = 0.0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<Composition> train = Compose(GetParam(), "train", 60, seed);
    const std::vector<Composition> test = Compose(GetParam(), "held-out", 20, 100 + seed);
    Rng rng(seed, "shuffle");
    const Scores right = TrainAndEvaluate(train, test, kUpdates, seed);
    const Scores none = TrainAndEvaluate(train, test, 0, seed);
    const Scores wrong = TrainAndEvaluate(WithShuffledLabels(train, rng), test, kUpdates, seed);
    std::vector<double> far;
    for (const Composition& c : test) far.push_back(std::min(1.0, c.entry_distance));
    const auto obstructed = std::ranges::count_if(test, &Composition::obstructed);
    const double base = static_cast<double>(obstructed) / static_cast<double>(test.size());
    std::cout << GetParam() << ", seed " << seed << ": " << train.size() << " + " << test.size()
              << " compositions, obstructed " << base << "; AUROC trained " << right.auroc
              << ", untrained " << none.auroc << ", shuffled labels " << wrong.auroc
              << ", distance of the entry " << Evaluate(test, far).auroc << "; ECE " << right.ece
              << ", Brier " << right.brier << " (constant " << base * (1.0 - base) << ")\n";
    trained += right.auroc / kSeeds;
    untrained += none.auroc / kSeeds;
    shuffled += wrong.auroc / kSeeds;
    brier += right.brier / kSeeds;
    constant_brier += base * (1.0 - base) / kSeeds;
  }
  EXPECT_GE(trained, 0.92);
  EXPECT_LT(untrained, trained - 0.2);
  EXPECT_LT(shuffled, trained - 0.2);
  EXPECT_LT(brier, 0.8 * constant_brier);
}

INSTANTIATE_TEST_SUITE_P(All, ObstructionLearning, ::testing::Values("micro-grid", "point-rooms"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace msrl
