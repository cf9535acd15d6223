#include "msrl/agents/mbpo/ensemble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "msrl/testing/agent_update.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kObservations = 3;
constexpr int kActions = 2;
constexpr int kInputs = kObservations + kActions;
constexpr int kOutputs = 1 + kObservations;

EnvSpec Spec(bool tells_end) {
  EnvSpec spec = SmallSpec(ActionKind::kContinuous, kActions, kObservations);
  if (tells_end) spec.terminates = [](std::span<const double> o) { return o[1] > 0.5; };
  return spec;
}

EnsembleSettings SmallSettings() {
  EnsembleSettings settings;
  settings.members = 3;
  settings.elites = 2;
  settings.layers = 2;
  settings.width = 5;
  settings.batch = 8;
  settings.learning_rate = 0.01;
  settings.decay = 100.0;  // the paper's is too small to be seen
  settings.minibatches = 4;
  return settings;
}

double Silu(double x) { return x / (1.0 + std::exp(-x)); }
double Softplus(double x) { return std::log(1.0 + std::exp(x)); }

PlainNet Net(bool tells_end) {
  return {.sizes = {kInputs, 5, 5, 2 * kOutputs + (tells_end ? 0 : 1)}, .hidden = Silu};
}

// Transitions of a task in which each step depends on state and action.
Replay MakeReplay(int steps, std::uint64_t seed) {
  Replay replay({.capacity = 1000, .observation_size = kObservations, .action_size = kActions});
  Rng rng(seed, "replay");
  std::vector<double> before(kObservations);
  std::vector<double> after(kObservations);
  std::vector<float> action(kActions);
  for (int t = 0; t < steps; ++t) {
    for (double& value : before) value = 3.0 + 2.0 * rng.Normal();
    for (float& value : action) value = static_cast<float>(rng.Uniform(-1.0, 1.0));
    for (std::size_t i = 0; i < before.size(); ++i) {
      after[i] = before[i] + 0.3 * std::sin(before[(i + 1) % 3]) + 0.2 * action[i % 2];
    }
    replay.Add({.before = {.observation = before},
                .action = action,
                .reward = before[0] * action[0] + 0.1 * rng.Normal(),
                .terminated = before[2] > 4.0,
                .truncated = before[2] <= 4.0,
                .after = {.observation = after}});
  }
  return replay;
}

// (o, a) in units.
Doubles Input(const Ensemble& ensemble, const Doubles& observation, const Doubles& action) {
  Doubles x = Join(observation, action);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    x[i] = (x[i] - ensemble.units().mean[k]) / ensemble.units().spread[k];
  }
  return x;
}

Doubles Target(const ReplayBatch& batch, Eigen::Index b) {
  Doubles y{batch.reward[b]};
  for (Eigen::Index i = 0; i < kObservations; ++i) {
    y.push_back(batch.next_observation(i, b) - batch.observation(i, b));
  }
  return y;
}

TEST(MbpoEnsemble, LogVariancesAreBounded) {
  EXPECT_NEAR(BoundedLogVariance(0.0, -10.0, 0.5), -0.474004, Tol(5e-7));
  EXPECT_NEAR(BoundedLogVariance(-4.0, -10.0, 0.5), -4.0, 0.02);  // nothing far from both
  EXPECT_NEAR(BoundedLogVariance(1000.0, -10.0, 0.5), 0.5, 1e-4);
  EXPECT_NEAR(BoundedLogVariance(-1000.0, -10.0, 0.5), -10.0, Tol(1e-9));
}

