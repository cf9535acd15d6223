#include "msrl/datasets/segment_sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;

Lift::Ptr TestLift() { return Lift::Make({LiftKind::kCompact, 3, 4, {}}); }

// A random walk with random actions and rewards.
StoredEpisode Walk(Index steps, std::uint64_t seed, double step_size = 0.5) {
  Rng rng(seed, "walk");
  StoredEpisode e;
  e.env = "walk";
  e.observations.resize(5, steps + 1);
  e.geometry.resize(3, steps + 1);
  e.actions.resize(2, steps);
  e.rewards.resize(steps);
  for (float& v : e.observations.reshaped()) v = static_cast<float>(rng.Normal());
  for (float& v : e.actions.reshaped()) v = static_cast<float>(rng.Uniform(-1, 1));
  for (double& v : e.rewards) v = rng.Normal();
  for (Index t = 0; t <= steps; ++t) {
    for (Index i = 0; i < 3; ++i) {
      const double before = t == 0 ? rng.Normal() : e.geometry(i, t - 1);
      e.geometry(i, t) = static_cast<float>(before + step_size * rng.Normal());
    }
  }
  e.reward_scale = 2.0;
  e.terminated = true;
  return e;
}

// Copies steps of `from` into `to`, with a little noise.
void Plant(const StoredEpisode& from, Index begin, Index length, StoredEpisode& to, Index at) {
  Rng rng(static_cast<std::uint64_t>(at), "plant");
  for (Index t = 0; t <= length; ++t) {
    to.geometry.col(at + t) = from.geometry.col(begin + t);
    to.geometry(0, at + t) += static_cast<float>(1e-4 * rng.Normal());
  }
  to.actions.middleCols(at, length) = from.actions.middleCols(begin, length);
  to.rewards.segment(at, length) = from.rewards.segment(begin, length);
}

std::vector<StoredEpisode> Walks(int count) {
  std::vector<StoredEpisode> episodes;
  for (int i = 0; i < count; ++i) episodes.push_back(Walk(30, static_cast<std::uint64_t>(i)));
  return episodes;
}

TEST(SegmentSources, AnEpisodeIsCutIntoSegments) {
  const StoredEpisode episode = Walk(10, 1);
  Rng rng(0, "library");
  for (const std::int64_t length : {1, 3}) {
    SegmentLibraryConfig config = ConfigFor(episode, TestLift());
    config.max_length = length;
    SegmentLibrary library(config);
    const std::int64_t kept = AddEpisode(episode, 7, {.length = length, .stride = 2}, rng, library);
    ASSERT_EQ(kept, length == 1 ? 5 : 4);
    ASSERT_EQ(library.size(), kept);
    const Segment whole = ToSegment(episode, 4);
    for (std::int64_t slot = 0; slot < kept; ++slot) {
      const Index begin = 2 * slot;
      const Segment piece = Restrict(whole, {begin, begin + length});
      SegmentMatrix z(library.config().lift);
      library.AddMatrixTo(slot, z);
      EXPECT_LT(z.Distance(Describe(library.config().lift, piece)), 1e-12);
      EXPECT_EQ(z.Horizon(), length);
      EXPECT_EQ(library.length(slot), length);
      EXPECT_EQ(library.reward_sum(slot), piece.r.sum());
      EXPECT_EQ(library.episode(slot), 7);
      EXPECT_EQ(library.env(slot), "walk");
      EXPECT_EQ(library.head_action(slot)[1], episode.actions(1, begin));
      EXPECT_EQ(library.context(slot)[2], episode.geometry(2, begin));
      EXPECT_EQ(library.tail_geometry(slot)[2], episode.geometry(2, begin + length));
      EXPECT_EQ(library.tail_observation(slot)[4], episode.observations(4, begin + length));
      EXPECT_EQ(library.terminated(slot), begin + length == 10);
    }
  }
}

TEST(SegmentSources, AnEpisodeThatDoesNotFitIsRefused) {
  const StoredEpisode episode = Walk(10, 1);
  Rng rng(0, "library");
  SegmentLibraryConfig config = ConfigFor(episode, TestLift());
  config.observation_size = 6;
  SegmentLibrary other(config);
  EXPECT_NE(UserErrorText([&] { AddEpisode(episode, 0, {}, rng, other); }).find("observations"),
            std::string::npos);
  SegmentLibrary library(ConfigFor(episode, TestLift()));
  EXPECT_NE(
      UserErrorText([&] { AddEpisode(episode, 0, {.length = 2}, rng, library); }).find("at most 1"),
      std::string::npos);
  EXPECT_NE(UserErrorText([&] {
              AddEpisode(episode, 0, {.length = 0}, rng, library);
            }).find("at least 1"),
            std::string::npos);
  EXPECT_EQ(library.offered(), 0);
}

