#include "msrl/agents/mbpo/mbpo.h"

#include <gtest/gtest.h>

#include <set>

#include "msrl/agents/play.h"
#include "msrl/agents/registry.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/toy_envs.h"

namespace msrl {
namespace {

MbpoConfig SmallConfig() {
  MbpoConfig config;
  config.hidden_width = 8;
  config.batch_size = 20;
  config.replay_size = 500;
  config.random_steps = 60;
  config.updates_per_step = 1;
  config.model.members = 3;
  config.model.elites = 2;
  config.model.layers = 1;
  config.model.width = 8;
  config.model.batch = 16;
  config.model.minibatches = 20;
  config.model_every = 30;
  config.rollout_states = 40;
  config.rollout_first = 3;
  config.rollout_last = 3;
  config.rollout_kept = 2;
  config.real_share = 0.3;
  return config;
}

// An agent that balances, step by step.
class Training {
 public:
  explicit Training(const MbpoConfig& config)
      : agent_(env_->spec(), config, 1),
        tracker_(env_->spec(), agent_),
        action_(env_->spec().action) {}

  void Steps(int count) {
    for (int t = 0; t < count; ++t) {
      if (result_.terminated || result_.truncated) {
        env_->Reset(resets_.NextU64());
        tracker_.Begin(*env_);
      }
      agent_.Act(tracker_.turn(policy_, action_), ActMode::kExplore);
      result_ = env_->Step(action_.view());
      agent_.Observe(tracker_.Advance(action_.view(), result_, *env_), tracker_.carry());
      agent_.Update();
    }
  }
  Mbpo& agent() { return agent_; }
  const Replay& real() { return agent_.policy().memory().replay(); }

 private:
  std::unique_ptr<Env> env_ = testing::MakeBalance(/*tells_end=*/true);
  Mbpo agent_;
  EpisodeTracker tracker_;
  Rng resets_{1, "env"}, policy_{1, "policy"};
  ActionBuffer action_;
  StepResult result_{.truncated = true};
};

// All transitions of a replay, in order.
ReplayBatch All(const Replay& replay) {
  ReplayBatch batch = replay.MakeBatch(static_cast<int>(replay.size()));
  Eigen::Index column = 0;
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (replay.IsStep(row)) replay.Read(row, column++, batch);
  }
  return batch;
}

TEST(Mbpo, RolloutsBranchOffFromRealStates) {
  MbpoConfig config = SmallConfig();
  config.model.minibatches = 500;  // a model that knows that steps are short
  Training training(config);
  training.Steps(59);
  EXPECT_EQ(training.agent().imagined().size(), 0);
  training.Steps(1);
  const ReplayBatch real = All(training.real());
  const ReplayBatch imagined = All(training.agent().imagined());
  const std::set<float> visited(real.observation.data(), real.observation.data() + real.size());
  std::vector<float> from;  // where the present time begins
  for (Eigen::Index k = 0; k < config.rollout_states; ++k) {
    EXPECT_TRUE(visited.contains(imagined.observation(0, k)));
    from.push_back(imagined.observation(0, k));
  }
  Eigen::Index column = 0;
  int ended = 0;
  for (int t = 0; t < config.rollout_first; ++t) {
    std::vector<float> to;
    for (const float o : from) {
      ASSERT_LT(column, imagined.size());
      EXPECT_EQ(imagined.observation(0, column), o);
      const float next = imagined.next_observation(0, column);
      const bool fallen = std::abs(next) > 0.5F;
      EXPECT_EQ(imagined.continues[column], fallen ? 0.0F : 1.0F);
      if (!fallen) to.push_back(next);
      ended += fallen ? 1 : 0;
      ++column;
    }
    from = to;
  }
  EXPECT_EQ(column, imagined.size());
  EXPECT_GT(ended, 3);
  EXPECT_GT(from.size(), 3U);
}

TEST(Mbpo, BatchesAreRealAndFromTheKeptRollouts) {
  Training training(SmallConfig());
  const Replay& imagined = training.agent().imagined();
  training.Steps(60);
  std::vector<std::int64_t> sets{0};
  for (int more = 0; more < 4; ++more) {
    sets.push_back(imagined.end_row());
    training.Steps(30);
    EXPECT_GT(imagined.end_row(), sets.back());
  }
  bool oldest = false;
  for (int draw = 0; draw < 200; ++draw) {
    const ReplayBatch& batch = training.agent().Mix();
    ReplayBatch same = batch;
    for (Eigen::Index k = 0; k < batch.size(); ++k) {
      const std::int64_t row = batch.row[static_cast<std::size_t>(k)];
      if (k < 6) {
        training.real().Read(row, k, same);
      } else {
        EXPECT_GE(row, sets[sets.size() - 2]);
        oldest |= row < sets.back();
        imagined.Read(row, k, same);
      }
    }
    EXPECT_EQ(batch.observation, same.observation);
    EXPECT_EQ(batch.next_observation, same.next_observation);
    EXPECT_EQ(batch.action, same.action);
    EXPECT_EQ(batch.reward, same.reward);
    EXPECT_EQ(batch.continues, same.continues);
  }
  EXPECT_TRUE(oldest);
}

TEST(Mbpo, RolloutsGrowOnSchedule) {
  MbpoConfig config = SmallConfig();
  config.rollout_first = 1;
  config.rollout_last = 15;
  config.rollout_from = 20'000;
  config.rollout_until = 150'000;
  const EnvSpec spec = testing::MakeBalance(true)->spec();
  const Mbpo agent(spec, config, 1);
  EXPECT_EQ(agent.RolloutLength(0), 1);
  EXPECT_EQ(agent.RolloutLength(20'000), 1);
  EXPECT_EQ(agent.RolloutLength(29'000), 1);
  EXPECT_EQ(agent.RolloutLength(30'000), 2);
  EXPECT_EQ(agent.RolloutLength(85'000), 8);
  EXPECT_EQ(agent.RolloutLength(149'999), 14);
  EXPECT_EQ(agent.RolloutLength(1'000'000), 15);
  config.rollout_until = 0;
  const Mbpo sudden(spec, config, 1);
  EXPECT_EQ(sudden.RolloutLength(19'999), 1);
  EXPECT_EQ(sudden.RolloutLength(20'000), 15);
}

TEST(Mbpo, APresetComesBeforeOtherSettings) {
  const auto value = [](const std::vector<std::string>& settings, const std::string& key) {
    for (const ConfigField& field : BuiltinAgents().Find("mbpo").options(settings)) {
      if (field.key == key) return field.Text();
    }
    return std::string();
  };
  EXPECT_EQ(value({}, "preset"), "compact");
  EXPECT_EQ(value({}, "model_width"), "128");
  EXPECT_EQ(value({}, "hidden_width"), "128");
  EXPECT_EQ(value({"preset=reference"}, "preset"), "reference");
  EXPECT_EQ(value({"preset=reference"}, "model_width"), "200");
  EXPECT_EQ(value({"preset=reference"}, "hidden_width"), "256");
  EXPECT_EQ(value({"preset=reference", "model_width=30"}, "model_width"), "30");
  EXPECT_EQ(value({"model_width=30", "preset=reference"}, "model_width"), "30");
  EXPECT_EQ(value({"model_width=30", "preset=reference"}, "hidden_width"), "256");
}

}  // namespace
}  // namespace msrl
