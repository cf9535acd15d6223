#include "msrl/agents/td3/td3.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "msrl/nn/random.h"
#include "msrl/testing/agent_update.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 12;
constexpr int kActions = 2;
const EnvSpec kSpec = SmallSpec(ActionKind::kContinuous, kActions);
const PlainNet kActor{.sizes = {3, 8, 8, kActions}, .last = Tanh};
const PlainNet kCritic{.sizes = {3 + kActions, 8, 8, 1}};

Td3Config SmallConfig() {
  Td3Config config;
  config.hidden_width = 8;
  config.batch_size = kBatch;
  config.replay_size = 100;
  config.actor_learning_rate = 0.02;
  config.critic_learning_rate = 0.01;
  config.tau = 0.05;
  config.gamma = 0.9;
  // large, so that both bounds are met
  config.target_noise = 0.6;
  config.target_noise_limit = 0.9;
  return config;
}

double Q(const Doubles& w, const Doubles& observation, const Doubles& action, std::size_t member) {
  return kCritic(w, Join(observation, action), member)[0];
}

TEST(Td3, UpdatesAreThoseOfTheFormulas) {
  const Td3Config config = SmallConfig();
  Td3 agent(kSpec, config, 5);
  Doubles pi = AsDoubles(agent.actor().parameters());
  Doubles q = AsDoubles(agent.critic().network().parameters());
  Doubles pi_target = pi;
  Doubles q_target = q;
  PlainAdam pi_adam;
  PlainAdam q_adam;
  Rng noise_rng(5, "noise");
  Rng rng(1, "batch");
  int first_smaller = 0;
  int second_smaller = 0;
  int noise_cut = 0;
  int action_cut = 0;
  int lessons[2] = {0, 0};
  for (int update = 1; update <= 6; ++update) {
    SCOPED_TRACE(update);
    ReplayBatch batch = RandomBatch(kSpec, kBatch, rng);
    if (update > 2) AddLessons(batch);
    Eigen::MatrixXf noise(kActions, kBatch);
    FillNormal(noise_rng, Flat(noise));

    Doubles y;
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      const Doubles next = Column(batch.next_observation, b);
      Doubles action = kActor(pi_target, next);
      for (std::size_t i = 0; i < kActions; ++i) {
        const double raw = config.target_noise * noise(static_cast<Eigen::Index>(i), b);
        const double cut = std::min(std::max(raw, -0.9), 0.9);
        noise_cut += cut != raw ? 1 : 0;
        action_cut += std::abs(action[i] + cut) > 1.0 ? 1 : 0;
        action[i] = std::min(std::max(action[i] + cut, -1.0), 1.0);
      }
      const double q1 = Q(q_target, next, action, 0);
      const double q2 = Q(q_target, next, action, 1);
      ++(q1 < q2 ? first_smaller : second_smaller);
      y.push_back(batch.reward[b] + config.gamma * batch.continues[b] * std::min(q1, q2));
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
    const double expected_loss = critic_loss(q);
    const Doubles q_before = q;
    q_adam.Step(q, NumericGradient(q, critic_loss), config.critic_learning_rate);
    if (update % 2 == 0) {
      // the first critic alone, as it is after its step
      Doubles lesson(kBatch);
      for (Eigen::Index b = 0; b < kBatch && batch.has_lessons(); ++b) {
        const Doubles observation = Column(batch.observation, b);
        const bool preferred = Q(q_before, observation, Column(batch.action, b), 0) >
                               Q(q, observation, kActor(pi, observation), 0);
        ++lessons[preferred ? 1 : 0];
        lesson[static_cast<std::size_t>(b)] = preferred ? batch.lesson[b] : 0.0;
      }
      const auto actor_loss = [&](const Doubles& w) {
        double sum = 0.0;
        for (Eigen::Index b = 0; b < kBatch; ++b) {
          const Doubles observation = Column(batch.observation, b);
          const Doubles action = kActor(w, observation);
          sum -= Q(q, observation, action, 0);
          for (std::size_t i = 0; i < kActions; ++i) {
            const double miss = action[i] - Column(batch.action, b)[i];
            sum += lesson[static_cast<std::size_t>(b)] * miss * miss;
          }
        }
        return sum / kBatch;
      };
      pi_adam.Step(pi, NumericGradient(pi, actor_loss), config.actor_learning_rate);
      PlainPolyak(pi_target, pi, config.tau);
      PlainPolyak(q_target, q, config.tau);
    }

    agent.UpdateOn(batch);
    ExpectNear(Saved(agent, "critic_adam/mean", q.size()), q_adam.mean, "critic gradient", 2e-6);
    if (update >= 2) {
      ExpectNear(Saved(agent, "actor_adam/mean", pi.size()), pi_adam.mean, "actor gradient", 2e-6);
    }
    ExpectNear(AsDoubles(agent.critic().network().parameters()), q, "critic");
    ExpectNear(AsDoubles(agent.actor().parameters()), pi, "actor");
    ExpectNear(AsDoubles(agent.critic().target_network().parameters()), q_target, "critic target");
    ExpectNear(AsDoubles(agent.actor_target().parameters()), pi_target, "actor target");
    EXPECT_NEAR(MetricMap(agent)["loss/critic"], expected_loss, Tol(1e-5));
  }
  // what must have happened for the comparison to say something
  EXPECT_GT(first_smaller, 3);
  EXPECT_GT(second_smaller, 3);
  EXPECT_GT(noise_cut, 5);
  EXPECT_GT(action_cut, 0);
  for (const int count : lessons) EXPECT_GT(count, 3);
}

TEST(Td3, PolicyAndTargetsWaitForTheDelay) {
  Td3Config config = SmallConfig();
  config.policy_delay = 3;
  Td3 agent(kSpec, config, 5);
  Rng rng(1, "batch");
  for (int update = 1; update <= 6; ++update) {
    const Doubles actor = AsDoubles(agent.actor().parameters());
    const Doubles actor_target = AsDoubles(agent.actor_target().parameters());
    const Doubles critic = AsDoubles(agent.critic().network().parameters());
    const Doubles critic_target = AsDoubles(agent.critic().target_network().parameters());
    agent.UpdateOn(RandomBatch(kSpec, kBatch, rng));
    const bool due = update % 3 == 0;
    EXPECT_NE(AsDoubles(agent.critic().network().parameters()), critic);
    EXPECT_EQ(AsDoubles(agent.actor().parameters()) != actor, due);
    EXPECT_EQ(AsDoubles(agent.actor_target().parameters()) != actor_target, due);
    EXPECT_EQ(AsDoubles(agent.critic().target_network().parameters()) != critic_target, due);
  }
}

TEST(Td3, ATerminationHasNoSuccessor) {
  for (const bool terminated : {true, false}) {
    Rng rng(1, "batch");
    ReplayBatch batch = RandomBatch(kSpec, kBatch, rng);
    batch.continues.setConstant(terminated ? 0.0F : 1.0F);
    Td3 a(kSpec, SmallConfig(), 5);
    a.UpdateOn(batch);
    batch.next_observation.array() += 1.0F;
    Td3 b(kSpec, SmallConfig(), 5);
    b.UpdateOn(batch);
    EXPECT_EQ(AsDoubles(a.critic().network().parameters()) ==
                  AsDoubles(b.critic().network().parameters()),
              terminated);
  }
}

}  // namespace
}  // namespace msrl
