#include "msrl/transfer/collect.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::Tol;
using testing::UserErrorText;

CollectOptions Small(std::vector<ValueTarget> targets = {ValueTarget::kMonteCarlo}) {
  CollectOptions options;
  options.episodes = 24;
  options.seed = 5;
  options.targets = std::move(targets);
  return options;
}

TEST(Collect, IsDecidedByItsOptions) {
  const EpisodeFile file = Collect(Small(), BuiltinEnvs(), BuiltinAgents());
  EXPECT_EQ(file.ContentHash(), Collect(Small(), BuiltinEnvs(), BuiltinAgents()).ContentHash());
  CollectOptions other = Small();
  other.seed = 6;
  EXPECT_NE(file.ContentHash(), Collect(other, BuiltinEnvs(), BuiltinAgents()).ContentHash());
  // more episodes begin with the same ones
  CollectOptions longer = Small();
  longer.episodes = 30;
  EpisodeFile more = Collect(longer, BuiltinEnvs(), BuiltinAgents());
  more.episodes.resize(24);
  EXPECT_EQ(file.ContentHash(), more.ContentHash());
}

TEST(Collect, SourcesHaveSettings) {
  CollectOptions options = Small();
  options.sources = {"point-rooms", "micro-grid"};
  options.settings = {"point-rooms.layout=corridor", "point-rooms.detour=true"};
  const EpisodeFile file = Collect(options, BuiltinEnvs(), BuiltinAgents());
  EXPECT_EQ(file.attributes.at("settings"), "point-rooms.layout=corridor,point-rooms.detour=true");
  for (const StoredEpisode& episode : file.episodes) {
    EXPECT_EQ(episode.instance.find("corridor") != std::string::npos, episode.env == "point-rooms")
        << episode.instance;
  }
  CollectOptions plain = options;
  plain.settings.clear();
  EXPECT_NE(plain.Fingerprint(), options.Fingerprint());
}

TEST(Collect, GoesOnWhereItWasStopped) {
  const auto work =
      std::filesystem::path(::testing::TempDir()) / StrCat("collect_test_work_", getpid());
  std::filesystem::remove_all(work);
  CollectOptions options = Small({ValueTarget::kMonteCarlo});
  options.episodes = 520;
  const std::string whole = Collect(options, BuiltinEnvs(), BuiltinAgents()).ContentHash();
  options.work = work;
  struct Stopped {};
  int played = 0;
  const auto collect = [&](int stop) {
    return Collect(options, BuiltinEnvs(), BuiltinAgents(), [&](std::string_view, int done, int) {
      ++played;
      if (done == stop) throw Stopped{};
    });
  };
  EXPECT_THROW(collect(200), Stopped);
  EXPECT_THROW(collect(511), Stopped);
  EXPECT_EQ(std::exchange(played, 0), 200 + 511);
  EXPECT_EQ(collect(-1).ContentHash(), whole);
  EXPECT_EQ(played, 20);
  // what other options have kept is not taken
  options.seed = 6;
  EXPECT_NE(collect(-1).ContentHash(), whole);
  std::filesystem::remove_all(work);
}

TEST(Collect, SourcesInTurnWithAllTheirVariety) {
  CollectOptions options = Small();
  options.episodes = 160;
  const EpisodeFile file = Collect(options, BuiltinEnvs(), BuiltinAgents());
  EXPECT_NO_THROW(RequireValid(file, "test"));
  const std::vector<std::string> families = SourceFamilies(BuiltinEnvs());
  EXPECT_GE(families.size(), 4u);
  std::set<double> styles;
  std::set<Index> lengths;
  int dead = 0;
  int anti = 0;
  int experts = 0;
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    const StoredEpisode& e = file.episodes[k];
    EXPECT_EQ(e.env, families[k % families.size()]);
    styles.insert(e.facts.at("style"));
    lengths.insert(e.horizon());
    dead += e.facts.at("slot_mask") != 255.0 ? 1 : 0;
    anti += e.facts.at("skill") < 0.0 ? 1 : 0;
    experts += e.facts.at("skill") == 1.0 ? 1 : 0;
  }
  EXPECT_GE(styles.size(), 5u);
  EXPECT_GE(lengths.size(), 30u);
  EXPECT_GT(dead, 20);
  EXPECT_LT(dead, 60);
  EXPECT_GT(anti, 8);
  EXPECT_GT(experts, 8);
}

