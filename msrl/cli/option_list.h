// The options of a command, each written once:
//
//   struct EvalOptions : OptionList {
//     std::string& run = Required("DIR", "Directory of the run");
//     int& episodes = Option("--episodes", "Episodes (default 20)", 20, CLI::Range(1, 1'000'000));
//     bool& json = Flag("--json", "As JSON, with every return");
//   };
//
// They stand in the help in this order. AddCommand makes such a list.
#ifndef MSRL_CLI_OPTION_LIST_H_
#define MSRL_CLI_OPTION_LIST_H_

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/files/atomic_file.h"

namespace msrl::cli {

struct OptionList {
  CLI::App* command;
  std::vector<std::shared_ptr<void>> kept = {};  // what the members refer to

  template <typename T>
  T& Keep(T value) {
    const auto place = std::make_shared<T>(std::move(value));
    kept.push_back(place);
    return *place;
  }

  template <typename T, typename... Checks>
  T& Option(const char* name, const std::string& meaning, T usual, const Checks&... checks) {
    T& value = Keep(std::move(usual));
    [[maybe_unused]] CLI::Option* option = command->add_option(name, value, meaning);
    // the parser would take -1 for the largest number
    if constexpr (std::is_unsigned_v<T>) {
      option->check([](const std::string& text) {
        return text.starts_with('-') ? text + " is negative" : std::string();
      });
    }
    (option->check(checks), ...);
    return value;
  }
  std::string& Text(const char* name, const std::string& meaning, const std::string& usual = "") {
    return Option(name, meaning, usual);
  }
  std::string& Required(const char* name, const std::string& meaning) {
    auto& value = Keep(std::string());
    command->add_option(name, value, meaning)->required();
    return value;
  }
  // Any number of times, with one value each.
  std::vector<std::string>& Repeated(const char* name, const std::string& meaning) {
    auto& values = Keep(std::vector<std::string>());
    command->add_option(name, values, meaning)->allow_extra_args(false);
    return values;
  }
  bool& Flag(const char* name, const std::string& meaning) {
    bool& value = Keep(false);
    command->add_flag(name, value, meaning);
    return value;
  }

  // Whether files that are there already may be replaced: for commands that write some.
  struct Replace {
    bool& force;
    Existing operator()() const { return force ? Existing::kReplace : Existing::kRefuse; }
  };
  Replace ReplaceFlag() { return {Flag("--force", "Replace files that are there already")}; }

  // "--critic-steps" for the field critic_steps, and so on: those of the fields that the command
  // does not have yet.
  template <typename Config>
  Config& Fields(Config usual) {
    Config& config = Keep(std::move(usual));
    for (const ConfigField& field : ListFields(config)) {
      std::string name = "--" + field.key;
      std::replace(name.begin(), name.end(), '_', '-');
      if (command->get_option_no_throw(name) != nullptr) continue;
      std::string help = field.meaning + " (" + field.Accepts();
      if (!field.Text().empty()) help += "; default " + field.Text();
      CLI::Option* option = command->add_option_function<std::vector<std::string>>(
          name,
          [&config, key = field.key](const std::vector<std::string>& texts) {
            SetField(config, key, fmt::format("{}", fmt::join(texts, ",")));
          },
          help + ")");
      if (!field.type.starts_with("list of")) option->expected(1);
    }
    return config;
  }
};

}  // namespace msrl::cli

#endif  // MSRL_CLI_OPTION_LIST_H_
