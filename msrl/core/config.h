// Settings as plain structs, each listed once.
//
//   struct SacConfig {
//     double learning_rate = 3e-4;
//     int batch_size = 128;
//     template <typename V>
//     void Fields(V&& visit) {
//       visit("learning_rate", learning_rate, "step size of every Adam optimiser");
//       visit("batch_size", batch_size, "transitions per update");
//     }
//   };
//
// The one list makes `key=value` settings, TOML output and help tables. Fields may be bool, int,
// int64, double or string; strings may be restricted by a list of choices as fourth argument.
#ifndef MSRL_CORE_CONFIG_H_
#define MSRL_CORE_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msrl {

// One field as text: what help tables and files show.
struct ConfigField {
  std::string key;
  std::string value;  // a TOML literal
  std::string type;   // "bool", "integer", "number", "string" or "a | b | c"
  std::string meaning;
};

namespace internal {

class ConfigReader {
 public:
  void operator()(const char* key, bool& field, const char* meaning);
  void operator()(const char* key, int& field, const char* meaning);
  void operator()(const char* key, std::int64_t& field, const char* meaning);
  void operator()(const char* key, double& field, const char* meaning);
  void operator()(const char* key, std::string& field, const char* meaning,
                  const std::vector<std::string>& choices = {});

  std::vector<ConfigField> fields;
};

class ConfigWriter {
 public:
  ConfigWriter(std::string_view key, std::string_view text) : key_(key), text_(text) {}

  void operator()(const char* key, bool& field, const char* meaning);
  void operator()(const char* key, int& field, const char* meaning);
  void operator()(const char* key, std::int64_t& field, const char* meaning);
  void operator()(const char* key, double& field, const char* meaning);
  void operator()(const char* key, std::string& field, const char* meaning,
                  const std::vector<std::string>& choices = {});

  // UserError that names the nearest known key, if no field took the value.
  void RequireFound() const;

 private:
  bool Matches(const char* key);

  std::string key_;
  std::string text_;
  std::vector<std::string> known_;
  bool found_ = false;
};

// Where the '=' of "key=value" is; UserError if there is none.
std::size_t FindEquals(std::string_view assignment);

}  // namespace internal

// All fields with their present values.
template <typename Config>
std::vector<ConfigField> ListFields(Config config) {
  internal::ConfigReader reader;
  config.Fields(reader);
  return reader.fields;
}

// Sets one field from text. UserError on an unknown key or a value of the wrong kind; the config is
// then unchanged.
template <typename Config>
void SetField(Config& config, std::string_view key, std::string_view text) {
  internal::ConfigWriter writer(key, text);
  config.Fields(writer);
  writer.RequireFound();
}

// SetField for a "key=value" argument.
template <typename Config>
void SetField(Config& config, std::string_view assignment) {
  const std::size_t equals = internal::FindEquals(assignment);
  SetField(config, assignment.substr(0, equals), assignment.substr(equals + 1));
}

// "key = value" lines with the meaning as comment; a TOML document.
std::string ToToml(const std::vector<ConfigField>& fields);

}  // namespace msrl

#endif  // MSRL_CORE_CONFIG_H_
