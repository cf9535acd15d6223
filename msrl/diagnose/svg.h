// Small pictures as text.
#ifndef MSRL_DIAGNOSE_SVG_H_
#define MSRL_DIAGNOSE_SVG_H_

#include <Eigen/Core>
#include <span>
#include <string>
#include <string_view>

namespace msrl {

// The number with that many decimals, the same in every locale.
std::string Fixed(double value, int decimals);

// How a shape is painted. Colours are SVG colours.
struct Paint {
  std::string_view stroke = "none";
  double width = 1.0;
  std::string_view fill = "none";
  double opacity = 1.0;
  std::string_view dash = {};
};

enum class TextAnchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 12.0;
  TextAnchor anchor = TextAnchor::kStart;
  bool bold = false;
  std::string_view colour = "#222222";
};

// A self-contained SVG document with a white background. Lengths are pixels, y points down; later
// shapes cover earlier ones. Text is escaped.
class Svg {
 public:
  using Vec2 = Eigen::Vector2d;

  // The title is what a screen reader says.
  Svg(double width, double height, std::string_view title);

  void Line(const Vec2& from, const Vec2& to, const Paint& paint);
  void Polyline(std::span<const Vec2> points, const Paint& paint);
  void Polygon(std::span<const Vec2> points, const Paint& paint);
  void Rect(const Vec2& corner, const Vec2& size, const Paint& paint);
  void Circle(const Vec2& centre, double radius, const Paint& paint);
  // A filled triangle around `centre` that points along `direction`.
  void Head(const Vec2& centre, const Vec2& direction, double size, const Paint& paint);
  // A line with a head that ends in `to`.
  void Arrow(const Vec2& from, const Vec2& to, double head, const Paint& paint);
  // `at` is on the baseline.
  void Text(const Vec2& at, std::string_view text, const TextStyle& style = {});

  // The whole document.
  std::string Document() const;

 private:
  void Add(std::string_view tag, std::string_view attributes, const Paint& paint);

  std::string body_;
};

}  // namespace msrl

#endif  // MSRL_DIAGNOSE_SVG_H_
