#include "msrl/mujoco/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "msrl/files/atomic_file.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

std::string TestData(const std::string& name) {
  const auto path = std::filesystem::path(MSRL_MUJOCO_TESTDATA) / (name + ".json");
  return ReadWholeFile(path, 1 << 24);
}

struct Case {
  const char* file;
  const char* env;
};

class Golden : public ::testing::TestWithParam<Case> {};

TEST_P(Golden, ModelStepsAndReplaysAgree) {
  const GoldenFile file = ParseGolden(TestData(GetParam().file), GetParam().file);
  ASSERT_EQ(file.trajectories.size(), 3u);
  const auto rows = CheckAgainst(GetParam().env, file);
  EXPECT_GE(rows.size(), 50u);
  for (const Deviation& row : rows) {
    EXPECT_TRUE(row.ok()) << row.quantity << ": " << row.largest << " at " << row.where
                          << ", tolerance " << row.tolerance;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Golden,
                         ::testing::Values(Case{"reacher", "reacher"}, Case{"pusher", "pusher"},
                                           Case{"pusher_v5", "pusher"}, Case{"hopper", "hopper"},
                                           Case{"walker2d", "walker2d"},
                                           Case{"walker2d_v5", "walker2d"}, Case{"ant", "ant"},
                                           Case{"humanoid", "humanoid"},
                                           Case{"antmaze_umaze", "antmaze-umaze"},
                                           Case{"antmaze_medium", "antmaze-medium"},
                                           Case{"antmaze_large", "antmaze-large"},
                                           Case{"point_maze_umaze", "pointmaze-umaze"},
                                           Case{"point_maze_medium", "pointmaze-medium"},
                                           Case{"point_maze_large", "pointmaze-large"}),
                         [](const auto& test) { return std::string(test.param.file); });

bool IsBeyond(const std::vector<Deviation>& rows, const std::string& quantity) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Deviation& row) { return row.quantity == quantity && !row.ok(); });
}

TEST(GoldenCheck, SeesWhatDiffers) {
  GoldenFile file = ParseGolden(TestData("hopper"), "hopper");
  GoldenFile other = file;
  other.trajectories[1].steps[40].qvel[2] += 1e-6;
  EXPECT_TRUE(IsBeyond(CheckAgainst("hopper", other), "open loop qvel"));
  EXPECT_TRUE(IsBeyond(CheckAgainst("hopper", other), "single step qvel"));
  EXPECT_FALSE(IsBeyond(CheckAgainst("hopper", other), "open loop qpos"));
  other = file;
  other.model["joints.damping"][4][0] *= 1 + 1e-9;
  EXPECT_TRUE(IsBeyond(CheckAgainst("hopper", other), "model joints.damping"));
  other = file;
  other.trajectories[0].steps[9].observation["v5"][3] += 1e-6;
  EXPECT_TRUE(IsBeyond(CheckAgainst("hopper", other), "v5 observation"));
  other = file;
  other.trajectories[0].steps[5].reward["v4"] += 1e-3;
  EXPECT_TRUE(IsBeyond(CheckAgainst("hopper", other), "v4 reward"));
  EXPECT_FALSE(IsBeyond(CheckAgainst("hopper", other), "v5 reward"));
}

TEST(GoldenCheck, TellsTheVersionsOfAModelApart) {
  GoldenFile file = ParseGolden(TestData("walker2d"), "walker2d");
  file.versions = {"v5"};
  EXPECT_TRUE(IsBeyond(CheckAgainst("walker2d", file), "model geoms.friction"));
}

TEST(GoldenCheck, RefusesAnotherTask) {
  const GoldenFile file = ParseGolden(TestData("hopper"), "hopper");
  EXPECT_NE(testing::UserErrorText([&] { CheckAgainst("walker2d", file); }).find("another task?"),
            std::string::npos);
  EXPECT_EQ(testing::UserErrorText([&] { CheckAgainst("hoper", file); }),
            "'hoper' is no MuJoCo task; did you mean 'hopper'?");
}

TEST(GoldenFile, RefusesWhatIsNoSuchFile) {
  const auto error = [](std::string_view text) {
    return testing::UserErrorText([&] { ParseGolden(text, "f"); });
  };
  EXPECT_EQ(error("{"), "f is damaged: not JSON at byte 2");
  EXPECT_EQ(error("[]"), "f: needs 'schema'");
  EXPECT_EQ(error(R"({"schema":"x"})"), "f.schema: needs \"mujoco-golden-1\"");
  const std::string head = R"({"schema":"mujoco-golden-1","task":"t","physics_used_by":)";
  EXPECT_EQ(error(head + R"("v6"})"), "f.physics_used_by: needs \"v4\", \"v5\" or \"v4,v5\"");
  EXPECT_EQ(error(head + R"("v4","model":{"qpos0":[1e999]},"trajectories":[]})"),
            "f is damaged: a number is too large");
  EXPECT_EQ(error(head + R"("v4","model":{"qpos0":["a"]},"trajectories":[]})"),
            "f.model.qpos0[0]: needs a finite number");
  EXPECT_EQ(error(head + R"("v4","model":{},"trajectories":[{"name":"n"}]})"),
            "f.trajectories[0]: needs 'init_qpos'");
}

}  // namespace
}  // namespace msrl
