#include "msrl/transfer/source_critic.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/statistics.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/pretrainer.h"

namespace msrl {
namespace {

using testing::UserErrorText;

CollectOptions Small(Split split = Split::kTrain) {
  CollectOptions options;
  options.episodes = 8;
  options.split = split;
  options.targets = {ValueTarget::kCritic};
  options.critic_steps = 300;
  return options;
}

bool SameValues(const StoredEpisode& a, const StoredEpisode& b) {
  return a.seed == b.seed && a.values.at("critic") == b.values.at("critic");
}

TEST(SourceCritic, EveryStateHasOneAndTheEndOfATerminatedEpisodeNone) {
  CollectOptions options = Small();
  options.episodes = 40;
  int terminated = 0;
  for (const StoredEpisode& e : Collect(options, BuiltinEnvs(), BuiltinAgents()).episodes) {
    const Eigen::VectorXf& v = e.values.at("critic");
    ASSERT_EQ(v.size(), e.horizon() + 1);
    EXPECT_TRUE(v.allFinite());
    EXPECT_NE(v[0], 0.0F);
    EXPECT_EQ(v[e.horizon()] == 0.0F, e.terminated) << e.env;
    terminated += e.terminated ? 1 : 0;
  }
  EXPECT_GT(terminated, 0);
}

TEST(SourceCritic, OneFunctionOfTheObservationPerFamilyAndSeed) {
  const EpisodeFile file = Collect(Small(), BuiltinEnvs(), BuiltinAgents());
  EXPECT_EQ(file.attributes.at("critic_steps"), "300");
  // the other families and the number of episodes do not matter
  CollectOptions alone = Small();
  alone.sources = {file.episodes[1].env};
  alone.episodes = 1;
  EXPECT_TRUE(
      SameValues(Collect(alone, BuiltinEnvs(), BuiltinAgents()).episodes[0], file.episodes[1]));
  CollectOptions other = Small();
  other.seed = 1;
  EXPECT_NE(Collect(other, BuiltinEnvs(), BuiltinAgents()).ContentHash(), file.ContentHash());
  // nor does the split that the states are of: here the same states, said to be of two splits
  EpisodeFile copy = file;
  for (StoredEpisode& e : copy.episodes) e.values.clear();
  copy.attributes["split"] = "held-out";
  AddCriticValues(copy, BuiltinEnvs(), BuiltinAgents(), {.steps = 300});
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    EXPECT_TRUE(SameValues(copy.episodes[k], file.episodes[k])) << k;
  }
  // what the agent does not see: geometry, facts, rewards of the file
  for (StoredEpisode& e : copy.episodes) {
    e.geometry.setZero();
    e.rewards.setZero();
    e.facts.clear();
  }
  AddCriticValues(copy, BuiltinEnvs(), BuiltinAgents(), {.steps = 300});
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    EXPECT_TRUE(SameValues(copy.episodes[k], file.episodes[k])) << k;
  }
  copy.episodes[0].observations.setZero();
  AddCriticValues(copy, BuiltinEnvs(), BuiltinAgents(), {.steps = 300});
  EXPECT_FALSE(SameValues(copy.episodes[0], file.episodes[0]));
}

// Within episodes: what makes one instance richer than another is hidden from the agent.
TEST(SourceCritic, TellsBetterFromWorseStatesOfAnEpisode) {
  struct Case {
    const char* family;
    int steps;
    double at_least;  // about half of what two seeds gave
  };
  for (const Case& each : {Case{"micro-grid", 5000, 0.13}, Case{"point-rooms", 2000, 0.23}}) {
    CollectOptions options;
    options.sources = {each.family};
    options.episodes = 100;
    options.targets = {ValueTarget::kExpert, ValueTarget::kCritic};
    options.critic_steps = each.steps;
    std::vector<double> critic;
    std::vector<double> expert;
    for (const StoredEpisode& e : Collect(options, BuiltinEnvs(), BuiltinAgents()).episodes) {
      const Eigen::VectorXd c = e.values.at("critic").head(e.horizon()).cast<double>();
      const Eigen::VectorXd v = e.values.at("expert").head(e.horizon()).cast<double>();
      for (Index t = 0; t < e.horizon(); ++t) {
        critic.push_back(c[t] - c.mean());
        expert.push_back(v[t] - v.mean());
      }
    }
    EXPECT_GT(SpearmanCorrelation(critic, expert), each.at_least) << each.family;
  }
}

TEST(SourceCritic, GoesThroughTheFileAndIntoPretraining) {
  const auto path =
      std::filesystem::path(::testing::TempDir()) / StrCat("source_critic_test_", getpid(), ".h5");
  std::map<std::string, EpisodeFile> files;
  const PretrainerEntry& pretrainer = BuiltinPretrainers().Find("value-branch");
  const std::vector<std::string> settings{"target=critic", "updates=2"};
  for (const Split split : EnumValues<Split>()) {
    const EpisodeFile file = Collect(Small(split), BuiltinEnvs(), BuiltinAgents());
    WriteEpisodes(path, file);
    const EpisodeFile read = ReadEpisodes(path);
    std::filesystem::remove(path);
    EXPECT_EQ(read.ContentHash(), file.ContentHash());
    for (std::size_t k = 0; k < file.episodes.size(); ++k) {
      EXPECT_TRUE(SameValues(read.episodes[k], file.episodes[k]));
    }
    files[std::string(EnumName(split))] = read;
  }
  const auto ready = pretrainer.prepare(settings, files["train"], files["held-out"]);
  const PretrainJob job{.sources = SourcesOf(files["train"]), .seed = 0, .made = {}};
  const PretrainResult result = RunPretraining(*ready, job, {}).value();
  EXPECT_EQ(Artefact::Parse(result.artefact, "result").header().Made("target"), "critic");
  EXPECT_TRUE(std::isfinite(result.figures.at("rank_correlation")));
}

TEST(SourceCritic, ShowsProgressAndNamesMistakes) {
  CollectOptions options = Small();
  options.episodes = 2;
  options.sources = {"micro-grid", "graph-motif"};
  std::map<std::string, std::vector<int>> seen;
  Collect(options, BuiltinEnvs(), BuiltinAgents(),
          [&](std::string_view stage, int done, int total) {
            seen[std::string(stage)].push_back(done);
            EXPECT_EQ(total, stage == "episodes" ? 2 : 600);
          });
  EXPECT_EQ(seen["episodes"], (std::vector<int>{1, 2}));
  EXPECT_EQ(seen["critics"], (std::vector<int>{100, 200, 300, 400, 500, 600}));

  options.critic_steps = 0;
  EXPECT_NE(
      UserErrorText([&] { Collect(options, BuiltinEnvs(), BuiltinAgents()); }).find("critic_steps"),
      std::string::npos);
  options.targets = {ValueTarget::kMonteCarlo};
  options.critic_steps = 1;
  EpisodeFile file = Collect(options, BuiltinEnvs(), BuiltinAgents());
  file.episodes[0].observations.conservativeResize(3, Eigen::NoChange);
  EXPECT_NE(UserErrorText([&] {
              AddCriticValues(file, BuiltinEnvs(), BuiltinAgents());
            }).find("observations of 3 numbers"),
            std::string::npos);
  file.episodes[0].env = "nowhere";
  EXPECT_NE(UserErrorText([&] { AddCriticValues(file, BuiltinEnvs(), BuiltinAgents()); }),
            "no error");
}

}  // namespace
}  // namespace msrl
