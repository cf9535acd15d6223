#include "msrl/agents/sf/sf_gpi.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/host/host.h"
#include "msrl/agents/registry.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/plain_module.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kLength = ValueModule::kTrainingLength;

SfGpiShape Small() {
  return {.features = 4,
          .feature_width = 5,
          .successor_width = 6,
          .code_size = 3,
          .policies = 2,
          .policy_width = 5,
          .successor_gamma = 0.8};
}

Eigen::VectorXd Join3(const Eigen::VectorXd& a, const Eigen::VectorXd& b,
                      const Eigen::VectorXd& c) {
  Eigen::VectorXd joined(a.size() + b.size() + c.size());
  joined << a, b, c;
  return joined;
}

Eigen::VectorXd Phi(const PlainTensors& w, const Eigen::VectorXd& x, const Eigen::VectorXd& u,
                    const Eigen::VectorXd& next) {
  const Eigen::VectorXd shown = PlainMlp(w, "phi", 2, true, Join3(x, u, next));
  return Join3(shown, Eigen::VectorXd::Ones(1), {});
}

Eigen::VectorXd PsiOf(const PlainTensors& w, int k, const Eigen::VectorXd& x,
                      const Eigen::VectorXd& u, const Eigen::VectorXd& code) {
  return PlainMlp(w, "psi.members." + std::to_string(k), 2, true, Join3(x, u, code));
}

void RandomiseAll(SfGpi& module, Rng& rng) {
  RandomiseEvenly(module.parameters().tensors(), module.parameters().values(), rng);
  RandomiseEvenly(module.taught().tensors(), module.taught().values(), rng);
  RandomiseEvenly(module.taught().tensors(), module.taught().target(), rng);
}

// Only the target's own psi learns. Of its twins, the one with the smaller value tells what
// follows: all of its features, not the smaller of each.
TEST(SfGpi, LossAndGradientsAreThoseOfTheFormula) {
  Rng rng(1, "init");
  SfGpi module(Small(), {}, rng);
  constexpr int kWindows = 2;
  TeachingGraph teaching(module, kWindows);
  RandomiseAll(module, rng);
  const Eigen::VectorXf weights = RandomMatrix(4, 1, rng);
  module.set_weights(weights);
  const auto states = [](int w) { return w == 0 ? kLength : 3; };
  FillRandomWindows(teaching, rng, states);
  const Steps& steps = teaching.windows.steps;
  constexpr int kColumns = kLength * kWindows;
  auto& g = teaching.graph;
  g.input(steps.action) = RandomMatrix(kActionChannels, kColumns, rng);
  g.input(steps.next) = RandomMatrix(kChannels, kColumns, rng);
  g.input(steps.next_action) = RandomMatrix(kActionChannels, kColumns, rng);
  for (int c = 0; c < kColumns; ++c) g.input(steps.continues)(0, c) = c % 5 == 4 ? 0.0F : 1.0F;

  const Doubles carried = AsDoubles(module.parameters().values());
  const Doubles slow = AsDoubles(module.taught().target());
  const PlainTensors sources{module.parameters().tensors(), carried};
  const PlainTensors target{module.taught().tensors(), slow};
  int smaller[2] = {0, 0};
  int mixed = 0;
  const auto loss = [&](const Doubles& parameters) {
    const PlainTensors own{module.taught().tensors(), parameters};
    double sum = 0.0;
    for (int c = 0; c < kColumns; ++c) {
      const auto column = [&](Node node) -> Eigen::VectorXd {
        return g.input(node).col(c).cast<double>();
      };
      const Eigen::VectorXd x = column(teaching.windows.channels).head(kStateChannels);
      const Eigen::VectorXd next = column(steps.next).head(kStateChannels);
      const Eigen::VectorXd later[2] = {
          PsiOf(target, 0, next, column(steps.next_action), target("code")),
          PsiOf(target, 1, next, column(steps.next_action), target("code"))};
      const Eigen::VectorXd w = weights.cast<double>();
      const int k = later[0].dot(w) < later[1].dot(w) ? 0 : 1;
      ++smaller[k];
      mixed += (later[k] - later[1 - k]).maxCoeff() > 0.0 ? 1 : 0;
      const Eigen::VectorXd y = 0.2 * Phi(sources, x, column(steps.action), next) +
                                0.8 * column(steps.continues)[0] * later[k];
      for (int twin = 0; twin < 2; ++twin) {
        const Eigen::VectorXd psi = PsiOf(own, twin, x, column(steps.action), own("code"));
        for (int i = 0; i < 4; ++i) {
          sum += column(teaching.weight)[0] * PlainHuber(psi[i] - y[i]) / 4.0;
        }
      }
    }
    return sum;
  };
  ExpectLossAndGradients(module, teaching, loss);
  EXPECT_GT(smaller[0], 0);
  EXPECT_GT(smaller[1], 0);
  EXPECT_GT(mixed, 0);

  // a step changes what is taught, and its slow copy, and nothing that was carried
  const Doubles before = AsDoubles(module.taught().values());
  teaching.Learn(1e-2);
  EXPECT_NE(AsDoubles(module.taught().values()), before);
  EXPECT_NE(AsDoubles(module.taught().target()), slow);
  EXPECT_EQ(AsDoubles(module.parameters().values()), carried);
}

