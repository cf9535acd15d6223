// What environments draw themselves with: smooth filled shapes in the coordinates of a plane.
#ifndef MSRL_ENV_PAINTER_H_
#define MSRL_ENV_PAINTER_H_

#include <span>

#include "msrl/env/walls.h"

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
class Painter {
 public:
  virtual ~Painter() = default;

  // `centre` is in the middle from now on; the smaller side shows `extent`.
  virtual void Look(const Vec2& centre, double extent) = 0;
  virtual const Vec2& centre() const = 0;
  // Half of what is shown in each direction.
  virtual Vec2 half_shown() const = 0;
  // The length of a pixel.
  virtual double pixel() const = 0;

  virtual void Disc(const Vec2& centre, double radius, const Colour& colour) = 0;
  // All within `radius` of the line.
  virtual void Capsule(const Vec2& from, const Vec2& to, double radius, const Colour& colour) = 0;
  // The convex hull of the points.
  virtual void Hull(std::span<const Vec2> points, const Colour& colour) = 0;
};

// One look for all sketches.
inline constexpr Colour kPaperColour{0.96F, 0.97F, 0.98F};
inline constexpr Colour kGroundColour{0.76F, 0.78F, 0.80F};
inline constexpr Colour kLineColour{0.55F, 0.58F, 0.62F};
inline constexpr Colour kFaintColour{0.84F, 0.86F, 0.88F};
inline constexpr Colour kBodyColour{0.85F, 0.45F, 0.15F};
inline constexpr Colour kLimbColour{0.25F, 0.40F, 0.60F};
inline constexpr Colour kGoalColour{0.20F, 0.65F, 0.30F, 0.6F};
inline constexpr double kMoverRadius = 0.05;

// Squares, so that motion can be seen.
void DrawRuler(Painter& painter, double tile);
void DrawWalls(Painter& painter, const Walls& walls);
// The wanted velocity as a line from the mover, ten steps long.
void DrawTargetVelocity(Painter& painter, const Vec2& from, const Vec2& velocity);

}  // namespace msrl

#endif  // MSRL_ENV_PAINTER_H_
