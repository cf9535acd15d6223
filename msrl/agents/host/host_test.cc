#include "msrl/agents/host/host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "msrl/agents/sf/sf_gpi.h"
#include "msrl/agents/uvfa/uvfa.h"
#include "msrl/nn/random.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/plain_module.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 12;
constexpr int kActions = 2;
constexpr int kObservation = 3;
constexpr int kRaw = 4;
constexpr int kSlot = 5;
const EnvSpec kSpec = SmallSpec(ActionKind::kContinuous, kActions);
const PlainNet kActor{.sizes = {kObservation + kSlot, 8, 2 * kActions}};
const PlainNet kCritic{.sizes = {kObservation + kSlot + kActions, 8, 1}};

template <typename Module>
HostConfigFor<Module> SmallConfigOf(const typename Module::Shape& shape) {
  HostConfigFor<Module> config;
  config.hidden_layers = 1;
  config.hidden_width = 8;
  config.slot_size = kSlot;
  config.batch_size = kBatch;
  config.replay_size = 100;
  config.actor_learning_rate = 0.02;
  config.critic_learning_rate = 0.01;
  config.alpha_learning_rate = 0.03;
  config.initial_alpha = 0.4;
  config.tau = 0.05;
  config.gamma = 0.9;
  config.module_windows = 3;
  config.shape = shape;
  return config;
}

HostConfigFor<Uvfa> SmallConfig() {
  return SmallConfigOf<Uvfa>({.stream_width = 6, .stream_features = kRaw});
}

void FillRandom(std::span<float> values, Rng& rng) {
  for (float& value : values) value = static_cast<float>(0.4 * rng.Normal());
}

// z = norm(W f + b); W and b lie behind the two critics.
Doubles Slot(const Doubles& critic, const Doubles& raw) {
  const double* const weight = critic.data() + 2 * kCritic.parameter_count();
  Doubles z(kSlot);
  double mean = 0.0;
  for (std::size_t i = 0; i < kSlot; ++i) {
    z[i] = weight[kSlot * kRaw + i];
    for (std::size_t j = 0; j < kRaw; ++j) z[i] += weight[j * kSlot + i] * raw[j];
    mean += z[i] / kSlot;
  }
  double variance = 0.0;
  for (const double value : z) variance += (value - mean) * (value - mean) / kSlot;
  for (double& value : z) value = (value - mean) / std::sqrt(variance + 1e-5);
  return z;
}

double R(const Doubles& w, const Doubles& observation, const Doubles& raw, const Doubles& action,
         std::size_t member) {
  return kCritic(w, Join(Join(observation, Slot(w, raw)), action), member)[0];
}

struct Choice {
  Doubles action;
  double log_prob = 0.0;
};

Choice Sample(const Doubles& actor, const Doubles& critic, const Doubles& observation,
              const Doubles& raw, const Eigen::MatrixXf& noise, Eigen::Index b) {
  const Doubles head = kActor(actor, Join(observation, Slot(critic, raw)));
  Choice choice;
  for (std::size_t i = 0; i < kActions; ++i) {
    const double std = std::exp(std::min(std::max(head[kActions + i], -20.0), 2.0));
    const double u = head[i] + std * noise(static_cast<Eigen::Index>(i), b);
    choice.action.push_back(std::tanh(u));
    choice.log_prob += LogNormal(u, head[i], std) - std::log(1.0 - std::tanh(u) * std::tanh(u));
  }
  return choice;
}

ReplayBatch BatchWithFeatures(int feature_size, Rng& rng) {
  ReplayBatch batch = RandomBatch(kSpec, kBatch, rng);
  batch.features = RandomMatrix(feature_size, kBatch, rng);
  batch.next_features = RandomMatrix(feature_size, kBatch, rng);
  return batch;
}

Doubles Raw(const Eigen::MatrixXf& features, Eigen::Index b) {
  return Column(features.middleRows(1, kRaw), b);
}

// `value` says V of features (a column of them), an action and whether with slow weights.
using PlainValue = std::function<double(const Eigen::MatrixXf& features, Eigen::Index b,
                                        const Doubles& action, bool slow)>;

