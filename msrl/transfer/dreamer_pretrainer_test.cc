#include "msrl/transfer/dreamer_pretrainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/env_list/env_list.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/collect.h"

namespace msrl {
namespace {

EpisodeFile Episodes(Split split, int count) {
  CollectOptions options;
  options.episodes = count;
  options.split = split;
  options.targets = {ValueTarget::kMonteCarlo};
  return Collect(options, BuiltinEnvs(), BuiltinAgents());
}

class DreamerPretrainerTest : public ::testing::Test {
 protected:
  static DreamerPretrainConfig Small() {
    DreamerPretrainConfig config;
    config.target = ValueTarget::kMonteCarlo;
    config.deter = 16;
    config.blocks = 2;
    config.stoch = 4;
    config.classes = 4;
    config.hidden = 16;
    config.units = 16;
    config.layers = 1;
    config.updates = 12;
    config.sequences = 4;
    config.sequence_length = 8;
    config.warm_up = 1;
    return config;
  }
  PretrainResult Train(const DreamerPretrainConfig& config) const {
    const DreamerPretrainer pretrainer(config, train_, held_out_);
    PretrainJob job;
    job.sources = SourcesOf(train_);
    job.seed = 1;
    const std::unique_ptr<Pretraining> training = pretrainer.Start(job);
    while (training->done() < training->total()) training->Advance();
    return training->Finish();
  }
  static std::vector<float> WorldOf(const PretrainResult& result) {
    const auto world = ReadWorld(Artefact::Parse(result.artefact, "result"));
    return {world->world.values().begin(), world->world.values().end()};
  }