TEST(MbpoEnsemble, UpdatesAreThoseOfTheFormulas) {
  for (const bool tells_end : {true, false}) {
    SCOPED_TRACE(tells_end);
    const EnvSpec spec = Spec(tells_end);
    const PlainNet net = Net(tells_end);
    const EnsembleSettings settings = SmallSettings();
    const auto members = static_cast<std::size_t>(settings.members);
    Ensemble ensemble(spec, settings, 1000, 10, 5);
    EXPECT_EQ(ensemble.learns_ends(), !tells_end);
    const std::size_t network_size = members * net.parameter_count();
    ASSERT_EQ(ensemble.parameters().size(), network_size + 2 * kOutputs);
    // a training first: for units, and for an optimiser that has a past
    ensemble.Train(MakeReplay(50, 1));
    EXPECT_GT(ensemble.units().mean[0], 1.0F);
    EXPECT_GT(ensemble.units().spread[0], 1.5F);
    Doubles w = AsDoubles(ensemble.parameters().values());
    PlainAdam adam{.steps = static_cast<int>(ensemble.parameters().adam().step_count()),
                   .mean = AsDoubles(ensemble.parameters().adam().mean()),
                   .variance = AsDoubles(ensemble.parameters().adam().variance())};
    EXPECT_EQ(adam.steps, settings.minibatches);

    Rng rng(3, "batch");
    for (int update = 0; update < 4; ++update) {
      std::vector<ReplayBatch> batches;
      for (int e = 0; e < settings.members; ++e) {
        batches.push_back(RandomBatch(spec, settings.batch, rng, /*reward_size=*/2.0));
      }
      double likelihood = 0.0;  // of the last call, mean over the members
      double cross_entropy = 0.0;
      const auto loss = [&](const Doubles& p) {
        const double* const low = p.data() + network_size;
        const double* const high = low + kOutputs;
        likelihood = 0.0;
        cross_entropy = 0.0;
        double decay = 0.0;
        const double share = 1.0 / settings.batch / static_cast<double>(members);
        for (std::size_t e = 0; e < members; ++e) {
          for (Eigen::Index b = 0; b < settings.batch; ++b) {
            const ReplayBatch& batch = batches[e];
            const Doubles out =
                net(p, Input(ensemble, Column(batch.observation, b), Column(batch.action, b)), e);
            const Doubles y = Target(batch, b);
            for (std::size_t i = 0; i < kOutputs; ++i) {
              double lv = high[i] - Softplus(high[i] - out[kOutputs + i]);
              lv = low[i] + Softplus(lv - low[i]);
              const double error = out[i] - y[i];
              likelihood += share / kOutputs * (error * error * std::exp(-lv) + lv);
            }
            if (tells_end) continue;
            const double p_end = 1.0 / (1.0 + std::exp(-out[2 * kOutputs]));
            cross_entropy -= share * std::log(batch.continues[b] == 0.0F ? p_end : 1.0 - p_end);
          }
          // half of 2.5e-5, 5e-5 and, for the last layer, 1e-4, times the setting
          const double* weight = p.data() + e * net.parameter_count();
          for (std::size_t l = 0; l + 1 < net.sizes.size(); ++l) {
            const auto size = static_cast<std::size_t>(net.sizes[l] * net.sizes[l + 1]);
            const double c = l == 2 ? 1e-4 : 2.5e-5 * static_cast<double>(l + 1);
            decay +=
                0.5 * settings.decay * c * std::inner_product(weight, weight + size, weight, 0.0);
            weight += size + static_cast<std::size_t>(net.sizes[l + 1]);
          }
        }
        const double width =
            std::accumulate(high, high + kOutputs, 0.0) - std::accumulate(low, low + kOutputs, 0.0);
        return static_cast<double>(members) * (likelihood + cross_entropy) + 0.01 * width + decay;
      };
      const Doubles gradient = NumericGradient(w, loss);
      loss(w);
      ensemble.UpdateOn(batches);
      adam.Step(w, gradient, settings.learning_rate);
      ExpectNear(AsDoubles(ensemble.parameters().adam().mean()), adam.mean, "gradient", 2e-5);
      ExpectNear(AsDoubles(ensemble.parameters().values()), w, "parameters", 2e-5);

      const MetricMap metrics(ensemble);
      if (update == 0) continue;  // with the training's
      EXPECT_NEAR(metrics["loss/model"], likelihood, Tol(1e-5));
      EXPECT_EQ(metrics.contains("loss/end"), !tells_end);
      if (!tells_end) {
        EXPECT_NEAR(metrics["loss/end"], cross_entropy, Tol(1e-5));
      }
    }
  }
}

