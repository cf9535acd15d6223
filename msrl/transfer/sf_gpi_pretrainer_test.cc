#include "msrl/transfer/sf_gpi_pretrainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "msrl/testing/plain_module.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

TEST(SuccessorTargets, AreDiscountedMeans) {
  Rng rng(1, "phi");
  const Eigen::MatrixXf phi = RandomMatrix(3, 5, rng);
  const Eigen::VectorXf rest = RandomMatrix(3, 1, rng);
  const Eigen::MatrixXf targets = SuccessorTargets(phi, rest, 0.9);
  for (int t = 0; t < 5; ++t) {
    Eigen::VectorXd sum = std::pow(0.9, 5 - t) * rest.cast<double>();
    for (int k = t; k < 5; ++k) sum += 0.1 * std::pow(0.9, k - t) * phi.col(k).cast<double>();
    EXPECT_LT((targets.col(t).cast<double>() - sum).cwiseAbs().maxCoeff(), 1e-6);
  }
}

// Five cells in a row. In one family one goes left, in the other right, but for the first step,
// which is any. Arriving in the middle pays 1.
constexpr int kCells = 5;
constexpr double kGamma = 0.7;

int Next(int cell, bool right) { return std::clamp(cell + (right ? 1 : -1), 0, kCells - 1); }

Eigen::VectorXf Look(int cell) {
  Eigen::VectorXf geometry = Eigen::VectorXf::Constant(kGeometrySize, 0.1F);
  geometry[cell] = 1.0F;
  return geometry;
}

EpisodeFile Corridor(int episodes, std::uint64_t seed) {
  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  file.gamma = kGamma;
  Rng rng(seed, "corridor");
  for (int k = 0; k < episodes; ++k) {
    constexpr int kSteps = 12;
    StoredEpisode& episode = file.episodes.emplace_back();
    const bool right = k % 2 == 1;
    episode.env = right ? "right" : "left";
    episode.observations.setZero(1, kSteps + 1);
    episode.actions.setZero(1, kSteps);
    episode.rewards.setZero(kSteps);
    episode.geometry.setZero(kGeometrySize, kSteps + 1);
    episode.truncated = true;
    auto& values = episode.values["mc"];
    values.setZero(kSteps + 1);
    auto cell = static_cast<int>(rng.Index(kCells));
    episode.geometry.col(0) = Look(cell);
    for (int t = 0; t < kSteps; ++t) {
      const bool to_right = t == 0 ? rng.Bernoulli(0.5) : right;
      cell = Next(cell, to_right);
      episode.actions(0, t) = to_right ? 1.0F : -1.0F;
      episode.geometry.col(t + 1) = Look(cell);
      episode.rewards[t] = cell == 2 ? 1.0 : 0.0;
    }
    // who goes one way is at its end by then, and stays
    for (int t = kSteps - 1; t >= 0; --t) {
      values[t] = static_cast<float>(episode.rewards[t] + kGamma * values[t + 1]);
    }
  }
  return file;
}

SfGpiPretrainer::Config SmallConfig(int updates, ModuleControl control = ModuleControl::kNone) {
  SfGpiPretrainer::Config config;
  config.target = ValueTarget::kMonteCarlo;
  config.control = control;
  config.updates = updates;
  config.learning_rate = 2e-3;
  config.validation_windows = 1000;
  config.shape = {.features = 8,
                  .feature_width = 32,
                  .successor_width = 32,
                  .code_size = 4,
                  .policies = 2,
                  .policy_width = 16,
                  .successor_gamma = kGamma};
  return config;
}

PretrainJob JobOf(std::vector<std::string> sources) {
  PretrainJob job;
  job.sources = std::move(sources);
  job.seed = 1;
  return job;
}

PretrainResult Train(const SfGpiPretrainer::Config& config, const EpisodeFile& train,
                     const EpisodeFile& held_out) {
  const SfGpiPretrainer pretrainer(config, train, held_out);
  const auto training = pretrainer.Start(JobOf({"left", "right"}));
  while (training->done() < training->total()) training->Advance();
  return training->Finish();
}

