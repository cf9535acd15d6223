#include "msrl/mujoco/handles.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/mujoco/models.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

TEST(Model, IsSharedWhileItLives) {
  const ModelPtr first = CompileModel("hopper", ModelText("hopper"));
  EXPECT_EQ(CompileModel("hopper", ModelText("hopper")), first);
  EXPECT_NE(CompileModel("walker2d", ModelText("walker2d")), first);
}

TEST(Model, CompilesFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<ModelPtr> models(8);
  for (std::size_t i = 0; i < models.size(); ++i) {
    threads.emplace_back(
        [&models, i] { models[i] = CompileModel("m", ModelText(i % 2 == 0 ? "hopper" : "ant")); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(models[0], models[6]);
  EXPECT_EQ(models[1], models[7]);
}

TEST(Model, BadTextIsOneLine) {
  const std::string error =
      testing::UserErrorText([] { CompileModel("robot", "<mujoco><worldbdy/></mujoco>"); });
  EXPECT_EQ(error.find("robot: not a usable model: "), 0u) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_NE(testing::UserErrorText([] { CompileModel("robot", ""); }), "no error");
  EXPECT_NE(testing::UserErrorText([] { CompileModel("robot", "not xml at all"); }), "no error");
}

TEST(Model, MissingAndDamagedFiles) {
  EXPECT_NE(
      testing::UserErrorText([] { LoadModel("no/such/model.xml"); }).find("no/such/model.xml"),
      std::string::npos);
  const auto path = std::filesystem::temp_directory_path() / "msrl_damaged_model.xml";
  const std::string whole = ModelText("ant");
  for (const std::size_t size : {std::size_t{0}, whole.size() / 2, whole.size() - 5}) {
    std::ofstream(path) << whole.substr(0, size);
    const std::string error = testing::UserErrorText([&] { LoadModel(path); });
    EXPECT_EQ(error.find(path.string()), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  std::filesystem::remove(path);
}

TEST(Model, NamesWhatItLacks) {
  const ModelPtr model = CompileModel("hopper", ModelText("hopper"));
  EXPECT_EQ(testing::UserErrorText([&] { RequireId(*model, mjOBJ_BODY, "head"); }),
            "the model has no body 'head'");
}

// MuJoCo's own handler would wait for a key and then exit.
TEST(Handlers, AnErrorIsAnException) {
  const ModelPtr model = CompileModel("hopper", ModelText("hopper"));
  EXPECT_THROW(mju_error("test"), InvariantError);
}

TEST(Handlers, NothingWritesALogFile) {
  const ModelPtr model = CompileModel("hopper", ModelText("hopper"));
  mju_warning("test");
  EXPECT_FALSE(std::filesystem::exists("MUJOCO_LOG.TXT"));
}

TEST(ReplaceOnce, RefusesNoneAndSeveral) {
  EXPECT_EQ(ReplaceOnce("abc", "b", "xx"), "axxc");
  EXPECT_THROW(ReplaceOnce("abc", "d", ""), InvariantError);
  EXPECT_THROW(ReplaceOnce("abcb", "b", ""), InvariantError);
}

}  // namespace
}  // namespace msrl
