#include "msrl/report/analysis.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "msrl/builtin/builtin.h"
#include "msrl/core/rng.h"
#include "msrl/env_list/env_list.h"
#include "msrl/report/fairness.h"
#include "msrl/run/run_spec.h"
#include "msrl/testing/synthetic_runs.h"
#include "msrl/testing/user_error.h"
#include "msrl/value/matrix_features.h"
#include "msrl/value/value_branch.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;
using testing::UserErrorText;

CodeRecord Code(std::string_view commit) {
  CodeRecord code;
  code.commit = commit;
  return code;
}

// A return that is this far from random to reference.
double ReturnAt(const std::string& env, double normalised) {
  const EnvSpec spec = MakeEnv(env)->spec();
  return spec.random_return->value +
         normalised * (spec.reference_return->value - spec.random_return->value);
}

class AnalysisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_analysis_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The normalised return grows from 0 at the start to `end`, in a straight line.
  void Line(const std::string& env, const std::string& method, const std::string& agent,
            std::uint64_t seed, double end, SyntheticRun run = {}) const {
    run.env = env;
    run.agent = agent;
    run.seed = seed;
    const double first = ReturnAt(env, 0.0), last = ReturnAt(env, end);
    run.mean_return = [first, last](std::int64_t step) {
      return first + (last - first) * static_cast<double>(step) / 1000.0;
    };
    WriteSyntheticRun(folder_ / env / method / std::to_string(seed), run);
  }
  void Sweep(const std::vector<std::string>& envs,
             const std::vector<std::uint64_t>& seeds = {100, 101, 102}) const {
    WriteSyntheticSweep(folder_, {.envs = envs,
                                  .methods = {{"sac", "sac", "baseline", "sac"},
                                              {"scratch", "msrl", "scratch", "msrl-scratch"},
                                              {"msrl", "msrl", "transfer", "msrl-init"},
                                              {"shuffled", "msrl", "control", "msrl-shuffled"}},
                                  .seeds = seeds});
  }
  static const MethodRow& Row(const Analysis& analysis, const std::string& name) {
    for (const MethodRow& row : analysis.rows) {
      if (analysis.methods[static_cast<std::size_t>(row.method)].facts.name == name) return row;
    }
    throw InvariantError("no row " + name);
  }
  fs::path folder_;
};

TEST_F(AnalysisTest, ByHand) {
  Sweep({"reacher"});
  const double ends[] = {0.4, 0.8, 0.6};
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t seed = 100 + static_cast<std::uint64_t>(i);
    Line("reacher", "scratch", "msrl", seed, ends[i]);
    Line("reacher", "msrl", "msrl", seed, ends[i] + 0.08 * (i + 1));
  }
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  ASSERT_EQ(analysis.Columns(), (std::vector<std::string>{"Reacher/Pusher", "Average"}));
  // the mean of a line over the first quarter is an eighth of its end
  const ScoreCell scratch = Row(analysis, "scratch").auc[0].value();
  EXPECT_NEAR(scratch.mean, 0.6 / 8, 1e-12);
  EXPECT_NEAR(*scratch.std, 0.2 / 8, 1e-12);
  EXPECT_EQ(scratch.n, 3);
  EXPECT_NEAR(*scratch.iqm, 0.6 / 8, 1e-12);
  EXPECT_EQ(scratch.paper->mean, 0.67);
  EXPECT_NEAR(Row(analysis, "scratch").final_return[0]->mean, 0.6, 1e-12);
  EXPECT_FALSE(Row(analysis, "sac").auc[0]);
  // best mean final return: msrl with (0.48 + 0.96 + 0.84) / 3 = 0.76
  EXPECT_NEAR(Row(analysis, "msrl").paper_style[0]->mean, 1.0 / 8, 1e-12);
  EXPECT_NEAR(Row(analysis, "scratch").paper_style[0]->mean, 0.6 / 0.76 / 8, 1e-12);
  // 80 % of it is 0.608: of scratch only the line to 0.8 gets there, after 760 steps
  const ThresholdSummary steps = Row(analysis, "scratch").threshold[0].value();
  EXPECT_EQ(steps.reached, 1);
  EXPECT_EQ(steps.n, 3);
  EXPECT_FALSE(steps.median);
  EXPECT_EQ(analysis.scores[1].threshold_step, 800);
  // msrl: 0.48 never, 0.96 after 633, 0.84 after 724
  EXPECT_EQ(Row(analysis, "msrl").threshold[0]->median, 800.0);

  ASSERT_EQ(analysis.gains.size(), 1u);
  const GainEntry& gain = analysis.gains[0];
  EXPECT_NEAR(gain.gain.mean, 0.16 / 8, 1e-12);
  EXPECT_EQ(gain.gain.wins, 3);
  EXPECT_EQ(gain.paper, 0.08);
  // of nine pairs msrl wins 0.48 > 0.4; 0.96 and 0.84 over all three
  EXPECT_NEAR(analysis.improvements[0].probability, 7.0 / 9, 1e-12);
  EXPECT_EQ(analysis.verdicts[0].text, "too few seeds");
}