void ExpectUpdatesOfFormulas(Host& agent, const HostConfig& config, const PlainValue& value) {
  const double kappa = 0.7;
  const double beta = -0.3;
  agent.set_calibration({.kappa = kappa, .beta = beta});
  Rng rng(1, "batch");
  // critics that start at zero would prove nothing, nor would one that is always the smaller
  for (const std::span<float> critics : {agent.critic().values(), agent.critic().target()}) {
    FillRandom(critics, rng);
    for (const std::size_t end : {1, 2}) critics[end * kCritic.parameter_count() - 1] = 0.0F;
  }
  Doubles pi = AsDoubles(agent.actor().values());
  Doubles q = AsDoubles(agent.critic().values());
  Doubles q_target = AsDoubles(agent.critic().target());
  Doubles log_alpha{std::log(config.initial_alpha)};
  PlainAdam pi_adam;
  PlainAdam q_adam;
  PlainAdam alpha_adam;
  Rng noise_rng(5, "noise");
  int smaller[2] = {0, 0};
  for (int update = 1; update <= 6; ++update) {
    SCOPED_TRACE(update);
    const ReplayBatch batch = BatchWithFeatures(agent.feature_size(), rng);
    const double alpha = std::exp(log_alpha[0]);
    Eigen::MatrixXf next_noise(kActions, kBatch);
    Eigen::MatrixXf noise(kActions, kBatch);
    FillNormal(noise_rng, Flat(next_noise));
    FillNormal(noise_rng, Flat(noise));

    const auto v = [&](const Eigen::MatrixXf& features, Eigen::Index b, const Doubles& action,
                       bool slow = false) {
      return kappa * value(features, b, action, slow) + beta;
    };
    Doubles y;
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      const Doubles next = Column(batch.next_observation, b);
      const Doubles raw = Raw(batch.next_features, b);
      const Choice choice = Sample(pi, q, next, raw, next_noise, b);
      const double r1 = R(q_target, next, raw, choice.action, 0);
      const double r2 = R(q_target, next, raw, choice.action, 1);
      ++smaller[r1 < r2 ? 0 : 1];
      y.push_back(batch.reward[b] + config.gamma * batch.continues[b] *
                                        (v(batch.next_features, b, choice.action, /*slow=*/true) +
                                         std::min(r1, r2) - alpha * choice.log_prob));
    }
    const auto critic_loss = [&](const Doubles& w) {
      double sum = 0.0;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        for (std::size_t member = 0; member < 2; ++member) {
          const double q_value = v(batch.features, b, Column(batch.action, b)) +
                                 R(w, Column(batch.observation, b), Raw(batch.features, b),
                                   Column(batch.action, b), member);
          sum += std::pow(q_value - y[static_cast<std::size_t>(b)], 2);
        }
      }
      return sum / kBatch;
    };
    const double expected_critic_loss = critic_loss(q);
    q_adam.Step(q, NumericGradient(q, critic_loss), config.critic_learning_rate);
    PlainPolyak(q_target, q, config.tau);

    double mean_log_pi = 0.0;
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      mean_log_pi +=
          Sample(pi, q, Column(batch.observation, b), Raw(batch.features, b), noise, b).log_prob /
          kBatch;
    }
    const auto actor_loss = [&](const Doubles& w) {
      double sum = 0.0;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        const Doubles observation = Column(batch.observation, b);
        const Doubles raw = Raw(batch.features, b);
        const Choice choice = Sample(w, q, observation, raw, noise, b);
        sum += alpha * choice.log_prob - v(batch.features, b, choice.action) -
               std::min(R(q, observation, raw, choice.action, 0),
                        R(q, observation, raw, choice.action, 1));
      }
      return sum / kBatch;
    };
    const double expected_actor_loss = actor_loss(pi);
    pi_adam.Step(pi, NumericGradient(pi, actor_loss), config.actor_learning_rate);
    alpha_adam.Step(log_alpha, {-(mean_log_pi - kActions)}, config.alpha_learning_rate);

    agent.UpdateOn(batch);
    ExpectNear(Saved(agent, "critic/optimiser/mean", q.size()), q_adam.mean, "critic gradient",
               2e-6);
    ExpectNear(Saved(agent, "actor/optimiser/mean", pi.size()), pi_adam.mean, "actor gradient",
               2e-6);
    ExpectNear(AsDoubles(agent.critic().values()), q, "critic");
    ExpectNear(AsDoubles(agent.critic().target()), q_target, "critic target");
    ExpectNear(AsDoubles(agent.actor().values()), pi, "actor");
    EXPECT_NEAR(agent.alpha(), std::exp(log_alpha[0]), Tol(1e-6));
    const MetricMap metrics(agent);
    EXPECT_NEAR(metrics["loss/critic"], expected_critic_loss, Tol(1e-5));
    EXPECT_NEAR(metrics["loss/actor"], expected_actor_loss, Tol(1e-5));
    EXPECT_EQ(metrics["transfer/kappa"], kappa);
  }
  // what must have happened for the comparison to say something
  EXPECT_GT(smaller[0], 2);
  EXPECT_GT(smaller[1], 2);
}

