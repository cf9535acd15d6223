#include "msrl/render/canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "msrl/core/check.h"

namespace msrl {
namespace {

double Cross(const Vec2& a, const Vec2& b) { return a.x() * b.y() - a.y() * b.x(); }

// The corners in order of turning (Andrew's monotone chain).
std::vector<Vec2> ConvexHull(std::vector<Vec2> points) {
  std::sort(points.begin(), points.end(), [](const Vec2& a, const Vec2& b) {
    return a.x() < b.x() || (a.x() == b.x() && a.y() < b.y());
  });
  std::vector<Vec2> hull;
  const auto add_chain = [&](auto first, auto last) {
    const std::size_t base = hull.size();
    for (auto p = first; p != last; ++p) {
      while (hull.size() >= base + 2 &&
             Cross(hull.back() - hull[hull.size() - 2], *p - hull.back()) <= 0.0) {
        hull.pop_back();
      }
      hull.push_back(*p);
    }
    hull.pop_back();  // the other chain begins with it
  };
  add_chain(points.begin(), points.end());
  add_chain(points.rbegin(), points.rend());
  return hull;
}

}  // namespace

Canvas::Canvas(ImageSize size) : image_(size) {}

void Canvas::Clear(const Colour& colour) {
  const float parts[3] = {colour.red, colour.green, colour.blue};
  for (std::size_t i = 0; i < image_.rgb.size(); ++i) {
    image_.rgb[i] = static_cast<std::uint8_t>(std::lround(255.0F * parts[i % 3]));
  }
}

void Canvas::Look(const Vec2& centre, double extent) {
  MSRL_CHECK(extent > 0.0, "extent ", extent);
  centre_ = centre;
  pixels_per_unit_ = std::min(image_.size.width, image_.size.height) / extent;
}

Vec2 Canvas::half_shown() const {
  return Vec2(image_.size.width, image_.size.height) * (0.5 * pixel());
}

Vec2 Canvas::ToPixels(const Vec2& p) const {
  const Vec2 offset = (p - centre_) * pixels_per_unit_;
  return {0.5 * image_.size.width + offset.x(), 0.5 * image_.size.height - offset.y()};
}

template <typename Distance>
void Canvas::Fill(const Vec2& low, const Vec2& high, const Colour& colour,
                  const Distance& distance) {
  if (!low.allFinite() || !high.allFinite()) return;
  const auto clip = [](double value, int side) {
    return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(side)));
  };
  const int x_begin = clip(low.x() - 1.0, image_.size.width);
  const int x_end = clip(high.x() + 2.0, image_.size.width);
  const int y_begin = clip(low.y() - 1.0, image_.size.height);
  const int y_end = clip(high.y() + 2.0, image_.size.height);
  const float parts[3] = {colour.red, colour.green, colour.blue};
  for (int y = y_begin; y < y_end; ++y) {
    for (int x = x_begin; x < x_end; ++x) {
      const double inside = 0.5 - distance(x + 0.5, y + 0.5);
      if (inside <= 0.0) continue;
      const auto share = static_cast<float>(std::min(inside, 1.0)) * colour.opacity;
      std::uint8_t* pixel = image_.At(x, y);
      for (int i = 0; i < 3; ++i) {
        const float old = static_cast<float>(pixel[i]);
        pixel[i] = static_cast<std::uint8_t>(
            std::clamp(std::lround(old + share * (255.0F * parts[i] - old)), 0L, 255L));
      }
    }
  }
}

void Canvas::Disc(const Vec2& centre, double radius, const Colour& colour) {
  Capsule(centre, centre, radius, colour);
}

void Canvas::Capsule(const Vec2& from, const Vec2& to, double radius, const Colour& colour) {
  const Vec2 a = ToPixels(from);
  const Vec2 b = ToPixels(to);
  const double r = radius * pixels_per_unit_;
  // plain numbers: this runs for every pixel, also in builds without optimisation
  const double ax = a.x();
  const double ay = a.y();
  const double wx = b.x() - ax;
  const double wy = b.y() - ay;
  const double length2 = wx * wx + wy * wy;
  const double inverse = length2 > 0.0 ? 1.0 / length2 : 0.0;
  Fill(a.cwiseMin(b).array() - r, a.cwiseMax(b).array() + r, colour, [=](double x, double y) {
    const double dx = x - ax;
    const double dy = y - ay;
    double t = (dx * wx + dy * wy) * inverse;
    t = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
    const double ex = dx - t * wx;
    const double ey = dy - t * wy;
    return std::sqrt(ex * ex + ey * ey) - r;
  });
}

void Canvas::Hull(std::span<const Vec2> points, const Colour& colour) {
  std::vector<Vec2> pixels;
  for (const Vec2& point : points) {
    if (!point.allFinite()) return;
    pixels.push_back(ToPixels(point));
  }
  if (pixels.size() < 3) return;
  const std::vector<Vec2> corners = ConvexHull(std::move(pixels));
  if (corners.size() < 3) return;
  Vec2 low = corners[0];
  Vec2 high = corners[0];
  for (const Vec2& corner : corners) {
    low = low.cwiseMin(corner);
    high = high.cwiseMax(corner);
  }
  // outwards of each edge: nx * x + ny * y - offset
  struct Side {
    double nx, ny, offset;
  };
  std::vector<Side> sides;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Vec2 edge = (corners[(i + 1) % corners.size()] - corners[i]).normalized();
    const Vec2 normal(edge.y(), -edge.x());
    sides.push_back({normal.x(), normal.y(), normal.dot(corners[i])});
  }
  const Side* begin = sides.data();
  const Side* end = begin + sides.size();
  Fill(low, high, colour, [=](double x, double y) {
    // exact inside and beside the edges, a little small beyond the corners
    double largest = -std::numeric_limits<double>::infinity();
    for (const Side* side = begin; side != end; ++side) {
      const double distance = side->nx * x + side->ny * y - side->offset;
      largest = distance > largest ? distance : largest;
    }
    return largest;
  });
}

}  // namespace msrl
