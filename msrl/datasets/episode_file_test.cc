#include "msrl/datasets/episode_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "msrl/core/rng.h"
#include "msrl/datasets/episode_child.h"
#include "msrl/datasets/hdf5.h"
#include "msrl/datasets/trajectory_file.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using testing::UserErrorText;

StoredEpisode Episode(bool discrete, Index steps, std::uint64_t seed) {
  Rng rng(seed, "episode");
  const auto fill = [&rng](auto&& matrix) {
    for (auto& v : matrix.reshaped()) v = static_cast<float>(rng.Normal());
  };
  StoredEpisode e;
  e.env = discrete ? "grid" : "point";
  e.seed = UINT64_MAX - seed;
  e.instance = "layout \"ü\"";
  e.observations.resize(5, steps + 1);
  fill(e.observations);
  e.discrete = discrete;
  e.actions.resize(discrete ? 1 : 2, steps);
  for (Index t = 0; t < steps; ++t) {
    if (discrete) {
      e.actions(0, t) = static_cast<float>(rng.Index(4));
    } else {
      e.actions.col(t) = Eigen::Vector2f(0.25F, -1.0F);
    }
  }
  e.rewards.resize(steps);
  for (double& r : e.rewards) r = rng.Normal() * 1e-3;
  e.geometry.resize(3, steps + 1);
  fill(e.geometry);
  e.reward_scale = 0.5;
  e.terminated = discrete;
  e.truncated = !discrete;
  e.values["mc"].resize(steps + 1);
  fill(e.values["mc"]);
  e.facts["skill"] = -0.25;
  return e;
}

EpisodeFile Example() {
  EpisodeFile file;
  file.lift_id = "0123456789abcdef";
  file.action_code_size = 4;
  file.attributes = {{"split", "train"}, {"seed", "3"}};
  file.episodes = {Episode(true, 4, 1), Episode(false, 1, 2), Episode(false, 7, 3)};
  return file;
}

EpisodeFile Parse(std::string_view bytes) {
  return ParseEpisodes(std::as_bytes(std::span(bytes)), "test");
}

// The file of changed contents, refused by the reader with this text.
template <typename Change>
std::string Refused(Change change) {
  EpisodeFile file = Example();
  change(file);
  return UserErrorText([&] { RequireValid(file, "test"); });
}

TEST(EpisodeFile, RoundTripKeepsAllContents) {
  const EpisodeFile file = Example();
  const EpisodeFile again = Parse(EncodeEpisodes(file));
  EXPECT_EQ(again.ContentHash(), file.ContentHash());
  EXPECT_EQ(again.attributes, file.attributes);
  EXPECT_EQ(again.TotalSteps(), 12);
  ASSERT_EQ(again.episodes.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    const StoredEpisode& a = file.episodes[k];
    const StoredEpisode& b = again.episodes[k];
    EXPECT_EQ(a.env, b.env);
    EXPECT_EQ(a.seed, b.seed);
    EXPECT_EQ(a.instance, b.instance);
    EXPECT_EQ(a.discrete, b.discrete);
    EXPECT_EQ(a.observations, b.observations);
    EXPECT_EQ(a.actions, b.actions);
    EXPECT_EQ(a.rewards, b.rewards);
    EXPECT_EQ(a.geometry, b.geometry);
    EXPECT_EQ(a.reward_scale, b.reward_scale);
    EXPECT_EQ(a.terminated, b.terminated);
    EXPECT_EQ(a.truncated, b.truncated);
    EXPECT_EQ(a.values, b.values);
    EXPECT_EQ(a.facts, b.facts);
  }
  EXPECT_EQ(EncodeEpisodes(file), EncodeEpisodes(again));
}

TEST(EpisodeFile, HashSeesEveryPart) {
  const std::string hash = Example().ContentHash();
  const auto changed = [&hash](auto change) {
    EpisodeFile file = Example();
    change(file);
    return file.ContentHash() != hash;
  };
  EXPECT_FALSE(changed([](EpisodeFile&) {}));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.attributes["seed"] = "4"; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[1].seed++; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[1].observations(0, 0) += 1.0F; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[0].actions(0, 1) += 1.0F; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[2].rewards[6] += 1e-12; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[2].values["mc"][3] += 1.0F; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[2].facts["skill"] = 0.0; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { f.episodes[0].terminated = false; }));
  EXPECT_TRUE(changed([](EpisodeFile& f) { std::swap(f.episodes[1], f.episodes[2]); }));
}

