#include "msrl/report/tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "msrl/builtin/builtin.h"
#include "msrl/core/check.h"
#include "msrl/report/exhibits.h"
#include "msrl/report/exports.h"
#include "msrl/report/page_template.h"
#include "msrl/testing/synthetic_runs.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHostile = "</script><b>\"x\" & 50 % of $a_b, {ü}\\~^#";

TEST(Text, Numbers) {
  EXPECT_EQ(FixedText(-0.001, 2), "0.00");
  EXPECT_EQ(FixedText(-0.12, 2), "-0.12");
  EXPECT_EQ(StepsText(999), "999");
  EXPECT_EQ(StepsText(1234567), "1,234,567");
  EXPECT_EQ(StepsText(-1234), "-1,234");
}

TEST(Text, ColumnsAreAlignedByCharacters) {
  const std::string text =
      ToText({"title", "note", {"method", "x"}, {{"ü±", "1"}, {"plain", "2"}}});
  EXPECT_EQ(text, "title\n  method  x\n  ü±      1\n  plain   2\n  note\n");
}

TEST(Text, ControlCharactersDoNotReachTheTerminal) {
  const std::string text = ToText({"t", "", {"a", "b"}, {{"\033[2J\n", "1"}}});
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("?[2J?"), std::string::npos);
}

