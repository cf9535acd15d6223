#include "msrl/core/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "msrl/core/check.h"

namespace msrl {
namespace {

std::string Quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// The shortest decimal that reads back as the same double, marked as a float for TOML.
std::string FormatDouble(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

[[noreturn]] void WrongKind(std::string_view key, std::string_view text, std::string_view wanted) {
  throw UserError(StrCat("setting '", key, "' needs ", wanted, ", got '", text, "'"));
}

template <typename T>
T ParseNumber(std::string_view key, std::string_view text, std::string_view wanted) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) WrongKind(key, text, wanted);
  return value;
}

}  // namespace

namespace internal {

void ConfigReader::operator()(const char* key, bool& field, const char* meaning) {
  fields.push_back({key, field ? "true" : "false", "bool", meaning});
}
void ConfigReader::operator()(const char* key, int& field, const char* meaning) {
  fields.push_back({key, std::to_string(field), "integer", meaning});
}
void ConfigReader::operator()(const char* key, std::int64_t& field, const char* meaning) {
  fields.push_back({key, std::to_string(field), "integer", meaning});
}
void ConfigReader::operator()(const char* key, double& field, const char* meaning) {
  fields.push_back({key, FormatDouble(field), "number", meaning});
}
void ConfigReader::operator()(const char* key, std::string& field, const char* meaning,
                              const std::vector<std::string>& choices) {
  std::string type = choices.empty() ? "string" : choices.front();
  for (std::size_t i = 1; i < choices.size(); ++i) type += " | " + choices[i];
  fields.push_back({key, Quote(field), type, meaning});
}

bool ConfigWriter::Matches(const char* key) {
  known_.emplace_back(key);
  if (key_ != key) return false;
  MSRL_CHECK(!found_, "field '", key, "' is listed twice");
  return found_ = true;
}

void ConfigWriter::operator()(const char* key, bool& field, const char*) {
  if (!Matches(key)) return;
  if (text_ != "true" && text_ != "false") WrongKind(key, text_, "true or false");
  field = text_ == "true";
}
void ConfigWriter::operator()(const char* key, int& field, const char*) {
  if (Matches(key)) field = ParseNumber<int>(key, text_, "a whole number");
}
void ConfigWriter::operator()(const char* key, std::int64_t& field, const char*) {
  if (Matches(key)) field = ParseNumber<std::int64_t>(key, text_, "a whole number");
}
void ConfigWriter::operator()(const char* key, double& field, const char*) {
  if (!Matches(key)) return;
  const auto value = ParseNumber<double>(key, text_, "a number");
  if (!std::isfinite(value)) WrongKind(key, text_, "a finite number");
  field = value;
}
void ConfigWriter::operator()(const char* key, std::string& field, const char*,
                              const std::vector<std::string>& choices) {
  if (!Matches(key)) return;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text_) == choices.end()) {
    std::string wanted = "one of";
    for (const std::string& choice : choices) wanted += " " + choice;
    WrongKind(key, text_, wanted);
  }
  field = text_;
}

void ConfigWriter::RequireFound() const {
  if (!found_) throw UserError(StrCat("unknown setting '", key_, "'", DidYouMean(key_, known_)));
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
  std::string text;
  for (const ConfigField& field : fields) {
    text +=
        StrCat("# ", field.meaning, " (", field.type, ")\n", field.key, " = ", field.value, "\n");
  }
  return text;
}

}  // namespace msrl
