#include "msrl/agents/tdmpc/tdmpc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "msrl/nn/random.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 6;
constexpr int kHorizon = 2;
constexpr int kActions = 2;
constexpr int kLatent = 8;
constexpr int kWidth = 4;
constexpr std::size_t kQ = 3;
const EnvSpec kSpec = SmallSpec(ActionKind::kContinuous, kActions);

TdMpcConfig SmallConfig() {
  TdMpcConfig config;
  config.encoder_width = 5;
  config.latent_groups = kLatent / LatentModel::kGroup;
  config.model_width = kWidth;
  config.q_count = kQ;
  config.bins = 7;
  config.batch_size = kBatch;
  config.replay_size = 100;
  config.learning_rate = 0.003;
  config.encoder_learning_rate = 0.001;
  config.tau = 0.05;
  config.gamma = 0.9;
  config.rho = 0.7;
  config.consistency_weight = 2.0;
  config.reward_weight = 0.5;
  config.value_weight = 0.3;
  config.termination_weight = 0.8;
  config.entropy_weight = 0.02;
  config.mppi = {.horizon = kHorizon, .samples = 5, .policy_samples = 2, .elites = 3};
  return config;
}

// What the first TD-MPC does otherwise.
TdMpcConfig FirstConfig() {
  TdMpcConfig config = SmallConfig();
  config.bins = 0;
  config.consistency_target = ConsistencyTarget::kSlow;
  config.pair_value = PairValue::kMin;
  config.termination = false;
  return config;
}

EnvView ViewOf(const Eigen::VectorXd& values) { return {values.data(), values.size()}; }

// ---- the networks in double ----

double Mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }
double Symlog(double x) { return std::copysign(std::log1p(std::abs(x)), x); }

Doubles Norm(const Doubles& x, const double* scale, const double* shift) {
  double mean = 0.0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  double variance = 0.0;
  for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  Doubles y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * scale[i] + shift[i]);
  }
  return y;
}

// Layers of weight, bias and, if hidden, norm; `at` moves behind them.
Doubles Net(const double*& at, const std::vector<int>& sizes, Doubles x) {
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    const auto in = static_cast<std::size_t>(sizes[l]);
    const auto out = static_cast<std::size_t>(sizes[l + 1]);
    Doubles y(out);
    for (std::size_t o = 0; o < out; ++o) {
      y[o] = at[in * out + o];
      for (std::size_t i = 0; i < in; ++i) y[o] += at[i * out + o] * x[i];
    }
    at += (in + 1) * out;
    if (l + 2 < sizes.size()) {
      y = Norm(y, at, at + out);
      at += 2 * out;
      for (double& v : y) v = Mish(v);
    }
    x = std::move(y);
  }
  return x;
}

Doubles SimNorm(Doubles x) {
  double sum = 0.0;
  for (double& v : x) sum += v = std::exp(v);
  for (double& v : x) v /= sum;
  return x;
}

struct Weights {
  Doubles encoder, dynamics, values, policy;
};

// All networks of a small agent.
class Plain {
 public:
  explicit Plain(const TdMpcConfig& config)
      : config_(config), outputs_(config.bins > 0 ? config.bins : 1) {}

