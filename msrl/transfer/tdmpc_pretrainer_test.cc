#include "msrl/transfer/tdmpc_pretrainer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "msrl/env_list/env_list.h"
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

class TdMpcPretrainerTest : public ::testing::Test {
 protected:
  static TdMpcPretrainConfig Small() {
    TdMpcPretrainConfig config;
    config.target = ValueTarget::kMonteCarlo;
    config.sizes = {.encoder_width = 32,
                    .latent_groups = 4,
                    .model_width = 32,
                    .q_count = 2,
                    .bins = 41,
                    .termination = true,
                    .task_size = 4};
    config.updates = 12;
    config.batch = 16;
    return config;
  }
  PretrainResult Train(const TdMpcPretrainConfig& config) const {
    const TdMpcPretrainer pretrainer(config, train_, held_out_);
    PretrainJob job;
    job.sources = SourcesOf(train_);
    job.seed = 1;
    const std::unique_ptr<Pretraining> training = pretrainer.Start(job);
    while (training->done() < training->total()) training->Advance();
    return training->Finish();
  }
  static std::unique_ptr<LatentModel> ModelOf(const PretrainResult& result) {
    return ReadModel(Artefact::Parse(result.artefact, "result"));
  }

  EpisodeFile train_ = Episodes(Split::kTrain, 240);
  EpisodeFile held_out_ = Episodes(Split::kHeldOut, 80);
};

TEST_F(TdMpcPretrainerTest, ASequenceIsWhatTheEpisodeSays) {
  const SourceSequences set(train_, ValueTarget::kMonteCarlo);
  SequenceBatch batch =
      Replay({.capacity = 2, .observation_size = kStateChannels, .action_size = kActionCodeSize})
          .MakeSequences(/*sequences=*/2, /*length=*/3);
  SourceLesson lesson;
  lesson.mask.resize(kActionCodeSize, 2);
  lesson.label.resize(6);
  const auto ends = [&](bool terminated) {
    return *std::ranges::find_if(set.sequences(), [&](const SourceSequence& s) {
      return s.terminated == terminated && s.horizon() > 3;
    });
  };
  const SourceSequence terminated = ends(true);
  const SourceSequence truncated = ends(false);
  const SourceSequence* const both[] = {&terminated, &truncated};
  for (const Index before_end : {Index{3}, Index{2}, Index{1}}) {
    SCOPED_TRACE(before_end);
    for (Eigen::Index b = 0; b < 2; ++b) {
      const SourceSequence& own = *both[b];
      const SourceSequence& other = *both[1 - b];
      const Index time = own.horizon() - before_end;
      FillSequence(own, other, time, b, batch, lesson);
      EXPECT_EQ(lesson.mask.col(b), own.u().col(time).tail(kActionCodeSize));
      EXPECT_GT(lesson.mask.col(b).sum(), 0.0F);
      EXPECT_EQ(batch.observation.col(b), own.x().col(time));
      for (Eigen::Index k = 0; k < 3; ++k) {
        const Eigen::Index column = 2 * k + b;
        const bool inside = k < before_end;
        const Index of = std::min(time + k, other.horizon() - 1);
        EXPECT_EQ(batch.inside[column], inside ? 1.0F : 0.0F);
        EXPECT_EQ(batch.continues[column], k + 1 == before_end && b == 0 ? 0.0F : 1.0F);
        EXPECT_EQ(batch.observation.col(column + 2),
                  own.x().col(std::min(time + k + 1, own.horizon())));
        EXPECT_EQ(batch.reward[column], inside ? other.r()(0, of) : 0.0F);
        EXPECT_EQ(lesson.label[column], inside ? other.label[of] : 0.0F);
        if (inside) {
          EXPECT_EQ(batch.action.col(column), own.u().col(time + k).head(kActionCodeSize));
        } else {
          EXPECT_EQ(batch.action.col(column).norm(), 0.0F);
        }
      }
    }
  }
}

// As long as values are the labels, no target network has a say.
TEST_F(TdMpcPretrainerTest, LabelsComeFirst) {
  TdMpcPretrainConfig config = Small();
  config.clone_weight = 0.0;
  const auto with = [&](double label_updates, double share, double tau) {
    config.label_updates = label_updates;
    config.label_share = share;
    config.tau = tau;
    return Train(config).artefact;
  };
  const auto values = [](const std::string& artefact) {
    const auto model = ReadModel(Artefact::Parse(artefact, "result"));
    return std::vector<float>(model->values().values().begin(), model->values().values().end());
  };
  EXPECT_EQ(values(with(1.0, 0.0, 0.01)), values(with(1.0, 0.0, 0.9)));
  EXPECT_EQ(values(with(0.0, 1.0, 0.01)), values(with(1.0, 0.0, 0.9)));
  EXPECT_NE(values(with(0.5, 0.0, 0.01)), values(with(0.5, 0.0, 0.9)));
  EXPECT_NE(values(with(0.5, 0.5, 0.01)), values(with(0.5, 0.0, 0.01)));
}

TEST_F(TdMpcPretrainerTest, ControlsAreWrongInTheirOwnWay) {
  TdMpcPretrainConfig config = Small();
  const PretrainResult real = Train(config);
  config.control = WorldModelControl::kShuffled;
  const PretrainResult shuffled = Train(config);
  EXPECT_NE(real.artefact, shuffled.artefact);
  config.control = WorldModelControl::kRandom;
  const PretrainResult random = Train(config);
  EXPECT_EQ(Artefact::Parse(random.artefact, "random").header().Made("updates"), "0");
  // heads that have learned nothing say nothing
  EXPECT_LE(random.figures.at("reward_r2"), 0.0);
  LatentModel fresh(SlotModel(config.sizes, static_cast<int>(SourcesOf(train_).size())),
                    Rng(1, "init"));
  EXPECT_TRUE(std::ranges::equal(ModelOf(random)->encoder().values(), fresh.encoder().values()));
  EXPECT_FALSE(std::ranges::equal(ModelOf(real)->encoder().values(), fresh.encoder().values()));
}

// Vectors of tasks stay short, and every task has its own.
TEST_F(TdMpcPretrainerTest, TasksHaveVectors) {
  TdMpcPretrainConfig config = Small();
  config.learning_rate = 0.3;
  const auto model = ModelOf(Train(config));
  const auto vectors = model->task_vectors();
  ASSERT_EQ(vectors.cols(), 4);
  double longest = 0.0;
  for (Eigen::Index i = 0; i < vectors.cols(); ++i) {
    longest = std::max(longest, static_cast<double>(vectors.col(i).norm()));
    for (Eigen::Index j = 0; j < i; ++j) {
      EXPECT_GT((vectors.col(i) - vectors.col(j)).norm(), 1e-3F);
    }
  }
  EXPECT_NEAR(longest, 1.0, 1e-5);
}

}  // namespace
}  // namespace msrl
