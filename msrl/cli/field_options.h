// Command line options made from a list of settings.
#ifndef MSRL_CLI_FIELD_OPTIONS_H_
#define MSRL_CLI_FIELD_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "msrl/core/config.h"

namespace msrl::cli {

// "--critic-steps" for the field critic_steps, and so on: those of the fields that the command does
// not have yet. Values go into `config`, which the command keeps alive.
template <typename Config>
void AddFieldOptions(CLI::App& command, const std::shared_ptr<Config>& config) {
  for (const ConfigField& field : ListFields(*config)) {
    std::string name = "--" + field.key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (command.get_option_no_throw(name) != nullptr) continue;
    std::string help = field.meaning + " (" + field.Accepts();
    if (!field.Text().empty()) help += "; default " + field.Text();
    CLI::Option* option = command.add_option_function<std::vector<std::string>>(
        name,
        [config, key = field.key](const std::vector<std::string>& texts) {
          std::string joined;
          for (const std::string& text : texts) joined += (joined.empty() ? "" : ",") + text;
          SetField(*config, key, joined);
        },
        help + ")");
    if (!field.type.starts_with("list of")) option->expected(1);
  }
}

}  // namespace msrl::cli

#endif  // MSRL_CLI_FIELD_OPTIONS_H_
