// What commands print with --json.
#ifndef MSRL_CLI_JSON_OUTPUT_H_
#define MSRL_CLI_JSON_OUTPUT_H_

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace msrl::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kOneLine = -1;

// With a newline at the end. Names come from files and may hold any bytes: what is no UTF-8 is
// replaced.
inline std::string JsonText(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}
inline void PrintJson(const Json& json, int indent = 2) {
  fmt::print("{}", JsonText(json, indent));
}

}  // namespace msrl::cli

#endif  // MSRL_CLI_JSON_OUTPUT_H_