// Any states, two dimensions of actions, ends of both kinds.
EpisodeFile Anything() {
  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  file.gamma = kGamma;
  Rng rng(1, "anything");
  for (const int steps : {20, 3, 9, 30}) {
    StoredEpisode& episode = file.episodes.emplace_back();
    episode.env = steps % 2 == 1 ? "left" : "right";
    episode.observations.setZero(1, steps + 1);
    episode.actions = (0.5F * RandomMatrix(2, steps, rng)).cwiseMax(-1.0F).cwiseMin(1.0F);
    episode.rewards = 0.3 * RandomMatrix(steps, 1, rng).cast<double>();
    episode.geometry = RandomMatrix(kGeometrySize, steps + 1, rng);
    episode.geometry.row(6).setZero();
    episode.terminated = steps == 20 || steps == 3;
    episode.truncated = !episode.terminated;
    episode.values["mc"] = RandomMatrix(steps + 1, 1, rng);
  }
  return file;
}

// The gradient of the first step, of which Adam's mean is a tenth, against the formula in double.
TEST(PretrainSfGpi, LossAndGradientsAreThoseOfTheFormula) {
  auto config = SmallConfig(100);
  config.windows = 5;
  config.weight_decay = 0.0;
  config.shape = {.features = 4,
                  .feature_width = 5,
                  .successor_width = 4,
                  .code_size = 3,
                  .policies = 2,
                  .policy_width = 4,
                  .successor_gamma = kGamma};
  const EpisodeFile file = Anything();
  const SfGpiPretrainer pretrainer(config, file, file);
  const PretrainJob job = JobOf({"left", "right"});
  const auto training = pretrainer.Start(job);
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  Rng init(job.seed, "init");
  SfGpi module(config.shape, {}, init);
  const Doubles at = AsDoubles(module.parameters().values());
  const PlainTensors first{module.parameters().tensors(), at};
  const auto vector = [](const Doubles& values) -> Eigen::VectorXd {
    return Eigen::Map<const Eigen::VectorXd>(values.data(), std::ssize(values));
  };
  const auto saved = [&](const std::string& name, std::size_t size) {
    return vector(Saved(*training, name, size));
  };
  const Eigen::VectorXd mean = saved("lesson/mean", 3);
  const Eigen::VectorXd deviation = saved("lesson/variance", 3).cwiseSqrt();
  const Eigen::VectorXd decoder_bias = saved("lesson/decoder/change.bias", 8);
  const Doubles decoder_values = Saved(*training, "lesson/decoder/change.weight", 8 * 4, {4, 8});
  const Eigen::MatrixXd decoder = Eigen::Map<const Eigen::MatrixXd>(decoder_values.data(), 8, 4);

  const auto shown = [](const PlainTensors& w, const SourceSequence& s, Index t) {
    Eigen::VectorXd input(2 * kStateChannels + kActionChannels);
    input << s.x().col(t).cast<double>(), s.u().col(t).cast<double>(),
        s.x().col(t + 1).cast<double>();
    return PlainMlp(w, "phi", 2, true, input);
  };
  const auto phi = [&](const PlainTensors& w, const SourceSequence& s, Index t) {
    Eigen::VectorXd all(4);
    all << (shown(w, s, t) - mean).cwiseQuotient(deviation), 1.0;
    return all;
  };
  const auto psi = [](const PlainTensors& w, int k, const Eigen::VectorXd& x,
                      const Eigen::VectorXd& u, int policy) {
    Eigen::VectorXd input(x.size() + u.size() + 3);
    input << x, u, w("codes").col(policy);
    return PlainMlp(w, "psi.members." + std::to_string(k), 2, true, input);
  };
  const auto head = [](const PlainTensors& w, const Eigen::VectorXd& x, int policy) {
    Eigen::VectorXd input(x.size() + 3);
    input << x, w("codes").col(policy);
    return PlainMlp(w, "mu", 2, false, input);
  };
  // phi and slots before they learn
  const SourceSampler sampler(set, job.sources);
  Rng units(0, "units");
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(3);
  Eigen::ArrayXd squares = Eigen::ArrayXd::Zero(kGeometrySize);
  Eigen::ArrayXd alive = Eigen::ArrayXd::Zero(kGeometrySize);
  for (int k = 0; k < 4096; ++k) {
    const auto [s, t] = sampler.Draw(units, 1);
    sum += shown(first, *s, t) / 4096.0;
    const Eigen::ArrayXd bits = s->x().col(t + 1).tail(kGeometrySize).cast<double>();
    const Eigen::ArrayXd change =
        (s->x().col(t + 1) - s->x().col(t)).head(kGeometrySize).cast<double>();
    squares += bits * change.square();
    alive += bits;
  }
  EXPECT_LT((sum - mean).cwiseAbs().maxCoeff(), 1e-4);
  const Eigen::ArrayXd unit = (squares / alive.cwiseMax(1e-6)).sqrt().cwiseMax(1e-3);

  const auto y = [&](const SourceSequence& s, Index t) -> Eigen::VectorXd {
    const Index last = s.horizon();
    Eigen::VectorXd target = Eigen::VectorXd::Zero(4);
    for (Index k = t; k < last; ++k) {
      target += (1.0 - kGamma) * std::pow(kGamma, static_cast<double>(k - t)) * phi(first, s, k);
    }
    if (s.terminated) return target;
    const Eigen::VectorXd x = s.x().col(last).cast<double>();
    Eigen::VectorXd u = Eigen::VectorXd::Zero(kActionChannels);
    u[0] = std::tanh(head(first, x, s.task)[0]);
    u[1] = std::tanh(head(first, x, s.task)[1]);
    u[kActionCodeSize] = u[kActionCodeSize + 1] = 1.0;
    const Eigen::VectorXd w = first("weights").col(s.task);
    const Eigen::VectorXd twins[2] = {psi(first, 0, x, u, s.task), psi(first, 1, x, u, s.task)};
    return target + std::pow(kGamma, static_cast<double>(last - t)) *
                        twins[twins[0].dot(w) < twins[1].dot(w) ? 0 : 1];
  };

  DrawnWindows drawn(config.windows);
  Rng windows(job.seed, "windows");
  for (int w = 0; w < drawn.count(); ++w) DrawWindow(sampler, windows, w, drawn);
  struct Taught {
    const SourceSequence* sequence;
    Index time;
    Eigen::VectorXd y;
  };
  std::vector<Taught> steps;
  int ends[2] = {0, 0};
  for (int w = 0; w < drawn.count(); ++w) {
    const auto [s, start] = drawn.place[static_cast<std::size_t>(w)];
    ++ends[s->terminated ? 1 : 0];
    for (int t = 0; t < drawn.states[static_cast<std::size_t>(w)]; ++t) {
      if (start + t < s->horizon()) steps.push_back({s, start + t, y(*s, start + t)});
    }
  }
  EXPECT_GT(ends[0], 0);
  EXPECT_GT(ends[1], 0);
  const auto loss = [&](const Doubles& parameters) {
    const PlainTensors w{module.parameters().tensors(), parameters};
    double total = 0.0;
    for (const auto& [s, t, target] : steps) {
      const Eigen::VectorXd x = s->x().col(t).cast<double>();
      const Eigen::VectorXd u = s->u().col(t).cast<double>();
      const Eigen::VectorXd next = s->x().col(t + 1).cast<double>();
      const Eigen::VectorXd features = phi(w, *s, t);
      const double reward = static_cast<double>(s->r()(0, t)) / (1.0 - kGamma);
      total += std::pow(features.dot(w("weights").col(s->task)) - reward, 2);
      const Eigen::ArrayXd change = (next - x).head(kGeometrySize).array() / unit;
      const Eigen::ArrayXd miss = (decoder * features + decoder_bias).array() - change;
      total += 0.1 * (miss.square() * next.tail(kGeometrySize).array()).mean();
      for (int k = 0; k < 2; ++k) {
        const Eigen::VectorXd twin = psi(w, k, x, u, s->task);
        for (int i = 0; i < 4; ++i) total += PlainHuber(twin[i] - target[i]) / 4.0;
        total += 0.5 * PlainHuber(twin.dot(first("weights").col(s->task)) -
                                  static_cast<double>(s->label[t]));
      }
      const Eigen::VectorXd mu = head(w, x, s->task);
      for (int i = 0; i < 2; ++i) {
        const double sigma = 0.1 + 0.9 / (1.0 + std::exp(-mu[kActionCodeSize + i]));
        total += 0.1 * (0.5 * std::pow((u[i] - std::tanh(mu[i])) / sigma, 2) + std::log(sigma));
      }
    }
    return total / static_cast<double>(steps.size());
  };
  Doubles expected = NumericGradient(at, loss);
  double norm = 0.0;
  for (const double g : expected) norm += g * g;
  norm = std::sqrt(norm);
  training->Advance();
  for (double& g : expected) g *= 0.1 * std::min(1.0, 10.0 / norm);
  ExpectNear(Saved(*training, "module/optimiser/mean", expected.size()), expected, "gradient",
             2e-5);
  // phi is followed by its mean
  Eigen::VectorXd now = Eigen::VectorXd::Zero(3);
  for (const auto& [s, t, target] : steps) now += shown(first, *s, t) / std::ssize(steps);
  EXPECT_LT((saved("lesson/mean", 3) - (mean + 0.01 * (now - mean))).cwiseAbs().maxCoeff(), 1e-5);
}