TEST(Host, UpdatesAreThoseOfTheFormulas) {
  const auto config = SmallConfig();
  HostOf<Uvfa> agent(kSpec, config, 5);
  ExpectUpdatesOfFormulas(
      agent, config, [](const Eigen::MatrixXf& features, Eigen::Index b, const Doubles&, bool) {
        return static_cast<double>(features(0, b));
      });
}

// The policy follows the slope of a V of actions, too.
TEST(Host, UpdatesWithAValueOfActionsAreThoseOfTheFormulas) {
  const auto config = SmallConfigOf<SfGpi>({.features = kRaw,
                                            .feature_width = 3,
                                            .successor_width = 5,
                                            .code_size = 2,
                                            .policies = 2,
                                            .policy_width = 3});
  // both dimensions go into one entry of the code
  EnvSpec spec = kSpec;
  spec.action_code = {3, 3};
  for (const EnvSpec& of : {kSpec, spec}) {
    HostOf<SfGpi> agent(of, config, 5);
    auto& module = dynamic_cast<SfGpi&>(agent.module());
    Rng rng(2, "module");
    RandomiseEvenly(module.parameters().tensors(), module.parameters().values(), rng);
    RandomiseEvenly(module.taught().tensors(), module.taught().values(), rng);
    RandomiseEvenly(module.taught().tensors(), module.taught().target(), rng);
    const Eigen::VectorXf weights = RandomMatrix(kRaw, 1, rng);
    module.set_weights(weights);
    const Doubles carried = AsDoubles(module.parameters().values());
    const Doubles own = AsDoubles(module.taught().values());
    const Doubles slow_own = AsDoubles(module.taught().target());
    const bool shared = !of.action_code.empty();
    int own_is_best = 0;
    int asked = 0;
    ExpectUpdatesOfFormulas(
        agent, config,
        [&](const Eigen::MatrixXf& features, Eigen::Index b, const Doubles& action, bool slow) {
          Eigen::VectorXd input = Eigen::VectorXd::Zero(kStateChannels + kActionChannels + 2);
          input.head(kStateChannels) =
              features.col(b).segment(1 + kRaw, kStateChannels).cast<double>();
          auto code = input.segment(kStateChannels, kActionChannels);
          if (shared) {
            code[3] = (action[0] + action[1]) / 2.0;
            code[kActionCodeSize + 3] = 1.0;
          } else {
            for (int i = 0; i < kActions; ++i) {
              code[i] = action[static_cast<std::size_t>(i)];
              code[kActionCodeSize + i] = 1.0;
            }
          }
          const PlainTensors sources{module.parameters().tensors(), carried};
          const PlainTensors target{module.taught().tensors(), slow ? slow_own : own};
          double best = -1e9;
          for (int policy = 0; policy < 3; ++policy) {
            const PlainTensors& w = policy < 2 ? sources : target;
            input.tail(2) = policy < 2 ? sources("codes").col(policy) : target("code").col(0);
            const double v =
                std::min(PlainMlp(w, "psi.members.0", 2, true, input).dot(weights.cast<double>()),
                         PlainMlp(w, "psi.members.1", 2, true, input).dot(weights.cast<double>()));
            if (policy == 2 && v > best) ++own_is_best;
            best = std::max(best, v);
          }
          ++asked;
          return best + sources("bias")(0, 0);
        });
    EXPECT_GT(own_is_best, asked / 100);
    EXPECT_LT(own_is_best, asked - asked / 100);
  }
}