  Doubles Encode(const Doubles& w, const Doubles& o) const {
    const double* at = w.data();
    const Doubles x = Net(at, {3, config_.encoder_width, kLatent}, o);
    return SimNorm(Norm(x, at, at + kLatent));
  }
  // Next state, reward head and termination's logit (of the next state).
  struct Step {
    Doubles z, reward;
    double termination = 0.0;
  };
  Step Next(const Doubles& w, const Doubles& z, const Doubles& a) const {
    const double* at = w.data();
    Step step;
    const Doubles x = Net(at, {kLatent + kActions, kWidth, kWidth, kLatent}, Join(z, a));
    step.z = SimNorm(Norm(x, at, at + kLatent));
    at += 2 * kLatent;
    step.reward = Net(at, {kLatent + kActions, kWidth, kWidth, outputs_}, Join(z, a));
    if (config_.termination) step.termination = Net(at, {kLatent, kWidth, kWidth, 1}, step.z)[0];
    return step;
  }
  Doubles Q(const Doubles& w, const Doubles& z, const Doubles& a, std::size_t member) const {
    const double* at = w.data() + member * (w.size() / kQ);
    return Net(at, {kLatent + kActions, kWidth, kWidth, outputs_}, Join(z, a));
  }
  struct Choice {
    Doubles action;
    double entropy = 0.0;
  };
  Choice Act(const Doubles& w, const Doubles& z, const Eigen::MatrixXf& noise,
             Eigen::Index column) const {
    const double* at = w.data();
    const Doubles head = Net(at, {kLatent, kWidth, kWidth, 2 * kActions}, z);
    Choice choice;
    for (std::size_t j = 0; j < kActions; ++j) {
      const double std = std::exp(-10.0 + 6.0 * (std::tanh(head[kActions + j]) + 1.0));
      const double u = head[j] + std * noise(static_cast<Eigen::Index>(j), column);
      choice.action.push_back(std::tanh(u));
      choice.entropy -= LogNormal(u, head[j], std);
    }
    return choice;
  }

  double Decode(const Doubles& head) const {
    if (config_.bins == 0) return head[0];
    const Doubles p = SimNorm(head);
    double mean = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) mean += p[i] * Point(i);
    return std::copysign(std::expm1(std::abs(mean)), mean);
  }
  double HeadLoss(const Doubles& head, double target) const {
    if (config_.bins == 0) return (head[0] - target) * (head[0] - target);
    const Doubles p = SimNorm(head);
    const double width = Point(1) - Point(0);
    const double x = std::clamp(Symlog(target), Point(0), Point(p.size() - 1));
    double loss = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      loss -= std::max(0.0, 1.0 - std::abs(x - Point(i)) / width) * std::log(p[i]);
    }
    return loss;
  }

 private:
  double Point(std::size_t i) const {
    return -10.0 + 20.0 * static_cast<double>(i) / (config_.bins - 1);
  }

  TdMpcConfig config_;
  int outputs_;
};

// Heads start at zero, where too much is equal: all parameters are drawn anew.
void Scatter(LatentModel& model) {
  Rng rng(4, "scatter");
  for (Parameters* part : {&model.encoder(), &model.dynamics(), &model.values(), &model.policy()}) {
    for (float& v : part->values()) v = static_cast<float>(rng.Normal());
    for (float& v : part->target()) v = static_cast<float>(rng.Normal());
  }
}

Weights WeightsOf(LatentModel& model) {
  return {AsDoubles(model.encoder().values()), AsDoubles(model.dynamics().values()),
          AsDoubles(model.values().values()), AsDoubles(model.policy().values())};
}

