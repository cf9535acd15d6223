// Small text helpers shared by error messages.
#ifndef MSRL_CORE_TEXT_H_
#define MSRL_CORE_TEXT_H_

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace msrl {

// The arguments as `<<` prints them, joined. Doubles get enough digits to be told apart.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  out.precision(10);
  (out << ... << args);
  return out.str();
}

// The candidate with the smallest edit distance to `name`, or "" if none is near enough to be a
// plausible typo.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

// "; did you mean 'x'?" or "", to be appended to an error about an unknown name.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

// FNV-1a, 64 bits: stable across platforms and versions, used for identities that go to disk.
std::uint64_t StableHash(std::string_view text);

// 16 lower-case hexadecimal digits.
std::string Hex(std::uint64_t value);

}  // namespace msrl

#endif  // MSRL_CORE_TEXT_H_
