// Taking texts apart.
#ifndef MSRL_CORE_PARSE_H_
#define MSRL_CORE_PARSE_H_

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace msrl {

// What stands between the separators: one part more than there are separators.
inline std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

// What stands before and after the first separator; without one, all of it is before.
inline std::pair<std::string_view, std::string_view> SplitOnce(std::string_view text,
                                                               char separator) {
  const std::size_t end = text.find(separator);
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end), text.substr(end + 1)};
}

// The number that the whole text is; empty for anything else.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace msrl

#endif  // MSRL_CORE_PARSE_H_
