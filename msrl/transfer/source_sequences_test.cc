#include "msrl/transfer/source_sequences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "msrl/env_list/env_list.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/collect.h"

namespace msrl {
namespace {

using testing::UserErrorText;

// One episode of a made-up task; geometry and rewards are easy to recognise.
StoredEpisode Episode(const std::string& env, int steps, double reward, bool discrete) {
  StoredEpisode episode;
  episode.env = env;
  episode.discrete = discrete;
  episode.observations.setZero(1, steps + 1);
  episode.actions.setZero(discrete ? 1 : 2, steps);
  episode.rewards.setConstant(steps, reward);
  episode.geometry.setZero(kGeometrySize, steps + 1);
  episode.reward_scale = 2.0;
  episode.truncated = true;
  for (int t = 0; t <= steps; ++t) {
    episode.geometry(0, t) = static_cast<float>(t);
    episode.geometry(2, t) = static_cast<float>(3 - t);
    episode.geometry(3, t) = 0.5F;
  }
  for (int t = 0; t < steps; ++t) episode.actions(0, t) = discrete ? 1.0F : -0.25F;
  episode.values["mc"] = Eigen::VectorXf::LinSpaced(steps + 1, 0.0F, 10.0F);
  return episode;
}

EpisodeFile File(std::vector<StoredEpisode> episodes) {
  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  file.episodes = std::move(episodes);
  return file;
}

TEST(SourceSequences, AColumnSaysWhatLedToItsState) {
  const EpisodeFile file = File({Episode("walk", 10, 4.0, false), Episode("hop", 10, 4.0, true)});
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  ASSERT_EQ(set.sequences().size(), 2U);
  // 11 values from 0 to 10: the middle nine tenths are 9 wide
  EXPECT_NEAR(set.scale(0), 9.0, 1e-5);
  for (const SourceSequence& s : set.sequences()) {
    const bool discrete = s.task == 1;
    SCOPED_TRACE(discrete);
    EXPECT_EQ(s.horizon(), 10);
    EXPECT_NEAR(s.label[10], 10.0 / 9.0, 1e-6);
    for (Index t = 0; t <= 10; ++t) {
      const auto column = s.channels.col(t);
      EXPECT_EQ(column[0], std::min(static_cast<float>(t), kChannelBound));
      // position 0 is zero at the start: not known to be alive before it moves
      EXPECT_EQ(column[8], t > 0 ? 1.0F : 0.0F);
      EXPECT_EQ(column[8 + 1], 0.0F);
      EXPECT_EQ(column[8 + 2], 1.0F);
      // the goal stays where it is
      EXPECT_EQ(column[kGoalAt], 3.0F);
      EXPECT_EQ(column[kGoalAt + 1], 0.5F);
      EXPECT_EQ(column[kGoalAt + 7], 1.0F);
      EXPECT_EQ(column.segment(kGoalAt + 8, 8).sum(), 3.0F);
      const auto u = column.segment(kActionAt, kActionChannels);
      EXPECT_EQ(u[0], t == 0 || discrete ? 0.0F : -0.25F);
      EXPECT_EQ(u[1], t > 0 && discrete ? 1.0F : 0.0F);
      EXPECT_EQ(u.tail(kActionCodeSize).sum(), t == 0 ? 0.0F : 2.0F);
      EXPECT_NEAR(column[kRewardAt], t == 0 ? 0.0 : 4.0 / 2.0 / 9.0, 1e-6);
    }
    EXPECT_EQ(s.u().cols(), 10);
    EXPECT_EQ(s.u()(discrete ? 1 : 0, 0), discrete ? 1.0F : -0.25F);
    EXPECT_EQ(s.r().cols(), 10);
  }
}

TEST(SourceSequences, HeldOutEpisodesAreInTheUnitsOfTheTraining) {
  const EpisodeFile train = File({Episode("walk", 10, 4.0, false)});
  EpisodeFile other = File({Episode("walk", 20, 4.0, false), Episode("hop", 5, 1.0, true)});
  other.episodes[0].values["mc"] *= 7.0F;
  const SourceSequences training(train, ValueTarget::kMonteCarlo);
  const SourceSequences held_out(other, ValueTarget::kMonteCarlo, train, training);
  ASSERT_EQ(held_out.sequences().size(), 1U);  // "hop" was never trained on
  EXPECT_EQ(held_out.scale(0), training.scale(0));
  EXPECT_NEAR(held_out.sequences()[0].label[20], 70.0 / 9.0, 1e-5);
  EXPECT_EQ(held_out.states(), 21);
}

TEST(SourceSequences, TasksCountAlikeWhateverTheirNumbers) {
  std::vector<StoredEpisode> episodes{Episode("rare", 3, 1.0, false)};
  for (int k = 0; k < 50; ++k) episodes.push_back(Episode("often", 40, 1.0, false));
  episodes.push_back(Episode("often", 4, 1.0, false));
  const SourceSequences set(File(episodes), ValueTarget::kMonteCarlo);
  const SourceSampler sampler(set, set.tasks());
  Rng rng(1, "places");
  std::map<int, int> tasks;
  std::set<Index> times;
  int short_one = 0;
  constexpr int kDraws = 4000;
  for (int k = 0; k < kDraws; ++k) {
    const SourceSampler::Place place = sampler.Draw(rng);
    ++tasks[place.sequence->task];
    if (place.sequence->task == 0) times.insert(place.time);
    short_one += place.sequence->horizon() == 4 ? 1 : 0;
  }
  EXPECT_NEAR(tasks[0], kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
  EXPECT_EQ(times, (std::set<Index>{0, 1, 2, 3}));
  EXPECT_GT(short_one, 0);  // as likely as any other of its task
  EXPECT_NEAR(short_one, kDraws / 2 / 51, 30);
  for (int k = 0; k < 100; ++k) {
    const SourceSampler::Place place = sampler.Draw(rng, 4);
    EXPECT_EQ(place.sequence->task, 1);
    EXPECT_LE(place.time + 4, place.sequence->horizon());
  }
  EXPECT_NE(UserErrorText([&] { SourceSampler(set, {"never"}); }), "no error");
  EXPECT_NE(UserErrorText([&] { SourceSampler(set, {}); }), "no error");
}

TEST(SourceSequences, AStateHasTheStepsThatAreAskedFor) {
  const EpisodeFile file = File({Episode("walk", 3, 4.0, false), Episode("walk", 6, 4.0, false)});
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  const SourceSampler sampler(set, set.tasks());
  Rng rng(1, "draw");
  for (int i = 0; i < 100; ++i) {
    const SourceSampler::Place place = sampler.Draw(rng, /*rest=*/5);
    EXPECT_EQ(place.sequence->horizon(), 6);
    EXPECT_LE(place.time, 1);
  }
  EXPECT_EQ(sampler.Draw(rng, /*rest=*/6).time, 0);
  EXPECT_EQ(UserErrorText([&] { sampler.Draw(rng, /*rest=*/7); }),
            "no episode in the data has 7 steps");
}

TEST(SourceSequences, RefusesEpisodesWithoutTheLabelOrOfAnotherLift) {
  EpisodeFile file = File({Episode("walk", 3, 1.0, false)});
  EXPECT_NE(UserErrorText([&] { SourceSequences(file, ValueTarget::kExpert); }).find("'expert'"),
            std::string::npos);
  file.lift_id = "other";
  EXPECT_NE(UserErrorText([&] { SourceSequences(file, ValueTarget::kMonteCarlo); }).find("lift"),
            std::string::npos);
}

// A target's agent sees the same columns, without being told what the file is told.
TEST(SourceSequences, CollectedEpisodesHaveGoalsThatStay) {
  const EpisodeFile file = Collect({.sources = {"point-rooms"},
                                    .episodes = 40,
                                    .targets = {ValueTarget::kMonteCarlo},
                                    .dead_slots = 0.0},
                                   BuiltinEnvs(), BuiltinAgents());
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  int places = 0;
  int velocities = 0;
  int shown = 0;
  for (const SourceSequence& s : set.sequences()) {
    ++(s.goal_origin == 0 ? places : velocities);
    const auto first = s.channels.col(0).tail(kGoalChannels);
    for (Index t = 1; t <= s.horizon(); ++t) {
      const auto goal = s.channels.col(t).tail(kGoalChannels);
      for (Index i = 0; i < kGeometrySize; ++i) {
        if (first[kGeometrySize + i] == 0.0F) continue;
        EXPECT_EQ(goal[kGeometrySize + i], 1.0F);
        EXPECT_NEAR(goal[i], first[i], 1e-4) << "slot " << i << " at " << t;
      }
    }
    shown += first.tail(kGeometrySize).sum() > 0.0F ? 1 : 0;
    EXPECT_TRUE(s.label.allFinite());
  }
  EXPECT_GT(places, 0);
  EXPECT_GT(velocities, 0);
  EXPECT_GT(shown, 30);
}

// Code and bits move together, none stays, and all else is as it was.
TEST(SourceSequences, ActionsChangePlaces) {
  const EpisodeFile file = File({Episode("walk", 10, 4.0, false), Episode("hop", 10, 4.0, true)});
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  SourceSequences permuted(file, ValueTarget::kMonteCarlo);
  permuted.PermuteActions();
  std::map<int, int> went;
  for (std::size_t k = 0; k < 2; ++k) {
    const SourceSequence& before = set.sequences()[k];
    const SourceSequence& after = permuted.sequences()[k];
    EXPECT_EQ(after.label, before.label);
    EXPECT_EQ(Eigen::MatrixXf(after.x()), Eigen::MatrixXf(before.x()));
    EXPECT_EQ(Eigen::MatrixXf(after.r()), Eigen::MatrixXf(before.r()));
    EXPECT_EQ(after.channels.bottomRows(kGoalChannels), before.channels.bottomRows(kGoalChannels));
    for (int i = 0; i < kActionCodeSize; ++i) {
      if (before.u().row(i).isZero()) continue;
      for (int j = 0; j < kActionCodeSize; ++j) {
        if (after.u().row(j) != before.u().row(i)) continue;
        went[i] = j;
        EXPECT_EQ(Eigen::MatrixXf(after.u().row(kActionCodeSize + j)),
                  Eigen::MatrixXf(before.u().row(kActionCodeSize + i)));
      }
    }
    EXPECT_EQ(after.u().bottomRows(kActionCodeSize).sum(),
              before.u().bottomRows(kActionCodeSize).sum());
  }
  ASSERT_EQ(went.size(), 2U);  // entry 0 of the walk, 1 of the hop
  for (const auto& [from, to] : went) EXPECT_NE(from, to);
}

}  // namespace
}  // namespace msrl