TEST(Host, TheCriticsStartAsTheTransferredValue) {
  const HostOf<Uvfa> agent(kSpec, SmallConfig(), 5);
  const Doubles q = AsDoubles(const_cast<HostOf<Uvfa>&>(agent).critic().values());
  Rng rng(1, "states");
  for (int k = 0; k < 5; ++k) {
    Doubles observation(kObservation);
    Doubles raw(kRaw);
    for (double& x : observation) x = rng.Normal();
    for (double& x : raw) x = rng.Normal();
    EXPECT_EQ(R(q, observation, raw, {0.3, -0.7}, 0), 0.0);
    EXPECT_EQ(R(q, observation, raw, {0.3, -0.7}, 1), 0.0);
  }
}

// A sequence of whole length and one that ends early, by termination.
TEST(Host, TheModuleIsTaughtLambdaReturnsInItsOwnUnit) {
  for (const double kappa : {0.0, 0.5}) {
    SCOPED_TRACE(kappa);
    auto config = SmallConfig();
    config.module_windows = 2;
    config.module_lambda = 0.8;
    HostOf<Uvfa> agent(kSpec, config, 5);
    const double beta = kappa > 0.0 ? 0.2 : 0.0;
    agent.set_calibration({.kappa = kappa, .beta = beta, .scale = 3.0});
    Rng rng(1, "batch");
    FillRandom(agent.critic().values(), rng);
    constexpr int kSteps = ValueModule::kTrainingLength;
    SequenceBatch batch;
    batch.observation = RandomMatrix(kObservation, (kSteps + 1) * 2, rng);
    batch.features = RandomMatrix(agent.feature_size(), (kSteps + 1) * 2, rng);
    batch.reward = RandomMatrix(1, kSteps * 2, rng);
    batch.continues = Eigen::RowVectorXf::Ones(kSteps * 2);
    batch.inside = Eigen::RowVectorXf::Ones(kSteps * 2);
    batch.first = Eigen::RowVectorXf::Zero(2);
    batch.steps = {kSteps, 3};
    batch.row = {0, 0};
    batch.continues[2 * 2 + 1] = 0.0F;
    for (int t = 3; t < kSteps; ++t) batch.inside[2 * t + 1] = 0.0F;

    const Doubles pi = AsDoubles(agent.actor().values());
    const Doubles q = AsDoubles(agent.critic().values());
    const auto value = [&](Eigen::Index column) {
      const Doubles observation = Column(batch.observation, column);
      const Doubles raw = Raw(batch.features, column);
      Doubles action = kActor(pi, Join(observation, Slot(q, raw)));
      action.resize(kActions);
      for (double& a : action) a = std::tanh(a);
      return kappa * static_cast<double>(batch.features(0, column)) + beta +
             std::min(R(q, observation, raw, action, 0), R(q, observation, raw, action, 1));
    };
    // the lambda-return as the mixture of n-step returns that it is
    const auto label = [&](int w, int t) {
      const int steps = batch.steps[static_cast<std::size_t>(w)];
      double mixture = 0.0;
      double left = 1.0;
      double sum = 0.0;
      double discount = 1.0;
      for (int k = t; k < steps; ++k) {
        const Eigen::Index column = 2 * k + w;
        sum += discount * static_cast<double>(batch.reward[column]);
        discount *= config.gamma * static_cast<double>(batch.continues[column]);
        const double share = k + 1 < steps ? 1.0 - config.module_lambda : 1.0;
        mixture += left * share * (sum + discount * value(2 * (k + 1) + w));
        left *= config.module_lambda;
      }
      return (mixture - beta) / (kappa > 0.0 ? kappa : 3.0);
    };
    const Eigen::RowVectorXf labels = agent.LabelsOf(batch);
    for (int w = 0; w < 2; ++w) {
      for (int t = 0; t < batch.steps[static_cast<std::size_t>(w)]; ++t) {
        EXPECT_NEAR(labels[2 * t + w], label(w, t), Tol(1e-4)) << w << " " << t;
      }
    }
    EXPECT_NEAR(labels[2 * 2 + 1], (batch.reward[2 * 2 + 1] - beta) / (kappa > 0.0 ? kappa : 3.0),
                Tol(1e-5));
    const Doubles before = AsDoubles(agent.module().parameters().values());
    agent.FineTuneOn(batch);
    EXPECT_NE(AsDoubles(agent.module().parameters().values()), before);
    EXPECT_EQ(AsDoubles(agent.critic().values()), q);
  }
}

