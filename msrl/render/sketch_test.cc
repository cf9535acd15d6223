#include "msrl/render/sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/env/behaviour.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env_list/env_list.h"
#include "msrl/mujoco/reacher.h"

namespace msrl {
namespace {

constexpr ImageSize kSize{160, 120};

// Whether a pixel is of the models' orange (robot, what moves).
bool IsOrange(const std::uint8_t* rgb) { return rgb[0] > 180 && rgb[1] < 150 && rgb[2] < 90; }

struct Spot {
  int pixels = 0;
  double x = 0.0;  // mean
  double y = 0.0;
};

Spot OrangeSpot(const Image& image) {
  Spot spot;
  for (int y = 0; y < image.size.height; ++y) {
    for (int x = 0; x < image.size.width; ++x) {
      if (!IsOrange(image.At(x, y))) continue;
      ++spot.pixels;
      spot.x += x + 0.5;
      spot.y += y + 0.5;
    }
  }
  spot.x /= std::max(spot.pixels, 1);
  spot.y /= std::max(spot.pixels, 1);
  return spot;
}

TEST(Sketch, EveryEnvironmentHasOneThatFollowsTheState) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    SCOPED_TRACE(entry.id);
    const auto env = MakeEnv(entry.id);
    env->Reset(4);
    // in a maze the robot is small
    const ImageSize size = env->spec().family.ends_with("maze") ? ImageSize{480, 360} : kSize;
    const auto view = MakeSketch(*env, size);
    const Image first = view->Draw();
    EXPECT_EQ(first.size, size);
    EXPECT_GT(OrangeSpot(first).pixels, 3);
    EXPECT_EQ(view->Draw(), first);
    Behaviour random(*env, {.skill = 0.0}, Rng(1, "test"));
    bool moved = false;
    for (int i = 0; i < 20 && !moved; ++i) {
      env->Step(random.Act());
      moved = !(view->Draw() == first);
    }
    EXPECT_TRUE(moved);
  }
}

TEST(Sketch, TheBodyIsWhereItIs) {
  const auto env = MakeEnv("four-rooms-sparse");
  const auto view = MakeSketch(*env, kSize);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    env->Reset(seed);
    const Vec2 position = UnwrapAs<FourRooms>(*env)->state().position;
    const Spot spot = OrangeSpot(view->Draw());
    const double pixels = 120 / 4.2;  // per unit
    EXPECT_NEAR(spot.x, 80 + pixels * position.x(), 0.7);
    EXPECT_NEAR(spot.y, 60 - pixels * position.y(), 0.7);
  }
}

TEST(Sketch, MujocoGeomsAreSeenFromAbove) {
  const auto env = MakeEnv("reacher");
  env->Reset(0);
  auto* reacher = UnwrapAs<MujocoEnv>(*env);
  const auto view = MakeSketch(*env, {480, 480});
  for (const double angle : {0.0, 1.5, -2.5}) {
    const double qpos[4] = {angle, 0.0, 0.2, 0.2};
    const double qvel[4] = {};
    reacher->StartAt(qpos, qvel);
    const Spot spot = OrangeSpot(view->Draw());
    const double pixels = 480 / 0.7;
    // the finger tip, of which the arm's end hides a part
    EXPECT_GT(spot.pixels, 20);
    EXPECT_NEAR(spot.x, 240 + pixels * 0.21 * std::cos(angle), 6.0);
    EXPECT_NEAR(spot.y, 240 - pixels * 0.21 * std::sin(angle), 6.0);
  }
}

}  // namespace
}  // namespace msrl