TEST(Collect, SplitsShareNoLayout) {
  CollectOptions options = Small();
  std::set<std::string> train;
  for (const StoredEpisode& e : Collect(options, BuiltinEnvs(), BuiltinAgents()).episodes)
    train.insert(e.env + e.instance);
  options.split = Split::kHeldOut;
  for (const StoredEpisode& e : Collect(options, BuiltinEnvs(), BuiltinAgents()).episodes) {
    EXPECT_EQ(train.count(e.env + e.instance), 0u);
  }
}

TEST(Collect, MonteCarloIsTheDiscountedRest) {
  for (const StoredEpisode& e : Collect(Small(), BuiltinEnvs(), BuiltinAgents()).episodes) {
    const Eigen::VectorXf& v = e.values.at("mc");
    ASSERT_EQ(v.size(), e.horizon() + 1);
    for (Index t = 0; t < e.horizon(); ++t) {
      EXPECT_NEAR(v[t], e.rewards[t] / e.reward_scale + 0.99 * v[t + 1], Tol(1e-4));
    }
    const Index tail = std::min<Index>(15, e.horizon());
    const double rest = e.terminated ? 0.0 : e.rewards.tail(tail).mean() / 0.01;
    EXPECT_NEAR(v[e.horizon()], rest, Tol(1e-4));
  }
  const Eigen::VectorXd rest = DiscountedRest(Eigen::Vector2d(1.0, 2.0), 4.0, 0.5);
  EXPECT_EQ(rest, Eigen::Vector3d(3.0, 4.0, 4.0));
}

TEST(Collect, ExpertValuesAreThoseOfTheStates) {
  CollectOptions options = Small({ValueTarget::kExpert});
  options.episodes = 4;
  for (const StoredEpisode& e : Collect(options, BuiltinEnvs(), BuiltinAgents()).episodes) {
    const std::string settings[] = {"dead_slots=0.25"};
    const auto env = MakeEnv(e.env, settings);
    env->Reset(e.seed);
    EXPECT_NEAR(e.values.at("expert")[0], ExpertValue(*env), Tol(1e-4)) << e.env;
    EXPECT_EQ(env->InstanceText(), e.instance);
    if (e.terminated) {
      EXPECT_EQ(e.values.at("expert")[e.horizon()], 0.0F);
    }
  }
}

TEST(Collect, Mistakes) {
  const auto error = [](auto change) {
    return UserErrorText([&] {
      CollectOptions options = Small();
      change(options);
      Collect(options, BuiltinEnvs(), BuiltinAgents());
    });
  };
  EXPECT_NE(error([](CollectOptions& o) { o.sources = {"micro-gird"}; }).find("did you mean"),
            std::string::npos);
  EXPECT_NE(error([](CollectOptions& o) { o.sources = {"hopper"}; }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { o.sources = {"micro-grid", "micro-grid"}; }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { SetField(o, "split=test"); }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { SetField(o, "targets=best"); }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { o.targets.clear(); }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { o.episodes = 0; }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { o.dead_slots = 2.0; }), "no error");
  EXPECT_NE(error([](CollectOptions& o) { o.settings = {"point-rooms"}; }), "no error");
  EXPECT_EQ(
      error([](CollectOptions& o) { o.settings = {"point-room.detour=true"}; }),
      "'point-room.detour=true' does not begin with one of the sources and a point; did you mean "
      "'point-rooms'?");
  EXPECT_NE(
      error([](CollectOptions& o) { o.settings = {"point-rooms.detuor=true"}; }).find("detour"),
      std::string::npos);
  EXPECT_NE(error([](CollectOptions& o) {
              o.settings = {"point-rooms.split=held-out"};
            }).find("is set by collect itself"),
            std::string::npos);
  EXPECT_NE(error([](CollectOptions& o) {
              o.settings = {"point-rooms.detour=true"};
              o.targets = {ValueTarget::kCritic};
            }).find("critic"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