TEST(EpisodeFile, SegmentsShowGeometryActionCodeAndScaledReward) {
  const StoredEpisode e = Episode(true, 4, 1);
  const Segment segment = ToSegment(e, 6);
  EXPECT_EQ(segment.x, e.geometry.cast<double>());
  EXPECT_EQ(segment.a.rows(), 6);
  for (Index t = 0; t < 4; ++t) {
    EXPECT_EQ(segment.a.col(t).sum(), 1.0);
    EXPECT_EQ(segment.a(std::lround(e.actions(0, t)), t), 1.0);
    EXPECT_EQ(segment.r[t], e.rewards[t] / 0.5);
  }
  const Segment moves = ToSegment(Episode(false, 2, 1), 6);
  EXPECT_EQ(moves.a.col(1), (Eigen::VectorXd(6) << 0.25, -1, 0, 0, 0, 0).finished());
}

TEST(EpisodeFile, IsReadAsTrajectories) {
  const fs::path path =
      fs::temp_directory_path() / ("msrl_episodes_" + std::to_string(getpid()) + ".h5");
  WriteEpisodes(path, Example());
  const TrajectoryFile file = ReadTrajectories(path);
  fs::remove(path);
  EXPECT_EQ(file.d, 3);
  EXPECT_EQ(file.q, 4);
  ASSERT_EQ(file.trajectories.size(), 3u);
  EXPECT_EQ(file.trajectories[2].name, "episode_2 point");
  EXPECT_EQ(file.trajectories[2].segment.horizon(), 7);
}

TEST(EpisodeFile, DamageNeverReachesTheLibrary) {
  const std::string good = EncodeEpisodes(Example());
  EXPECT_NE(UserErrorText([] { Parse(""); }), "no error");
  EXPECT_NE(UserErrorText([] { Parse("nonsense"); }).find("not an HDF5 file"), std::string::npos);
  for (const std::size_t size : {std::size_t{10}, std::size_t{512}, good.size() - 1}) {
    EXPECT_NE(UserErrorText([&] { Parse(std::string_view(good).substr(0, size)); }), "no error");
  }
  Rng rng(1, "damage");
  for (int i = 0; i < 50; ++i) {
    std::string bad = good;
    const auto place = static_cast<std::size_t>(512 + rng.Index(std::ssize(good) - 512));
    bad[place] = static_cast<char>(bad[place] ^ 1);
    EXPECT_NE(UserErrorText([&] { Parse(bad); }).find("damaged"), std::string::npos) << place;
  }
}

TEST(EpisodeFile, RefusesWhatCannotBe) {
  EXPECT_EQ(Refused([](EpisodeFile&) {}), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes.clear(); }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.gamma = 1.0; }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[0].actions(0, 0) = 4.0F; }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[0].actions(0, 0) = 0.5F; }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[1].geometry(0, 0) = NAN; }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[1].rewards[0] = INFINITY; }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[1].reward_scale = 0.0; }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[1].values["mc"].resize(1); }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[2].geometry.resize(4, 8); }), "no error");
  EXPECT_NE(Refused([](EpisodeFile& f) { f.episodes[2].observations.resize(4, 7); }), "no error");
}

// Files that HDF5 can read, but that are no episodes.
TEST(EpisodeFile, RefusesOtherHdf5Files) {
  internal::H5Writer writer;
  writer.TextAttribute("", "format", "something else");
  EXPECT_NE(UserErrorText([&] { Parse(writer.Finish()); }).find("not a file of episodes"),
            std::string::npos);
  internal::H5Writer empty;
  EXPECT_NE(UserErrorText([&] { Parse(empty.Finish()); }), "no error");
  internal::H5Writer half;
  half.TextAttribute("", "format", "msrl-episodes");
  half.IntAttribute("", "version", 1);
  half.TextAttribute("", "lift_id", "x");
  half.IntAttribute("", "action_code_size", 4);
  half.DoubleAttribute("", "gamma", 0.9);
  half.IntAttribute("", "total_episodes", 1);
  half.Doubles("episode_0/rewards", std::vector<double>{1.0}, {1});
  EXPECT_NE(UserErrorText([&] { Parse(half.Finish()); }).find("episode_0"), std::string::npos);
}

// How they come from the child that reads strangers' files.
TEST(EpisodeFile, PackedEpisodesAreTheSameOrRefused) {
  const EpisodeFile file = Example();
  const std::string packed = PackEpisodes(file);
  const auto unpack = [](std::string_view bytes) {
    return UnpackEpisodes(std::as_bytes(std::span(bytes)), "test");
  };
  EXPECT_EQ(unpack(packed).ContentHash(), file.ContentHash());
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_THROW(unpack(std::string_view(packed).substr(0, size)), UserError) << size;
  }
  EXPECT_THROW(unpack(packed + "x"), UserError);
  EpisodeFile bad = Example();
  bad.episodes[1].rewards[0] = std::nan("");
  EXPECT_THROW(unpack(PackEpisodes(bad)), UserError);
  EXPECT_EQ(ParseInChild("test", 100, [&] { return file; }).ContentHash(), file.ContentHash());
}

}  // namespace
}  // namespace msrl