TEST_F(AnalysisTest, VerdictsNeedFiveSeedsAndAnIntervalWithoutZero) {
  Sweep({"reacher", "hopper"}, {1, 2, 3, 4, 5});
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const double level = 0.3 + 0.1 * static_cast<double>(seed);
    Line("reacher", "scratch", "msrl", seed, level);
    Line("reacher", "msrl", "msrl", seed, level + 0.1 + 0.01 * static_cast<double>(seed));
    Line("hopper", "scratch", "msrl", seed, level);
    Line("hopper", "msrl", "msrl", seed, level + (seed % 2 == 0 ? 0.1 : -0.1));
  }
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  ASSERT_EQ(analysis.verdicts.size(), 3u);  // two tasks and all
  EXPECT_EQ(analysis.verdicts[0].text, "clear gain");
  EXPECT_EQ(analysis.verdicts[1].text, "not clear");
  EXPECT_EQ(analysis.verdicts[2].task, kAllTasks);
  EXPECT_NEAR(analysis.verdicts[2].gain.mean,
              (analysis.verdicts[0].gain.mean + analysis.verdicts[1].gain.mean) / 2, 1e-12);
  EXPECT_EQ(analysis.verdicts[2].gain.n, 5);
  EXPECT_EQ(analysis.verdicts[2].gain.wins, 5);
  EXPECT_TRUE(analysis.JudgesTransfer());
  // not the paper's families: its average is no comparison
  EXPECT_FALSE(analysis.gains[2].paper);
  EXPECT_TRUE(analysis.gains[0].paper);
}

TEST_F(AnalysisTest, AggregatesAreOverMethodsThatHaveEveryTask) {
  Sweep({"reacher", "hopper"}, {1, 2});
  Line("reacher", "sac", "sac", 1, 0.3);  // no Hopper
  const double ends[] = {0.2, 0.4, 0.6, 1.0};
  for (std::uint64_t i = 0; i < 4; ++i) {
    Line(i < 2 ? "reacher" : "hopper", "msrl", "msrl", 1 + i % 2, ends[i]);
  }
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  ASSERT_EQ(analysis.aggregate_curves.size(), 1u);
  ASSERT_EQ(analysis.profiles.size(), 1u);
  const Aggregate& curve = analysis.aggregate_curves[0];
  EXPECT_EQ(analysis.Method(curve.method).name, "msrl");
  ASSERT_EQ(curve.at.size(), 41u);
  EXPECT_NEAR(curve.value.front(), 0.0, 1e-12);
  EXPECT_NEAR(curve.value.back(), 0.5, 1e-12);  // of 0.4 and 0.6, the middle half
  // between two evaluations: at 21 of 40, step 525
  EXPECT_NEAR(curve.at[21], 0.525, 1e-12);
  EXPECT_NEAR(curve.value[21], 0.525 * 0.5, 1e-12);
  EXPECT_LE(*curve.low.back(), 0.5);
  EXPECT_GE(*curve.high.back(), 0.5);
  const Aggregate& profile = analysis.profiles[0];
  for (std::size_t i = 0; i < profile.at.size(); ++i) {
    double above = 0.0;
    for (const double end : ends) above += end > profile.at[i] + 1e-9 ? 0.25 : 0.0;
    if (std::ranges::none_of(ends, [&](double e) { return std::abs(e - profile.at[i]) < 1e-9; })) {
      EXPECT_DOUBLE_EQ(profile.value[i], above) << profile.at[i];
    }
  }
  EXPECT_EQ(profile.at.front(), 0.0);
  EXPECT_EQ(profile.at.back(), 1.0);
}