struct SlotGraph {
  SlotGraph(SfGpi& module, int columns, ParameterUse use) {
    kept = graph.Input(module.kept_size(), columns);
    action = graph.InputWithGradient(kActionChannels, columns);
    value = module.SlotValue(graph, kept, action, use);
    graph.Finish();
  }
  StaticGraph graph;
  Node kept, action, value;
};

// max over policies of the smaller twin, with the gradient of an action.
TEST(SfGpi, TheValueSlotIsGeneralisedPolicyImprovement) {
  Rng rng(1, "init");
  SfGpi module(Small(), {}, rng);
  constexpr int kColumns = 40;
  SlotGraph now(module, kColumns, ParameterUse::kFrozen);
  SlotGraph slow(module, kColumns, ParameterUse::kTarget);
  RandomiseAll(module, rng);
  const Eigen::VectorXf weights = RandomMatrix(4, 1, rng);
  module.set_weights(weights);
  const Eigen::MatrixXf kept = RandomMatrix(module.kept_size(), kColumns, rng);
  const Eigen::MatrixXf action = RandomMatrix(kActionChannels, kColumns, rng);
  const Doubles carried = AsDoubles(module.parameters().values());
  const PlainTensors sources{module.parameters().tensors(), carried};
  int best_of[3] = {0, 0, 0};
  for (const bool is_slow : {false, true}) {
    SCOPED_TRACE(is_slow);
    SlotGraph& slot = is_slow ? slow : now;
    slot.graph.input(slot.kept) = kept;
    slot.graph.input(slot.action) = action;
    slot.graph.Forward();
    slot.graph.Backward({{slot.value, Eigen::MatrixXf::Ones(1, kColumns)}});
    const Doubles own_values =
        AsDoubles(is_slow ? module.taught().target() : module.taught().values());
    const PlainTensors own{module.taught().tensors(), own_values};
    for (int c = 0; c < kColumns; ++c) {
      const Eigen::VectorXd x =
          kept.col(c).segment(1 + module.z_size(), kStateChannels).cast<double>();
      const auto value = [&](const Doubles& u_values) {
        const Eigen::VectorXd u =
            Eigen::Map<const Eigen::VectorXd>(u_values.data(), std::ssize(u_values));
        const Eigen::VectorXd w = weights.cast<double>();
        double best = -1e9;
        int which = 0;
        for (int i = 0; i < 3; ++i) {
          const PlainTensors& of = i < 2 ? sources : own;
          const Eigen::VectorXd code = i < 2 ? sources("codes").col(i) : own("code").col(0);
          const double v =
              std::min(PsiOf(of, 0, x, u, code).dot(w), PsiOf(of, 1, x, u, code).dot(w));
          if (v > best) which = i;
          best = std::max(best, v);
        }
        ++best_of[which];
        return best + sources("bias")(0, 0);
      };
      const Doubles at = Column(action, c);
      ASSERT_NEAR(slot.graph.value(slot.value)(0, c), value(at), Tol(1e-5));
      ExpectNear(Column(slot.graph.gradient(slot.action), c), NumericGradient(at, value),
                 "gradient", 1e-4);
    }
  }
  for (const int count : best_of) EXPECT_GT(count, 0);
}

