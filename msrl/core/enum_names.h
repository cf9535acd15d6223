// Names of enumerators, written once beside the enum:
//
//   enum class Lookahead { kOff, kTraining, kAlways };
//   constexpr auto EnumNames(Lookahead) { return Names("off", "training", "always"); }
//
// One name per enumerator, in their order, the first with value 0.
#ifndef MSRL_CORE_ENUM_NAMES_H_
#define MSRL_CORE_ENUM_NAMES_H_

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "msrl/core/check.h"

namespace msrl {
namespace internal {
[[noreturn]] void UnknownName(std::string_view what, std::string_view name,
                              std::span<const std::string_view> known);
}  // namespace internal

template <typename... Texts>
constexpr auto Names(Texts... names) {
  return std::array<std::string_view, sizeof...(Texts)>{names...};
}

template <typename E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  EnumNames(value);
};

template <NamedEnum E>
constexpr std::string_view EnumName(E value) {
  constexpr auto kNames = EnumNames(E{});
  const auto index = static_cast<std::size_t>(value);
  MSRL_CHECK(index < kNames.size(), "no such enumerator: ", index);
  return kNames[index];
}

// Empty if no enumerator has this name.
template <NamedEnum E>
constexpr std::optional<E> EnumFromName(std::string_view name) {
  constexpr auto kNames = EnumNames(E{});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

// UserError "unknown `what` ..." with the nearest name.
template <NamedEnum E>
E ParseEnum(std::string_view what, std::string_view name) {
  if (const std::optional<E> value = EnumFromName<E>(name)) return *value;
  internal::UnknownName(what, name, EnumNames(E{}));
}

// All enumerators, in order.
template <NamedEnum E>
constexpr auto EnumValues() {
  std::array<E, EnumNames(E{}).size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<E>(i);
  return values;
}

}  // namespace msrl

#endif  // MSRL_CORE_ENUM_NAMES_H_