TEST(Host, CalibrationFitsWhatIsThereAndNothingElse) {
  Rng rng(1, "calibration");
  std::vector<float> v(500);
  std::vector<float> g(500);
  for (std::size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<float>(rng.Normal());
    g[i] = 1.5F * v[i] - 4.0F + 0.1F * static_cast<float>(rng.Normal());
  }
  const std::vector<float> truth = g;
  const Calibration fit = Calibrate(g, v, 10, 10);
  EXPECT_NEAR(fit.kappa, 1.5, 0.02);
  EXPECT_NEAR(fit.beta, -4.0, 0.02);
  EXPECT_GT(fit.r2, 0.99);
  std::vector<float> sorted = truth;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NEAR(fit.scale, sorted[474] - sorted[25], 0.1);

  g = truth;
  const Calibration few = Calibrate(g, v, 9, 10);
  EXPECT_EQ(few.kappa, 0.0);
  EXPECT_EQ(few.beta, 0.0);
  EXPECT_EQ(few.scale, fit.scale);

  g = truth;
  for (float& value : v) value = -value;  // the wrong way round
  EXPECT_EQ(Calibrate(g, v, 10, 10).kappa, 0.0);

  g = truth;
  for (float& value : v) value *= -1e-3F;  // too quiet: kappa is cut, and beta fits what is left
  const Calibration quiet = Calibrate(g, v, 10, 10);
  EXPECT_NEAR(quiet.kappa, 2.0 * quiet.scale, 1e-6);
  EXPECT_LT(quiet.r2, 0.05);
  const Eigen::Map<const Eigen::VectorXf> truths(truth.data(), std::ssize(truth));
  const Eigen::Map<const Eigen::VectorXf> values(v.data(), std::ssize(v));
  EXPECT_NEAR(quiet.beta, truths.mean() - quiet.kappa * values.mean(), 1e-5);

  EXPECT_EQ(Calibrate({}, {}, 0, 1).scale, 1.0);
}

TEST(Host, StartsFromItsOwnKindOnly) {
  const auto config = SmallConfig();
  HostOf<Uvfa> agent(kSpec, config, 5);
  Rng rng(9, "other");
  Uvfa other(config.shape, {}, rng);
  const ArtefactHeader header = ModuleHeader(Uvfa::kKind, config.shape, {});
  const Artefact artefact = Artefact::Parse(EncodeModule(header, other), "file");
  agent.Initialise(artefact);
  EXPECT_EQ(AsDoubles(agent.module().parameters().values()),
            AsDoubles(other.parameters().values()));

  const auto error = [&](const std::string& bytes) {
    return UserErrorText([&] { agent.Initialise(Artefact::Parse(bytes, "file")); });
  };
  ArtefactHeader wrong = header;
  wrong.kind = "value-branch";
  EXPECT_NE(error(EncodeModule(wrong, other)), "no error");
  wrong = header;
  wrong.shape["stream_width"] = "7";
  EXPECT_NE(error(EncodeModule(wrong, other)).find("stream_width = 7"), std::string::npos);
  wrong = header;
  wrong.shape["more"] = "1";
  EXPECT_NE(error(EncodeModule(wrong, other)), "no error");
  wrong = header;
  wrong.shape.erase("stream_width");
  EXPECT_NE(error(EncodeModule(wrong, other)), "no error");
  // tensors of another shape under the right words
  Uvfa wide({.stream_width = 7, .stream_features = kRaw}, {}, rng);
  EXPECT_NE(error(EncodeModule(header, wide)), "no error");
  const std::string whole = EncodeModule(header, other);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_NE(error(whole.substr(0, size)), "no error") << size;
  }
}

}  // namespace
}  // namespace msrl
