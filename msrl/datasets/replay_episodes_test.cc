#include "msrl/datasets/replay_episodes.h"

#include <gtest/gtest.h>

#include <array>

#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;

// Steps are numbered: what is stored of step i is i in every column.
class Walk {
 public:
  explicit Walk(std::int64_t capacity)
      : replay({.capacity = capacity, .observation_size = 3, .action_size = 1}) {}

  void Step(bool terminated = false, bool truncated = false) {
    const std::array<double, 3> before{-1.0, 1.0 * at, 0.5 * at};
    ++at;
    const std::array<double, 3> after{-1.0, 1.0 * at, 0.5 * at};
    const float action = action_scale * static_cast<float>(at);
    replay.Add({.before = {.observation = before},
                .action = std::span(&action, 1),
                .reward = 0.25 * at,
                .terminated = terminated,
                .truncated = truncated,
                .after = {.observation = after}});
    if (terminated || truncated) ++at;  // the next episode begins elsewhere
  }
  ReplayEpisodes Episodes(bool discrete = false) const {
    return EpisodesOf(replay, {.env = "walk",
                               .seed = 7,
                               .reward_scale = 8.0,
                               .discrete = discrete,
                               .first = 1,
                               .observation_size = 2});
  }

  Replay replay;
  int at = 0;
  float action_scale = 0.01F;
};

TEST(ReplayEpisodesTest, EpisodesInOrderWithTheirEnds) {
  Walk walk(100);
  for (int i = 0; i < 3; ++i) walk.Step(i == 2);         // states 0 to 3, terminated
  for (int i = 0; i < 2; ++i) walk.Step(false, i == 1);  // 4 to 6, truncated
  walk.Step(true, true);                                 // 7 to 8, both
  for (int i = 0; i < 4; ++i) walk.Step();               // 9 to 13, under way
  const ReplayEpisodes made = walk.Episodes();
  ASSERT_EQ(made.episodes.size(), 4U);
  EXPECT_EQ(made.forgotten_steps, 0);
  EXPECT_TRUE(made.last_is_open);
  const int first[] = {0, 4, 7, 9}, steps[] = {3, 2, 1, 4};
  for (std::size_t e = 0; e < 4; ++e) {
    const StoredEpisode& episode = made.episodes[e];
    ASSERT_EQ(episode.horizon(), steps[e]);
    ASSERT_EQ(episode.observations.cols(), steps[e] + 1);
    ASSERT_EQ(episode.observations.rows(), 2);
    for (Index t = 0; t <= steps[e]; ++t) {
      EXPECT_EQ(episode.observations(0, t), static_cast<float>(first[e] + t));
      if (t == steps[e]) break;
      EXPECT_EQ(episode.actions(0, t), 0.01F * static_cast<float>(first[e] + t + 1));
      EXPECT_EQ(episode.rewards[t], 8.0 * 0.25 * static_cast<double>(first[e] + t + 1));
    }
    EXPECT_EQ(episode.env, "walk");
    EXPECT_EQ(episode.seed, 7U);
    EXPECT_EQ(episode.geometry.rows(), 0);
  }
  EXPECT_TRUE(made.episodes[0].terminated && !made.episodes[0].truncated);
  EXPECT_TRUE(!made.episodes[1].terminated && made.episodes[1].truncated);
  EXPECT_TRUE(made.episodes[2].terminated && made.episodes[2].truncated);
  EXPECT_TRUE(!made.episodes[3].terminated && made.episodes[3].truncated);
}

TEST(ReplayEpisodesTest, AnEpisodeWithoutItsBeginningIsLeftOut) {
  Walk walk(8);
  for (int i = 0; i < 5; ++i) walk.Step(i == 4);  // six states
  for (int i = 0; i < 3; ++i) walk.Step(i == 2);  // four: the first two of the others are gone
  const ReplayEpisodes made = walk.Episodes();
  ASSERT_EQ(made.episodes.size(), 1U);
  EXPECT_EQ(made.forgotten_steps, 3);
  EXPECT_FALSE(made.last_is_open);
  EXPECT_EQ(made.episodes[0].observations(0, 0), 6.0F);
  EXPECT_EQ(made.episodes[0].horizon(), 3);
  // one long episode that has lost its beginning
  Walk lost(4);
  for (int i = 0; i < 9; ++i) lost.Step();
  EXPECT_TRUE(lost.Episodes().episodes.empty());
  EXPECT_EQ(lost.Episodes().forgotten_steps, 3);
  EXPECT_TRUE(Walk(4).Episodes().episodes.empty());
}

TEST(ReplayEpisodesTest, ActionsAreCutUnlessTheyAreIndices) {
  Walk walk(10);
  walk.action_scale = 3.0F;
  walk.Step(true);
  EXPECT_EQ(walk.Episodes().episodes[0].actions(0, 0), 1.0F);
  EXPECT_EQ(walk.Episodes(/*discrete=*/true).episodes[0].actions(0, 0), 3.0F);
}

TEST(ReplayEpisodesTest, GeometryIsThereIfTheReplayKeepsIt) {
  const Lift::Ptr lift = Lift::Make({LiftKind::kFull, 2, 1, {}});
  Replay replay(
      {.capacity = 9, .observation_size = 1, .action_size = 1, .lift = lift, .code_size = 1});
  const SegmentMatrix matrix(lift);
  const std::array<double, 2> here{0.5, -0.25}, there{1.5, 2.0};
  const std::array<double, 1> observation{3.0}, next{4.0}, code{0.5};
  const float action = 0.5F;
  replay.Add({.before = {.observation = observation, .geometry = here, .matrix = &matrix},
              .action = std::span(&action, 1),
              .terminated = true,
              .after = {.observation = next, .geometry = there, .matrix = &matrix},
              .code = code});
  const ReplayEpisodes made = EpisodesOf(replay, {.env = "w", .observation_size = 1});
  ASSERT_EQ(made.episodes[0].geometry.rows(), 2);
  EXPECT_EQ(made.episodes[0].geometry(1, 0), -0.25F);
  EXPECT_EQ(made.episodes[0].geometry(0, 1), 1.5F);
}

// Only a plain file may be without geometry.
TEST(ReplayEpisodesTest, OurOwnFilesHaveGeometry) {
  Walk walk(10);
  walk.Step(true);
  const EpisodeFile file{.lift_id = "x", .attributes = {}, .episodes = walk.Episodes().episodes};
  EXPECT_FALSE(EncodePlainEpisodes(file).empty());
  EXPECT_EQ(UserErrorText([&] { EncodeEpisodes(file); }),
            "episodes: episode_0: geometry has another size than before");
}

}  // namespace
}  // namespace msrl
