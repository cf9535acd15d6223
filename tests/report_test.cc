// Reports as a user makes them: the real command over made-up and real runs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/report/page_template.h"
#include "msrl/testing/synthetic_runs.h"
#include "tests/command_test.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

class ReportCommandTest : public CommandTest {
 protected:
  void MakeSweep() const {
    report::WriteSyntheticSweep(folder_ / "runs",
                                {.name = "</script><b>\"&",
                                 .envs = {"reacher", "four-rooms-sparse"},
                                 .methods = {{"sac", "sac", "baseline", "sac"},
                                             {"scratch", "msrl", "scratch", "msrl-scratch"},
                                             {"msrl", "msrl", "transfer", "msrl-init"}},
                                 .seeds = {1, 2}});
    for (const char* env : {"reacher", "four-rooms-sparse"}) {
      for (const char* method : {"sac", "scratch", "msrl"}) {
        for (const std::uint64_t seed : {1, 2}) {
          report::WriteSyntheticRun(
              folder_ / "runs" / env / method / std::to_string(seed),
              {.env = env, .agent = method == std::string("sac") ? "sac" : "msrl", .seed = seed});
        }
      }
    }
  }
};

TEST_F(ReportCommandTest, DamagedAndMissingRunsAreNamedAndTheOthersUsed) {
  MakeSweep();
  std::ofstream(folder_ / "runs/reacher/sac/2/evals.jsonl") << "{\"step\":0,\n";
  fs::remove_all(folder_ / "runs/reacher/msrl/2");
  ASSERT_EQ(Run({"report", At("runs")}), 0) << Err();
  const std::string out = Out();
  EXPECT_NE(out.find("runs: 10 finished, 1 not started, 1 damaged"), std::string::npos) << out;
  EXPECT_NE(out.find("reacher/sac/2: "), std::string::npos);
  EXPECT_NE(out.find("Normalised few-shot AUC"), std::string::npos);
  EXPECT_NE(out.find("NOT OK"), std::string::npos);  // seeds differ
}

TEST_F(ReportCommandTest, AllOutputs) {
  MakeSweep();
  Arguments arguments{"report", At("runs"), "--json",  At("data.json"),
                      "--csv",  At("csv"),  "--latex", At("tables.tex")};
  const bool page = !report::PageTemplate().empty();
  if (page) arguments.insert(arguments.end(), {"--html", At("page.html")});
  ASSERT_EQ(Run(arguments), 0) << Err();
  const auto data = nlohmann::json::parse(Slurp(folder_ / "data.json"));
  EXPECT_EQ(data["header"]["title"], "</script><b>\"&");
  EXPECT_EQ(data["header"]["commands"].size(), 2u);
  EXPECT_EQ(data["curves"].size(), 6u);
  EXPECT_EQ(data["families"].size(), 2u);
  EXPECT_NE(Slurp(folder_ / "tables.tex").find("\\toprule"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "csv"), fs::directory_iterator()), 7);
  if (page) {
    const std::string html = Slurp(folder_ / "page.html");
    EXPECT_NE(html.find("\\u003c/script>\\u003cb>"), std::string::npos);
    EXPECT_EQ(html.find("</script><b>"), std::string::npos);
  } else {
    ExpectMistake({"report", At("runs"), "--html", At("page.html")}, "install npm");
  }
  // the same again: tables do not depend on when they are made
  const std::string csv = Slurp(folder_ / "csv/table.csv");
  arguments.emplace_back("--force");
  ASSERT_EQ(Run(arguments), 0);
  EXPECT_EQ(Slurp(folder_ / "csv/table.csv"), csv);
}

TEST_F(ReportCommandTest, AFolderWithoutASweep) {
  MakeSweep();
  fs::remove(folder_ / "runs/sweep.json");
  ASSERT_EQ(Run({"report", At("runs"), "--baseline", "scratch"}), 0) << Err();
  EXPECT_NE(Out().find("msrl − scratch"), std::string::npos) << Out();
}

TEST_F(ReportCommandTest, ExhibitsOfARealRun) {
  Arguments train{"train",
                  "--env",
                  "reacher",
                  "--agent",
                  "msrl",
                  "--seed",
                  "3",
                  "--run",
                  At("runs/reacher/msrl/3"),
                  "--steps",
                  "400",
                  "--eval-every",
                  "100",
                  "--eval-episodes",
                  "2"};
  for (const std::string& setting : BuiltinAgents().Find("msrl").quick) {
    train.insert(train.end(), {"--set", setting});
  }
  ASSERT_EQ(Run(train), 0) << Err();
  ASSERT_EQ(Run({"report", At("runs"), "--json", At("data.json")}), 0) << Err();
  const auto data = nlohmann::json::parse(Slurp(folder_ / "data.json"));
  ASSERT_EQ(data["matrices"].size(), 1u);
  const auto& matrix = data["matrices"][0];
  EXPECT_EQ(matrix["labels"].size(), 28u);
  EXPECT_EQ(matrix["labels"][0], "x position_x");
  int size = 0;
  for (const auto& block : matrix["blocks"]) size += block["size"].get<int>();
  EXPECT_EQ(size, 28);
  ASSERT_EQ(matrix["prefixes"].size(), 50u);  // Reacher's episodes have 50 steps
  for (const auto& prefix : matrix["prefixes"]) {
    ASSERT_EQ(prefix["packed"].size(), 406u);
    // the last entry counts the steps: the sum of 1 * 1
    EXPECT_DOUBLE_EQ(prefix["packed"][405].get<double>(), prefix["t"].get<double>());
  }
  ASSERT_EQ(data["library"].size(), 1u);
  EXPECT_GT(data["library"][0]["segments"].size(), 0u);
  EXPECT_EQ(data["library"][0]["segments"][0]["entry"].size(), 8u);
  // and without
  ASSERT_EQ(Run({"report", At("runs"), "--json", At("data.json"), "--no-exhibits", "--force"}), 0);
  EXPECT_EQ(nlohmann::json::parse(Slurp(folder_ / "data.json"))["matrices"].size(), 0u);
}

TEST_F(ReportCommandTest, Mistakes) {
  ExpectMistake({"report", At("nowhere")}, "is not a folder");
  fs::create_directory(folder_ / "empty");
  ExpectMistake({"report", At("empty")}, "no run below");
  MakeSweep();
  ExpectMistake({"report", At("runs"), "--json", At("no/such/folder/data.json")}, "cannot");
  ExpectMistake({"report", At("runs"), "--few-shot", "2"}, "--few-shot is 2");
  ExpectMistake({"report", At("runs"), "--baseline", "scrach"}, "did you mean 'scratch'");
  std::ofstream(folder_ / "runs/sweep.json") << "{";
  ExpectMistake({"report", At("runs")}, "sweep.json is damaged");
}

}  // namespace
}  // namespace msrl
