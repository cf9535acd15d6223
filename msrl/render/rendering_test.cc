#include "msrl/render/rendering.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"

namespace msrl {
namespace {

constexpr ImageSize kSize{160, 120};

int Colours(const Image& image) {
  std::set<int> colours;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    colours.insert(image.rgb[i] << 16 | image.rgb[i + 1] << 8 | image.rgb[i + 2]);
  }
  return static_cast<int>(colours.size());
}

// Pixels of the models' orange and blue.
int RobotPixels(const Image& image) {
  int count = 0;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    const int red = image.rgb[i];
    const int blue = image.rgb[i + 2];
    count += red > 1.8 * blue || blue > 1.8 * red ? 1 : 0;
  }
  return count;
}

int GreenPixels(const Image& image) {
  int count = 0;
  for (std::size_t i = 0; i < image.rgb.size(); i += 3) {
    const int green = image.rgb[i + 1];
    count += green > 1.3 * image.rgb[i] && green > 1.3 * image.rgb[i + 2] ? 1 : 0;
  }
  return count;
}

std::unique_ptr<View> Render(Env& env, ImageSize size, std::string& why_not) {
  return MakeRendering(*UnwrapAs<MujocoEnv>(env), size, why_not);
}

TEST(Rendering, ShowsTheStateAndLeavesItAlone) {
  const auto env = MakeEnv("hopper");
  env->Reset(1);
  std::string why_not;
  const auto view = Render(*env, kSize, why_not);
  if (view == nullptr) GTEST_SKIP() << "no off-screen OpenGL: " << why_not;
  const auto before = env->Snapshot();
  const Image first = view->Draw();
  EXPECT_EQ(first.size, kSize);
  EXPECT_GT(Colours(first), 50);
  EXPECT_GT(RobotPixels(first), 100);
  EXPECT_EQ(view->Draw(), first);
  EXPECT_EQ(env->Snapshot(), before);
  Behaviour random(*env, {.skill = 0.0}, Rng(1, "test"));
  for (int i = 0; i < 10; ++i) env->Step(random.Act());
  EXPECT_FALSE(view->Draw() == first);
}

TEST(Rendering, TheGoalOfAMazeIsMarked) {
  const auto maze = MakeEnv("antmaze-umaze");
  const auto ant = MakeEnv("ant");
  std::string why_not;
  maze->Reset(1);
  ant->Reset(1);
  const auto maze_view = Render(*maze, kSize, why_not);
  if (maze_view == nullptr) GTEST_SKIP() << "no off-screen OpenGL: " << why_not;
  // two at a time
  const auto ant_view = Render(*ant, kSize, why_not);
  ASSERT_NE(ant_view, nullptr) << why_not;
  EXPECT_GT(GreenPixels(maze_view->Draw()), 5);
  EXPECT_EQ(GreenPixels(ant_view->Draw()), 0);
}

TEST(Rendering, CanBeSwitchedOff) {
  // the choice is the process's: only where no rendering came before
  const auto env = MakeEnv("hopper");
  setenv("MUJOCO_GL", "disable", 1);
  std::string why_not;
  const auto view = Render(*env, kSize, why_not);
  unsetenv("MUJOCO_GL");
  if (view != nullptr) GTEST_SKIP() << "OpenGL is in use already";
  EXPECT_EQ(why_not, "MUJOCO_GL=disable");
}

}  // namespace
}  // namespace msrl