TEST(SegmentSources, BestEpisodesAreThoseOfEachEnvironment) {
  std::vector<StoredEpisode> episodes = Walks(6);
  const std::vector<double> returns{1, 5, 3, 100, 300, 200};
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    episodes[e].rewards.setZero();
    episodes[e].rewards[0] = returns[e];
    if (e >= 3) episodes[e].env = "other";
  }
  using List = std::vector<std::size_t>;
  EXPECT_EQ(BestEpisodes(episodes, 1.0), (List{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(BestEpisodes(episodes, 0.5), (List{1, 2, 4, 5}));
  EXPECT_EQ(BestEpisodes(episodes, 0.01), (List{1, 4}));
  EXPECT_NE(UserErrorText([&] { BestEpisodes(episodes, 0.0); }).find("share"), std::string::npos);
}

TEST(Mine, FindsAPlantedMotifAndNothingElse) {
  std::vector<StoredEpisode> episodes = Walks(12);
  const MineOptions options{.lengths = {4, 6}, .stride = 1, .radius = 0.05, .min_episodes = 4};
  EXPECT_TRUE(Mine(TestLift(), episodes, options).empty());  // random walks do not recur

  const std::vector<std::pair<std::size_t, Index>> places{{2, 11}, {3, 0}, {7, 24}, {7, 2}, {9, 5}};
  for (const auto& [e, at] : places) Plant(episodes[0], 8, 6, episodes[e], at);
  const std::vector<Motif> motifs = Mine(TestLift(), episodes, options);
  ASSERT_EQ(motifs.size(), 4u);  // the six steps, and the three fours within them
  EXPECT_EQ(motifs[0].interval, (Interval{8, 14}));
  EXPECT_EQ(motifs[0].episode, 0u);
  for (const Motif& motif : motifs) {
    EXPECT_EQ(motif.episodes, 5);
    EXPECT_EQ(motif.occurrences, 6);  // twice in one episode
    EXPECT_GT(motif.spread, 0.0);
    EXPECT_LT(motif.spread, 0.01);
  }
  // found in fewer episodes than asked for
  EXPECT_TRUE(
      Mine(TestLift(), episodes, {.lengths = {6}, .stride = 1, .radius = 0.05, .min_episodes = 6})
          .empty());
  // the noise is larger than the radius
  EXPECT_TRUE(
      Mine(TestLift(), episodes, {.lengths = {6}, .stride = 1, .radius = 1e-7, .min_episodes = 4})
          .empty());
}

// The rule as the header states it, over all pairs.
std::vector<Motif> PlainMine(const std::vector<StoredEpisode>& episodes, Index length,
                             double radius, std::int64_t min_episodes) {
  struct Piece {
    std::size_t episode;
    Index begin;
    SegmentMatrix matrix;
    bool taken = false;
  };
  const Lift::Ptr lift = TestLift();
  std::vector<Piece> pieces;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    const Segment whole = ToSegment(episodes[e], 4);
    for (Index begin = 0; begin + length <= whole.horizon(); ++begin) {
      pieces.push_back({e, begin, Describe(lift, Restrict(whole, {begin, begin + length}))});
    }
  }
  std::vector<Motif> motifs;
  while (true) {
    const Piece* best = nullptr;
    std::size_t most = static_cast<std::size_t>(min_episodes) - 1;
    const auto like = [&](const Piece& a, const Piece& b) {
      return !b.taken && a.matrix.Distance(b.matrix) <= radius * static_cast<double>(length);
    };
    for (const Piece& piece : pieces) {
      std::set<std::size_t> found;
      for (const Piece& other : pieces) {
        if (!piece.taken && like(piece, other)) found.insert(other.episode);
      }
      if (found.size() > most) {
        most = found.size();
        best = &piece;
      }
    }
    if (best == nullptr) return motifs;
    Motif motif;
    motif.episode = best->episode;
    motif.interval = {best->begin, best->begin + length};
    motif.episodes = static_cast<std::int64_t>(most);
    std::vector<Piece*> members;
    for (Piece& other : pieces) {
      if (like(*best, other)) members.push_back(&other);
    }
    motif.occurrences = std::ssize(members);
    for (Piece* member : members) member->taken = true;
    motifs.push_back(motif);
  }
}

TEST(Mine, AgreesWithAllPairs) {
  std::vector<StoredEpisode> episodes;
  for (std::uint64_t seed = 0; seed < 7; ++seed) {
    episodes.push_back(Walk(18, seed, 0.5));
    // coarse, so that much recurs
    StoredEpisode& e = episodes.back();
    e.geometry = e.geometry.array().round().max(0.0F).min(1.0F);
    e.actions.setZero();
    e.rewards.setZero();
  }
  std::size_t total = 0;
  for (const Index length : {1, 2, 3}) {
    for (const double radius : {0.0, 0.701, 2.001}) {
      const std::vector<Motif> motifs =
          Mine(TestLift(), episodes,
               {.lengths = {length}, .stride = 1, .radius = radius, .min_episodes = 3});
      std::vector<Motif> expected = PlainMine(episodes, length, radius, 3);
      std::ranges::stable_sort(expected, std::greater<>(), &Motif::episodes);
      ASSERT_EQ(motifs.size(), expected.size()) << length << " " << radius;
      for (std::size_t i = 0; i < motifs.size(); ++i) {
        EXPECT_EQ(motifs[i].episode, expected[i].episode);
        EXPECT_EQ(motifs[i].interval, expected[i].interval);
        EXPECT_EQ(motifs[i].episodes, expected[i].episodes);
        EXPECT_EQ(motifs[i].occurrences, expected[i].occurrences);
      }
      total += motifs.size();
    }
  }
  EXPECT_GT(total, 20u);
}

TEST(Mine, ImpossibleOptionsAreRefused) {
  const std::vector<StoredEpisode> episodes = Walks(1);
  EXPECT_NE(UserErrorText([&] { Mine(TestLift(), episodes, {.lengths = {0}}); }).find("lengths"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] { Mine(TestLift(), episodes, {.radius = -1.0}); }).find("radius"),
            std::string::npos);
  EXPECT_TRUE(Mine(TestLift(), episodes, {.lengths = {31}, .min_episodes = 1}).empty());
}

}  // namespace
}  // namespace msrl
