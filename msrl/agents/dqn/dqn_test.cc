#include "msrl/agents/dqn/dqn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 12;
constexpr int kActions = 4;
const EnvSpec kSpec = SmallSpec(ActionKind::kDiscrete, kActions);
const PlainNet kNet{.sizes = {3, 8, 8, kActions}};

DqnConfig SmallConfig() {
  DqnConfig config;
  config.hidden_width = 8;
  config.batch_size = kBatch;
  config.replay_size = 100;
  config.learning_rate = 0.02;
  config.tau = 0.05;
  config.gamma = 0.9;
  return config;
}

std::size_t ArgMax(const Doubles& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// What must have happened for the comparison to say something.
struct Cases {
  int linear = 0, quadratic = 0, disagreements = 0;
};

void CompareUpdates(bool double_q, Cases& cases) {
  DqnConfig config = SmallConfig();
  config.double_q = double_q;
  Dqn agent(kSpec, config, 5);
  Doubles q = AsDoubles(agent.critic().network().parameters());
  Doubles target = q;
  PlainAdam adam;
  Rng rng(1, "batch");
  for (int update = 1; update <= 6; ++update) {
    const ReplayBatch batch = RandomBatch(kSpec, kBatch, rng, /*reward_size=*/2.0);
    Doubles y;
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      const Doubles next_target = kNet(target, Column(batch.next_observation, b));
      const Doubles next_online = kNet(q, Column(batch.next_observation, b));
      const std::size_t best = ArgMax(double_q ? next_online : next_target);
      cases.disagreements += ArgMax(next_online) != ArgMax(next_target) ? 1 : 0;
      y.push_back(batch.reward[b] + config.gamma * batch.continues[b] * next_target[best]);
    }
    const auto loss = [&](const Doubles& w) {
      double sum = 0.0;
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        const auto a = static_cast<std::size_t>(batch.action(0, b));
        const double error =
            std::abs(kNet(w, Column(batch.observation, b))[a] - y[static_cast<std::size_t>(b)]);
        sum += error < 1.0 ? error * error / 2.0 : error - 0.5;
      }
      return sum / kBatch;
    };
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      const auto a = static_cast<std::size_t>(batch.action(0, b));
      const double error =
          kNet(q, Column(batch.observation, b))[a] - y[static_cast<std::size_t>(b)];
      ++(std::abs(error) < 1.0 ? cases.quadratic : cases.linear);
    }
    const double expected_loss = loss(q);
    adam.Step(q, NumericGradient(q, loss), config.learning_rate);
    PlainPolyak(target, q, config.tau);

    agent.UpdateOn(batch);
    SCOPED_TRACE(update);
    ExpectNear(Saved(agent, "critic_adam/mean", q.size()), adam.mean, "gradient", 1e-6);
    ExpectNear(AsDoubles(agent.critic().network().parameters()), q, "critic");
    ExpectNear(AsDoubles(agent.critic().target_network().parameters()), target, "target");
    EXPECT_NEAR(MetricMap(agent)["loss/critic"], expected_loss, Tol(1e-5));
  }
}

TEST(Dqn, UpdatesAreThoseOfTheFormulas) {
  Cases cases;
  CompareUpdates(/*double_q=*/true, cases);
  EXPECT_GT(cases.linear, 5);
  EXPECT_GT(cases.quadratic, 5);
  EXPECT_GT(cases.disagreements, 0);
}

TEST(Dqn, WithoutDoubleTargetsTheTargetChooses) {
  Cases cases;
  CompareUpdates(/*double_q=*/false, cases);
  EXPECT_GT(cases.disagreements, 0);
}

TEST(Dqn, ATerminationHasNoSuccessor) {
  for (const bool terminated : {true, false}) {
    Rng rng(1, "batch");
    ReplayBatch batch = RandomBatch(kSpec, kBatch, rng);
    batch.continues.setConstant(terminated ? 0.0F : 1.0F);
    Dqn a(kSpec, SmallConfig(), 5);
    a.UpdateOn(batch);
    batch.next_observation.array() += 1.0F;
    Dqn b(kSpec, SmallConfig(), 5);
    b.UpdateOn(batch);
    EXPECT_EQ(AsDoubles(a.critic().network().parameters()) ==
                  AsDoubles(b.critic().network().parameters()),
              terminated);
  }
}

TEST(Dqn, RefusesImpossibleSettings) {
  DqnConfig config = SmallConfig();
  config.epsilon_end = 1.5;
  EXPECT_NE(UserErrorText([&] { Dqn(kSpec, config, 1); }).find("epsilon_end"), std::string::npos);
  config = SmallConfig();
  config.gamma = 1.0;
  EXPECT_NE(UserErrorText([&] { Dqn(kSpec, config, 1); }).find("'gamma'"), std::string::npos);
}

}  // namespace
}  // namespace msrl