// A ring of states that look like anything; action -1 goes one on, +1 two, and from the last state
// +1 ends. psi of a fixed policy is a system of linear equations.
TEST(SfGpi, SuccessorFeaturesOfATabularTaskAreTheClosedForm) {
  Rng rng(1, "init");
  SfGpiShape shape = Small();
  shape.successor_width = 48;
  SfGpi module(shape, {}, rng);
  module.Configure({.successor_tau = 0.05});
  module.set_weights(RandomMatrix(4, 1, rng));
  constexpr int kStates = 5;
  constexpr int kPairs = 2 * kStates;  // state s with action -1: 2 s, with +1: 2 s + 1
  const Eigen::MatrixXf shown = RandomMatrix(kStateChannels, kStates, rng);
  const auto next = [](int pair) { return (pair / 2 + 1 + pair % 2) % kStates; };
  const auto ends = [](int pair) { return pair == kPairs - 1; };
  const auto chosen = [](int state) { return state % 2; };  // by the policy
  const auto action = [](int which) {
    Eigen::VectorXf u = Eigen::VectorXf::Zero(kActionChannels);
    u[0] = which == 0 ? -1.0F : 1.0F;
    u[kActionCodeSize] = 1.0F;
    return u;
  };
  constexpr int kWindows = 10;
  TeachingGraph teaching(module, kWindows);
  auto& g = teaching.graph;
  const Steps& steps = teaching.windows.steps;
  for (int c = 0; c < kLength * kWindows; ++c) {
    const int pair = c % kPairs;
    g.input(teaching.windows.channels).col(c).head(kStateChannels) = shown.col(pair / 2);
    g.input(steps.action).col(c) = action(pair % 2);
    g.input(steps.next).col(c).head(kStateChannels) = shown.col(next(pair));
    g.input(steps.next_action).col(c) = action(chosen(next(pair)));
    g.input(steps.continues)(0, c) = ends(pair) ? 0.0F : 1.0F;
  }
  g.input(teaching.weight).setConstant(1.0F / (kLength * kWindows));

  // Psi = (1 - gamma) Phi + gamma P Psi
  const Doubles carried = AsDoubles(module.parameters().values());
  const PlainTensors sources{module.parameters().tensors(), carried};
  Eigen::MatrixXd phi(kPairs, 4);
  Eigen::MatrixXd system = Eigen::MatrixXd::Identity(kPairs, kPairs);
  for (int pair = 0; pair < kPairs; ++pair) {
    phi.row(pair) = Phi(sources, shown.col(pair / 2).cast<double>(),
                        action(pair % 2).cast<double>(), shown.col(next(pair)).cast<double>());
    if (!ends(pair)) system(pair, 2 * next(pair) + chosen(next(pair))) -= 0.8;
  }
  const Eigen::MatrixXd exact = system.partialPivLu().solve(0.2 * phi);

  StaticGraph reading;
  const Node x = reading.Input(kStateChannels, kPairs);
  const Node u = reading.Input(kActionChannels, kPairs);
  const Node psi = module.OwnPsi(reading, x, u, ParameterUse::kFrozen);
  reading.Finish();
  for (int pair = 0; pair < kPairs; ++pair) {
    reading.input(x).col(pair) = shown.col(pair / 2);
    reading.input(u).col(pair) = action(pair % 2);
  }
  const auto error = [&] {
    reading.Forward();
    double worst = 0.0;
    for (int k = 0; k < SfGpi::kTwins; ++k) {
      const Eigen::MatrixXd told = reading.value(psi).middleRows(4 * k, 4).cast<double>();
      worst = std::max(worst, (told.transpose() - exact).cwiseAbs().maxCoeff());
    }
    return worst;
  };
  EXPECT_GT(error(), 0.3);
  constexpr int kUpdates = 4000;
  for (int k = 0; k < kUpdates; ++k) {
    teaching.Learn(2e-3 * (1.0 - static_cast<double>(k) / kUpdates));
  }
  EXPECT_LT(error(), 0.01);
  // what is always 1 says how long it still lasts
  EXPECT_LT(exact.col(3).minCoeff(), 0.25);
  EXPECT_GT(exact.col(3).maxCoeff(), 0.5);
}

