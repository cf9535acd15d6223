#include "msrl/sweep/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "msrl/builtin/builtin.h"
#include "msrl/core/check.h"
#include "msrl/paper/figures.h"
#include "msrl/run/run_directory.h"
#include "msrl/sweep/ledger.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/value_branch_pretrainer.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood = R"([sweep]
name = "try"
seeds = [10, 11]
steps = 1000

[settings]
hidden_width = 16
critic_layer_norm = true

[source]
episodes = 100

[[branch]]
name = "shape"
updates = 50
seeds = [1, 2, 3]
settings = { width = 16 }

[[env]]
id = "reacher"

[[env]]
id = "antmaze-umaze"
settings = { reward = "dense" }

[[method]]
name = "ppo"
agent = "ppo"

[[method]]
name = "sac"
agent = "sac"
envs = ["reacher"]
settings = { hidden_width = 24 }

[[method]]
name = "msrl"
agent = "msrl"
init = "shape"
)";

std::string With(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

SweepPlan Plan(const std::string& text) {
  return MakePlan(ParseSweepSpec(text, "my.toml"), BuiltinRegistries());
}

std::string ErrorOf(const std::string& from, const std::string& to) {
  try {
    Plan(With(kGood, from, to));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PlanTest, RunsAreEnvironmentsTimesMethodsTimesSeeds) {
  const SweepPlan plan = Plan(kGood);
  ASSERT_EQ(plan.runs.size(), 10U);  // sac in one environment only
  EXPECT_EQ(plan.runs[0].path, "reacher/ppo/10");
  EXPECT_EQ(plan.runs[5].path, "reacher/ppo/11");  // seed by seed
  EXPECT_EQ(plan.envs[0].family, "Reacher/Pusher");
  EXPECT_EQ(plan.envs[1].family, "AntMaze");
  EXPECT_EQ(plan.source->targets, (std::vector<std::string>{"expert"}));
  // a run takes the branch of its seed modulo their number
  EXPECT_EQ(plan.runs[2].path, "reacher/msrl/10");
  EXPECT_EQ(plan.runs[2].branch, "source/shape-2.safetensors");
  EXPECT_EQ(plan.runs[7].branch, "source/shape-3.safetensors");
}

TEST(PlanTest, SharedSettingsGoToThoseThatKnowThem) {
  const SweepPlan plan = Plan(kGood);
  using Settings = std::vector<std::string>;
  EXPECT_EQ(plan.methods[0].settings, (Settings{"hidden_width=16"}));
  EXPECT_EQ(plan.methods[1].settings, (Settings{"critic_layer_norm=true", "hidden_width=24"}));
  EXPECT_EQ(plan.methods[2].settings, (Settings{"hidden_width=16", "critic_layer_norm=true"}));
  const SweepPlan own = Plan(With(kGood, "agent = \"ppo\"", "agent = \"ppo\"\nshared = false"));
  EXPECT_TRUE(own.methods[0].settings.empty());
  EXPECT_EQ(plan.methods[0].role, "baseline");
  EXPECT_EQ(plan.methods[2].role, "transfer");
}

TEST(PlanTest, WhatEnvironmentsAndAgentsRefuseIsSaidWithItsLine) {
  struct Mistake {
    const char* from;
    const char* to;
    const char* error;
  };
  const Mistake mistakes[] = {
      {"id = \"reacher\"", "id = \"reachr\"\nname = \"reacher\"",
       "my.toml:19: unknown environment 'reachr'; did you mean 'reacher'?"},
      {"reward = \"dense\"", "reword = \"dense\"",
       "my.toml:24: environment 'antmaze-umaze' has no option 'reword'; did you mean 'reward'?"},
      {"reward = \"dense\"", "reward = \"dens\"", "my.toml:22: "},
      {"agent = \"ppo\"", "agent = \"pp\"", "my.toml:26: unknown agent 'pp'; did you mean 'ppo'?"},
      {"hidden_width = 16", "hiden_width = 16",
       "my.toml:7: no agent of this sweep has the setting 'hiden_width'; did you mean"},
      {"hidden_width = 16", "hidden_width = \"wide\"", "my.toml:7: method 'ppo': "},
      {"hidden_width = 24", "hidden_widht = 24", "my.toml:34: method 'sac': "},
      {"hidden_width = 24", "hidden_width = -4",
       "my.toml:34: method 'sac': setting 'hidden_width' must be 1 to 8192, got -4"},
      {"settings = { width = 16 }", "settings = { widht = 16 }", "my.toml:17: "},
      {"settings = { width = 16 }", "settings = { updates = 16 }",
       "my.toml:17: updates is a key of its own here, no setting"},
      {"updates = 50", "control = \"shufled\"", "my.toml:13: branch 'shape': "},
      {"[[branch]]", "[[pretrain]]\nkind = \"value-branhc\"",
       "my.toml:13: branch 'shape': unknown kind of pretraining 'value-branhc'; did you mean "
       "'value-branch'?"},
      {"settings = { width = 16 }", "settings = { width = 0 }",
       "my.toml:17: setting 'width' must be 1 to 4096, got 0"},
      {"settings = { width = 16 }", "settings = { batch = 0 }",
       "my.toml:17: setting 'batch' must be 2 to 65536 and even, got 0"},
      {"settings = { width = 16 }", "settings = { oracle = \"both\" }",
       "my.toml:17: a network with oracle inputs is no branch"},
      {"settings = { width = 16 }", "settings = { lift = \"compact-no-action\" }",
       "its lift is 'compact', that of branch 'shape' is 'compact-no-action'"},
      {"settings = { width = 16 }", "control = \"unaligned\"",
       "branch 'shape' is of another lift; say unaligned = true"},
      {"init = \"shape\"", "init = \"shape\"\nunaligned = true",
       "branch 'shape' is aligned; take out unaligned = true"},
      {"agent = \"sac\"", "agent = \"sac\"\ninit = \"shape\"",
       "my.toml:30: method 'sac': agent 'sac' takes no value-branch over"},
      {"agent = \"sac\"", "agent = \"dqn\"", "my.toml:30: method 'sac' in 'reacher': "},
      {"episodes = 100", "targets = [\"mc\"]", "which [source] targets does not name"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string error = ErrorOf(mistake.from, mistake.to);
    EXPECT_NE(error.find(mistake.error), std::string::npos)
        << mistake.from << " -> " << mistake.to << "\n  wanted " << mistake.error << "\n  got    "
        << error;
  }
}

TEST(PlanTest, IdentitiesFollowEverythingThatResultsDependOn) {
  const SweepPlan plan = Plan(kGood);
  std::set<std::string> seen;
  for (const PlannedRun& run : plan.runs) {
    EXPECT_EQ(run.identity.size(), 16U);
    EXPECT_TRUE(seen.insert(run.identity).second) << run.path;
  }
  const auto same = [&](const SweepPlan& other, std::size_t r) {
    return other.runs[r].identity == plan.runs[r].identity;
  };
  const SweepPlan again = Plan(kGood);
  for (std::size_t r = 0; r < plan.runs.size(); ++r) EXPECT_TRUE(same(again, r));
  // a default that is written out changes nothing, nor does what is only shown
  EXPECT_TRUE(same(Plan(With(kGood, "hidden_width = 16", "hidden_width = 16\ngamma = 0.99")), 0));
  EXPECT_TRUE(same(Plan(With(kGood, "agent = \"ppo\"", "agent = \"ppo\"\ntitle = \"P\"")), 0));
  // runs 0: ppo, 1: sac, 2: msrl, which alone has a branch
  const auto changed = [&](const char* from, const char* to, bool ppo, bool sac, bool msrl) {
    const SweepPlan other = Plan(With(kGood, from, to));
    EXPECT_EQ(!same(other, 0), ppo) << to;
    EXPECT_EQ(!same(other, 1), sac) << to;
    EXPECT_EQ(!same(other, 2), msrl) << to;
  };
  changed("hidden_width = 16", "hidden_width = 17", true, false, true);
  changed("hidden_width = 24", "hidden_width = 25", false, true, false);
  changed("seeds = [10, 11]", "seeds = [12, 11]", true, true, true);
  changed("steps = 1000", "steps = 1001", true, true, true);
  changed("steps = 1000", "steps = 1000\neval_every = 11", true, true, true);
  changed("steps = 1000", "steps = 1000\neval_episodes = 11", true, true, true);
  changed("steps = 1000", "steps = 1000\nlog_every = 11", true, true, true);
  changed("episodes = 100", "episodes = 101", false, false, true);
  changed("updates = 50", "updates = 51", false, false, true);
  changed("seeds = [1, 2, 3]", "seeds = [1, 4, 3]", false, false, true);
  changed("settings = { width = 16 }", "settings = { width = 16, batch = 32 }", false, false, true);
  const PlannedRun& run = plan.runs[0];
  const RunSpec spec = plan.ResolvedSpecOf(run, BuiltinRegistries());
  EXPECT_EQ(Identity(plan, run, spec, BuiltinPretrainers(), plan.version, plan.commit),
            run.identity);
  EXPECT_NE(Identity(plan, run, spec, BuiltinPretrainers(), "9.9.9", plan.commit), run.identity);
  EXPECT_NE(Identity(plan, run, spec, BuiltinPretrainers(), plan.version, "abc"), run.identity);
}

TEST(PlanTest, JsonAndBack) {
  SweepPlan plan = Plan(kGood);
  plan.command = "msrl sweep my.toml";
  const std::string text = ToJson(plan);
  EXPECT_EQ(ToJson(PlanFromJson(text, "sweep.json")), text);
  for (const char* bad : {"", "{}", "[]", R"({"format": "msrl-run"})"}) {
    EXPECT_THROW(PlanFromJson(bad, "sweep.json"), UserError) << bad;
  }
  // whatever is cut off or overwritten: an error or a plan, never a crash or a path that leaves
  for (std::size_t cut = 0; cut < text.size(); cut += 37) {
    EXPECT_THROW(PlanFromJson(text.substr(0, cut), "sweep.json"), UserError);
  }
  EXPECT_THROW(PlanFromJson(With(text, "\"name\": \"reacher\"", "\"name\": \"../reacher\""), "s"),
               UserError);
}

TEST(PlanTest, BranchIsTheFirstKindOfPretraining) {
  const SweepPlan plan = Plan(kGood);
  EXPECT_EQ(plan.branches[0].kind, BuiltinPretrainers().begin()->id);
  const std::string generic =
      With(kGood, "[[branch]]", "[[pretrain]]\nkind = \"value-branch\"\nobjective = \"shape\"");
  EXPECT_EQ(ToJson(Plan(generic)), ToJson(plan));
  // without an objective it is the kind's own, as by msrl pretrain
  const SweepPlan plain = Plan(With(With(kGood, "[[branch]]", "[[pretrain]]"), "updates = 50", ""));
  EXPECT_EQ(plain.branches[0].updates, PretrainConfig().updates);
  EXPECT_EQ(plain.source->targets, (std::vector<std::string>{"fitted"}));
  EXPECT_EQ(plain.methods[2].role, "transfer");
}

TEST(PlanTest, AProgramMayHavePretrainersOfItsOwn) {
  Registries own = BuiltinRegistries();
  PretrainerEntry mine = own.pretrainers.Find("value-branch");
  mine.id = "mine";
  own.pretrainers.Add(mine);
  const std::string text = With(kGood, "[[branch]]", "[[pretrain]]\nkind = \"mine\"");
  const SweepSpec spec = ParseSweepSpec(text, "my.toml");
  EXPECT_EQ(MakePlan(spec, own).branches[0].kind, "mine");
  EXPECT_NE(testing::UserErrorText([&] {
              MakePlan(spec, BuiltinRegistries());
            }).find("my.toml:13: branch 'shape': unknown kind of pretraining 'mine'"),
            std::string::npos);
  own.pretrainers = PretrainerRegistry({mine});
  EXPECT_EQ(MakePlan(ParseSweepSpec(kGood, "my.toml"), own).branches[0].kind, "mine");
}

TEST(PlanTest, PlansFromBeforeThereWereKindsAndLibrariesAreRead) {
  const std::string text = ToJson(Plan(kGood));
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(text);
  json["branches"][0].erase("kind");
  json["methods"][2].erase("library");
  EXPECT_EQ(ToJson(PlanFromJson(json.dump(), "sweep.json")), text);
}

TEST(PlanTest, JsonThatDoesNotFitIsRefused) {
  const std::string text = ToJson(Plan(kGood));
  const auto refusal = [&text](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(text);
    change(json);
    return testing::UserErrorText([&] { PlanFromJson(json.dump(), "sweep.json"); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "no error");
  EXPECT_NE(refusal([](auto& j) { j["format_version"] = 2; }).find("format version 2; this is"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j["runs"].push_back(j["runs"][0]); }).find("listed twice"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j["runs"][0]["method"] = "n"; }).find("no 'n'"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j["methods"].push_back(j["methods"][0]); }).find("listed twice"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j["methods"][0]["role"] = "best"; }).find("unknown role 'best'"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j["few_shot"] = 0; }).find("few_shot"), std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j.erase("runs"); }).find("damaged"), std::string::npos);
  EXPECT_NE(refusal([](auto& j) { j["branches"][0]["seeds"].clear(); }).find("without seeds"),
            std::string::npos);
}