TEST_F(AnalysisTest, WhatToKnowBeforeTheFigures) {
  Sweep({"hopper"}, {1});
  const auto texts = [this](double few_shot) {
    const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
    std::string all;
    for (const Caution& caution :
         Analyse(records, BuiltinRegistries(), {.few_shot = few_shot}).cautions) {
      all += caution.text + "\n";
    }
    return all;
  };
  Line("hopper", "sac", "sac", 1, -0.5);
  Line("hopper", "msrl", "msrl", 1, -0.4);
  std::string all = texts(1.0);
  EXPECT_NE(all.find("“Random actions” is above every method"), std::string::npos) << all;
  EXPECT_NE(all.find("random steps before learning fill up to 100 %"), std::string::npos) << all;
  Line("hopper", "sac", "sac", 1, 0.5);
  Line("hopper", "msrl", "msrl", 1, 0.5);
  all = texts(1.0);
  EXPECT_EQ(all.find("Random actions"), std::string::npos) << all;
}

TEST_F(AnalysisTest, TheBestVariantIsSelectedOnWhatAllHave) {
  std::vector<SyntheticMethod> methods;
  for (const char* width : {"8", "16", "32", "64"}) {
    const std::string setting = StrCat("hidden_width=", width);
    methods.push_back({.name = StrCat("sac-", width),
                       .agent = "sac",
                       .role = "baseline",
                       .variant_of = "sac",
                       .varied = {setting}});
    for (const char* role : {"scratch", "transfer"}) {
      methods.push_back(
          {.name = StrCat(role, "-", width), .agent = "msrl", .role = role, .varied = {setting}});
    }
  }
  WriteSyntheticSweep(folder_,
                      {.envs = {"reacher", "hopper"}, .methods = methods, .seeds = {1, 2, 3}});
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const char* env : {"reacher", "hopper"}) {
      Line(env, "sac-8", "sac", seed, 0.4);
      Line(env, "sac-16", "sac", seed, env == std::string("hopper") ? 0.9 : 0.5);
      Line(env, "scratch-8", "msrl", seed, 0.4);
      Line(env, "transfer-8", "msrl", seed, 0.4);
      Line(env, "transfer-16", "msrl", seed, 0.4);
    }
  }
  // far ahead in the seed that it has; behind where the others are measured too
  Line("reacher", "sac-32", "sac", 1, 0.6);
  Line("hopper", "sac-32", "sac", 1, 0.6);
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  ASSERT_EQ(analysis.selections.size(), 1u);
  const Selection& selection = analysis.selections[0];
  EXPECT_EQ(selection.of, "sac");
  EXPECT_EQ(analysis.Method(selection.best).name, "sac-16");
  EXPECT_NEAR(selection.score, 0.7 / 8, 1e-12);
  EXPECT_NEAR(selection.next, 0.6 / 8, 1e-12);
  EXPECT_NEAR(selection.last, 0.4 / 8, 1e-12);
  EXPECT_EQ(selection.variants, 4);
  EXPECT_EQ(selection.scored, 3);  // one has no run
  EXPECT_EQ(selection.tasks, 2);
  EXPECT_EQ(selection.seeds, (std::vector<std::uint64_t>{1}));
  EXPECT_FALSE(selection.raw);
  // the gain is that of equal widths
  for (const GainEntry& gain : analysis.gains) {
    const std::string &a = analysis.Method(gain.of.a).name, &b = analysis.Method(gain.of.b).name;
    EXPECT_EQ(a.substr(a.find('-')), b.substr(b.find('-')));
  }
  EXPECT_TRUE(std::ranges::any_of(analysis.gains, [&](const GainEntry& gain) {
    return analysis.Method(gain.of.a).name == "transfer-8" &&
           analysis.Method(gain.of.b).name == "scratch-8";
  }));
}