  EpisodeFile train_ = Episodes(Split::kTrain, 240);
  EpisodeFile held_out_ = Episodes(Split::kHeldOut, 80);
};

TEST_F(DreamerPretrainerTest, ARecordIsWhatTheEpisodeSays) {
  const SourceSequences set(train_, ValueTarget::kMonteCarlo);
  const auto ends = [&](bool terminated) {
    return *std::ranges::find_if(set.sequences(), [&](const SourceSequence& s) {
      return s.terminated == terminated && s.horizon() > 3;
    });
  };
  const SourceSequence terminated = ends(true);
  const SourceSequence truncated = ends(false);
  WorldRecords records(/*sequences=*/2, /*length=*/1);
  for (const SourceSequence* own : {&terminated, &truncated}) {
    const SourceSequence& other = own == &terminated ? truncated : terminated;
    for (Index t = 0; t <= own->horizon(); ++t) {
      for (const bool begins : {false, true}) {
        if (t == 0 && !begins) continue;
        FillRecord(*own, *own, t, begins, 0, records);
        FillRecord(*own, other, t, begins, 1, records);
        for (const Eigen::Index column : {0, 1}) {
          const SourceSequence& told = column == 0 ? *own : other;
          const Index of = std::min(t, told.horizon());
          EXPECT_EQ(records.x.col(column), own->x().col(t));
          EXPECT_EQ(records.keep[column], begins ? 0.0F : 1.0F);
          EXPECT_EQ(records.reward[column], of == 0 ? 0.0F : told.r()(0, of - 1));
          EXPECT_EQ(records.label[column], told.label[of]);
          const bool end = t == own->horizon() && own == &terminated;
          EXPECT_EQ(records.terminal[column], end ? 1.0F : 0.0F);
          // the bits of what there is are there in any case
          EXPECT_EQ(records.u.col(column).tail(kActionCodeSize),
                    own->u().col(0).tail(kActionCodeSize));
          EXPECT_GT(records.u.col(column).tail(kActionCodeSize).sum(), 0.0F);
          if (begins) {
            EXPECT_EQ(records.u.col(column).head(kActionCodeSize).norm(), 0.0F);
          } else {
            EXPECT_EQ(records.u.col(column), own->u().col(t - 1));
          }
        }
      }
    }
  }
}

TEST_F(DreamerPretrainerTest, SlotErrorsAreThoseOfLivingSlots) {
  Eigen::VectorXf before = Eigen::VectorXf::Zero(kStateChannels);
  Eigen::VectorXf after = before;
  after[0] = 2.0F;
  after[1] = 3.0F;
  after[kGeometrySize] = 1.0F;  // slot 1 is dead
  Eigen::VectorXd told = Eigen::VectorXd::Zero(kGeometrySize);
  told[0] = 1.5;
  told[5] = 9.0;
  SlotErrors errors;
  errors.Add(told, before, after);
  EXPECT_NEAR(errors.ratio(), 0.25 / 4.0, testing::Tol(1e-12));
}

TEST_F(DreamerPretrainerTest, ControlsAreWrongInTheirOwnWay) {
  DreamerPretrainConfig config = Small();
  const PretrainResult real = Train(config);
  config.control = WorldModelControl::kShuffled;
  EXPECT_NE(WorldOf(real), WorldOf(Train(config)));
  config.control = WorldModelControl::kRandom;
  const PretrainResult random = Train(config);
  EXPECT_EQ(Artefact::Parse(random.artefact, "random").header().Made("updates"), "0");
  // heads that have learned nothing say nothing
  EXPECT_LE(random.figures.at("reward_r2"), 0.0);
  EXPECT_LE(random.figures.at("r2"), 0.0);
  Rng init(1, "init");
  SlotWorld fresh(config, init);
  EXPECT_TRUE(std::ranges::equal(WorldOf(random), fresh.world.values()));
  EXPECT_FALSE(std::ranges::equal(WorldOf(real), fresh.world.values()));
}

// The labels teach the features, and nothing else does so by `value_weight`.
TEST_F(DreamerPretrainerTest, LabelsReachTheWorldModel) {
  DreamerPretrainConfig config = Small();
  config.value_weight = 0.0;
  const std::vector<float> without = WorldOf(Train(config));
  config.value_weight = 1.0;
  EXPECT_NE(without, WorldOf(Train(config)));
  // labels alone are others: rewards stay
  for (StoredEpisode& episode : train_.episodes) {
    auto& values = episode.values.at("mc");
    values.reverseInPlace();
  }
  EXPECT_NE(WorldOf(Train(config)), without);
  config.value_weight = 0.0;
  EXPECT_EQ(without, WorldOf(Train(config)));
}

// Slots that are told five steps ahead, rewards and values are better than they were.
TEST_F(DreamerPretrainerTest, LearnsWhatComes) {
  DreamerPretrainConfig config = Small();
  config.updates = 0;
  const PretrainFigures before = Train(config).figures;
  config.updates = 2000;
  config.sequences = 8;
  config.sequence_length = 16;
  config.learning_rate = 2e-3;
  const PretrainFigures after = Train(config).figures;
  EXPECT_LT(after.at("open_loop_x"), 0.5 * before.at("open_loop_x"));
  EXPECT_GT(after.at("reward_r2"), before.at("reward_r2") + 0.05);
  EXPECT_GT(after.at("train_r2"), before.at("train_r2") + 0.05);
  EXPECT_GT(after.at("kl"), 0.1);
}

// Slots five steps ahead are told better than by "nothing changes"; weighed like everything else
// they would not be.
TEST_F(DreamerPretrainerTest, FiveStepsAheadItBeatsNothingChanges) {
  train_ = Episodes(Split::kTrain, 2000);
  held_out_ = Episodes(Split::kHeldOut, 400);
  DreamerPretrainConfig config = Small();
  config.deter = config.units = 64;
  config.blocks = 4;
  config.stoch = config.classes = 8;
  config.hidden = 32;
  config.updates = 10'000;
  config.sequences = 8;
  config.sequence_length = 16;
  config.learning_rate = 2e-3;
  config.warm_up = 50;
  EXPECT_LT(Train(config).figures.at("open_loop_x"), 1.0);
  config.reconstruction_weight = 1.0;
  EXPECT_GT(Train(config).figures.at("open_loop_x"), 1.0);
}

TEST_F(DreamerPretrainerTest, BlocksThatDoNotFitAreAUserError) {
  DreamerPretrainConfig config = Small();
  config.blocks = 3;
  EXPECT_NE(testing::UserErrorText([&] {
              DreamerPretrainer(config, train_, held_out_);
            }).find("'blocks' must divide 'deter'"),
            std::string::npos);
  EXPECT_NE(testing::UserErrorText([&] {
              DreamerPretrainer::Announce(config);
            }).find("'blocks' must divide 'deter'"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