// Every third sequence has one step only, every second ends by a termination.
SequenceBatch RandomSequences(const TdMpc& agent, Rng& rng) {
  SequenceBatch batch = agent.MakeBatch();
  for (float& v : batch.observation.reshaped()) v = static_cast<float>(rng.Normal());
  for (float& v : batch.action.reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
  for (float& v : batch.reward) v = static_cast<float>(3.0 * rng.Normal());
  batch.continues.setOnes();
  batch.inside.setOnes();
  for (int b = 0; b < kBatch; ++b) {
    const bool is_short = b % 3 == 2;
    if (is_short) batch.inside[batch.Column(1) + b] = 0.0F;
    if (b % 2 == 0) batch.continues[batch.Column(is_short ? 0 : 1) + b] = 0.0F;
  }
  return batch;
}

// As a graph fills its inputs.
Eigen::MatrixXf NoiseOf(int columns, Rng& rng) {
  StaticGraph graph;
  const Node node = graph.Input(kActions, columns);
  graph.Finish();
  graph.FillNormal(node, rng);
  return graph.value(node);
}

std::array<std::size_t, 2> PairOf(Rng& rng) {
  const auto first = static_cast<std::size_t>(rng.Index(kQ));
  const auto other = static_cast<std::size_t>(rng.Index(kQ - 1));
  return {first, other < first ? other : other + 1};
}

double Largest(const Doubles& values) {
  double most = 0.0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

// Scales gradients that belong together; returns their norm before.
double ClipTogether(std::initializer_list<Doubles*> gradients, double most) {
  double squares = 0.0;
  for (const Doubles* d : gradients) {
    for (const double v : *d) squares += v * v;
  }
  const double norm = std::sqrt(squares);
  if (norm <= most) return norm;
  for (Doubles* d : gradients) {
    for (double& v : *d) v *= most / norm;
  }
  return norm;
}

// The mean of gradients that Adam keeps.
void ExpectGradient(const TdMpc& agent, const std::string& part, const PlainAdam& adam) {
  const Doubles mean = Saved(agent, "model/" + part + "/optimiser/mean", adam.mean.size());
  ExpectNear(mean, adam.mean, part + " gradient", 1e-4 * Largest(adam.mean));
}

// Parameters after a step, where more than rounding decides it.
void ExpectStep(const PlainAdam& adam, std::span<const float> got, const Doubles& expected,
                const std::string& what) {
  const double least = 0.02 * Largest(adam.mean);
  int compared = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(adam.mean[i]) < least) continue;
    ++compared;
    ASSERT_NEAR(got[i], expected[i], Tol(1e-5)) << what << "[" << i << "]";
  }
  EXPECT_GT(compared, 20) << what;
}

