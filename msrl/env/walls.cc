#include "msrl/env/walls.h"

#include <limits>

#include "msrl/core/check.h"

namespace msrl {
namespace {

bool InGap(const Wall& wall, double along, double margin) {
  for (int i = 0; i < wall.gaps; ++i) {
    if (std::abs(along - wall.gap[static_cast<std::size_t>(i)]) < wall.gap_half_width - margin) {
      return true;
    }
  }
  return false;
}

}  // namespace

void Walls::Add(const Wall& wall) {
  MSRL_CHECK_LT(count_, kMaxWalls);
  walls_[static_cast<std::size_t>(count_++)] = wall;
}

bool Walls::Blocks(const Vec2& p, const Vec2& q) const {
  if (std::abs(q.x()) > half_width_ || std::abs(q.y()) > half_width_) return true;
  for (int i = 0; i < count_; ++i) {
    const Wall& wall = (*this)[i];
    if ((p[wall.axis] - wall.position) * (q[wall.axis] - wall.position) < 0.0 &&
        !InGap(wall, q[1 - wall.axis], 0.0)) {
      return true;
    }
  }
  return false;
}

bool Walls::IsClear(const Vec2& p, const Vec2& q, double margin) const {
  for (int i = 0; i < count_; ++i) {
    const Wall& wall = (*this)[i];
    const double before = p[wall.axis] - wall.position;
    const double after = q[wall.axis] - wall.position;
    if (before * after >= 0.0) continue;
    const double t = before / (before - after);
    const int other = 1 - wall.axis;
    if (!InGap(wall, p[other] + t * (q[other] - p[other]), margin)) return false;
  }
  return true;
}

Route::Route(const Walls& walls, const Vec2& goal, double margin) : margin_(margin) {
  point_[0] = goal;
  count_ = 1;
  for (int i = 0; i < walls.count(); ++i) {
    const Wall& wall = walls[i];
    for (int g = 0; g < wall.gaps; ++g) {
      for (const double side : {-1.0, 1.0}) {
        Vec2& point = point_[static_cast<std::size_t>(count_++)];
        point[wall.axis] = wall.position + side * 0.5 * wall.gap_half_width;
        point[1 - wall.axis] = wall.gap[static_cast<std::size_t>(g)];
      }
    }
  }
  // few points: relax until nothing changes
  to_goal_.fill(std::numeric_limits<double>::infinity());
  to_goal_[0] = 0.0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 1; i < static_cast<std::size_t>(count_); ++i) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(count_); ++j) {
        const double length = (point_[i] - point_[j]).norm() + to_goal_[j];
        if (i != j && length < to_goal_[i] - 1e-12 &&
            walls.IsClear(point_[i], point_[j], margin_)) {
          to_goal_[i] = length;
          changed = true;
        }
      }
    }
  }
}

Route::Heading Route::From(const Walls& walls, const Vec2& p) const {
  Heading best{point_[0], true, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < count_; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double length = (p - point_[k]).norm() + to_goal_[k];
    if (length < best.distance && walls.IsClear(p, point_[k], margin_)) {
      best = {point_[k], i == 0, length};
    }
  }
  return best;
}

}  // namespace msrl