TEST(MbpoEnsemble, StartsAsThePaperDoes) {
  EnsembleSettings settings = SmallSettings();
  settings.layers = 1;
  settings.width = 400;
  Ensemble ensemble(Spec(true), settings, 1000, 10, 5);
  for (const NamedTensor& tensor : ensemble.parameters().tensors()) {
    const auto values = ensemble.parameters().values().subspan(tensor.offset, tensor.size());
    const Eigen::Map<const Eigen::ArrayXf> w(values.data(), std::ssize(values));
    if (tensor.name == "log_variance.low" || tensor.name == "log_variance.high") {
      EXPECT_TRUE((w == (tensor.name == "log_variance.low" ? -10.0F : 0.5F)).all());
    } else if (tensor.name.ends_with(".bias")) {
      EXPECT_TRUE((w == 0.0F).all());
    } else {
      // a normal that is cut at two deviations has 0.88 of its deviation
      const double deviation = 0.5 / std::sqrt(tensor.columns);
      EXPECT_LE(w.abs().maxCoeff(), 2.0 * deviation);
      EXPECT_NEAR(std::sqrt(w.square().mean()), 0.88 * deviation, 0.05 * deviation);
    }
  }
}

// The error of a member for one transition.
double Error(Ensemble& ensemble, const ReplayBatch& batch, std::size_t member) {
  const Doubles out =
      Net(true)(AsDoubles(ensemble.parameters().values()),
                Input(ensemble, Column(batch.observation, 0), Column(batch.action, 0)), member);
  const Doubles y = Target(batch, 0);
  double sum = 0.0;
  for (std::size_t i = 0; i < kOutputs; ++i) sum += (out[i] - y[i]) * (out[i] - y[i]);
  return sum / kOutputs;
}

MetricMap Train(Ensemble& ensemble, const Replay& replay) {
  ensemble.Train(replay);
  return MetricMap(ensemble);
}

// Of four transitions the first is the hold-out set. With steps that are too large errors rise
// again; what remains is each member at its best.
TEST(MbpoEnsemble, MembersReturnToTheirBestAndTheBestAreElites) {
  EnsembleSettings settings = SmallSettings();
  settings.learning_rate = 0.1;
  settings.minibatches = 1000;
  const Replay replay = MakeReplay(4, 2);
  ReplayBatch batch = replay.MakeBatch(1);
  replay.Read(replay.first_row(), 0, batch);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Ensemble ensemble(Spec(true), settings, 1000, 10, seed);
    const MetricMap trained = Train(ensemble, replay);
    EXPECT_LT(trained["model/minibatches"], 1000.0);
    std::vector<std::int64_t> order{0, 1, 2};
    std::ranges::sort(order, {}, [&](std::int64_t e) {
      return Error(ensemble, batch, static_cast<std::size_t>(e));
    });
    EXPECT_EQ(std::vector(ensemble.elites().begin(), ensemble.elites().end()),
              (std::vector{order[0], order[1]}));
    const double mean = 0.5 * (Error(ensemble, batch, static_cast<std::size_t>(order[0])) +
                               Error(ensemble, batch, static_cast<std::size_t>(order[1])));
    EXPECT_NEAR(trained["model/holdout_error"], mean, Tol(1e-5) * (1.0 + mean));
  }
}