// Channels of a step with an action in two of three entries that are used.
struct RandomSteps {
  Eigen::MatrixXf before, after;
};
RandomSteps DrawSteps(int count, Rng& rng) {
  RandomSteps steps{RandomMatrix(kChannels, count, rng), RandomMatrix(kChannels, count, rng)};
  return steps;
}
std::span<const float> ColumnOf(const Eigen::MatrixXf& matrix, int c) {
  return {matrix.col(c).data(), static_cast<std::size_t>(matrix.rows())};
}

TEST(SfGpi, RewardsAreARidgeRegression) {
  Rng rng(1, "init");
  SfGpi module(Small(), {}, rng);
  module.Configure({.refit_every = 10, .ridge = 0.03});
  module.Enter({.used_actions = 0b101});
  Randomise(module.parameters(), rng);
  constexpr int kSteps = 57;
  const RandomSteps steps = DrawSteps(kSteps, rng);
  for (int c = 0; c < 40; ++c) module.Observe(ColumnOf(steps.before, c), ColumnOf(steps.after, c));
  EXPECT_EQ(module.weights(), Eigen::VectorXf::Zero(4));  // in which unit is not known yet
  const double scale = 2.5;
  module.Settle(scale);
  const Doubles carried = AsDoubles(module.parameters().values());
  const PlainTensors w{module.parameters().tensors(), carried};
  const auto expect_fit = [&](int count) {
    Eigen::MatrixXd phi(count, 4);
    Eigen::VectorXd r(count);
    for (int c = 0; c < count; ++c) {
      const Eigen::VectorXd after = steps.after.col(c).cast<double>();
      phi.row(c) = Phi(w, steps.before.col(c).head(kStateChannels).cast<double>(),
                       after.segment(kActionAt, kActionChannels), after.head(kStateChannels));
      r[c] = after[kRewardAt];
    }
    const Eigen::MatrixXd system =
        phi.transpose() * phi / count + 0.03 * Eigen::MatrixXd::Identity(4, 4);
    const Eigen::VectorXd solution = system.partialPivLu().solve(phi.transpose() * r / count);
    EXPECT_NEAR(module.reward_fit(),
                1.0 - (r - phi * solution).squaredNorm() / (r.array() - r.mean()).square().sum(),
                Tol(1e-5));
    const Eigen::VectorXd expected = solution / (scale * 0.2);
    ExpectNear(AsDoubles(ColumnOf(module.weights(), 0)), {expected.begin(), expected.end()}, "w",
               1e-4);
  };
  expect_fit(40);
  for (int c = 40; c < kSteps; ++c) {
    module.Observe(ColumnOf(steps.before, c), ColumnOf(steps.after, c));
  }
  expect_fit(50);  // the last tenth step
}