TEST(PlanTest, ASweepMayGrowButNotChange) {
  const SweepPlan plan = Plan(kGood);
  const auto grows = [&](const char* from, const char* to) {
    try {
      RequireGrown(plan, Plan(With(kGood, from, to)), "here");
    } catch (const UserError& error) {
      const std::string said = error.what();
      EXPECT_EQ(said.find("here holds another sweep: "), 0U) << said;
      EXPECT_NE(said.find("put it back"), std::string::npos) << said;
      return false;
    }
    return true;
  };
  EXPECT_TRUE(grows("seeds = [10, 11]", "seeds = [10, 11, 12]"));
  EXPECT_TRUE(grows("envs = [\"reacher\"]", "title = \"SAC\""));
  EXPECT_TRUE(grows("[[method]]", "[[method]]\nname = \"td3\"\nagent = \"td3\"\n\n[[method]]"));
  EXPECT_FALSE(grows("seeds = [10, 11]", "seeds = [10]"));
  EXPECT_FALSE(grows("steps = 1000", "steps = 2000"));
  EXPECT_FALSE(grows("hidden_width = 24", "hidden_width = 25"));
  EXPECT_FALSE(grows("updates = 50", "updates = 60"));
  EXPECT_FALSE(grows("episodes = 100", "episodes = 101"));
  EXPECT_FALSE(grows("name = \"try\"", "name = \"other\""));
  EXPECT_FALSE(grows("steps = 1000", "steps = 1000\nlog_every = 7"));
}

