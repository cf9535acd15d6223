// Completion on the command line. What can come next is asked of the program itself, so that it
// knows environments, agents and settings, also of programs that add some of their own.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/transfer/collect.h"

namespace msrl::cli {
namespace {

using Words = std::vector<std::string>;

// The shell completes a file name where the program says this.
constexpr const char* kFiles = ":files";

constexpr const char* kBash = R"(# {0} completion bash >> ~/.bashrc
_{1}_complete() {{
  local line=${{COMP_LINE:0:COMP_POINT}} words=() word
  read -r -a words <<<"$line"
  case $line in *[[:space:]]) words+=("") ;; esac
  local current=${{words[-1]}}
  # bash replaces what comes after the last of these
  local kept=${{current%"${{current##*[=:]}}"}}
  COMPREPLY=()
  while IFS= read -r word; do
    if [ "$word" = :files ]; then
      while IFS= read -r word; do
        [ -d "$word" ] && word+=/
        COMPREPLY+=("$word")
      done < <(compgen -f -- "${{current#"$kept"}}")
    else
      COMPREPLY+=("${{word#"$kept"}}")
    fi
  done < <("${{words[0]}}" complete : "${{words[@]:1}}" 2>/dev/null)
  case ${{COMPREPLY[0]-}} in *[=/]) compopt -o nospace 2>/dev/null ;; esac
}}
complete -F _{1}_complete {0}
)";

constexpr const char* kZsh = R"(# {0} completion zsh >> ~/.zshrc
autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
)";

constexpr const char* kFish = R"(# {0} completion fish > ~/.config/fish/completions/{0}.fish
function __{1}_complete
  set -l words (commandline -opc) (commandline -ct)
  for word in ($words[1] complete : $words[2..] 2>/dev/null)
    if test "$word" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $word
    end
  end
end
complete -c {0} -f -a '(__{1}_complete)'
)";

template <typename Entries>
void AddIds(const Entries& entries, Words& out) {
  for (const auto& entry : entries) out.push_back(entry.id);
}

// The choices that stand in a text: "{local,slurm}", or "which half (train | held-out; ...)".
void AddChoices(const std::string& text, Words& out) {
  if (const std::size_t open = text.find('{'); open != std::string::npos) {
    const std::string_view inside =
        std::string_view(text).substr(open + 1, text.find('}', open) - open - 1);
    for (const std::string_view choice : SplitAt(inside, ',')) out.emplace_back(choice);
    return;
  }
  constexpr std::string_view kBar = " | ";
  std::size_t bar = text.find(kBar);
  if (bar == std::string::npos) return;
  const auto end_of_word = [&text](std::size_t from) {
    return std::min(text.size(), text.find_first_of(" ,;)", from));
  };
  const std::size_t before = text.find_last_of(" (", bar - 1);
  out.push_back(text.substr(before + 1, bar - before - 1));  // npos + 1 is 0
  for (std::size_t at = bar; text.compare(at, kBar.size(), kBar) == 0;) {
    const std::size_t begin = at + kBar.size();
    at = end_of_word(begin);
    out.push_back(text.substr(begin, at - begin));
  }
}

// Of a setting that is one (ConfigField::Accepts), or of the parser's.
bool IsNumber(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string& meaning = option.get_description();
  return type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT") ||
         meaning.find("(integer") != std::string::npos ||
         meaning.find("(number") != std::string::npos;
}

class Completer {
 public:
  Completer(const CLI::App& app, const Program& program, const Words& words)
      : app_(app), program_(program), words_(words) {}