TEST(SfGpi, ItsOwnPolicyBeginsAsTheBestOfTheSources) {
  Rng rng(3, "init");
  SfGpiShape shape = Small();
  shape.policies = 3;
  int chosen[3] = {0, 0, 0};
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE(trial);
    SfGpi module(shape, {}, rng);
    module.Enter({.used_actions = 0b101});
    ReadingGraph reading(module, 1);
    SlotGraph slot(module, 1, ParameterUse::kTarget);  // makes room for what is taught
    Randomise(module.parameters(), rng);
    const RandomSteps steps = DrawSteps(25, rng);
    for (int c = 0; c < 25; ++c) {
      module.Observe(ColumnOf(steps.before, c), ColumnOf(steps.after, c));
    }
    module.Settle(1.0);
    const Doubles carried = AsDoubles(module.parameters().values());
    const PlainTensors w{module.parameters().tensors(), carried};
    Eigen::VectorXd used = Eigen::VectorXd::Zero(kActionCodeSize);
    used[0] = used[2] = 1.0;
    const auto psi = [&](int policy, int c) -> Eigen::VectorXd {
      const Eigen::VectorXd x = steps.before.col(c).head(kStateChannels).cast<double>();
      const Eigen::VectorXd code = w("codes").col(policy);
      const Eigen::VectorXd mean =
          PlainMlp(w, "mu", 2, false, Join3(x, code, {})).head(kActionCodeSize).array().tanh();
      return PsiOf(w, 0, x, Join3(mean.cwiseProduct(used), used, {}), code);
    };
    double best = -1e9;
    int which = 0;
    for (int i = 0; i < 3; ++i) {
      double sum = 0.0;
      for (int c = 0; c < 25; ++c) sum += psi(i, c).dot(module.weights().cast<double>());
      if (sum > best) which = i;
      best = std::max(best, sum);
    }
    ++chosen[which];
    EXPECT_EQ(module.best_policy(), which);
    const Doubles own_values = AsDoubles(module.taught().values());
    EXPECT_EQ(AsDoubles(module.taught().target()), own_values);
    const PlainTensors own{module.taught().tensors(), own_values};
    EXPECT_EQ(own("code"), w("codes").col(which));
    EXPECT_EQ(own("psi.members.1.layers.0.weight"), w("psi.members.1.layers.0.weight"));

    // the feature slot is what that policy expects
    reading.graph.input(reading.windows.channels) = steps.before.col(7);
    reading.Forward();
    const Eigen::VectorXd z = psi(which, 7);
    ExpectNear(Column(reading.graph.value(reading.slots.z), 0), {z.begin(), z.end()}, "z");
  }
  for (const int count : chosen) EXPECT_GT(count, 0);
}

TEST(SfGpi, ProposesWhatTheSourcesPoliciesDo) {
  Rng rng(1, "init");
  SfGpi module(Small(), {}, rng);
  module.Enter({.used_actions = 0b111});
  Randomise(module.parameters(), rng);
  const Eigen::MatrixXf channels = RandomMatrix(kChannels, 1, rng);
  const Doubles carried = AsDoubles(module.parameters().values());
  const PlainTensors w{module.parameters().tensors(), carried};
  constexpr int kDraws = 20000;
  Eigen::MatrixXf codes(kActionCodeSize, kDraws);
  module.Propose(ColumnOf(channels, 0), rng, codes);
  EXPECT_LE(codes.cwiseAbs().maxCoeff(), 1.0F);
  for (int policy = 0; policy < 2; ++policy) {
    const Eigen::VectorXd head = PlainMlp(
        w, "mu", 2, false,
        Join3(channels.col(0).head(kStateChannels).cast<double>(), w("codes").col(policy), {}));
    for (int i = 0; i < kActionCodeSize; ++i) {
      const double mean = std::tanh(head[i]);
      const double sigma = 0.1 + 0.9 * PlainSigmoid(head.segment(kActionCodeSize + i, 1))[0];
      // share of draws below the mean: what is cut off is cut off on both sides
      int below = 0;
      int inside = 0;
      for (int k = policy; k < kDraws; k += 2) {
        const double value = static_cast<double>(codes(i, k));
        below += value < mean ? 1 : 0;
        inside += value > std::max(-1.0, mean - sigma) && value < std::min(1.0, mean) ? 1 : 0;
      }
      EXPECT_NEAR(below / (kDraws / 2.0), 0.5, 0.03);
      const double expected =
          mean - sigma > -1.0 ? 0.3413 : 0.5 * std::erf((mean + 1.0) / sigma / std::sqrt(2.0));
      EXPECT_NEAR(inside / (kDraws / 2.0), expected, 0.03);
    }
  }
  EXPECT_EQ(module.GuidedShare(0.0), 1.0);
  EXPECT_EQ(module.GuidedShare(2.5), 0.5);
  EXPECT_EQ(module.GuidedShare(6.0), 0.0);
  module.Configure({.gpi_spans = 0.0});
  EXPECT_EQ(module.GuidedShare(0.0), 0.0);
}

