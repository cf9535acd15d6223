#include "msrl/agents/sac/sac.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/nn/random.h"
#include "msrl/testing/agent_update.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 12;
constexpr int kActions = 2;
const EnvSpec kSpec = SmallSpec(ActionKind::kContinuous, kActions);
const PlainNet kActor{.sizes = {3, 8, 8, 2 * kActions}};
const PlainNet kCritic{.sizes = {3 + kActions, 8, 8, 1}};

SacConfig SmallConfig() {
  SacConfig config;
  config.hidden_width = 8;
  config.batch_size = kBatch;
  config.replay_size = 100;
  config.actor_learning_rate = 0.02;
  config.critic_learning_rate = 0.01;
  config.alpha_learning_rate = 0.03;
  config.initial_alpha = 0.4;
  config.tau = 0.05;
  config.gamma = 0.9;
  return config;
}

double Q(const Doubles& w, const Doubles& observation, const Doubles& action, std::size_t member) {
  return kCritic(w, Join(observation, action), member)[0];
}

struct Choice {
  Doubles action;
  double log_prob = 0.0;
};

// a = tanh(mu + sigma eps), log pi(a) = sum log N(u; mu, sigma) - log(1 - a^2)
Choice Sample(const Doubles& w, const Doubles& observation, const Eigen::MatrixXf& noise,
              Eigen::Index b) {
  const Doubles head = kActor(w, observation);
  Choice choice;
  for (std::size_t i = 0; i < kActions; ++i) {
    const double std = std::exp(std::min(std::max(head[kActions + i], -20.0), 2.0));
    const double u = head[i] + std * noise(static_cast<Eigen::Index>(i), b);
    choice.action.push_back(std::tanh(u));
    choice.log_prob += LogNormal(u, head[i], std) - std::log(1.0 - std::tanh(u) * std::tanh(u));
  }
  return choice;
}

