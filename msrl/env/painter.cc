#include "msrl/env/painter.h"

#include <algorithm>
#include <vector>

namespace msrl {

void DrawRuler(Painter& painter, double tile) {
  const Vec2 low = painter.centre() - painter.half_shown();
  const Vec2 high = painter.centre() + painter.half_shown();
  const double line = 0.75 * painter.pixel();
  for (double x = std::ceil(low.x() / tile) * tile; x < high.x(); x += tile) {
    painter.Capsule({x, low.y()}, {x, high.y()}, line, kFaintColour);
  }
  for (double y = std::ceil(low.y() / tile) * tile; y < high.y(); y += tile) {
    painter.Capsule({low.x(), y}, {high.x(), y}, line, kFaintColour);
  }
}

void DrawWalls(Painter& painter, const Walls& walls) {
  const double half = walls.half_width();
  const double thick = 0.01 * half;
  const std::array<Vec2, 4> corners = {Vec2(-half, -half), Vec2(half, -half), Vec2(half, half),
                                       Vec2(-half, half)};
  for (std::size_t i = 0; i < 4; ++i) {
    painter.Capsule(corners[i], corners[(i + 1) % 4], thick, kLineColour);
  }
  for (int i = 0; i < walls.count(); ++i) {
    const Wall& wall = walls[i];
    std::vector<double> gaps(wall.gap.begin(), wall.gap.begin() + wall.gaps);
    std::sort(gaps.begin(), gaps.end());
    const auto point = [&](double along) {
      return wall.axis == 0 ? Vec2(wall.position, along) : Vec2(along, wall.position);
    };
    double from = -half;
    for (const double gap : gaps) {
      painter.Capsule(point(from), point(gap - wall.gap_half_width), thick, kLineColour);
      from = gap + wall.gap_half_width;
    }
    painter.Capsule(point(from), point(half), thick, kLineColour);
  }
}

void DrawTargetVelocity(Painter& painter, const Vec2& from, const Vec2& velocity) {
  const Vec2 to = from + 10.0 * velocity;
  painter.Capsule(from, to, 0.012, kGoalColour);
  painter.Disc(to, 0.03, kGoalColour);
}

}  // namespace msrl