struct Case {
  std::string name;
  TdMpcConfig config;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class TdMpcUpdate : public ::testing::TestWithParam<Case> {};

TEST_P(TdMpcUpdate, IsThatOfTheFormulas) {
  const TdMpcConfig& config = GetParam().config;
  const bool slow = config.consistency_target == ConsistencyTarget::kSlow;
  TdMpc agent(kSpec, config, 5);
  LatentModel& model = agent.model();
  Scatter(model);
  const Plain plain(config);
  PlainAdam encoder_adam;
  PlainAdam dynamics_adam;
  PlainAdam values_adam;
  PlainAdam policy_adam{.epsilon = LatentModel::kPolicyAdamEpsilon};
  Rng noise_rng(5, "noise");
  Rng rng(1, "batch");
  double scale = 1.0;
  int smaller[2] = {0, 0};
  bool clipped = false;
  for (int update = 0; update < 4; ++update) {
    SCOPED_TRACE(update);
    const SequenceBatch batch = RandomSequences(agent, rng);
    const Eigen::MatrixXf noise = NoiseOf(kHorizon * kBatch, noise_rng);
    const auto pair = PairOf(noise_rng);
    Weights w = WeightsOf(model);
    const Doubles values_target = AsDoubles(model.values().target());
    const Doubles encoder_target = AsDoubles(model.encoder().target());

    // targets are constants
    Doubles y;
    std::vector<Doubles> wanted;
    for (Eigen::Index c = 0; c < kHorizon * kBatch; ++c) {
      const Doubles later = Column(batch.observation, c + kBatch);
      const Doubles next = plain.Encode(w.encoder, later);
      wanted.push_back(slow ? plain.Encode(encoder_target, later) : next);
      const Doubles a = plain.Act(w.policy, next, noise, c).action;
      const double q1 = plain.Decode(plain.Q(values_target, next, a, pair[0]));
      const double q2 = plain.Decode(plain.Q(values_target, next, a, pair[1]));
      ++smaller[q1 < q2 ? 0 : 1];
      y.push_back(batch.reward[c] + config.gamma * batch.continues[c] * std::min(q1, q2));
    }
    struct Parts {
      double consistency = 0.0, reward = 0.0, value = 0.0, termination = 0.0;
    };
    std::vector<Doubles> states((kHorizon + 1) * kBatch);
    const auto parts_of = [&](const Weights& at) {
      Parts parts;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        Doubles z = plain.Encode(at.encoder, Column(batch.observation, b));
        states[static_cast<std::size_t>(b)] = z;
        for (Eigen::Index t = 0; t < kHorizon; ++t) {
          const Eigen::Index c = t * kBatch + b;
          const double weight = std::pow(config.rho, t) * batch.inside[c] / (kHorizon * kBatch);
          const Doubles a = Column(batch.action, c);
          const Plain::Step step = plain.Next(at.dynamics, z, a);
          parts.reward += weight * plain.HeadLoss(step.reward, batch.reward[c]);
          for (std::size_t k = 0; k < kQ; ++k) {
            parts.value +=
                weight / kQ *
                plain.HeadLoss(plain.Q(at.values, z, a, k), y[static_cast<std::size_t>(c)]);
          }
          z = step.z;
          states[static_cast<std::size_t>(c + kBatch)] = z;
          for (std::size_t i = 0; i < kLatent; ++i) {
            const double error = z[i] - wanted[static_cast<std::size_t>(c)][i];
            parts.consistency += weight * error * error / kLatent;
          }
          const double p = 1.0 / (1.0 + std::exp(-step.termination));
          parts.termination -= weight * std::log(batch.continues[c] == 0.0F ? p : 1.0 - p);
        }
      }
      return parts;
    };
    const auto loss_of = [&](const Weights& at) {
      const Parts parts = parts_of(at);
      return config.consistency_weight * parts.consistency + config.reward_weight * parts.reward +
             config.value_weight * parts.value +
             (config.termination ? config.termination_weight * parts.termination : 0.0);
    };
    const auto gradient_of = [&](Doubles Weights::*part) {
      Weights at = w;
      return NumericGradient(w.*part, [&](const Doubles& values) {
        at.*part = values;
        return loss_of(at);
      });
    };
    const Parts expected = parts_of(w);
    const std::vector<Doubles> z = states;
    Doubles d_encoder = gradient_of(&Weights::encoder);
    Doubles d_dynamics = gradient_of(&Weights::dynamics);
    Doubles d_values = gradient_of(&Weights::values);
    const double norm =
        ClipTogether({&d_encoder, &d_dynamics, &d_values}, config.max_gradient_norm);
    clipped |= norm > config.max_gradient_norm;
    encoder_adam.Step(w.encoder, d_encoder, config.encoder_learning_rate);
    dynamics_adam.Step(w.dynamics, d_dynamics, config.learning_rate);
    values_adam.Step(w.values, d_values, config.learning_rate);

    agent.UpdateOn(batch);
    ExpectGradient(agent, "encoder", encoder_adam);
    ExpectGradient(agent, "dynamics", dynamics_adam);
    ExpectGradient(agent, "values", values_adam);
    ExpectStep(encoder_adam, model.encoder().values(), w.encoder, "encoder");
    ExpectStep(dynamics_adam, model.dynamics().values(), w.dynamics, "dynamics");
    ExpectStep(values_adam, model.values().values(), w.values, "values");
    const Weights now = WeightsOf(model);
    Doubles expected_target = values_target;
    PlainPolyak(expected_target, now.values, config.tau);
    ExpectNear(AsDoubles(model.values().target()), expected_target, "target");
    if (slow) {
      expected_target = encoder_target;
      PlainPolyak(expected_target, now.encoder, config.tau);
      ExpectNear(AsDoubles(model.encoder().target()), expected_target, "slow encoder");
    }

    // the policy learns against the new values, from the old states
    constexpr int kStates = (kHorizon + 1) * kBatch;
    const Eigen::MatrixXf policy_noise = NoiseOf(kStates, noise_rng);
    const auto policy_pair = PairOf(noise_rng);
    const auto q_of = [&](const Doubles& pi, Eigen::Index c) {
      const Doubles& state = z[static_cast<std::size_t>(c)];
      const Doubles a = plain.Act(pi, state, policy_noise, c).action;
      const double q1 = plain.Decode(plain.Q(now.values, state, a, policy_pair[0]));
      const double q2 = plain.Decode(plain.Q(now.values, state, a, policy_pair[1]));
      return config.pair_value == PairValue::kMin ? std::min(q1, q2) : 0.5 * (q1 + q2);
    };
    Doubles first;
    for (Eigen::Index b = 0; b < kBatch; ++b) first.push_back(q_of(w.policy, b));
    std::sort(first.begin(), first.end());
    // six values: 0.95 of the way from first to last is at 4.75, 0.05 at 0.25
    const double high = first[4] + 0.75 * (first[5] - first[4]);
    const double low = first[0] + 0.25 * (first[1] - first[0]);
    scale += 0.01 * (std::max(1.0, high - low) - scale);
    EXPECT_NEAR(agent.scale(), scale, Tol(1e-5) * scale);
    const auto policy_loss = [&](const Doubles& pi) {
      double loss = 0.0;
      for (Eigen::Index c = 0; c < kStates; ++c) {
        const Eigen::Index t = c / kBatch;
        const double inside = t == 0 ? 1.0 : batch.inside[c - kBatch];
        const double entropy =
            plain.Act(pi, z[static_cast<std::size_t>(c)], policy_noise, c).entropy;
        loss -= std::pow(config.rho, t) * inside / kStates *
                (q_of(pi, c) / scale + config.entropy_weight * kActions * entropy);
      }
      return loss;
    };
    const double expected_policy_loss = policy_loss(w.policy);
    Doubles d_policy = NumericGradient(w.policy, policy_loss);
    ClipTogether({&d_policy}, config.max_gradient_norm);
    policy_adam.Step(w.policy, d_policy, config.learning_rate);
    ExpectGradient(agent, "policy", policy_adam);
    ExpectStep(policy_adam, model.policy().values(), w.policy, "policy");

    const MetricMap metrics(agent);
    const auto near = [&](const std::string& name, double value) {
      EXPECT_NEAR(metrics[name], value, Tol(2e-5) * (1.0 + std::abs(value))) << name;
    };
    near("loss/consistency", expected.consistency);
    near("loss/reward", expected.reward);
    near("loss/value", expected.value);
    if (config.termination) near("loss/termination", expected.termination);
    near("loss/policy", expected_policy_loss);
    near("gradient/norm", norm);
  }
  EXPECT_GT(smaller[0], 5);
  EXPECT_GT(smaller[1], 5);
  EXPECT_EQ(clipped, config.max_gradient_norm < 1.0);
}

