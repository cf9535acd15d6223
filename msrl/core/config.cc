#include "msrl/core/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

using Texts = std::vector<std::string>;

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Join(const Texts& texts, std::string_view between) {
  std::string joined;
  for (const std::string& text : texts) {
    if (!joined.empty()) joined += between;
    joined += text;
  }
  return joined;
}

// The shortest decimal that reads back as the same double; whole numbers without exponent.
std::string NumberText(double value) {
  if (std::abs(value) < 1e15 && value == std::trunc(value)) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

// Marked as a float for TOML.
std::string Literal(double value) {
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}
std::string Literal(bool value) { return value ? "true" : "false"; }
template <std::integral Integer>
std::string Literal(Integer value) {
  return std::to_string(value);
}
std::string Literal(const std::string& value) { return Quote(value); }
std::string Literal(const Texts& values) {
  Texts quoted;
  for (const std::string& value : values) quoted.push_back(Quote(value));
  return "[" + Join(quoted, ", ") + "]";
}

[[noreturn]] void WrongKind(std::string_view key, std::string_view text, std::string_view wanted) {
  throw UserError(StrCat("setting '", key, "' needs ", wanted, ", got '", text, "'"));
}

void RequireChoice(const internal::FieldRef& field, std::string_view text) {
  if (field.choices.empty() || std::ranges::find(field.choices, text) != field.choices.end()) {
    return;
  }
  WrongKind(field.key, text, "one of " + Join(field.choices, " "));
}

template <typename Number>
void RequireRange(const internal::FieldRef& field, Number value) {
  if (field.range.Contains(static_cast<double>(value))) return;
  const std::string wanted = field.range.Text();
  std::string got;
  if constexpr (std::integral<Number>) {
    got = std::to_string(value);
  } else {
    got = NumberText(value);
  }
  throw UserError(StrCat("setting '", field.key, "' must be ",
                         wanted.empty() ? "a finite number" : wanted, ", got ", got));
}

void Parse(const internal::FieldRef& field, std::string_view text, bool& value) {
  const bool yes = text == "true" || text == "True";
  if (!yes && text != "false" && text != "False") WrongKind(field.key, text, "true or false");
  value = yes;
}
// A whole number may be written as 1e5, up to where every one of them is a double.
template <std::integral Number>
bool ReadsAsWhole(std::string_view text, Number& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  double wide = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wide);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (!(std::abs(wide) <= kExact) || wide != std::trunc(wide)) return false;
  const auto whole = static_cast<std::int64_t>(wide);
  if (!std::in_range<Number>(whole)) return false;
  value = static_cast<Number>(whole);
  return true;
}
template <typename Number>
void Parse(const internal::FieldRef& field, std::string_view text, Number& value) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  const bool read = error == std::errc() && end == text.data() + text.size();
  if constexpr (std::integral<Number>) {
    if (!read && !ReadsAsWhole(text, parsed)) WrongKind(field.key, text, "a whole number");
  } else {
    if (!read) WrongKind(field.key, text, "a number");
    if (!std::isfinite(parsed)) WrongKind(field.key, text, "a finite number");
  }
  RequireRange(field, parsed);
  value = parsed;
}
void Parse(const internal::FieldRef& field, std::string_view text, std::string& value) {
  RequireChoice(field, text);
  value = text;
}
void Parse(const internal::FieldRef& field, std::string_view text, Texts& value) {
  Texts parsed;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    RequireChoice(field, text.substr(0, comma));
    parsed.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  value = std::move(parsed);
}

struct TypeName {
  std::string operator()(const bool*) const { return "bool"; }
  std::string operator()(const double*) const { return "number"; }
  template <std::integral Integer>
  std::string operator()(const Integer*) const {
    return "integer";
  }
  std::string operator()(const std::string*) const {
    return choices.empty() ? "string" : Join(choices, " | ");
  }
  std::string operator()(const Texts*) const {
    return "list of " + (choices.empty() ? "strings" : (*this)(&choices.front()));
  }
  const Texts& choices;
};

template <typename Kind>
std::string Lines(const std::vector<ConfigField>& fields, const Kind& kind) {
  std::string text;
  for (const ConfigField& field : fields) {
    text +=
        StrCat("# ", field.meaning, " (", kind(field), ")\n", field.key, " = ", field.value, "\n");
  }
  return text;
}

}  // namespace

bool Range::Contains(double value) const {
  if (special && value == *special) return true;
  if (!std::isfinite(value) || (even && std::fmod(value, 2.0) != 0.0)) return false;
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string Range::Text() const {
  const bool below = std::isfinite(low);
  const bool above = std::isfinite(high);
  std::string text;
  if (below && above) {
    text = low_open || high_open ? StrCat("in ", low_open ? "(" : "[", NumberText(low), ", ",
                                          NumberText(high), high_open ? ")" : "]")
                                 : StrCat(NumberText(low), " to ", NumberText(high));
  } else if (below) {
    text = low_open && low == 0.0 ? "positive"
                                  : StrCat(low_open ? "above " : "at least ", NumberText(low));
  } else if (above) {
    text = StrCat(high_open ? "below " : "at most ", NumberText(high));
  }
  if (even) text += text.empty() ? "even" : " and even";
  if (special) text += " or " + NumberText(*special);
  return text;
}

std::string ConfigField::Accepts() const {
  const std::string text = range.Text();
  return text.empty() ? type : type + ", " + text;
}

std::string ConfigField::Text() const {
  std::string text;
  const bool list = value.starts_with('[');
  bool quoted = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '"') {
      quoted = !quoted;
    } else if (quoted && value[i] == '\\') {
      text += value[++i];
    } else if (quoted || !list || value[i] == ',') {
      text += value[i];
    }
  }
  return text;
}

namespace internal {

void FieldLister::Visit(const FieldRef& field) {
  fields.push_back({field.key,
                    std::visit([](const auto* value) { return Literal(*value); }, field.value),
                    std::visit(TypeName{field.choices}, field.value), field.meaning, field.range,
                    field.choices});
}

void FieldSetter::Visit(const FieldRef& field) {
  known_.emplace_back(field.key);
  if (key_ != field.key) return;
  MSRL_CHECK(!found_, "field '", field.key, "' is listed twice");
  found_ = true;
  std::visit([&](auto* value) { Parse(field, text_, *value); }, field.value);
}

void FieldSetter::RequireFound() const {
  if (!found_) throw UserError(StrCat("unknown setting '", key_, "'", DidYouMean(key_, known_)));
}

void FieldChecker::Visit(const FieldRef& field) {
  std::visit(
      [&field]<typename T>(const T* value) {
        if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
          RequireRange(field, *value);
        } else if constexpr (std::same_as<T, std::string>) {
          RequireChoice(field, *value);
        }
      },
      field.value);
}

std::size_t FindEquals(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw UserError(StrCat("'", assignment, "' is not a setting; write key=value"));
  }
  return equals;
}

}  // namespace internal

std::string ToToml(const std::vector<ConfigField>& fields) {
  return Lines(fields, [](const ConfigField& field) { return field.Accepts(); });
}

std::string IdentityText(const std::vector<ConfigField>& fields) {
  return Lines(fields, [](const ConfigField& field) { return field.type; });
}

}  // namespace msrl