TEST(Sac, UpdatesAreThoseOfTheFormulas) {
  const SacConfig config = SmallConfig();
  Sac agent(kSpec, config, 5);
  Doubles pi = AsDoubles(agent.actor().parameters());
  Doubles q = AsDoubles(agent.critic().network().parameters());
  Doubles q_target = q;
  Doubles log_alpha{std::log(config.initial_alpha)};
  PlainAdam pi_adam;
  PlainAdam q_adam;
  PlainAdam alpha_adam;
  Rng noise_rng(5, "noise");
  Rng rng(1, "batch");
  int smaller_in_target[2] = {0, 0};
  int smaller_in_actor[2] = {0, 0};
  int lessons[2] = {0, 0};
  for (int update = 1; update <= 6; ++update) {
    SCOPED_TRACE(update);
    ReplayBatch batch = RandomBatch(kSpec, kBatch, rng);
    if (update > 3) AddLessons(batch);
    const double alpha = std::exp(log_alpha[0]);
    Eigen::MatrixXf next_noise(kActions, kBatch);
    Eigen::MatrixXf noise(kActions, kBatch);
    FillNormal(noise_rng, Flat(next_noise));
    FillNormal(noise_rng, Flat(noise));

    Doubles y;
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      const Doubles next = Column(batch.next_observation, b);
      const Choice choice = Sample(pi, next, next_noise, b);
      const double q1 = Q(q_target, next, choice.action, 0);
      const double q2 = Q(q_target, next, choice.action, 1);
      ++smaller_in_target[q1 < q2 ? 0 : 1];
      y.push_back(batch.reward[b] +
                  config.gamma * batch.continues[b] * (std::min(q1, q2) - alpha * choice.log_prob));
    }
    const auto critic_loss = [&](const Doubles& w) {
      double sum = 0.0;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        for (std::size_t member = 0; member < 2; ++member) {
          const double error = Q(w, Column(batch.observation, b), Column(batch.action, b), member) -
                               y[static_cast<std::size_t>(b)];
          sum += error * error;
        }
      }
      return sum / kBatch;
    };
    const double expected_critic_loss = critic_loss(q);
    const Doubles q_before = q;
    q_adam.Step(q, NumericGradient(q, critic_loss), config.critic_learning_rate);
    PlainPolyak(q_target, q, config.tau);

    double mean_log_pi = 0.0;
    Doubles lesson(kBatch);
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      const Doubles observation = Column(batch.observation, b);
      const Choice choice = Sample(pi, observation, noise, b);
      mean_log_pi += choice.log_prob / kBatch;
      ++smaller_in_actor[Q(q, observation, choice.action, 0) < Q(q, observation, choice.action, 1)
                             ? 0
                             : 1];
      if (!batch.has_lessons()) continue;
      const auto smaller_q = [&](const Doubles& w, const Doubles& action) {
        return std::min(Q(w, observation, action, 0), Q(w, observation, action, 1));
      };
      const bool preferred =
          smaller_q(q_before, Column(batch.action, b)) > smaller_q(q, choice.action);
      ++lessons[preferred ? 1 : 0];
      lesson[static_cast<std::size_t>(b)] = preferred ? batch.lesson[b] : 0.0;
    }
    const auto actor_loss = [&](const Doubles& w) {
      double sum = 0.0;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        const Doubles observation = Column(batch.observation, b);
        const Choice choice = Sample(w, observation, noise, b);
        sum += alpha * choice.log_prob -
               std::min(Q(q, observation, choice.action, 0), Q(q, observation, choice.action, 1));
        const Doubles head = kActor(w, observation);
        for (std::size_t i = 0; i < kActions; ++i) {
          const double miss = std::tanh(head[i]) - Column(batch.action, b)[i];
          sum += lesson[static_cast<std::size_t>(b)] * miss * miss;
        }
      }
      return sum / kBatch;
    };
    const double expected_actor_loss = actor_loss(pi);
    pi_adam.Step(pi, NumericGradient(pi, actor_loss), config.actor_learning_rate);
    // the entropy that is wanted: -1 per dimension of the action
    alpha_adam.Step(log_alpha, {-(mean_log_pi - kActions)}, config.alpha_learning_rate);

    agent.UpdateOn(batch);
    ExpectNear(Saved(agent, "critic_adam/mean", q.size()), q_adam.mean, "critic gradient", 2e-6);
    ExpectNear(Saved(agent, "actor_adam/mean", pi.size()), pi_adam.mean, "actor gradient", 2e-6);
    ExpectNear(Saved(agent, "alpha_adam/mean", 1), alpha_adam.mean, "alpha gradient", 2e-6);
    ExpectNear(AsDoubles(agent.critic().network().parameters()), q, "critic");
    ExpectNear(AsDoubles(agent.critic().target_network().parameters()), q_target, "critic target");
    ExpectNear(AsDoubles(agent.actor().parameters()), pi, "actor");
    EXPECT_NEAR(agent.alpha(), std::exp(log_alpha[0]), Tol(1e-6));
    const MetricMap metrics(agent);
    EXPECT_NEAR(metrics["loss/critic"], expected_critic_loss, Tol(1e-5));
    EXPECT_NEAR(metrics["loss/actor"], expected_actor_loss, Tol(1e-5));
    EXPECT_NEAR(metrics["policy/entropy"], -mean_log_pi, Tol(1e-5));
    EXPECT_NEAR(metrics["policy/alpha"], std::exp(log_alpha[0]), Tol(1e-6));
  }
  // what must have happened for the comparison to say something
  for (const int member : {0, 1}) {
    EXPECT_GT(smaller_in_target[member], 5);
    EXPECT_GT(smaller_in_actor[member], 5);
    EXPECT_GT(lessons[member], 3);
  }
}

TEST(Sac, AFixedTemperatureStays) {
  SacConfig config = SmallConfig();
  config.learn_alpha = false;
  Sac agent(kSpec, config, 5);
  Rng rng(1, "batch");
  const double alpha = agent.alpha();
  for (int update = 0; update < 3; ++update) agent.UpdateOn(RandomBatch(kSpec, kBatch, rng));
  EXPECT_EQ(agent.alpha(), alpha);
}

TEST(Sac, ATerminationHasNoSuccessor) {
  for (const bool terminated : {true, false}) {
    Rng rng(1, "batch");
    ReplayBatch batch = RandomBatch(kSpec, kBatch, rng);
    batch.continues.setConstant(terminated ? 0.0F : 1.0F);
    Sac a(kSpec, SmallConfig(), 5);
    a.UpdateOn(batch);
    batch.next_observation.array() += 1.0F;
    Sac b(kSpec, SmallConfig(), 5);
    b.UpdateOn(batch);
    EXPECT_EQ(AsDoubles(a.critic().network().parameters()) ==
                  AsDoubles(b.critic().network().parameters()),
              terminated);
    EXPECT_EQ(AsDoubles(a.actor().parameters()) == AsDoubles(b.actor().parameters()), terminated);
  }
}

}  // namespace
}  // namespace msrl