// Two transitions: a sample may have both, or one of them twice. Who never saw the first is wrong
// about it.
TEST(MbpoEnsemble, MembersLearnFromSamplesOfTheirOwn) {
  EnsembleSettings settings = SmallSettings();
  settings.members = 16;
  settings.decay = 0.0;
  settings.minibatches = 2000;
  settings.patience = 50;
  const Replay replay = MakeReplay(2, 2);
  ReplayBatch batch = replay.MakeBatch(2);
  replay.Read(replay.first_row(), 0, batch);
  replay.Read(replay.first_row() + 2, 1, batch);
  Ensemble ensemble(Spec(true), settings, 1000, 10, 1);
  ensemble.Train(replay);
  int right = 0;
  int wrong = 0;
  for (std::size_t e = 0; e < 16; ++e) {
    const double error = Error(ensemble, batch, e);
    right += error < 1e-3 ? 1 : 0;
    wrong += error > 0.1 ? 1 : 0;
  }
  EXPECT_GE(right, 8);
  EXPECT_GE(wrong, 1);

  // units are of both
  Eigen::MatrixXf x(kInputs, 2);
  x << batch.observation, batch.action;
  for (Eigen::Index i = 0; i < kInputs; ++i) {
    EXPECT_NEAR(ensemble.units().mean[i], 0.5F * (x(i, 0) + x(i, 1)), Tol(1e-6));
    EXPECT_NEAR(ensemble.units().spread[i], 0.5F * std::abs(x(i, 0) - x(i, 1)), Tol(1e-6));
  }
}

TEST(MbpoEnsemble, StopsWhenNothingGetsBetter) {
  EnsembleSettings settings = SmallSettings();
  settings.learning_rate = 1e-12;
  settings.patience = 5;
  settings.minibatches = 1000;
  const Replay replay = MakeReplay(50, 2);
  {
    // 40 transitions in five batches; the first epoch is the best, six more show that it is
    Ensemble ensemble(Spec(true), settings, 1000, 10, 1);
    EXPECT_EQ(Train(ensemble, replay)["model/minibatches"], 5 * 7);
  }
  settings.minibatches = 23;
  Ensemble ensemble(Spec(true), settings, 1000, 10, 1);
  EXPECT_EQ(Train(ensemble, replay)["model/minibatches"], 23);
}

TEST(MbpoEnsemble, LearnsAStep) {
  EnsembleSettings settings = SmallSettings();
  settings.width = 32;
  settings.batch = 32;
  settings.learning_rate = 3e-3;
  settings.decay = 1.0;
  settings.minibatches = 2000;
  const Replay replay = MakeReplay(490, 3);
  Ensemble ensemble(Spec(true), settings, 1000, 10, 1);
  // 0.1^2 / 4 is noise that nobody can foretell; knowing nothing costs more than 2
  EXPECT_LT(Train(ensemble, replay)["model/holdout_error"], 0.05);
}

TEST(MbpoEnsemble, StatesAskElitesAndDrawFromTheirGaussians) {
  constexpr int kCount = 20'000;
  EnsembleSettings settings = SmallSettings();
  settings.minibatches = 100;
  for (const int elites : {1, 2}) {
    settings.elites = elites;
    EnvSpec spec = Spec(true);
    spec.observation_bound = 4.0;
    Ensemble ensemble(spec, settings, 1000, kCount, 7);
    ensemble.Train(MakeReplay(100, 4));
    const Doubles observation{0.4, 0.7, 3.9};
    const Doubles action{0.5, -0.2};
    Eigen::MatrixXf o(kObservations, kCount);
    Eigen::MatrixXf a(kActions, kCount);
    o.colwise() = Eigen::Vector3f(0.4F, 0.7F, 3.9F);
    a.colwise() = Eigen::Vector2f(0.5F, -0.2F);
    Eigen::MatrixXf next(kObservations, kCount);
    std::vector<float> reward(kCount);
    std::vector<std::uint8_t> terminated(kCount);
    Rng rng(1, "rollouts");
    ensemble.Advance(o, a, rng, next, reward, terminated);

    // the mixture's first two moments
    const Doubles w = AsDoubles(ensemble.parameters().values());
    const double* const low = w.data() + w.size() - 2 * kOutputs;
    const double* const high = low + kOutputs;
    for (std::size_t i = 0; i + 1 < kOutputs; ++i) {
      double mean = 0.0;
      double square = 0.0;
      for (const std::int64_t e : ensemble.elites()) {
        const Doubles out =
            Net(true)(w, Input(ensemble, observation, action), static_cast<std::size_t>(e));
        const double lv = BoundedLogVariance(out[kOutputs + i], low[i], high[i]);
        mean += out[i] / elites;
        square += (out[i] * out[i] + std::exp(lv)) / elites;
      }
      double sum = 0.0;
      double squares = 0.0;
      for (int k = 0; k < kCount; ++k) {
        const double drawn = i == 0
                                 ? reward[static_cast<std::size_t>(k)]
                                 : next(static_cast<Eigen::Index>(i) - 1, k) - observation[i - 1];
        sum += drawn / kCount;
        squares += drawn * drawn / kCount;
      }
      const double deviation = std::sqrt(square - mean * mean);
      EXPECT_NEAR(sum, mean, 5.0 * deviation / std::sqrt(kCount)) << i;
      EXPECT_NEAR(squares - sum * sum, deviation * deviation, 0.06 * deviation * deviation) << i;
    }
    // nothing that the task could not show
    EXPECT_LE(next.maxCoeff(), 4.0F);
    EXPECT_EQ(next.row(2).maxCoeff(), 4.0F);
    int ends = 0;
    for (int k = 0; k < kCount; ++k) {
      EXPECT_EQ(terminated[static_cast<std::size_t>(k)] != 0, next(1, k) > 0.5F);
      ends += terminated[static_cast<std::size_t>(k)];
    }
    EXPECT_GT(ends, 100);
    EXPECT_LT(ends, kCount - 100);
  }
}

