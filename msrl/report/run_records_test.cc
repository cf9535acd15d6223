#include "msrl/report/run_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "msrl/testing/slurp.h"
#include "msrl/testing/synthetic_runs.h"
#include "msrl/testing/user_error.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Slurp;
using testing::UserErrorText;

void Spill(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class RunRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_records_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Run(const std::string& path, SyntheticRun run = {}) const {
    WriteSyntheticRun(folder_ / path, run);
  }
  // What is said about the run `path` after `damage` was done to it; the other run must be there.
  std::string AfterDamage(const std::function<void(const fs::path&)>& damage) const {
    Run("reacher/sac/100");
    Run("reacher/sac/101", {.seed = 101});
    damage(folder_ / "reacher/sac/101");
    const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
    EXPECT_EQ(records.counts.damaged, 1);
    EXPECT_EQ(records.runs.size(), 1u);
    EXPECT_EQ(records.problems.size(), 1u);
    if (records.problems.size() != 1) return "";
    EXPECT_EQ(records.problems[0].path, "reacher/sac/101");
    return records.problems[0].what;
  }
  fs::path folder_;
};

TEST(RunRecords, TheLastCountOfSimulatorStepsIsRead) {
  const auto count = [](const std::string& text) { return ParseSimulatorSteps(text, "metrics"); };
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("{\"step\":10,\"train/return\":1.0}\n"), 0);
  const std::string lines =
      "{\"step\":10,\"train/simulator_steps\":4.0}\n{\"step\":20,\"train/simulator_steps\":9.0}\n";
  EXPECT_EQ(count(lines), 9);
  EXPECT_EQ(count("half of a line}\n" + lines + "{\"step\":30,\"train/simulator_steps\":1"), 9);
  for (const char* bad : {"-1.0", "1e300", "null", "\"9\""}) {
    const std::string line = StrCat("{\"train/simulator_steps\":", bad, "}\n");
    EXPECT_NE(UserErrorText([&] { count(line); }).find("metrics"), std::string::npos) << bad;
  }
}

TEST_F(RunRecordsTest, FoldersNameEnvironmentAndMethod) {
  Run("arm/mine/7", {.agent = "msrl", .seed = 7, .predictor = 0.5});
  Run("arm/sac/10", {.seed = 10, .state = "interrupted", .stop = 300});
  Run("arm/sac/9", {.seed = 9, .mean_return = [](std::int64_t step) {
                      return 0.1 * static_cast<double>(step);
                    }});
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  ASSERT_EQ(records.runs.size(), 3u);
  EXPECT_FALSE(records.has_sweep);
  EXPECT_EQ(records.runs[0].env, "arm");
  EXPECT_EQ(records.runs[0].method, "mine");
  EXPECT_EQ(records.runs[0].transfer->predictor, 0.5);
  EXPECT_EQ(records.runs[0].transfer->amplitude, 0.25);
  // seeds in the order of numbers
  EXPECT_EQ(records.runs[1].facts.spec.seed, 9u);
  EXPECT_EQ(records.runs[1].evaluations.size(), 11u);
  EXPECT_DOUBLE_EQ(records.runs[1].evaluations[3].mean_return, 30.0);
  EXPECT_EQ(records.runs[2].evaluations.size(), 4u);
  EXPECT_DOUBLE_EQ(records.runs[1].timing.seconds, 0.1);
  EXPECT_DOUBLE_EQ(records.runs[1].timing.steps_per_second, 10000.0);
  EXPECT_EQ(records.counts.finished, 2);
  EXPECT_EQ(records.counts.interrupted, 1);
  ASSERT_EQ(records.sweep.methods.size(), 2u);
  EXPECT_EQ(records.sweep.methods[1].role, "baseline");
  EXPECT_EQ(records.sweep.envs[0].family, "Reacher/Pusher");
}

TEST_F(RunRecordsTest, RunsOfOneNameHaveTheSettingsOfTheFirst) {
  Run("arm/sac/1", {.seed = 1});
  Run("arm/sac/2", {.env = "reacher-sparse", .seed = 2});
  Run("arm/sac/3", {.agent = "td3", .seed = 3});
  Run("arm/sac/4", {.seed = 4, .init = "a branch"});
  Run("arm/sac/5", {.seed = 5});
  Run("arm/again/sac/1", {.seed = 1});
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_EQ(records.runs.size(), 3u);  // 1, 5, and the one that is of another task by its folder
  EXPECT_EQ(records.counts.damaged, 0);
  EXPECT_EQ(records.counts.other, 3);
  ASSERT_EQ(records.problems.size(), 3u);
  for (const auto& [number, what] :
       {std::pair(0, "environment with reacher-sparse, there with reacher"),
        std::pair(1, "agent with td3, there with sac"),
        std::pair(2, "start with something pretrained, there with nothing pretrained")}) {
    const std::string& said = records.problems[static_cast<std::size_t>(number)].what;
    EXPECT_TRUE(said.starts_with("other settings than arm/sac/1")) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  }
}