  Words Candidates() const {
    const CLI::App* command = &app_;
    std::size_t positional = 0;
    const CLI::Option* waiting = nullptr;  // an option whose value comes next
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      const std::string& word = words_[i];
      if (waiting != nullptr) {
        waiting = nullptr;
      } else if (word.starts_with("-")) {
        const CLI::Option* option = OptionOf(*command, word.substr(0, word.find('=')));
        if (option != nullptr && word.find('=') == std::string::npos && TakesValue(*option)) {
          waiting = option;
        }
      } else if (const CLI::App* next = CommandOf(*command, word)) {
        command = next;
      } else {
        ++positional;
      }
    }
    const std::string current = words_.empty() ? "" : words_.back();
    Words all;
    if (waiting != nullptr) {
      AddValues(waiting->get_name(), *waiting, *command, current, all);
    } else if (const std::size_t equals = current.find('=');
               current.starts_with("--") && equals != std::string::npos) {
      const CLI::Option* option = OptionOf(*command, current.substr(0, equals));
      if (option == nullptr) return {};
      Words values;
      AddValues(option->get_name(), *option, *command, current.substr(equals + 1), values);
      for (const std::string& value : values) {
        all.push_back(value == kFiles ? value : current.substr(0, equals + 1) + value);
      }
    } else if (current.starts_with("-")) {
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
      }
    } else if (const auto commands = command->get_subcommands({}); !commands.empty()) {
      for (const CLI::App* sub : commands) {
        if (positional == 0 && !sub->get_group().empty()) all.push_back(sub->get_name());
      }
    } else if (const CLI::Option* option = Positional(*command, positional)) {
      AddValues(option->get_single_name(), *option, *command, current, all);
    }
    std::erase_if(all, [&current](const std::string& word) {
      return word != kFiles && !word.starts_with(current);
    });
    return all;
  }

 private:
  static bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
  static const CLI::Option* OptionOf(const CLI::App& command, const std::string& name) {
    return command.get_option_no_throw(name);
  }
  static const CLI::App* CommandOf(const CLI::App& command, const std::string& name) {
    for (const CLI::App* sub : command.get_subcommands({})) {
      if (sub->get_name() == name) return sub;
    }
    return nullptr;
  }
  static const CLI::Option* Positional(const CLI::App& command, std::size_t index) {
    const CLI::Option* last = nullptr;
    for (const CLI::Option* option : command.get_options()) {
      if (!option->get_positional()) continue;
      last = option;
      if (index-- == 0) return option;
    }
    // one that takes many
    return last != nullptr && last->get_items_expected_max() > 1 ? last : nullptr;
  }

  // The value of an option on the line so far.
  std::string Given(const std::string& name) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == name && i + 1 < words_.size()) return words_[i + 1];
      if (words_[i].starts_with(name + "=")) return words_[i].substr(name.size() + 1);
    }
    return {};
  }
  // The environment, agent or kind that the command is about, which has the settings.
  std::vector<ConfigField> Fields(const std::string& option, const CLI::App& command) const {
    const Registries& known = program_.registries;
    const auto first_known = [this](const auto& entries) {
      return std::ranges::find_if(entries, [this](const auto& entry) {
        return std::ranges::find(words_, entry.id) != words_.end();
      });
    };
    const std::string name = command.get_name();
    if (name == "pretrain") {
      const auto kind = std::ranges::find(known.pretrainers, Given("--kind"), &PretrainerEntry::id);
      const auto& entry = kind == known.pretrainers.end() ? *known.pretrainers.begin() : *kind;
      return entry.options({});
    }
    const bool of_agent = option == "--set" && (name == "train" || name == "config");
    if (of_agent) {
      const auto agent = name == "train"
                             ? std::ranges::find(known.agents, Given("--agent"), &AgentEntry::id)
                             : first_known(known.agents);
      return agent == known.agents.end() ? std::vector<ConfigField>() : agent->options({});
    }
    const auto env = first_known(known.envs);
    return env == known.envs.end() ? std::vector<ConfigField>() : env->options();
  }
  // "key=", or after it what the key may be.
  void AddSettings(const std::string& option, const CLI::App& command, const std::string& current,
                   Words& out) const {
    const std::string key = current.substr(0, current.find('='));
    const bool wants_value = current.find('=') != std::string::npos;
    for (const ConfigField& field : Fields(option, command)) {
      if (!wants_value) {
        out.push_back(field.key + "=");
      } else if (field.key == key) {
        Words values = field.choices;
        if (field.type == "bool") values = {"true", "false"};
        for (const std::string& value : values) out.push_back(StrCat(key, "=", value));
      }
    }
  }

  void AddValues(const std::string& name, const CLI::Option& option, const CLI::App& command,
                 const std::string& current, Words& out) const {
    const Registries& known = program_.registries;
    if (name == "--set" || name == "--env-set") return AddSettings(name, command, current, out);
    if (name == "--env" || name == "ENV" || name == "ID") return AddIds(known.envs, out);
    if ((name == "--agent" && command.get_name() != "play") || name == "AGENT") {
      return AddIds(known.agents, out);
    }
    if (name == "--kind") return AddIds(known.pretrainers, out);
    if (name == "SHELL") {
      out.insert(out.end(), {"bash", "zsh", "fish"});
      return;
    }
    if (name == "--sources" || name == "FAMILY") {
      const Words families = SourceFamilies(known.envs);
      out.insert(out.end(), families.begin(), families.end());
      return;
    }
    if (name == "WHAT") AddIds(known.envs, out);
    if (name == "SPEC") {
      const Words presets = Presets(program_);
      out.insert(out.end(), presets.begin(), presets.end());
    }
    const std::size_t before = out.size();
    AddChoices(StrCat(option.get_type_name(), " ", option.get_description()), out);
    if (out.size() == before && !IsNumber(option)) out.emplace_back(kFiles);
  }

  const CLI::App& app_;
  const Program& program_;
  const Words& words_;
};

struct CompletionOptions : OptionList {
  std::string& shell = Required("SHELL", "bash, zsh or fish");
};

void RunCompletion(const CompletionOptions& options, const Program& program) {
  std::string function = program.name;
  std::ranges::replace_if(
      function,
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
      },
      '_');
  const auto print = [&](const char* script) {
    fmt::print(fmt::runtime(script), program.name, function);
  };
  if (options.shell == "bash") return print(kBash);
  if (options.shell == "fish") return print(kFish);
  if (options.shell != "zsh") {
    const Words shells{"bash", "zsh", "fish"};
    throw UserError(StrCat("there is no completion for '", options.shell, "'",
                           DidYouMean(options.shell, shells), " (bash, zsh, fish)"));
  }
  print(kZsh);
  print(kBash);
}

}  // namespace

void AddCompletion(CLI::App& app, const Program& program) {
  CLI::App* command = AddCommand(app, program, "completion",
                                 "Print what makes a shell complete commands", RunCompletion);
  command->footer(StrCat("  ", program.name, " completion bash >> ~/.bashrc"));
  // asked by the scripts; not in the help
  CLI::App* complete = app.add_subcommand("complete", "What can come next")->group("");
  complete->prefix_command();
  complete->callback([&app, &program, complete] {
    Words words = complete->remaining();
    if (!words.empty()) words.erase(words.begin());  // ":" keeps them from being parsed
    for (const std::string& word : Completer(app, program, words).Candidates()) {
      fmt::print("{}\n", word);
    }
  });
}

}  // namespace msrl::cli