TEST(Latex, SpecialsAreEscaped) {
  const std::string text = ToLatex({kHostile, "", {"a", "b"}, {{"[x] − 0.70 ±0.04", "–"}}});
  EXPECT_NE(text.find("\\textless{}/script\\textgreater{}"), std::string::npos);
  EXPECT_NE(text.find("\\& 50 \\% of \\$a\\_b, \\{ü\\}\\textbackslash{}\\textasciitilde{}"
                      "\\textasciicircum{}\\#"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("{[}x] $-$ 0.70 $\\pm$0.04 & -- \\\\"), std::string::npos) << text;
}

TEST(Csv, FieldsAreQuotedAndNoFormulas) {
  EXPECT_EQ(CsvText("plain"), "plain");
  EXPECT_EQ(CsvText("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvText("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(CsvText("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(CsvText("=1+1"), "'=1+1");
  EXPECT_EQ(CsvText("-x"), "'-x");
}

TEST(Page, DataCannotEndItsElement) {
  const std::string page =
      FillPage("<script id=\"d\">\"__MSRL_DATA__\"</script>", "{\"a\":\"</script><b>\"}");
  EXPECT_EQ(page, "<script id=\"d\">{\"a\":\"\\u003c/script>\\u003cb>\"}</script>");
  EXPECT_THROW(FillPage("no place", "{}"), InvariantError);
  EXPECT_THROW(FillPage("\"__MSRL_DATA__\" \"__MSRL_DATA__\"", "{}"), InvariantError);
}

TEST(Page, TemplateHasOnePlaceForTheData) {
  if (PageTemplate().empty()) GTEST_SKIP() << "built without npm";
  const std::string page = FillPage(PageTemplate(), "{}");
  EXPECT_NE(page.find("id=\"msrl-data\">{}</script>"), std::string::npos);
}

TEST(Obstruction, RocByHand) {
  const ObstructionExhibit exhibit =
      MakeObstructionExhibit({0.9, 0.8, 0.8, 0.3, 0.1}, {1, 0, 1, 1, 0});
  // pairs won by positives: 0.9 two, 0.8 one and a half, 0.3 one; of six
  EXPECT_DOUBLE_EQ(*exhibit.auroc, 4.5 / 6);
  EXPECT_DOUBLE_EQ(exhibit.base_rate, 0.6);
  const std::vector<std::pair<double, double>> roc{
      {0, 0}, {0, 1.0 / 3}, {0.5, 2.0 / 3}, {0.5, 1}, {1, 1}};
  EXPECT_EQ(exhibit.roc, roc);
  ASSERT_EQ(exhibit.calibration.size(), 4u);
  EXPECT_DOUBLE_EQ(exhibit.calibration[2].predicted, 0.8);
  EXPECT_DOUBLE_EQ(exhibit.calibration[2].observed, 0.5);
  EXPECT_EQ(exhibit.calibration[2].n, 2);
  EXPECT_FALSE(MakeObstructionExhibit({0.5}, {1}).auroc);
}

class ReportOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_tables_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
    WriteSyntheticSweep(folder_, {.name = kHostile,
                                  .envs = {"reacher"},
                                  .methods = {{"sac", "sac", "baseline", "sac", kHostile},
                                              {"scratch", "msrl", "scratch", "msrl-scratch"},
                                              {"msrl", "msrl", "transfer", "msrl-init"}},
                                  .seeds = {1, 2, 3, 4, 5}});
    for (const char* method : {"sac", "scratch", "msrl"}) {
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        SyntheticRun run{.agent = method == std::string("sac") ? "sac" : "msrl", .seed = seed};
        run.mean_return = [seed](std::int64_t step) {
          return -40.0 + 0.02 * static_cast<double>(step) + static_cast<double>(seed);
        };
        WriteSyntheticRun(folder_ / "reacher" / method / std::to_string(seed), run);
      }
    }
    records_ = ReadRunRecords(folder_, BuiltinAgents());
    analysis_ = Analyse(records_, BuiltinRegistries());
    fairness_ = CheckFairness(records_, analysis_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  RunRecords records_;
  Analysis analysis_;
  std::vector<FairnessItem> fairness_;
};

TEST_F(ReportOutputTest, TablesOfTheTerminal) {
  std::string text;
  for (const Table& table : MakeTables(records_, analysis_, fairness_)) text += ToText(table);
  for (const char* expected :
       {"Normalised few-shot AUC", "(0.67)", "(0.75)", "Matched gain", "msrl − scratch",
        "Probability of improvement", "Final normalised return", "Steps to 80 %",
        "the paper's normalisation", "Fairness checklist", "Random actions"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
  EXPECT_EQ(ProblemText(records_, analysis_), "runs: 15 finished\n");
}

TEST_F(ReportOutputTest, TasksWithoutReferenceReturnsHaveRawOnes) {
  EXPECT_TRUE(analysis_.raw_returns.empty());
  for (RunRecord& run : records_.runs) run.facts.reference_return.reset();
  records_.runs[0].facts.random_return = -50.0;
  records_.runs[0].status.state = RunState::kRunning;  // sac's seed 1
  // nobody else knows the returns
  analysis_ = Analyse(
      records_,
      {.envs = EnvRegistry(), .agents = BuiltinAgents(), .pretrainers = PretrainerRegistry()});
  std::vector<std::vector<std::string>> rows;
  for (const Table& table : MakeTables(records_, analysis_, fairness_)) {
    if (table.title == "Raw returns") rows = table.rows;
    EXPECT_NE(table.title, "Normalised few-shot AUC");
  }
  // step 125 is the middle of the window; seeds add 1 to 5
  const std::vector<std::vector<std::string>> expected{
      {"reacher", kHostile, "-34.50 ±1.58", "-16.50 ±1.29"},
      {"reacher", "scratch", "-34.50 ±1.58", "-17.00 ±1.58"},
      {"reacher", "msrl", "-34.50 ±1.58", "-17.00 ±1.58"},
      {"reacher", "Random actions", "-50.00", "-50.00"}};
  EXPECT_EQ(rows, expected);
  EXPECT_NE(ProblemText(records_, analysis_).find("raw returns instead"), std::string::npos);

  const auto json = nlohmann::json::parse(ToPageData(records_, analysis_, fairness_, {}, {}));
  ASSERT_EQ(json["raw_returns"].size(), 4u);
  EXPECT_EQ(json["raw_returns"][1]["method"], "scratch");
  EXPECT_EQ(json["raw_returns"][1]["few_shot"]["mean"], -34.5);
  EXPECT_EQ(json["raw_returns"][0]["final"]["n"], 4);
  WriteCsv(folder_ / "csv", records_, analysis_, fairness_);
  std::ifstream in(folder_ / "csv" / "runs.csv");
  std::string header, first;
  std::getline(in, header);
  std::getline(in, first);
  EXPECT_NE(header.find(",steps,few_shot_return,few_shot_auc,"), std::string::npos) << header;
  EXPECT_NE(first.find(",1000,-36.5,,"), std::string::npos) << first;
}

TEST_F(ReportOutputTest, PageDataIsWholeAndInert) {
  Exhibits exhibits = CollectExhibits(records_, analysis_, BuiltinRegistries());
  // made-up runs have no checkpoints: said, not failed
  EXPECT_TRUE(exhibits.matrices.empty());
  EXPECT_FALSE(exhibits.problems.empty());
  const std::string data =
      ToPageData(records_, analysis_, fairness_, exhibits, {"2026-01-01T00:00:00Z", "host", {"a"}});
  const auto json = nlohmann::json::parse(data);
  EXPECT_EQ(json["format"], "msrl-report");
  EXPECT_EQ(json["header"]["title"], kHostile);
  EXPECT_EQ(json["header"]["runs"]["finished"], 15);
  EXPECT_EQ(json["curves"].size(), 3u);
  EXPECT_EQ(json["curves"][0]["steps"].size(), 11u);
  EXPECT_EQ(json["curves"][0]["seeds"].size(), 5u);
  EXPECT_EQ(json["main"]["columns"], (nlohmann::json{"Reacher/Pusher", "Average"}));
  EXPECT_GE(json["main"]["rows"].size(), 3u);
  EXPECT_EQ(json["main"]["rows"][1]["cells"][0]["paper"]["mean"], 0.67);
  EXPECT_EQ(json["gains"][0]["a"], "scratch");
  EXPECT_EQ(json["controls"]["rows"].size(), 0u);
  EXPECT_TRUE(json["pretraining"].is_null());
  EXPECT_EQ(json["fairness"].size(), 10u);
  for (const char* key :
       {"verdicts", "families", "envs", "methods", "ablations", "branches", "diagnostics",
        "predictor", "matrices", "library", "obstruction", "cost"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  const std::string page = FillPage("<x>\"__MSRL_DATA__\"</x>", data);
  EXPECT_EQ(page.find("</script"), std::string::npos);
}

TEST_F(ReportOutputTest, CsvFiles) {
  const std::vector<std::string> names =
      WriteCsv(folder_ / "csv" / "deep", records_, analysis_, fairness_);
  EXPECT_EQ(names.size(), 7u);
  for (const std::string& name : names) {
    std::ifstream in(folder_ / "csv" / "deep" / name);
    std::string header;
    std::getline(in, header);
    EXPECT_GE(std::count(header.begin(), header.end(), ','), 1) << name;
  }
  std::ifstream in(folder_ / "csv" / "deep" / "evaluations.csv");
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 6) << line;
  }
  EXPECT_EQ(lines, 1 + 15 * 11);
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THROW(WriteCsv(folder_ / "file", records_, analysis_, fairness_), UserError);
}

TEST_F(ReportOutputTest, LatexDocument) {
  const std::string text =
      ToLatexDocument(MakeTables(records_, analysis_, fairness_), records_.sweep.name);
  EXPECT_NE(text.find("\\begin{tabular}{lc}"), std::string::npos);
  EXPECT_NE(text.find("\\toprule"), std::string::npos);
  // braces balance, whatever names there are
  int depth = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("%")) continue;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\') {
        ++i;
      } else {
        depth += line[i] == '{' ? 1 : line[i] == '}' ? -1 : 0;
      }
      ASSERT_GE(depth, 0);
    }
  }
  EXPECT_EQ(depth, 0);
}

}  // namespace
}  // namespace msrl::report
