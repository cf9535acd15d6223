#include "msrl/files/toml.h"

#include <algorithm>
#include <cstddef>

#include "msrl/core/check.h"

namespace msrl {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// toml++ 3.3 is undefined on many letters beyond ASCII, so it gets none: comments may hold them,
// texts must write them as \u00e9. The result has the same lines.
std::string AsciiOf(std::string_view text, std::string_view file) {
  std::string ascii(text);
  int line = 1;
  char quote = 0;
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool beyond = static_cast<unsigned char>(c) >= 0x80;
    if (c == '\n') {
      ++line;
      quote = 0;
      comment = false;
    } else if (beyond && comment) {
      ascii[i] = '?';
    } else if (beyond) {
      throw UserError(StrCat(file, ":", line,
                             ": letters beyond ASCII can't be read here; write them as \\u00e9"));
    } else if (quote != 0) {
      const bool escaped = c == '\\' && quote == '"';
      if (c == quote) quote = 0;
      if (escaped && i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      quote = comment ? '\0' : c;
    } else if (c == '#') {
      comment = true;
    }
  }
  return ascii;
}

// Whether the dot is that of a number which stands alone. In a key, it would be followed by a blank
// and a dot that is none: of the dots of a key, at least every second one is not of a number.
bool IsDotOfNumber(std::string_view text, std::size_t dot) {
  const auto is = [text](std::size_t i, std::string_view any) {
    return i >= text.size() || any.find(text[i]) != std::string_view::npos;
  };
  const auto skip = [text](std::size_t i) {
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i;
  };
  std::size_t begin = dot;
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  if (begin == dot) return false;
  if (begin > 0 && is(begin - 1, "+-")) --begin;
  std::size_t end = skip(dot + 1);
  if (end == dot + 1) return false;
  if (end < text.size() && is(end, "eE")) end = skip(end + 1 + (is(end + 1, "+-") ? 1 : 0));
  return (begin == 0 || is(begin - 1, " \t\n=,[{")) && is(end, " \t\r\n,]}#");
}

// Every dot in a key is a table in a table, and the parser takes any number of them. Keys end with
// their line, so counting by lines is enough; dots of numbers like 0.5 do not count, those in texts
// do, so that no text can hide others.
void RequireShallow(std::string_view text, std::string_view file) {
  constexpr int kMaxDots = 16;
  int line = 1;
  int dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      dots = 0;
    }
    if (text[i] != '.' || IsDotOfNumber(text, i)) continue;
    if (++dots > kMaxDots) {
      throw UserError(StrCat(file, ":", line, ": more than ", kMaxDots, " dots in a line"));
    }
  }
}

}  // namespace

std::string OneLine(std::string text) {
  std::ranges::replace_if(text, IsControl, '?');
  return text;
}

toml::table ParseToml(std::string_view text, std::string_view file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const std::string ascii = AsciiOf(text, file);
  RequireShallow(ascii, file);
  try {
    return toml::parse(ascii, file);
  } catch (const toml::parse_error& error) {
    throw UserError(StrCat(file, ":", error.source().begin.line,
                           ": not TOML: ", OneLine(std::string(error.description()))));
  }
}

}  // namespace msrl
