#include "msrl/datasets/trajectory_file.h"

#include <gtest/gtest.h>

#include "msrl/core/check.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

std::string JsonError(std::string_view text) {
  return testing::UserErrorText([&] { ParseTrajectoryJson(text, "f"); });
}

std::string CsvError(std::string_view text) {
  return testing::UserErrorText([&] { ParseTrajectoryCsv(text, "f"); });
}

TEST(TrajectoryJson, ReadsTheSchema) {
  const TrajectoryFile file = ParseTrajectoryJson(
      "{\"x\": [[0, 1], [2.5, -3e1]], \"a\": [[7]], \"r\": [0.5]}\n"
      "\n"
      "{\"name\": \"still\", \"r\": [], \"a\": [], \"x\": [[4, 5]]}\r\n",
      "f");
  EXPECT_EQ(file.d, 2);
  EXPECT_EQ(file.q, 1);
  ASSERT_EQ(file.trajectories.size(), 2u);
  const Segment& first = file.trajectories[0].segment;
  EXPECT_EQ(file.trajectories[0].name, "0");
  EXPECT_EQ(first.x, (Eigen::Matrix2d() << 0, 2.5, 1, -30).finished());
  EXPECT_EQ(first.a(0, 0), 7.0);
  EXPECT_EQ(first.r[0], 0.5);
  const Segment& still = file.trajectories[1].segment;
  EXPECT_EQ(file.trajectories[1].name, "still");
  EXPECT_EQ(still.horizon(), 0);
  EXPECT_EQ(still.a.rows(), 1);
}

TEST(TrajectoryJson, ActionsMayBeAbsent) {
  EXPECT_EQ(ParseTrajectoryJson(R"({"x": [[0], [1]], "r": [1]})", "f").q, 0);
  EXPECT_EQ(ParseTrajectoryJson(R"({"x": [[0], [1]], "a": [[]], "r": [1]})", "f").q, 0);
  EXPECT_EQ(ParseTrajectoryJson(R"({"x": [[0], [1]], "a": [], "r": [1]})", "f").q, 0);
}

TEST(TrajectoryJson, RefusesWhatIsNotInTheSchema) {
  EXPECT_EQ(JsonError(""), "f: no trajectory in it");
  EXPECT_EQ(JsonError("[1]"),
            "f:1: a trajectory is an object {\"x\": ..., \"a\": ..., \"r\": ...}");
  EXPECT_EQ(JsonError("3"), "f:1: a number is not a trajectory");
  EXPECT_EQ(JsonError(R"({"x": [[0]], "r": [], "b": 1})"),
            "f:1: unknown key \"b\" (a trajectory has x, a, r and name)");
  EXPECT_EQ(JsonError(R"({"x": [[0]], "r": [], "x": [[0]]})"), "f:1: key \"x\" appears twice");
  EXPECT_EQ(JsonError(R"({"x": [[0]]})"), "f:1: key \"r\" is missing");
  EXPECT_EQ(JsonError(R"({"r": []})"), "f:1: key \"x\" is missing");
  EXPECT_EQ(JsonError(R"({"x": [[null]], "r": []})"), "f:1: null is not a number");
  EXPECT_EQ(JsonError(R"({"x": [["1"]], "r": []})"), "f:1: text where a number is expected");
  EXPECT_EQ(JsonError(R"({"x": [[[1]]], "r": []})"), "f:1: brackets too deep in \"x\"");
  EXPECT_EQ(JsonError(R"({"x": [1], "r": []})"), "f:1: a number where \"x\" does not take one");
  EXPECT_EQ(JsonError(R"({"x": {"y": 1}, "r": []})"), "f:1: an object inside a trajectory");
  EXPECT_EQ(JsonError(R"({"x": [[0, 1], [2]], "r": [0]})"),
            "f:1: x row 1 has 1 numbers, row 0 has 2");
  EXPECT_EQ(JsonError(R"({"x": [[0]], "a": [[1]], "r": [0]})"),
            "f:1: a trajectory with 1 rewards needs 2 rows of x and 1 rows of a, got 1 and 1");
  EXPECT_EQ(JsonError("{\"x\": [[0], [1]], \"r\": [0]}\n{\"x\": [[0, 0]], \"r\": []}"),
            "f:2: x has 2 columns, in the trajectories before 1");
  EXPECT_EQ(JsonError("{\"x\": [[0], [1]], \"a\": [[1]], \"r\": [0]}\n"
                      "{\"x\": [[0], [1]], \"r\": [0]}"),
            "f:2: a has 0 columns, in the trajectories before 1");
}

