// A painter on an image.
#ifndef MSRL_RENDER_CANVAS_H_
#define MSRL_RENDER_CANVAS_H_

#include <Eigen/Core>
#include <span>

#include "msrl/env/painter.h"
#include "msrl/render/image.h"

namespace msrl {

class Canvas : public Painter {
 public:
  explicit Canvas(ImageSize size);

  void Clear(const Colour& colour);
  void Look(const Vec2& centre, double extent) override;
  const Vec2& centre() const override { return centre_; }
  Vec2 half_shown() const override;
  double pixel() const override { return 1.0 / pixels_per_unit_; }
  void Disc(const Vec2& centre, double radius, const Colour& colour) override;
  void Capsule(const Vec2& from, const Vec2& to, double radius, const Colour& colour) override;
  void Hull(std::span<const Vec2> points, const Colour& colour) override;

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