TEST_F(AnalysisTest, AFamilyIsTheMeanOfItsTasksForSeedsThatHaveAll) {
  Sweep({"reacher", "pusher", "hopper"});
  for (const std::uint64_t seed : {100, 101, 102}) {
    Line("reacher", "sac", "sac", seed, 0.4);
    if (seed != 102) Line("pusher", "sac", "sac", seed, seed == 100 ? 0.6 : 0.8);
    Line("reacher", "scratch", "msrl", seed, 0.4);
    Line("pusher", "scratch", "msrl", seed, 0.4);
    Line("hopper", "scratch", "msrl", seed, 0.8);
  }
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  ASSERT_EQ(analysis.Columns(), (std::vector<std::string>{"Reacher/Pusher", "Hopper", "Average"}));
  const MethodRow& sac = Row(analysis, "sac");
  EXPECT_NEAR(sac.auc[0]->mean, (0.5 + 0.6) / 2 / 8, 1e-12);
  EXPECT_EQ(sac.auc[0]->n, 2);
  EXPECT_NEAR(*sac.auc[0]->std, 0.1 / std::sqrt(2) / 8, 1e-12);
  EXPECT_EQ(sac.threshold[0]->n, 4);  // two tasks, two seeds
  // no average over other families than the rest has
  EXPECT_FALSE(sac.auc[1]);
  EXPECT_FALSE(sac.auc[2]);
  // families weigh the same, however many tasks they have
  EXPECT_NEAR(Row(analysis, "scratch").auc[2]->mean, 0.6 / 8, 1e-12);
  EXPECT_FALSE(Row(analysis, "scratch").auc[2]->std);
}

TEST_F(AnalysisTest, UnfinishedRunsCountAsFarAsTheyGot) {
  Sweep({"reacher"});
  Line("reacher", "sac", "sac", 100, 0.8);
  Line("reacher", "sac", "sac", 101, 0.8, {.state = "interrupted", .stop = 300});
  Line("reacher", "sac", "sac", 102, 0.8, {.state = "failed", .stop = 200});
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  const MethodRow& sac = Row(analysis, "sac");
  EXPECT_EQ(sac.auc[0]->n, 2);  // 250 steps are the window
  EXPECT_EQ(sac.final_return[0]->n, 1);
  ASSERT_EQ(analysis.curves.size(), 1u);
  const Curve& curve = analysis.curves[0];
  ASSERT_EQ(curve.steps.size(), 11u);
  EXPECT_TRUE(curve.mean[2]);
  EXPECT_FALSE(curve.mean[3]);
  EXPECT_TRUE(curve.seeds[0].values[10]);
  EXPECT_TRUE(curve.seeds[1].values[3]);
  EXPECT_FALSE(curve.seeds[1].values[4]);
}

TEST_F(AnalysisTest, PoliciesThatWereNotRunHaveTheirMeasuredReturns) {
  Sweep({"hopper"});
  Line("hopper", "sac", "sac", 100, 0.5);
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Analysis analysis = Analyse(records, BuiltinRegistries());
  const MethodRow& random = Row(analysis, "random");
  EXPECT_DOUBLE_EQ(random.auc[0]->mean, 0.0);
  EXPECT_EQ(random.auc[0]->n, 0);
  const EnvSpec spec = MakeEnv("hopper")->spec();
  ASSERT_TRUE(spec.still_return);
  EXPECT_NEAR(Row(analysis, "still").auc[0]->mean,
              analysis.tasks[0].Normalised(spec.still_return->value).value(), 1e-12);
}

