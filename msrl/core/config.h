// Settings as plain structs, each listed once, with its range.
//
//   struct SacConfig {
//     double learning_rate = 3e-4;
//     int batch_size = 128;
//     template <typename V>
//     void Fields(V&& visit) {
//       visit("learning_rate", learning_rate, "step size of every Adam optimiser", Positive());
//       visit("batch_size", batch_size, "transitions per update", AtLeast(1));
//     }
//   };
//
// The one list makes `key=value` settings, their checks, TOML output and help tables. Fields may be
// bool, int, int64, uint64 or double (with a range), an enum with names (see enum_names.h; as
// fourth argument the enumerators that are allowed, if not all), an optional of such an enum
// ("sampled" if empty), a string, or a list of such enums or strings ("a,b").
#ifndef MSRL_CORE_CONFIG_H_
#define MSRL_CORE_CONFIG_H_

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "msrl/core/enum_names.h"

namespace msrl {

// Which numbers a setting may have. NaN and infinities are in no range.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  bool even = false;
  std::optional<double> special = std::nullopt;  // a value outside that has a meaning of its own

  constexpr Range OpenBelow() const {  // without the lower border
    Range range = *this;
    range.low_open = true;
    return range;
  }
  constexpr Range OpenAbove() const {
    Range range = *this;
    range.high_open = true;
    return range;
  }
  constexpr Range Even() const {
    Range range = *this;
    range.even = true;
    return range;
  }
  constexpr Range Or(double value) const {
    Range range = *this;
    range.special = value;
    return range;
  }

  bool Contains(double value) const;
  // "positive", "at least 2", "0 to 1", "in [0, 1)", "4 to 32 or 0"; empty if there is no border.
  std::string Text() const;
};

constexpr Range AnyNumber() { return {}; }
constexpr Range AtLeast(double low) { return {.low = low}; }
constexpr Range NotNegative() { return AtLeast(0.0); }
constexpr Range Positive() { return AtLeast(0.0).OpenBelow(); }
constexpr Range Between(double low, double high) { return {.low = low, .high = high}; }

// The name of an optional enum's empty value: drawn anew where it is used.
inline constexpr const char* kSampled = "sampled";

// One field as text: what help tables and files show.
struct ConfigField {
  std::string key;
  std::string value;  // a TOML literal
  std::string type;   // "bool", "integer", "number", "string", "a | b | c" or "list of ..."
  std::string meaning;
  Range range = {};                       // of an integer or number
  std::vector<std::string> choices = {};  // of an enum

  bool is_number() const { return type == "integer" || type == "number"; }
  // What may stand there: "integer, at least 1" or just the type.
  std::string Accepts() const;
  // The value as SetField takes it.
  std::string Text() const;
};

namespace internal {

struct FieldRef {
  const char* key;
  const char* meaning;
  Range range;
  std::vector<std::string> choices;  // empty: any text
  std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
               std::vector<std::string>*>
      value;
};

// What Fields gets. Enums are seen as texts with choices.
class FieldVisitor {
 public:
  void operator()(const char* key, bool& field, const char* meaning) {
    Visit({key, meaning, {}, {}, &field});
  }
  template <typename Number>
  requires(std::integral<Number> || std::floating_point<Number>) &&
      (!std::same_as<Number, bool>)void operator()(const char* key, Number& field,
                                                   const char* meaning, const Range& range) {
    Visit({key, meaning, range, {}, &field});
  }
  void operator()(const char* key, std::string& field, const char* meaning) {
    Visit({key, meaning, {}, {}, &field});
  }
  void operator()(const char* key, std::vector<std::string>& field, const char* meaning) {
    Visit({key, meaning, {}, {}, &field});
  }
  template <NamedEnum E>
  void operator()(const char* key, E& field, const char* meaning,
                  std::type_identity_t<std::span<const E>> allowed = {}) {
    std::string text(EnumName(field));
    Visit({key, meaning, {}, Choices<E>(allowed), &text});
    field = *EnumFromName<E>(text);
  }
  template <NamedEnum E>
  void operator()(const char* key, std::optional<E>& field, const char* meaning,
                  std::type_identity_t<std::span<const E>> allowed = {}) {
    std::string text(field ? EnumName(*field) : kSampled);
    std::vector<std::string> choices = Choices<E>(allowed);
    choices.insert(choices.begin(), kSampled);
    Visit({key, meaning, {}, std::move(choices), &text});
    field = EnumFromName<E>(text);
  }
  template <NamedEnum E>
  void operator()(const char* key, std::vector<E>& field, const char* meaning) {
    std::vector<std::string> texts;
    for (const E value : field) texts.emplace_back(EnumName(value));
    Visit({key, meaning, {}, Choices<E>({}), &texts});
    field.clear();
    for (const std::string& text : texts) field.push_back(*EnumFromName<E>(text));
  }

 protected:
  ~FieldVisitor() = default;
  virtual void Visit(const FieldRef& field) = 0;

 private:
  template <NamedEnum E>
  static std::vector<std::string> Choices(std::span<const E> allowed) {
    constexpr auto kAll = EnumValues<E>();
    std::vector<std::string> names;
    for (const E value : allowed.empty() ? std::span<const E>(kAll) : allowed) {
      names.emplace_back(EnumName(value));
    }
    return names;
  }
};

class FieldLister final : public FieldVisitor {
 public:
  std::vector<ConfigField> fields;

 private:
  void Visit(const FieldRef& field) override;
};

class FieldSetter final : public FieldVisitor {
 public:
  FieldSetter(std::string_view key, std::string_view text) : key_(key), text_(text) {}
  // UserError that names the nearest known key, if no field took the value.
  void RequireFound() const;

 private:
  void Visit(const FieldRef& field) override;

  std::string key_;
  std::string text_;
  std::vector<std::string> known_;
  bool found_ = false;
};

class FieldChecker final : public FieldVisitor {
  void Visit(const FieldRef& field) override;
};

// Where the '=' of "key=value" is; UserError if there is none.
std::size_t FindEquals(std::string_view assignment);

}  // namespace internal

// All fields with their present values.
template <typename Config>
std::vector<ConfigField> ListFields(Config config) {
  internal::FieldLister lister;
  config.Fields(lister);
  return lister.fields;
}

// Sets one field from text. UserError on an unknown key, a value of the wrong kind or out of range;
// the config is then unchanged.
template <typename Config>
void SetField(Config& config, std::string_view key, std::string_view text) {
  internal::FieldSetter setter(key, text);
  config.Fields(setter);
  setter.RequireFound();
}

// SetField for a "key=value" argument.
template <typename Config>
void SetField(Config& config, std::string_view assignment) {
  const std::size_t equals = internal::FindEquals(assignment);
  SetField(config, assignment.substr(0, equals), assignment.substr(equals + 1));
}

// The config itself, for one that was filled in code. UserError on the first value out of range.
template <typename Config>
const Config& RequireInRange(const Config& config) {
  Config copy = config;
  internal::FieldChecker checker;
  copy.Fields(checker);
  return config;
}

// "key = value" lines with meaning and range as comment; a TOML document.
std::string ToToml(const std::vector<ConfigField>& fields);

// A text that differs if a value differs. Its hash is part of checkpoints, so it stays as it is:
// ToToml without the ranges.
std::string IdentityText(const std::vector<ConfigField>& fields);

}  // namespace msrl

#endif  // MSRL_CORE_CONFIG_H_