// One step of each cell and direction, as an agent would be shown it.
struct CorridorStep {
  std::array<float, kChannels> before{}, after{};
};
CorridorStep StepOf(int cell, bool right, double reward) {
  CorridorStep step;
  ChannelWriter writer({.used_actions = 1});
  const auto geometry = [](int of) -> Eigen::VectorXd { return Look(of).cast<double>(); };
  const Eigen::VectorXd now = geometry(cell);
  const Eigen::VectorXd next = geometry(Next(cell, right));
  std::array<double, kActionCodeSize> code{};
  code[0] = right ? 1.0 : -1.0;
  writer.Begin({now.data(), kGeometrySize}, step.before);
  writer.Next({next.data(), kGeometrySize}, code, reward, step.after);
  return step;
}

// The return of a deterministic policy from every cell.
std::array<double, kCells> Returns(const std::array<bool, kCells>& right,
                                   const std::function<double(int)>& reward) {
  std::array<double, kCells> returns{};
  for (int from = 0; from < kCells; ++from) {
    int cell = from;
    double discount = 1.0;
    for (int t = 0; t < 100; ++t, discount *= kGamma) {
      cell = Next(cell, right[static_cast<std::size_t>(cell)]);
      returns[static_cast<std::size_t>(from)] += discount * reward(cell);
    }
  }
  return returns;
}