TEST(PlanTest, TasksComeAfterWhatTheyNeed) {
  const SweepPlan plan = Plan(kGood);
  const std::vector<SweepTask> tasks = TasksOf(plan);
  std::set<std::string> paths;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_TRUE(paths.insert(tasks[i].path).second);
    for (const std::size_t need : tasks[i].needs) EXPECT_LT(need, i);
  }
  // seeds 10 and 11 need branches 2 and 3, not 1
  EXPECT_FALSE(paths.contains("source/shape-1.safetensors"));
  EXPECT_EQ(tasks.size(), 2 + 2 + plan.runs.size());
}

TEST(PlanTest, OnlyWhatIsSelectedIsWanted) {
  const SweepPlan plan = Plan(kGood);
  const SweepDirectory nowhere("/nonexistent/sweep");
  const auto wanted = [&](const char* text) {
    std::vector<std::string> paths;
    const Ledger ledger(nowhere, plan, SweepSelection::Parse(text, plan));
    for (const TaskEntry& entry : ledger.entries()) {
      if (entry.wanted) paths.push_back(entry.task.path);
    }
    return paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(wanted("").size(), 14U);
  EXPECT_EQ(wanted("method=sac"), (Paths{"reacher/sac/10", "reacher/sac/11"}));
  EXPECT_EQ(wanted("env=reacher,method=msrl,seed=10"),
            (Paths{kTrainData, kHeldOutData, "source/shape-2.safetensors", "reacher/msrl/10"}));
  for (const char* bad : {"env=x", "method=saq", "seed=9", "reacher", "what=1", "env"}) {
    EXPECT_THROW(SweepSelection::Parse(bad, plan), UserError) << bad;
  }
}

TEST(PlanTest, AllPresetsCanBeCarriedOut) {
  int presets = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(MSRL_SOURCE_DIR) / "configs")) {
    SCOPED_TRACE(entry.path().string());
    const SweepPlan plan = MakePlan(ReadSweepSpec(entry.path()), BuiltinRegistries());
    EXPECT_EQ(plan.name, entry.path().stem().string());
    EXPECT_FALSE(plan.runs.empty());
    for (const std::uint64_t seed : plan.seeds) EXPECT_GE(seed, 100U);  // 0-9 are for tuning
    ++presets;
  }
  EXPECT_EQ(presets, 8);
}