TEST(TrajectoryJson, RefusesEveryTruncation) {
  const std::string whole = R"({"x": [[0, 1], [2.5, 3]], "a": [[7]], "r": [0.5]})";
  for (std::size_t length = 1; length < whole.size(); ++length) {
    EXPECT_NE(JsonError(whole.substr(0, length)), "no error") << length;
  }
  EXPECT_EQ(JsonError(whole), "no error");
}

TEST(TrajectoryJson, RefusesHostileInputQuickly) {
  EXPECT_NE(JsonError(std::string(1'000'000, '[')), "no error");
  EXPECT_NE(JsonError("{\"x\": " + std::string(1'000'000, '[')), "no error");
  EXPECT_NE(JsonError(R"({"x": [[1e999]], "r": []})"), "no error");
  EXPECT_NE(JsonError(R"({"x": [[NaN]], "r": []})"), "no error");
  EXPECT_NE(JsonError("{\"" + std::string(1'000'000, 'k') + "\": 1}"), "no error");
}

TEST(TrajectoryCsv, ReadsTheSchema) {
  const TrajectoryFile file = ParseTrajectoryCsv(
      "episode,t,x0,x1,a0,r\n"
      "walk,0,0,1,7,0.5\n"
      "walk,1,2.5,-3e1,,\n"
      "still,0,4,5,,\n",
      "f");
  EXPECT_EQ(file.d, 2);
  EXPECT_EQ(file.q, 1);
  ASSERT_EQ(file.trajectories.size(), 2u);
  const Segment& first = file.trajectories[0].segment;
  EXPECT_EQ(file.trajectories[0].name, "walk");
  EXPECT_EQ(first.x, (Eigen::Matrix2d() << 0, 2.5, 1, -30).finished());
  EXPECT_EQ(first.a(0, 0), 7.0);
  EXPECT_EQ(first.r[0], 0.5);
  EXPECT_EQ(file.trajectories[1].segment.horizon(), 0);
}

TEST(TrajectoryCsv, RefusesWhatIsNotInTheSchema) {
  const std::string header = "episode,t,x0,a0,r\n";
  EXPECT_EQ(CsvError(""), "f:1: the file is empty");
  EXPECT_EQ(CsvError("episode,t,x1,r\n"),
            "f:1: the header must be episode,t,x0,x1,...,a0,a1,...,r");
  EXPECT_EQ(CsvError("episode,t,x0,a0,r,extra\n"),
            "f:1: the header must be episode,t,x0,x1,...,a0,a1,...,r");
  EXPECT_EQ(CsvError(header), "f: no trajectory in it");
  EXPECT_EQ(CsvError(header + "e,0,1,2\n"), "f:2: row has 4 fields, the header 5");
  EXPECT_EQ(CsvError(header + "e,0,one,2,3\n"), "f:2: x0 is not a number: 'one'");
  EXPECT_EQ(CsvError(header + "e,0,1,,3\n"), "f:2: a0 is not a number: ''");
  EXPECT_EQ(CsvError(header + "e,1,1,2,3\n"), "f:2: t is '1', expected 0");
  EXPECT_EQ(CsvError(header + ",0,1,2,3\n"), "f:2: the episode is empty");
  EXPECT_EQ(CsvError(header + "e,0,1,2,3\n"),
            "f:2: episode e has no final state (a row with empty action and reward); is the file "
            "truncated?");
  EXPECT_EQ(CsvError(header + "e,0,1,2,3\ng,0,1,,\n"),
            "f:2: episode e has no final state (a row with empty action and reward); is the file "
            "truncated?");
}

TEST(TrajectoryCsv, RefusesEveryTruncationOfTheLastEpisode) {
  const std::string whole = "episode,t,x0,a0,r\ne,0,1.5,2.5,3.5\ne,1,2.25,,\n";
  EXPECT_EQ(CsvError(whole), "no error");
  EXPECT_EQ(CsvError(whole.substr(0, whole.size() - 1)), "no error");
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    EXPECT_NE(CsvError(whole.substr(0, length)), "no error") << length;
  }
}

TEST(TrajectoryFile, FormatFollowsTheExtension) {
  EXPECT_THROW(ReadTrajectories("walk.txt"), UserError);
  EXPECT_THROW(ReadTrajectories("missing.jsonl"), UserError);
}

}  // namespace
}  // namespace msrl