// An agent in a task whose rewards tell something at once.
struct Life {
  explicit Life(std::uint64_t seed)
      : env(MakeEnv("four-rooms-dense")),
        agent(env->spec(), Config(), seed),
        tracker(env->spec(), agent),
        resets(seed, "env"),
        policy(seed, "policy"),
        action(env->spec().action) {
    Restart();
  }
  static HostConfigFor<SfGpi> Config() {
    HostConfigFor<SfGpi> config;
    for (const std::string& setting : BuiltinAgents().Find(SfGpi::kKind).quick) {
      SetField(config, setting);
    }
    config.random_steps = 300;  // in which an episode ends
    config.replay_size = 1000;
    return config;
  }
  void Restart() {
    env->Reset(resets.NextU64());
    tracker.Begin(*env);
  }
  // Returns how often it allocated.
  std::int64_t Live(int steps) {
    std::int64_t allocations = 0;
    for (int t = 0; t < steps; ++t) {
      std::int64_t before = AllocationCount();
      agent.Act(tracker.turn(policy, action), ActMode::kExplore);
      allocations += AllocationCount() - before;
      const StepResult result = env->Step(action.view());
      const Experience experience = tracker.Advance(action.view(), result, *env);
      before = AllocationCount();
      agent.Observe(experience, tracker.carry());
      agent.Update();
      allocations += AllocationCount() - before;
      if (result.terminated || result.truncated) Restart();
    }
    return allocations;
  }
  void Visit(const Archive& state) {
    agent.Visit(state.Child("agent"));
    tracker.Visit(state.Child("tracker"), *env);
  }

  std::unique_ptr<Env> env;
  HostOf<SfGpi> agent;
  EpisodeTracker tracker;
  Rng resets, policy;
  ActionBuffer action;
};

// What the contract of all agents has, where V has a say and leads.
TEST(SfGpi, LivesByItsValueToTheBit) {
  int speaking = 0;
  for (std::uint64_t seed = 0; seed < 20 && speaking < 2; ++seed) {
    SCOPED_TRACE(seed);
    Life life(seed);
    life.Live(310);
    if (life.agent.calibration().kappa == 0.0) continue;
    ++speaking;
    EXPECT_EQ(life.Live(300), 0);
    EXPECT_NE(life.agent.module().taught().values()[0], 0.0F);
    const std::string saved = Archived(life);
    Life again(99);
    again.env->Restore(life.env->Snapshot());
    Unarchive(saved, again);
    again.resets = life.resets;
    again.policy = life.policy;
    EXPECT_TRUE(Archived(again) == saved);
    life.Live(200);
    again.Live(200);
    EXPECT_TRUE(Archived(again) == Archived(life));
    EXPECT_FALSE(Archived(again) == saved);
    const MetricMap metrics(life.agent);
    EXPECT_TRUE(metrics.contains("transfer/reward_fit"));
    EXPECT_TRUE(metrics.contains("loss/module"));
  }
  EXPECT_EQ(speaking, 2);
}

TEST(SfGpi, LooksAtOneState) {
  Rng rng(1, "init");
  SfGpi module({}, {}, rng);
  module.set_weights(RandomMatrix(16, 1, rng));
  ExpectCausal(module, /*looks_back=*/false);
}

// 181,088 without the constant feature and the other networks that are carried.
TEST(SfGpi, HasTheSizeOfThePage) {
  Rng rng(1, "init");
  EXPECT_EQ(SfGpi({}, {}, rng).parameters().size(), 181'088U - 129 + 23'316 + 4 * 32 + 1);
}

TEST(SfGpi, RescalesItsValue) {
  Rng rng(1, "init");
  SfGpi module({}, {}, rng);
  module.set_weights(RandomMatrix(16, 1, rng));
  // the smaller of twins becomes the larger if the sign changes: with equal twins nothing does
  auto values = module.parameters().values();
  const auto& tensors = module.parameters().tensors();
  for (const NamedTensor& tensor : tensors) {
    if (!tensor.name.starts_with("psi.members.1.")) continue;
    const std::string twin = "psi.members.0." + tensor.name.substr(14);
    const auto from = std::ranges::find(tensors, twin, &NamedTensor::name);
    std::copy_n(values.data() + from->offset, tensor.size(), values.data() + tensor.offset);
  }
  for (int i = 1; i < 4; ++i) module.CopyPolicy(0, i);
  ExpectRescales(module);
}

}  // namespace
}  // namespace msrl