// The paper's main table has a row for each of these.
TEST(PlanTest, PresetsHaveEveryMethodOfThePaper) {
  const std::set<std::string> rows{"ppo",
                                   "sac",
                                   "td3",
                                   "mbpo",
                                   "dreamerv3",
                                   "tdmpc",
                                   "uvfa",
                                   "dbc",
                                   "sf-gpi",
                                   "traj2value-rnn",
                                   "traj2value-transformer",
                                   "subgraph-gnn",
                                   "dreamerv3-pt",
                                   "tdmpc-pt",
                                   "msrl-no-library",
                                   "msrl-no-obstruction",
                                   "msrl-scratch",
                                   "msrl-init"};
  for (const char* preset : {"smoke", "lab", "paper"}) {
    SCOPED_TRACE(preset);
    const fs::path file = fs::path(MSRL_SOURCE_DIR) / "configs" / StrCat(preset, ".toml");
    std::set<std::string> missing = rows;
    for (const SweepMethod& method : ReadSweepSpec(file).methods) missing.erase(method.paper);
    EXPECT_EQ(missing, std::set<std::string>{});
  }
  for (const std::string& row : rows) {
    EXPECT_TRUE(FindPaperFigure("control", row, "Average").has_value()) << row;
  }
}

}  // namespace
}  // namespace msrl
