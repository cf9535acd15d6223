#include "msrl/transfer/goal_reading_pretrainer.h"

#include <gtest/gtest.h>

#include "msrl/env_list/env_list.h"
#include "msrl/transfer/collect.h"

namespace msrl {
namespace {

EpisodeFile Episodes(Split split) {
  CollectOptions options;
  options.episodes = 80;
  options.split = split;
  options.targets = {ValueTarget::kMonteCarlo};
  options.dead_slots = 0.0;
  return Collect(options, BuiltinEnvs(), BuiltinAgents());
}

class GoalReadingPretrainerTest : public ::testing::Test {
 protected:
  // The network after a few updates.
  std::string Train(const GoalReadingConfig& config) const {
    const GoalReadingPretrainer pretrainer(config, train_, held_out_);
    PretrainJob job;
    job.sources = SourcesOf(train_);
    job.seed = 1;
    const std::unique_ptr<Pretraining> training = pretrainer.Start(job);
    while (training->done() < training->total()) training->Advance();
    return training->Finish().artefact;
  }

  EpisodeFile train_ = Episodes(Split::kTrain);
  EpisodeFile held_out_ = Episodes(Split::kHeldOut);
};

TEST_F(GoalReadingPretrainerTest, RewardsChooseWhatTeaches) {
  GoalReadingConfig config;
  config.rewards = ReadingRewards::kAll;
  const auto all = GoalReadingPretrainer(config, train_, held_out_).examples();
  config.rewards = ReadingRewards::kDistance;
  const auto distance = GoalReadingPretrainer(config, train_, held_out_).examples();
  std::int64_t wanted = 0;
  for (const StoredEpisode& episode : train_.episodes) {
    if (episode.facts.at("style") == static_cast<double>(RewardStyle::kDistance)) {
      wanted += config.prefixes_per_episode;
    }
  }
  EXPECT_GT(wanted, 0);
  EXPECT_EQ(distance.first, wanted);
  EXPECT_GT(all.first, 2 * distance.first);
  EXPECT_LT(distance.second, all.second);
  // velocities have no such choice
  config.goal = HiddenGoal::kVelocity;
  const auto slow = GoalReadingPretrainer(config, train_, held_out_).examples();
  config.rewards = ReadingRewards::kAll;
  EXPECT_EQ(GoalReadingPretrainer(config, train_, held_out_).examples(), slow);
}

TEST_F(GoalReadingPretrainerTest, AWideErrorUnitIsTheSquaredError) {
  GoalReadingConfig config;
  config.updates = 5;
  config.batch = 16;
  config.width = 8;
  config.error_unit = 0.0;
  const std::string squared = Train(config);
  config.error_unit = 1e6;  // beyond what a float tells apart
  EXPECT_EQ(Train(config), squared);
  config.error_unit = 0.05;
  EXPECT_NE(Train(config), squared);
}

}  // namespace
}  // namespace msrl