TEST_F(RunRecordsTest, ASweepSaysWhatIsMissing) {
  WriteSyntheticSweep(folder_, {.envs = {"reacher"},
                                .methods = {{"sac", "sac", "baseline"}},
                                .seeds = {100, 101, 102, 103}});
  Run("reacher/sac/100");
  Run("reacher/sac/101", {.seed = 5});  // not what the sweep says
  Run("reacher/sac/102", {.seed = 102, .state = "failed", .stop = 200});
  Run("elsewhere/1", {.seed = 1});
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_EQ(records.counts.finished, 1);
  EXPECT_EQ(records.counts.failed, 1);
  EXPECT_EQ(records.counts.missing, 1);
  EXPECT_EQ(records.counts.damaged, 0);
  EXPECT_EQ(records.counts.other, 1);
  std::string problems;
  for (const RecordProblem& problem : records.problems) {
    problems += problem.path + ": " + problem.what + "\n";
  }
  EXPECT_NE(problems.find("reacher/sac/101: its seed is 5, the sweep says 101"), std::string::npos)
      << problems;
  EXPECT_NE(problems.find("elsewhere/1: a run that the sweep does not list"), std::string::npos);
  EXPECT_NE(problems.find("reacher/sac/102: failed"), std::string::npos);
}

TEST_F(RunRecordsTest, ARunThatNobodyHoldsWasKilled) {
  Run("reacher/sac/100", {.state = "running", .stop = 300});
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_EQ(records.counts.interrupted, 1);
  EXPECT_EQ(records.counts.running, 0);
}

TEST_F(RunRecordsTest, HalfALineOfARunThatGoesOnIsNoDamage) {
  Run("reacher/sac/100", {.state = "running", .stop = 300});
  const fs::path file = folder_ / "reacher/sac/100/evals.jsonl";
  const std::string text = Slurp(file);
  Spill(file, text.substr(0, text.size() - 20));
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_EQ(records.counts.damaged, 0);
  EXPECT_EQ(records.runs[0].evaluations.size(), 3u);
}

TEST_F(RunRecordsTest, CutEvaluationsOfAFinishedRun) {
  const std::string what = AfterDamage([](const fs::path& run) {
    const std::string text = Slurp(run / "evals.jsonl");
    Spill(run / "evals.jsonl", text.substr(0, text.size() - 20));
  });
  EXPECT_NE(what.find("evals.jsonl is damaged: its last line is cut"), std::string::npos) << what;
}

TEST_F(RunRecordsTest, MissingEvaluation) {
  const std::string what = AfterDamage([](const fs::path& run) {
    std::string text = Slurp(run / "evals.jsonl");
    const std::size_t begin = text.find("{\"step\":500");
    text.erase(begin, text.find('\n', begin) - begin + 1);
    Spill(run / "evals.jsonl", text);
  });
  EXPECT_NE(what.find("the evaluation of step 500 is missing"), std::string::npos) << what;
}

TEST_F(RunRecordsTest, MeanThatIsNotThatOfItsReturns) {
  const std::string what = AfterDamage([](const fs::path& run) {
    std::string text = Slurp(run / "evals.jsonl");
    text.replace(text.find("\"mean_return\":0.0"), 17, "\"mean_return\":0.5");
    Spill(run / "evals.jsonl", text);
  });
  EXPECT_NE(what.find("the mean of step 0 is not that of its returns"), std::string::npos) << what;
}

TEST_F(RunRecordsTest, RunFileThatIsNoJson) {
  const std::string what = AfterDamage(
      [](const fs::path& run) { Spill(run / "run.json", "{\"format\": \"msrl-run\""); });
  EXPECT_NE(what.find("run.json is damaged"), std::string::npos) << what;
}

TEST_F(RunRecordsTest, UnknownState) {
  const std::string what = AfterDamage(
      [](const fs::path& run) { Spill(run / "status.json", R"({"state":"fine","step":1000})"); });
  EXPECT_NE(what.find("unknown state 'fine'"), std::string::npos) << what;
}

TEST_F(RunRecordsTest, BadTimesCostOnlyTheTimes) {
  Run("reacher/sac/100");
  Spill(folder_ / "reacher/sac/100/timing.jsonl", "{\"event\":\"start\"\n");
  const RunRecords records = ReadRunRecords(folder_, BuiltinAgents());
  EXPECT_EQ(records.runs.size(), 1u);
  EXPECT_EQ(records.counts.finished, 1);
  EXPECT_EQ(records.problems.size(), 1u);
}

TEST_F(RunRecordsTest, MistakesOfTheUser) {
  EXPECT_NE(UserErrorText([&] {
              ReadRunRecords(folder_ / "nowhere", BuiltinAgents());
            }).find("is not a folder"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] { ReadRunRecords(folder_, BuiltinAgents()); }).find("no run below"),
            std::string::npos);
}

TEST(ParseBranchRecord, TakesWhateverFiguresThereAre) {
  const char* const text =
      R"({"dataset":"aa","config":{"updates":7},"rows":[{"source":"x"},{"source":"mixed","auroc":0.5}]})";
  const BranchRecord record = ParseBranchRecord(text, "branch-0.json");
  EXPECT_EQ(record.dataset, "aa");
  EXPECT_EQ(record.updates, 7);
  EXPECT_EQ(record.Figure("auroc"), 0.5);
  EXPECT_FALSE(record.Figure("rank_correlation"));
  EXPECT_THROW(ParseBranchRecord(R"({"dataset":"aa","config":{"updates":7},"rows":[1]})", "b"),
               UserError);
}

TEST(ParseTiming, SumsOverProcesses) {
  const RunTiming timing = ParseTiming(
      R"({"event":"start","step":0,"host":"a"}
{"event":"speed","step":100,"seconds":1.0}
{"event":"speed","step":200,"seconds":2.0}
{"event":"start","step":150,"host":"b"}
{"event":"speed","step":350,"seconds":3.0}
{"event":"spe)",
      "timing.jsonl");
  EXPECT_EQ(timing.host, "b");
  EXPECT_DOUBLE_EQ(timing.seconds, 5.0);
  EXPECT_DOUBLE_EQ(timing.steps_per_second, 400.0 / 5.0);
}

}  // namespace
}  // namespace msrl::report