TEST(MbpoEnsemble, EndsAreLearnedWhereNoRuleTellsThem) {
  EnsembleSettings settings = SmallSettings();
  settings.width = 16;
  settings.batch = 32;
  settings.minibatches = 1000;
  Ensemble ensemble(Spec(false), settings, 1000, 2000, 7);
  ensemble.Train(MakeReplay(490, 4));
  Eigen::MatrixXf o = Eigen::MatrixXf::Constant(kObservations, 2000, 3.0F);
  o.row(2).leftCols(1000).setConstant(6.0F);   // an end, see MakeReplay
  o.row(2).rightCols(1000).setConstant(2.0F);  // none
  const Eigen::MatrixXf a = Eigen::MatrixXf::Zero(kActions, 2000);
  Eigen::MatrixXf next(kObservations, 2000);
  std::vector<float> reward(2000);
  std::vector<std::uint8_t> terminated(2000);
  Rng rng(1, "rollouts");
  ensemble.Advance(o, a, rng, next, reward, terminated);
  EXPECT_GT(std::accumulate(terminated.begin(), terminated.begin() + 1000, 0), 900);
  EXPECT_LT(std::accumulate(terminated.begin() + 1000, terminated.end(), 0), 100);
}

TEST(MbpoEnsemble, GoesOnBitForBit) {
  for (const bool tells_end : {true, false}) {
    const Replay replay = MakeReplay(60, 5);
    Ensemble ensemble(Spec(tells_end), SmallSettings(), 1000, 10, 1);
    ensemble.Train(replay);
    const std::string saved = Archived(ensemble);
    Ensemble again(Spec(tells_end), SmallSettings(), 1000, 10, 2);
    EXPECT_TRUE(Archived(again) != saved);
    Unarchive(saved, again);
    EXPECT_TRUE(Archived(again) == saved);
    ensemble.Train(replay);
    again.Train(replay);
    EXPECT_TRUE(Archived(again) == Archived(ensemble));
  }
}

TEST(MbpoEnsemble, BadNumbersStopIt) {
  Replay replay = MakeReplay(20, 5);
  const std::vector<double> o(kObservations, 1.0);
  const std::vector<float> a(kActions, 0.0F);
  for (int t = 0; t < 30; ++t) {
    replay.Add({.before = {.observation = o},
                .action = a,
                .reward = std::nan(""),
                .truncated = true,
                .after = {.observation = o}});
  }
  Ensemble ensemble(Spec(true), SmallSettings(), 1000, 10, 1);
  EXPECT_THROW(ensemble.Train(replay), RunError);
  EnsembleSettings settings = SmallSettings();
  settings.elites = 4;
  EXPECT_THROW(Ensemble(Spec(true), settings, 1000, 10, 1), UserError);
}

}  // namespace
}  // namespace msrl