TEST_F(AnalysisTest, MeasuredRowsAreCalledAsTheAgentsThatStandForThem) {
  Sweep({"reacher"});
  Line("reacher", "sac", "sac", 100, 0.8);
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const Registries builtin = BuiltinRegistries();
  Registries own{
      .envs = builtin.envs, .agents = AgentRegistry(), .pretrainers = PretrainerRegistry()};
  EXPECT_EQ(Analyse(records, own).rows.size(), records.sweep.methods.size());
  AgentEntry chance = builtin.agents.Find("random");
  chance.id = "chance";
  own.agents.Add(chance);
  const Analysis analysis = Analyse(records, own);
  EXPECT_EQ(analysis.rows.size(), records.sweep.methods.size() + 1);
  EXPECT_EQ(Row(analysis, "chance").auc[0]->mean, 0.0);
}

TEST_F(AnalysisTest, OptionsOfTheUser) {
  Sweep({"reacher"});
  Line("reacher", "sac", "sac", 100, 0.8);
  Line("reacher", "scratch", "msrl", 100, 0.4);
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_NEAR(Row(Analyse(records, BuiltinRegistries(), {.few_shot = 1.0}), "sac").auc[0]->mean,
              0.4, 1e-12);
  EXPECT_NE(UserErrorText([&] {
              Analyse(records, BuiltinRegistries(), {.few_shot = 0.0});
            }).find("--few-shot is 0"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] {
              Analyse(records, BuiltinRegistries(), {.baseline = "sca"});
            }).find("did you mean 'sac'"),
            std::string::npos);
  const Analysis analysis = Analyse(records, BuiltinRegistries(), {.baseline = "scratch"});
  const bool found =
      std::any_of(analysis.gains.begin(), analysis.gains.end(), [](const GainEntry& entry) {
        return entry.of.a == 0 && entry.of.b == 1 && std::abs(entry.gain.mean - 0.05) < 1e-12;
      });
  EXPECT_TRUE(found);
}

TEST_F(AnalysisTest, FairnessFromTheRecords) {
  const auto item = [](const std::vector<FairnessItem>& items, const std::string& name) {
    for (const FairnessItem& entry : items) {
      if (entry.item == name) return entry;
    }
    return FairnessItem{"none", std::nullopt, ""};
  };
  Sweep({"reacher"}, {100, 101});
  for (const char* method : {"scratch", "msrl", "shuffled"}) {
    for (const std::uint64_t seed : {100, 101}) Line("reacher", method, "msrl", seed, 0.5);
  }
  for (const std::uint64_t seed : {100, 101}) Line("reacher", "sac", "sac", seed, 0.5);
  {
    const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
    const auto items = CheckFairness(records, Analyse(records, BuiltinRegistries()));
    ASSERT_EQ(items.size(), 10u);
    EXPECT_EQ(item(items, "Target environments").ok, true);
    EXPECT_EQ(item(items, "Target interaction budget").ok, true);
    EXPECT_EQ(item(items, "Target evaluation").ok, true);
    EXPECT_EQ(item(items, "Source trajectories").ok, std::nullopt);
    EXPECT_NE(item(items, "Target interaction budget").found.find("1000 steps (reacher); 8 runs"),
              std::string::npos);
  }
  RunRecords built = ReadRunRecords(folder_, BuiltinAgents());
  const auto version = [&](std::string_view first, std::string_view rest) {
    for (RunRecord& run : built.runs) run.facts.code = {Code(rest)};
    built.runs.front().facts.code.front().commit = first;
    return item(CheckFairness(built, Analyse(built, BuiltinRegistries())), "Code version").ok;
  };
  EXPECT_EQ(version("0123456789ab", "0123456789ab"), true);
  EXPECT_EQ(version("0123456789ab", "ba9876543210"), false);
  EXPECT_EQ(version(kUnknownCommit, "0123456789ab"), false);
  EXPECT_EQ(version(kUnknownCommit, kUnknownCommit), std::nullopt);
  // begun by one, finished by another
  version("0123456789ab", "0123456789ab");
  built.runs.back().facts.code.push_back(Code("ba9876543210"));
  const FairnessItem mixed =
      item(CheckFairness(built, Analyse(built, BuiltinRegistries())), "Code version");
  EXPECT_EQ(mixed.ok, false);
  EXPECT_NE(mixed.found.find("1 of them made by more than one"), std::string::npos) << mixed.found;
  for (RunRecord& run : built.runs) run.status.state = RunState::kRunning;
  EXPECT_EQ(
      item(CheckFairness(built, Analyse(built, BuiltinRegistries())), "Target environments").ok,
      std::nullopt);
  // one seed less, and another way to evaluate
  fs::remove_all(folder_ / "reacher/sac/101");
  Line("reacher", "msrl", "msrl", 100, 0.5, {.eval_episodes = 3});
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  const auto items = CheckFairness(records, Analyse(records, BuiltinRegistries()));
  EXPECT_EQ(item(items, "Target environments").ok, false);
  EXPECT_NE(item(items, "Target environments").found.find("for sac"), std::string::npos);
  EXPECT_EQ(item(items, "Target evaluation").ok, false);
  EXPECT_EQ(item(items, "Target interaction budget").ok, true);
}

