// Records as JSON objects, both ways, from their one list of fields:
//
//   template <typename V>
//   void Fields(V&& visit) { visit("name", name); ... }
//
// Fields may be whatever the JSON library takes, other records, and lists or optionals of these.
#ifndef MSRL_RUN_JSON_FIELDS_H_
#define MSRL_RUN_JSON_FIELDS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/run/run_spec.h"

namespace msrl {
namespace internal {

struct AnyVisitor {
  template <typename... Arguments>
  void operator()(const Arguments&...) const {}
};
template <typename T>
concept Record = requires(T& record) {
  record.Fields(AnyVisitor{});
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;

}  // namespace internal

// An optional without a value is null.
template <typename Json, typename T>
Json ToJsonValue(const T& value) {
  if constexpr (internal::Record<T>) {
    Json object = Json::object();
    T(value).Fields([&object](const char* key, const auto& field, const auto&...) {
      object[key] = ToJsonValue<Json>(field);
    });
    return object;
  } else if constexpr (internal::kIsOptional<T>) {
    return value ? ToJsonValue<Json>(*value) : Json();
  } else if constexpr (internal::kIsList<T>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(ToJsonValue<Json>(element));
    return list;
  } else {
    return value;
  }
}

// The JSON library's exceptions on a missing key or a value of another kind.
template <typename Json, typename T>
void FromJsonValue(const Json& json, T& value) {
  if constexpr (internal::Record<T>) {
    value.Fields([&json](const char* key, auto& field, const auto&...) {
      FromJsonValue(json.at(key), field);
    });
  } else if constexpr (internal::kIsOptional<T>) {
    value.reset();
    if (!json.is_null()) FromJsonValue(json, value.emplace());
  } else if constexpr (internal::kIsList<T>) {
    value.clear();
    for (const Json& element : json.template get_ref<const typename Json::array_t&>()) {
      FromJsonValue(element, value.emplace_back());
    }
  } else {
    json.get_to(value);
  }
}

// What read() returns; whatever the JSON library complains about is damage of `source`.
template <typename Json, typename Read>
auto Strictly(std::string_view source, const Read& read) {
  try {
    return read();
  } catch (const typename Json::exception& error) {
    throw UserError(StrCat(source, " is damaged: ", error.what()));
  }
}

// UserError unless the document is of this format and version; `kind` is what it then is.
template <typename Json>
void RequireFormat(const Json& document, const char* format, int version, const char* kind,
                   std::string_view source) {
  if (document.at("format") != format) throw UserError(StrCat(source, " is not ", kind));
  if (document.at("format_version") == version) return;
  throw UserError(StrCat(source, " has format version ",
                         document.at("format_version").dump().substr(0, 40), "; this is msrl ",
                         BuildVersion(), ", which knows ", version));
}

}  // namespace msrl

#endif  // MSRL_RUN_JSON_FIELDS_H_
