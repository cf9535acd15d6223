// Smooth filled shapes on an image, in the coordinates of a plane.
#ifndef MSRL_RENDER_CANVAS_H_
#define MSRL_RENDER_CANVAS_H_

#include <Eigen/Core>
#include <span>

#include "msrl/env/walls.h"
#include "msrl/render/image.h"

namespace msrl {

// From 0 to 1.
struct Colour {
  float red = 0.0F;
  float green = 0.0F;
  float blue = 0.0F;
  float opacity = 1.0F;
};

// Lengths are in the plane's units, y points up; later shapes cover earlier ones. What is outside
// or not finite is not drawn.
class Canvas {
 public:
  explicit Canvas(ImageSize size);

  void Clear(const Colour& colour);
  // `centre` is in the middle from now on; the smaller side shows `extent`.
  void Look(const Vec2& centre, double extent);
  // The length of a pixel.
  double pixel() const { return 1.0 / pixels_per_unit_; }
  // Half of what is shown in each direction.
  Vec2 half_shown() const;
  const Vec2& centre() const { return centre_; }

  void Disc(const Vec2& centre, double radius, const Colour& colour);
  // All within `radius` of the line.
  void Capsule(const Vec2& from, const Vec2& to, double radius, const Colour& colour);
  // The convex hull of the points.
  void Hull(std::span<const Vec2> points, const Colour& colour);

  const Image& image() const { return image_; }

 private:
  Vec2 ToPixels(const Vec2& p) const;
  // Blends where distance(x, y) < 0, softly at the edge. The shape is within low and high, all in
  // pixels.
  template <typename Distance>
  void Fill(const Vec2& low, const Vec2& high, const Colour& colour, const Distance& distance);

  Image image_;
  Vec2 centre_{0, 0};
  double pixels_per_unit_ = 1.0;
};

}  // namespace msrl

#endif  // MSRL_RENDER_CANVAS_H_