std::vector<Case> Cases() {
  TdMpcConfig clipped = SmallConfig();
  clipped.max_gradient_norm = 0.05;
  return {{"TdMpc2", SmallConfig()}, {"First", FirstConfig()}, {"Clipped", clipped}};
}

INSTANTIATE_TEST_SUITE_P(Losses, TdMpcUpdate, ::testing::ValuesIn(Cases()),
                         [](const auto& c) { return c.param.name; });

TEST(TdMpcTest, PlansAreWorthWhatTheFormulasSay) {
  for (const bool termination : {true, false}) {
    TdMpcConfig config = SmallConfig();
    config.termination = termination;
    TdMpc agent(kSpec, config, 5);
    Scatter(agent.model());
    const Plain plain(config);
    const Weights w = WeightsOf(agent.model());
    Rng rng(1, "plan");
    const int samples = config.mppi.samples;
    const Eigen::VectorXd observation = Eigen::Vector3d(0.3, -1.2, 0.7);
    Eigen::MatrixXf actions(kActions, kHorizon * samples);
    for (float& v : actions.reshaped()) v = static_cast<float>(rng.Uniform(-1.0, 1.0));
    Rng same = rng;
    const std::span<const float> values = agent.ValuesOfPlans(ViewOf(observation), actions, rng);
    const Eigen::MatrixXf noise = NoiseOf(samples, same);
    const auto pair = PairOf(same);
    for (Eigen::Index i = 0; i < samples; ++i) {
      Doubles z = plain.Encode(w.encoder, {observation.begin(), observation.end()});
      double value = 0.0;
      double factor = 1.0;
      for (Eigen::Index t = 0; t < kHorizon; ++t) {
        const Plain::Step step = plain.Next(w.dynamics, z, Column(actions, t * samples + i));
        value += factor * plain.Decode(step.reward);
        factor *= config.gamma;
        if (termination) factor *= 1.0 - 1.0 / (1.0 + std::exp(-step.termination));
        z = step.z;
      }
      const Doubles a = plain.Act(w.policy, z, noise, i).action;
      value += factor * 0.5 *
               (plain.Decode(plain.Q(w.values, z, a, pair[0])) +
                plain.Decode(plain.Q(w.values, z, a, pair[1])));
      EXPECT_NEAR(values[static_cast<std::size_t>(i)], value, Tol(2e-5) * (1.0 + std::abs(value)));
    }
  }
}

