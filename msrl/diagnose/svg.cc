#include "msrl/diagnose/svg.h"

#include <array>
#include <charconv>

#include "msrl/core/check.h"

namespace msrl {
namespace {

std::string Number(double value) { return Fixed(value, 2); }

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Points(std::span<const Svg::Vec2> points) {
  std::string out = "points=\"";
  for (const Svg::Vec2& p : points) out += StrCat(Number(p.x()), ",", Number(p.y()), " ");
  if (!points.empty()) out.pop_back();
  return out + "\"";
}

}  // namespace

std::string Fixed(double value, int decimals) {
  std::array<char, 400> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::fixed, decimals);
  MSRL_CHECK(result.ec == std::errc());
  std::string text(buffer.data(), result.ptr);
  // no minus before zero
  if (text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

Svg::Svg(double width, double height, std::string_view title) {
  body_ = StrCat(R"(<svg xmlns="http://www.w3.org/2000/svg" width=")", Number(width),
                 R"(" height=")", Number(height), R"(" viewBox="0 0 )", Number(width), " ",
                 Number(height), R"(" role="img" font-family="DejaVu Sans, Verdana, sans-serif">)",
                 "\n<title>", Escaped(title), "</title>\n");
  Rect({0, 0}, {width, height}, {.fill = "#ffffff"});
}

void Svg::Add(std::string_view tag, std::string_view attributes, const Paint& paint) {
  body_ += StrCat("<", tag, " ", attributes, " fill=\"", paint.fill, "\"");
  if (paint.stroke != "none") {
    body_ += StrCat(" stroke=\"", paint.stroke, "\" stroke-width=\"", Number(paint.width), "\"",
                    " stroke-linecap=\"round\" stroke-linejoin=\"round\"");
  }
  if (!paint.dash.empty()) body_ += StrCat(" stroke-dasharray=\"", paint.dash, "\"");
  if (paint.opacity < 1.0) body_ += StrCat(" opacity=\"", Number(paint.opacity), "\"");
  body_ += "/>\n";
}

void Svg::Line(const Vec2& from, const Vec2& to, const Paint& paint) {
  Add("line",
      StrCat("x1=\"", Number(from.x()), "\" y1=\"", Number(from.y()), "\" x2=\"", Number(to.x()),
             "\" y2=\"", Number(to.y()), "\""),
      paint);
}

void Svg::Polyline(std::span<const Vec2> points, const Paint& paint) {
  Add("polyline", Points(points), paint);
}

void Svg::Polygon(std::span<const Vec2> points, const Paint& paint) {
  Add("polygon", Points(points), paint);
}

void Svg::Rect(const Vec2& corner, const Vec2& size, const Paint& paint) {
  Add("rect",
      StrCat("x=\"", Number(corner.x()), "\" y=\"", Number(corner.y()), "\" width=\"",
             Number(size.x()), "\" height=\"", Number(size.y()), "\""),
      paint);
}

void Svg::Circle(const Vec2& centre, double radius, const Paint& paint) {
  Add("circle",
      StrCat("cx=\"", Number(centre.x()), "\" cy=\"", Number(centre.y()), "\" r=\"", Number(radius),
             "\""),
      paint);
}

void Svg::Head(const Vec2& centre, const Vec2& direction, double size, const Paint& paint) {
  const Vec2 along = direction.normalized() * size;
  const Vec2 across(-0.6 * along.y(), 0.6 * along.x());
  const std::array<Vec2, 3> corners = {centre + 0.6 * along, centre - 0.6 * along + across,
                                       centre - 0.6 * along - across};
  Polygon(corners, paint);
}

void Svg::Arrow(const Vec2& from, const Vec2& to, double head, const Paint& paint) {
  const Vec2 along = (to - from).normalized() * head;
  Line(from, to - along, paint);
  Head(to - 0.6 * along, along, head, {.fill = paint.stroke, .opacity = paint.opacity});
}

void Svg::Text(const Vec2& at, std::string_view text, const TextStyle& style) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  body_ += StrCat("<text x=\"", Number(at.x()), "\" y=\"", Number(at.y()), "\" font-size=\"",
                  Number(style.size), "\" text-anchor=\"",
                  kAnchors[static_cast<std::size_t>(style.anchor)], "\" fill=\"", style.colour,
                  style.bold ? "\" font-weight=\"bold\">" : "\">", Escaped(text), "</text>\n");
}

std::string Svg::Document() const { return body_ + "</svg>\n"; }

}  // namespace msrl
