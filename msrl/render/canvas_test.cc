#include "msrl/render/canvas.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace msrl {
namespace {

constexpr Colour kWhite{1, 1, 1};
constexpr Colour kRed{1, 0, 0};

// How many pixels' worth of red there is.
double RedArea(const Canvas& canvas) {
  double area = 0.0;
  const Image& image = canvas.image();
  for (std::size_t i = 1; i < image.rgb.size(); i += 3) area += 1.0 - image.rgb[i] / 255.0;
  return area;
}

Canvas White(double extent) {
  Canvas canvas({200, 100});
  canvas.Clear(kWhite);
  canvas.Look({0, 0}, extent);
  return canvas;
}

TEST(Canvas, ShapesHaveTheirAreaAndPlace) {
  Canvas disc = White(10.0);  // ten pixels a unit
  disc.Disc({5.0, 2.0}, 2.0, kRed);
  EXPECT_NEAR(RedArea(disc), 3.14159 * 400, 8.0);
  EXPECT_EQ(disc.image().At(150, 30)[1], 0);  // y points up
  EXPECT_EQ(disc.image().At(150, 70)[1], 255);

  Canvas capsule = White(10.0);
  capsule.Capsule({-3.0, 0.0}, {3.0, 0.0}, 1.0, kRed);
  EXPECT_NEAR(RedArea(capsule), 3.14159 * 100 + 60 * 20, 8.0);

  Canvas hull = White(10.0);
  const std::array<Vec2, 5> square = {Vec2(-2, -2), Vec2(2, 2), Vec2(0, 0.5), Vec2(2, -2),
                                      Vec2(-2, 2)};
  hull.Hull(square, kRed);
  EXPECT_NEAR(RedArea(hull), 1600, 2.0);
}

TEST(Canvas, WhatCannotBeDrawnIsLeftOut) {
  Canvas canvas = White(10.0);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::array<Vec2, 3> line = {Vec2(0, 0), Vec2(1, 1), Vec2(2, 2)};
  canvas.Disc({kNan, 0}, 1.0, kRed);
  canvas.Disc({1e300, 0}, 1.0, kRed);
  canvas.Disc({1e9, 0}, 1.0, kRed);
  canvas.Hull(line, kRed);
  canvas.Hull({}, kRed);
  EXPECT_EQ(RedArea(canvas), 0.0);
}

TEST(Canvas, OpacityBlends) {
  Canvas canvas = White(10.0);
  canvas.Disc({0, 0}, 2.0, {1, 0, 0, 0.5F});
  EXPECT_NEAR(canvas.image().At(100, 50)[1], 128, 1);
  EXPECT_EQ(canvas.image().At(100, 50)[0], 255);
}

}  // namespace
}  // namespace msrl