TEST(TdMpcTest, NothingIsWorthAnythingAtFirst) {
  TdMpcConfig config = SmallConfig();
  config.bins = 101;
  TdMpc agent(kSpec, config, 5);
  Rng rng(1, "plan");
  Eigen::MatrixXf actions = Eigen::MatrixXf::Constant(kActions, kHorizon * 5, 0.5F);
  const Eigen::VectorXd observation = Eigen::Vector3d(1.0, 2.0, 3.0);
  for (const float value : agent.ValuesOfPlans(ViewOf(observation), actions, rng)) {
    EXPECT_EQ(value, 0.0F);
  }
}

// A turn of an agent in a given state, without an environment.
struct Scene {
  explicit Scene(TdMpc& agent) : carry(agent.MakeCarry()) {}
  Doubles Act(TdMpc& agent, ActMode mode) {
    agent.Act({{ViewOf(observation), ViewOf(geometry), matrix, 0}, *carry, rng, action}, mode);
    return {action.values().begin(), action.values().end()};
  }

  Eigen::VectorXd observation = Eigen::Vector3d(0.3, -1.2, 0.7);
  Eigen::VectorXd geometry = Eigen::VectorXd::Zero(kGeometrySize);
  SegmentMatrix matrix{CompactLift()};
  std::unique_ptr<Carry> carry;
  Rng rng{1, "act"};
  ActionBuffer action{kSpec.action};
};

TEST(TdMpcTest, WithoutAPlanThePolicyActs) {
  TdMpcConfig config = SmallConfig();
  config.plan = false;
  TdMpc agent(kSpec, config, 5);
  Scatter(agent.model());
  const Plain plain(config);
  const Weights w = WeightsOf(agent.model());
  Scene scene(agent);
  const Doubles z = plain.Encode(w.encoder, {0.3, -1.2, 0.7});
  const Doubles mode = plain.Act(w.policy, z, Eigen::MatrixXf::Zero(kActions, 1), 0).action;
  ExpectNear(scene.Act(agent, ActMode::kEvaluate), mode, "mode");
}

// The next plan starts where the last one is after a step; a new episode starts from nothing.
TEST(TdMpcTest, ThePlanGoesOn) {
  TdMpc agent(kSpec, SmallConfig(), 5);
  Scatter(agent.model());
  Scene scene(agent);
  scene.Act(agent, ActMode::kEvaluate);
  const Doubles mean = Saved(*scene.carry, "mean", kActions * kHorizon);
  EXPECT_GT(Largest({mean.begin(), mean.begin() + kActions}), 1e-3);
  EXPECT_EQ(Largest({mean.end() - kActions, mean.end()}), 0.0);
  scene.carry->Begin();
  EXPECT_EQ(Largest(Saved(*scene.carry, "mean", kActions * kHorizon)), 0.0);
}

