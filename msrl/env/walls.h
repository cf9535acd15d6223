// Thin straight walls with gaps in a square arena, and the way through them.
#ifndef MSRL_ENV_WALLS_H_
#define MSRL_ENV_WALLS_H_

#include <array>
#include <cmath>

#include "msrl/env/vec2.h"

namespace msrl {

// The line x[axis] = position, open where the other coordinate is near a gap's centre.
struct Wall {
  int axis = 0;
  double position = 0.0;
  double gap_half_width = 0.0;
  int gaps = 0;
  std::array<double, 2> gap{};  // centres
};

class Walls {
 public:
  static constexpr int kMaxWalls = 2;

  explicit Walls(double half_width = 1.0) : half_width_(half_width) {}
  void Add(const Wall& wall);

  int count() const { return count_; }
  const Wall& operator[](int i) const { return walls_[static_cast<std::size_t>(i)]; }
  double half_width() const { return half_width_; }

  // Whether the step from p to q hits a wall or the arena's border. A gap is tested where the step
  // ends, which is exact enough for steps that are short against it.
  bool Blocks(const Vec2& p, const Vec2& q) const;
  // Whether the straight line crosses walls only through gaps, `margin` away from their edges.
  bool IsClear(const Vec2& p, const Vec2& q, double margin) const;

 private:
  double half_width_;
  int count_ = 0;
  std::array<Wall, kMaxWalls> walls_{};
};

// The way to a goal by points on both sides of each gap, along shortest lines between them.
class Route {
 public:
  Route() = default;
  Route(const Walls& walls, const Vec2& goal, double margin);

  struct Heading {
    Vec2 target{0, 0};
    bool is_goal = true;
    double distance = 0.0;  // along the whole way
  };
  // Where to go next from p. The goal itself if no way is found.
  Heading From(const Walls& walls, const Vec2& p) const;

 private:
  static constexpr int kMaxPoints = Walls::kMaxWalls * 4 + 1;

  double margin_ = 0.0;
  int count_ = 0;
  std::array<Vec2, kMaxPoints> point_{};  // the goal first
  std::array<double, kMaxPoints> to_goal_{};
};

}  // namespace msrl

#endif  // MSRL_ENV_WALLS_H_