// A task with the rewards of the sources, their opposite, and one that no source had: for all of
// them the module is shown rewards, and what it prefers is as good as either policy everywhere.
TEST(PretrainSfGpi, GeneralisedImprovementIsNeverBelowTheBestPolicy) {
  const EpisodeFile train = Corridor(400, 1);
  const auto config = SmallConfig(2000);
  const PretrainResult result = Train(config, train, Corridor(200, 2));
  EXPECT_GT(result.figures.at("reward_r2"), 0.98);
  EXPECT_GT(result.figures.at("r2"), 0.98);
  EXPECT_LT(result.figures.at("value_error"), 0.1);
  struct Task {
    std::string name;
    std::function<double(int)> reward;
    double least_fit;  // phi was not made for a reward that no source had
  };
  const Task tasks[] = {{"middle", [](int cell) { return cell == 2 ? 1.0 : 0.0; }, 0.98},
                        {"not the middle", [](int cell) { return cell == 2 ? -1.0 : 0.0; }, 0.98},
                        {"left of it", [](int cell) { return cell == 1 ? 1.0 : 0.0; }, 0.7}};
  int strictly_above = 0;
  for (const auto& [name, reward, least_fit] : tasks) {
    SCOPED_TRACE(name);
    Rng rng(0, "init");
    SfGpi module(config.shape, {}, rng);
    LoadModule(Artefact::Parse(result.artefact, "result"),
               ModuleHeader(SfGpi::kKind, config.shape, {}), module);
    module.Configure({.ridge = 1e-4});
    module.Enter({.used_actions = 1});
    StaticGraph graph;
    const Node kept = graph.Input(module.kept_size(), 1);
    const Node action = graph.Input(kActionChannels, 1);
    const Node value = module.SlotValue(graph, kept, action, ParameterUse::kFrozen);
    graph.Finish();
    for (int cell = 0; cell < kCells; ++cell) {
      for (const bool right : {false, true}) {
        const CorridorStep step = StepOf(cell, right, reward(Next(cell, right)));
        module.Observe(step.before, step.after);
      }
    }
    module.Settle(1.0);
    EXPECT_GT(module.reward_fit(), least_fit);
    std::array<bool, kCells> chosen{};
    for (int cell = 0; cell < kCells; ++cell) {
      double values[2];
      for (const bool right : {false, true}) {
        const CorridorStep step = StepOf(cell, right, 0.0);
        std::copy(step.before.begin(), step.before.end(),
                  graph.input(kept).col(0).data() + module.kept_size() - kChannels);
        std::copy_n(step.after.begin() + kActionAt, kActionChannels,
                    graph.input(action).col(0).data());
        graph.Forward();
        values[right ? 1 : 0] = static_cast<double>(graph.value(value)(0, 0));
      }
      chosen[static_cast<std::size_t>(cell)] = values[1] > values[0];
    }
    const auto improved = Returns(chosen, reward);
    const auto left = Returns({false, false, false, false, false}, reward);
    const auto right = Returns({true, true, true, true, true}, reward);
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const double best = std::max(left[cell], right[cell]);
      EXPECT_GE(improved[cell], best - 1e-9) << cell;
      strictly_above += improved[cell] > best + 0.1 ? 1 : 0;
    }
  }
  EXPECT_GE(strictly_above, 5);
}

