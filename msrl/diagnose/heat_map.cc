#include "msrl/diagnose/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "msrl/core/text.h"

namespace msrl {
namespace {

using Vec2 = Svg::Vec2;

constexpr std::string_view kDark = "#222222";

// t in [-1, 1]: blue, white, red.
std::string DivergingColour(double t) {
  using Rgb = std::array<double, 3>;
  constexpr Rgb kWhite = {255, 255, 255};
  constexpr Rgb kBlue[] = {kWhite, {146, 197, 222}, {33, 102, 172}};
  constexpr Rgb kRed[] = {kWhite, {244, 165, 130}, {178, 24, 43}};
  const auto& ramp = t < 0.0 ? kBlue : kRed;
  const double at = 2.0 * std::min(std::abs(t), 1.0);
  const std::size_t low = at < 1.0 ? 0 : 1;
  std::string text = "#";
  for (std::size_t i = 0; i < 3; ++i) {
    const double value = std::lerp(ramp[low][i], ramp[low + 1][i], at - static_cast<double>(low));
    text += Hex(static_cast<std::uint64_t>(std::lround(value))).substr(14);
  }
  return text;
}

std::string BlockLabel(const std::string& name) {
  if (name == "delta") return "δ";
  if (name == "xi_c") return "ξ⊗c";
  if (name == "xi_delta") return "ξ⊗δ";
  return name;
}

void DrawColourBar(Svg& svg, double largest, const Vec2& corner, double side) {
  constexpr int kSteps = 50;
  const double step = side / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const std::string colour = DivergingColour(1.0 - 2.0 * (i + 0.5) / kSteps);
    // half a pixel of overlap hides the seams
    svg.Rect(corner + Vec2(0, i * step), {14.0, step + (i + 1 < kSteps ? 0.5 : 0.0)},
             {.fill = colour});
  }
  svg.Rect(corner, {14.0, side}, {.stroke = kDark, .width = 0.8});
  for (const double t : {1.0, 0.5, 0.0, -0.5, -1.0}) {
    const double y = 0.5 * side * (1.0 - t);
    svg.Line(corner + Vec2(14, y), corner + Vec2(18, y), {.stroke = kDark, .width = 0.8});
    const double value = t * t * t * largest;
    svg.Text(corner + Vec2(21, y + 4), Fixed(value, 2), {.size = 11});
  }
}

}  // namespace

void DrawHeatMap(Svg& svg, const SegmentMatrix& matrix, const Vec2& corner, double side) {
  const Eigen::MatrixXd dense = matrix.Dense();
  const Index m = dense.rows();
  const double largest = dense.cwiseAbs().maxCoeff();
  const double cell = side / static_cast<double>(m);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < m; ++j) {
      // the horizon is hundreds of times the squared steps: a cube root shows both
      const double t = std::cbrt(dense(i, j) / largest);
      svg.Rect(corner + cell * Vec2(static_cast<double>(j), static_cast<double>(i)), {cell, cell},
               {.stroke = "#efefef", .width = 0.5, .fill = DivergingColour(t)});
    }
  }
  for (const LiftBlock& block : matrix.lift()->blocks()) {
    const double from = cell * static_cast<double>(block.offset);
    const double middle = from + 0.5 * cell * static_cast<double>(block.size);
    const std::string label = BlockLabel(block.name);
    svg.Text(corner + Vec2(middle, -8), label, {.size = 12, .anchor = TextAnchor::kMiddle});
    svg.Text(corner + Vec2(-8, middle + 4.5), label, {.size = 13, .anchor = TextAnchor::kEnd});
    // fine lines between the actions
    const Index d = matrix.lift()->d();
    for (Index i = d; i < block.size && block.role == BlockRole::kActionGeometry; i += d) {
      const double at = from + cell * static_cast<double>(i);
      const Paint fine{.stroke = "#b0b0b0", .width = 0.7};
      svg.Line(corner + Vec2(at, 0), corner + Vec2(at, side), fine);
      svg.Line(corner + Vec2(0, at), corner + Vec2(side, at), fine);
    }
    if (block.offset == 0) continue;
    const Paint separator{.stroke = kDark, .width = 1.2};
    svg.Line(corner + Vec2(from, 0), corner + Vec2(from, side), separator);
    svg.Line(corner + Vec2(0, from), corner + Vec2(side, from), separator);
  }
  svg.Rect(corner, {side, side}, {.stroke = kDark, .width = 1.2});
  DrawColourBar(svg, largest, corner + Vec2(side + 22.0, 0.0), side);
}

}  // namespace msrl
