// The one way in for JSON that others may have written: its depth, size and number of values are
// looked at before a parser sees it. Nested values are copied, printed and destroyed by recursion,
// so that a hundred thousand brackets would overflow the stack, and each value of two bytes takes
// sixteen in memory or more.
#ifndef MSRL_FILES_JSON_TEXT_H_
#define MSRL_FILES_JSON_TEXT_H_

#include <cstddef>
#include <optional>
#include <string_view>

#include "msrl/core/check.h"

namespace msrl {

struct JsonLimits {
  std::size_t bytes = std::size_t{1} << 26;
  int depth = 64;
  std::size_t values = 5'000'000;
};

// UserError that names `source` and what is beyond a limit. One pass over the bytes, no memory.
void RequireModestJson(std::string_view text, std::string_view source,
                       const JsonLimits& limits = {});

// UserError that names `source` and the place, if the text is no JSON or beyond a limit.
template <typename Json>
Json ParseJson(std::string_view text, std::string_view source, const JsonLimits& limits = {}) {
  RequireModestJson(text, source, limits);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const typename Json::parse_error& error) {
    throw UserError(StrCat(source, " is damaged: not JSON at byte ", error.byte));
  } catch (const typename Json::out_of_range&) {
    throw UserError(StrCat(source, " is damaged: a number is too large"));
  }
}

// Nothing instead of an error, for what is of use if it can be read.
template <typename Json>
std::optional<Json> TryParseJson(std::string_view text, const JsonLimits& limits = {}) {
  try {
    return ParseJson<Json>(text, "", limits);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace msrl

#endif  // MSRL_FILES_JSON_TEXT_H_