TEST(TdMpcTest, DiscountsOfLengths) {
  EXPECT_NEAR(DiscountOfLength(1000), 0.995, 1e-12);
  EXPECT_NEAR(DiscountOfLength(200), 0.975, 1e-12);
  EXPECT_NEAR(DiscountOfLength(100), 0.95, 1e-12);
  EXPECT_NEAR(DiscountOfLength(50), 0.95, 1e-12);
  TdMpcConfig config = SmallConfig();
  config.gamma = 0.0;
  EXPECT_NEAR(TdMpc(kSpec, config, 1).gamma(), 0.95, 1e-12);  // 100 steps
  config.gamma = 0.8;
  EXPECT_EQ(TdMpc(kSpec, config, 1).gamma(), 0.8);
}

TEST(TdMpcTest, SimNormGroupsAreDistributions) {
  StaticGraph graph;
  const Node x = graph.Input(8, 1);
  const Node z = graph.Softmax(x, LatentModel::kGroup);
  graph.Finish();
  graph.input(x) << 0, 1, 2, 3, 0, 0, 0, 0;
  graph.Forward();
  const std::vector<double> expected{.02841, .07724, .20996, .57073,
                                     .02841, .02841, .02841, .02841};
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(graph.value(z)(i, 0), expected[static_cast<std::size_t>(i)], Tol(5e-6));
  }
}

TEST(TdMpcTest, SettingsChangeThePreset) {
  TdMpcConfig config;
  SetField(config, "preset=reference");
  EXPECT_EQ(config.model_width, 512);
  EXPECT_EQ(config.mppi.samples, 512);
  SetField(config, "model_width=64");
  EXPECT_EQ(config.model_width, 64);
  EXPECT_EQ(config.latent_groups, 64);
  SetField(config, "preset=reference");  // it is already: nothing is lost
  EXPECT_EQ(config.model_width, 64);
  EXPECT_NE(UserErrorText([] {
              TdMpcConfig wrong = SmallConfig();
              wrong.mppi.elites = 6;
              TdMpc(kSpec, wrong, 1);
            }).find("'plan_elites'"),
            std::string::npos);
}

// The first update comes after the random steps, then one every second step.
TEST(TdMpcTest, UpdatesWhenTheyAreDue) {
  TdMpcConfig config = SmallConfig();
  config.random_steps = 6;
  config.first_updates = 3;
  config.update_every = 2;
  TdMpc agent(kSpec, config, 5);
  const std::unique_ptr<Carry> carry = agent.MakeCarry();
  const SegmentMatrix matrix(CompactLift());
  Eigen::VectorXd before = Eigen::Vector3d::Zero();
  const Eigen::VectorXd geometry = Eigen::VectorXd::Zero(kGeometrySize);
  std::vector<std::int64_t> updates;
  for (int t = 0; t < 11; ++t) {
    const Eigen::VectorXd after = before.array() + 0.1;
    const std::vector<double> action{0.1, -0.2};
    agent.Observe({.before = {ViewOf(before), ViewOf(geometry), matrix, t},
                   .action = Action::Continuous(action),
                   .action_code = {},
                   .reward = 1.0,
                   .scaled_reward = 1.0,
                   .psi = {},
                   .after = {ViewOf(after), ViewOf(geometry), matrix, t + 1}},
                  *carry);
    agent.Update();
    before = after;
    updates.push_back(agent.model().values().adam().step_count());
  }
  EXPECT_EQ(updates, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 3, 3, 4, 4, 5, 5}));
}

}  // namespace
}  // namespace msrl