TEST_F(AnalysisTest, FairnessOfTheBranches) {
  const auto branch = [](const char* dataset, std::int64_t updates, int width) {
    BranchInfo info;
    info.lift = CompactLift()->id();
    info.made = {{"sources", "graph-motif,micro-grid"},
                 {"dataset", dataset},
                 {"target", "expert"},
                 {"updates", std::to_string(updates)}};
    ValueBranch made(MatrixFeatures(CompactLift()).size(), {.width = width}, info);
    Rng rng(1, "branch");
    made.Init(rng);
    return made.Encode();
  };
  const auto check = [this] {
    const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
    EXPECT_EQ(records.inits.size(), 2u);
    std::map<std::string, FairnessItem> items;
    for (const FairnessItem& item : CheckFairness(records, Analyse(records, BuiltinRegistries()))) {
      items[item.item] = item;
    }
    return items;
  };
  Sweep({"reacher"}, {1, 2});
  Line("reacher", "msrl", "msrl", 1, 0.5, {.init = branch("aa", 100, 16)});
  Line("reacher", "msrl", "msrl", 2, 0.5, {.init = branch("bb", 100, 64)});
  auto items = check();
  EXPECT_EQ(items["Source environments"].ok, true);
  EXPECT_EQ(items["Source environments"].found,
            "sources graph-motif + micro-grid in all of 2 branches");
  EXPECT_EQ(items["Source trajectories"].ok, false);
  EXPECT_EQ(items["Source trajectories"].found, "dataset aa, bb in 2 branches");
  EXPECT_EQ(items["Source targets"].ok, true);
  EXPECT_EQ(items["Source compute"].ok, true);
  EXPECT_EQ(items["Architecture scale"].ok, false);
  EXPECT_EQ(items["Transferred component"].ok, true);

  Line("reacher", "msrl", "msrl", 1, 0.5, {.init = branch("aa", 100, 16)});
  Line("reacher", "msrl", "msrl", 2, 0.5, {.init = branch("aa", 200, 16)});
  items = check();
  EXPECT_EQ(items["Source trajectories"].ok, true);
  EXPECT_EQ(items["Source compute"].ok, false);
  EXPECT_EQ(items["Architecture scale"].ok, true);
  Line("reacher", "sac", "sac", 1, 0.5);  // without a branch, so smaller
  items = check();
  EXPECT_EQ(items["Architecture scale"].ok, false);
  EXPECT_NE(items["Architecture scale"].found.find("times as many as the smallest"),
            std::string::npos)
      << items["Architecture scale"].found;
  fs::remove_all(folder_ / "reacher/sac");
  // a branch file that was changed afterwards is said, and the run is used
  std::ofstream(folder_ / "reacher/msrl/2/init.safetensors") << "x";
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_EQ(records.counts.finished, 2);
  ASSERT_EQ(records.problems.size(), 1u);
  EXPECT_NE(records.problems[0].what.find("is not what the run was made with"), std::string::npos);
}

}  // namespace
}  // namespace msrl::report