TEST(PretrainSfGpi, ControlsKnowNothing) {
  const EpisodeFile train = Corridor(400, 1);
  const EpisodeFile held_out = Corridor(200, 2);
  const auto random = Train(SmallConfig(1000, ModuleControl::kRandom), train, held_out).figures;
  EXPECT_LT(random.at("reward_r2"), 0.3);
  EXPECT_LT(random.at("r2"), 0.3);
  const auto shuffled = Train(SmallConfig(1000, ModuleControl::kShuffled), train, held_out).figures;
  EXPECT_LT(shuffled.at("reward_r2"), 0.3);
  // that nothing is to be had at the ends any more is true of the labels of other episodes, too
  EXPECT_LT(shuffled.at("r2"), 0.8);
  // the way that a step goes is in a place where nobody looks
  const auto permuted = Train(SmallConfig(1000, ModuleControl::kPermuted), train, held_out).figures;
  EXPECT_GT(permuted.at("train_r2"), 0.9);
  EXPECT_LT(permuted.at("r2"), permuted.at("train_r2") - 0.1);
}

TEST(PretrainSfGpi, PoliciesWithoutASourceAreThoseOfSources) {
  const EpisodeFile train = Corridor(40, 1);
  auto config = SmallConfig(5);
  config.shape.policies = 3;
  const SfGpiPretrainer pretrainer(config, train, train);
  const auto training = pretrainer.Start(JobOf({"right"}));
  while (training->done() < training->total()) training->Advance();
  Rng rng(0, "init");
  SfGpi module(config.shape, {}, rng);
  LoadModule(Artefact::Parse(training->Finish().artefact, "result"),
             ModuleHeader(SfGpi::kKind, config.shape, {}), module);
  const Doubles values = AsDoubles(module.parameters().values());
  const PlainTensors w{module.parameters().tensors(), values};
  for (const char* table : {"codes", "weights"}) {
    EXPECT_EQ(w(table).col(0), w(table).col(1));
    EXPECT_EQ(w(table).col(2), w(table).col(1));
  }
}

TEST(PretrainSfGpi, RefusesWhatDoesNotFit) {
  const EpisodeFile train = Corridor(40, 1);
  auto config = SmallConfig(5);
  config.shape.policies = 1;
  const auto error = [&] {
    return UserErrorText([&] {
      SfGpiPretrainer(config, train, train).Start(JobOf({"left", "right"}));
    });
  };
  EXPECT_NE(error().find("of 2 sources, policies is 1"), std::string::npos);
  config = SmallConfig(5);
  config.shape.successor_gamma = 0.9;
  EXPECT_NE(error().find("discount 0.7, successor_gamma is 0.9"), std::string::npos);
}

}  // namespace
}  // namespace msrl
