#include "msrl/sweep/sweep_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/paper/figures.h"
#include "msrl/sweep/toml.h"
#include "msrl/transfer/value_target.h"

namespace msrl {
namespace {

constexpr std::size_t kMaxSeeds = 10'000;
constexpr std::size_t kMaxNames = 1'000;
constexpr std::int64_t kMaxSteps = 1'000'000'000'000;

// Folders and files of a sweep's directory that no environment may be called.
const std::vector<std::string>& ReservedNames() {
  static const std::vector<std::string> names{"source", "logs", "slurm", "lock"};
  return names;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

// An error is one line, whatever a key in quotes may hold.
std::string OneLine(std::string text) {
  std::replace_if(text.begin(), text.end(), IsControl, '?');
  return text;
}

// toml++ 3.3 is undefined on many letters beyond ASCII, so it gets none: comments may hold them,
// texts must write them as \u00e9. The result has the same lines.
std::string AsciiOf(std::string_view text, std::string_view file) {
  std::string ascii(text);
  int line = 1;
  char quote = 0;
  bool comment = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool beyond = static_cast<unsigned char>(c) >= 0x80;
    if (c == '\n') {
      ++line;
      quote = 0;
      comment = false;
    } else if (beyond && comment) {
      ascii[i] = '?';
    } else if (beyond) {
      throw UserError(StrCat(file, ":", line,
                             ": letters beyond ASCII can't be read here; write them as \\u00e9"));
    } else if (quote != 0) {
      const bool escaped = c == '\\' && quote == '"';
      if (c == quote) quote = 0;
      if (escaped && i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      quote = comment ? '\0' : c;
    } else if (c == '#') {
      comment = true;
    }
  }
  return ascii;
}

// Where we are in the file: everything that goes wrong is said with a line.
class Reader {
  // Null if the key is not there.
  template <typename T>
  auto As(std::string_view key, std::string_view wanted) const {
    const toml::node* node = Find(key);
    const auto* value = node == nullptr ? nullptr : node->as<T>();
    if (node != nullptr && value == nullptr) Wrong(key, *node, wanted);
    return value;
  }

 public:
  Reader(std::string_view file, const toml::table& table, std::string where)
      : file_(file), table_(table), where_(std::move(where)) {}

  [[noreturn]] void Fail(int line, const std::string& what) const {
    throw UserError(StrCat(file_, ":", line, ": ", OneLine(what)));
  }
  int line() const { return static_cast<int>(table_.source().begin.line); }
  int LineOf(std::string_view key) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? line() : static_cast<int>(node->source().begin.line);
  }

  bool Has(std::string_view key) const { return table_.contains(key); }
  std::string Text(std::string_view key, std::string otherwise) const {
    const auto* value = As<std::string>(key, "a text in quotes");
    if (value == nullptr) return otherwise;
    if (std::any_of((**value).begin(), (**value).end(), IsControl)) {
      Wrong(key, *value, "one line of text");
    }
    return **value;
  }
  std::string RequiredText(std::string_view key) const {
    if (!table_.contains(key)) Fail(line(), StrCat(where_, " needs ", key));
    std::string text = Text(key, "");
    if (text.empty()) Fail(LineOf(key), StrCat(key, " is empty"));
    return text;
  }
  // A text that becomes part of a path.
  std::string Name(std::string_view key, std::string_view otherwise = "") const {
    const std::string name =
        otherwise.empty() ? RequiredText(key) : Text(key, std::string(otherwise));
    const bool good = !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
                      std::all_of(name.begin(), name.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                      });
    if (!good) {
      Fail(LineOf(key),
           StrCat(key, " '", name, "' must be of letters, digits, '-', '_' and '.', at most 100"));
    }
    return name;
  }
  std::string Choice(std::string_view key, const std::string& otherwise,
                     std::span<const std::string> choices) const {
    const std::string text = Text(key, otherwise);
    if (text == otherwise) return text;
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      Fail(LineOf(key), StrCat("unknown ", key, " '", text, "'", DidYouMean(text, choices)));
    }
    return text;
  }
  std::int64_t Int(std::string_view key, std::int64_t otherwise, std::int64_t low,
                   std::int64_t high) const {
    const auto* value = As<std::int64_t>(key, "a whole number");
    if (value == nullptr) return otherwise;
    if (**value < low || **value > high) {
      Fail(LineOf(key), StrCat(key, " is ", **value, "; it must be ", low, " to ", high));
    }
    return **value;
  }
  double Share(std::string_view key, double otherwise) const {
    const toml::node* node = Find(key);
    if (node == nullptr) return otherwise;
    const std::optional<double> value = node->value<double>();
    if (!value || !node->is_number()) Wrong(key, *node, "a number");
    if (!(*value > 0.0 && *value <= 1.0)) {
      Fail(LineOf(key), StrCat(key, " is ", *value, "; it must be above 0 and at most 1"));
    }
    return *value;
  }
  bool Bool(std::string_view key, bool otherwise) const {
    const auto* value = As<bool>(key, "true or false");
    return value == nullptr ? otherwise : **value;
  }
  std::vector<std::string> Texts(std::string_view key) const {
    std::vector<std::string> texts;
    const auto* array = As<toml::array>(key, "a list of texts");
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const auto* text = (*array)[i].as_string();
      if (text == nullptr) Wrong(key, (*array)[i], "a list of texts");
      if (std::find(texts.begin(), texts.end(), **text) != texts.end()) {
        Fail(LineOf(key), StrCat("'", **text, "' is twice in ", key));
      }
      texts.push_back(**text);
    }
    return texts;
  }
  std::vector<std::uint64_t> Seeds(std::string_view key,
                                   std::vector<std::uint64_t> otherwise) const {
    const toml::node* node = Find(key);
    if (node == nullptr) return otherwise;
    std::string list;
    if (const auto* text = node->as_string()) {
      list = **text;
    } else if (const toml::array* array = node->as_array()) {
      for (const toml::node& element : *array) {
        const auto* value = element.as_integer();
        if (value == nullptr || **value < 0) Wrong(key, element, "a list of numbers from 0");
        list += (list.empty() ? "" : ",") + std::to_string(**value);
      }
    } else {
      Wrong(key, *node, "a list as [100, 101] or a range as \"100-104\"");
    }
    try {
      return ParseSeeds(list);
    } catch (const UserError& error) {
      Fail(LineOf(key), error.what());
    }
  }
  std::vector<SweepSetting> Settings(std::string_view key) const {
    const auto* table = As<toml::table>(key, "a table as { key = value }");
    return table == nullptr ? std::vector<SweepSetting>{} : SettingsOf(*table);
  }
  std::vector<SweepSetting> SettingsOf(const toml::table& table) const {
    std::vector<SweepSetting> settings;
    for (const auto& [key, node] : table) {
      SweepSetting setting;
      setting.key = std::string(key.str());
      setting.line = static_cast<int>(node.source().begin.line);
      const auto* text = node.as_string();
      if (text != nullptr && std::none_of((**text).begin(), (**text).end(), IsControl)) {
        setting.value = **text;
      } else if (const auto* flag = node.as_boolean()) {
        setting.value = **flag ? "true" : "false";
      } else if (const auto* whole = node.as_integer()) {
        setting.value = std::to_string(**whole);
      } else if (const auto* number = node.as_floating_point(); number && std::isfinite(**number)) {
        char digits[64];
        setting.value.assign(digits, std::to_chars(digits, digits + 64, **number).ptr);
      } else {
        Fail(setting.line,
             StrCat("setting ", setting.key, " must be a text, a finite number, or true or false"));
      }
      settings.push_back(std::move(setting));
    }
    // in the order of the file, as --set would be given
    std::stable_sort(settings.begin(), settings.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    return settings;
  }
  const toml::table* Table(std::string_view key) const {
    return As<toml::table>(key, StrCat("a section [", key, "]"));
  }
  std::vector<const toml::table*> Tables(std::string_view key) const {
    std::vector<const toml::table*> tables;
    const auto* array = As<toml::array>(key, StrCat("sections [[", key, "]]"));
    if (array == nullptr) return tables;
    if (array->size() > kMaxNames) Fail(LineOf(key), StrCat("more than 1000 [[", key, "]]"));
    for (const toml::node& element : *array) {
      if (!element.is_table()) Wrong(key, element, StrCat("sections [[", key, "]]"));
      tables.push_back(element.as_table());
    }
    return tables;
  }
  // Any other key is a mistake. Asked first: a misspelt key is not also a missing one.
  void Allow(const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      Fail(static_cast<int>(key.source().begin.line),
           StrCat("unknown key '", name, "' in ", where_, DidYouMean(name, known)));
    }
  }

 private:
  const toml::node* Find(std::string_view key) const { return table_.get(key); }
  [[noreturn]] void Wrong(std::string_view key, const toml::node& node,
                          std::string_view wanted) const {
    Fail(static_cast<int>(node.source().begin.line), StrCat(key, " must be ", wanted));
  }

  std::string_view file_;
  const toml::table& table_;
  std::string where_;
};

struct Defaults {
  std::int64_t steps = 0;
  std::int64_t eval_every = 0;
  int eval_episodes = 0;
};

Defaults ReadSweep(const Reader& reader, SweepSpec& spec) {
  reader.Allow({"name", "seeds", "steps", "eval_every", "eval_episodes", "log_every", "few_shot"});
  spec.name = reader.Name("name");
  if (!reader.Has("seeds")) reader.Fail(reader.line(), "[sweep] needs seeds");
  spec.seeds = reader.Seeds("seeds", {});
  Defaults defaults;
  defaults.steps = reader.Int("steps", 0, 1, kMaxSteps);
  defaults.eval_every = reader.Int("eval_every", 0, 1, kMaxSteps);
  defaults.eval_episodes = static_cast<int>(reader.Int("eval_episodes", 0, 1, 100'000));
  spec.log_every = reader.Int("log_every", 1000, 1, kMaxSteps);
  spec.few_shot = reader.Share("few_shot", 0.25);
  return defaults;
}

void ReadSource(const Reader& reader, SweepSource& source) {
  reader.Allow({"episodes", "held_out_episodes", "seed", "targets"});
  source.episodes = static_cast<int>(reader.Int("episodes", 4000, 4, 10'000'000));
  source.held_out_episodes =
      static_cast<int>(reader.Int("held_out_episodes", source.episodes / 4, 4, 10'000'000));
  source.seed = static_cast<std::uint64_t>(reader.Int("seed", 0, 0, INT64_MAX));
  source.targets = reader.Texts("targets");
  try {
    for (const std::string& target : source.targets) ParseEnum<ValueTarget>("target", target);
  } catch (const UserError& error) {
    reader.Fail(reader.LineOf("targets"), error.what());
  }
}

// [[pretrain]], and [[branch]], which is the first kind with the objective "shape".
SweepBranch ReadBranch(const Reader& reader, bool any_kind) {
  std::vector<std::string> keys{"name", "objective", "control", "updates", "seeds", "settings"};
  if (any_kind) keys.emplace_back("kind");
  reader.Allow(keys);
  SweepBranch branch;
  branch.line = reader.line();
  branch.name = reader.Name("name");
  branch.kind = reader.Text("kind", Pretrainers().front().kind);
  branch.objective = reader.Text("objective", any_kind ? "" : "shape");
  branch.control = reader.Text("control", branch.control);
  branch.updates = static_cast<int>(reader.Int("updates", -1, 0, 1'000'000'000));
  branch.seeds = reader.Seeds("seeds", {0});
  branch.written = reader.Settings("settings");
  return branch;
}

SweepEnv ReadEnv(const Reader& reader, const Defaults& defaults) {
  reader.Allow({"id", "name", "family", "steps", "eval_every", "eval_episodes", "settings"});
  SweepEnv env;
  env.line = reader.line();
  env.id = reader.RequiredText("id");
  env.name = reader.Name("name", env.id);
  for (const std::string& reserved : ReservedNames()) {
    if (env.name == reserved || env.name.ends_with(".json")) {
      reader.Fail(reader.LineOf("name"), StrCat("name '", env.name, "' is taken by the sweep"));
    }
  }
  env.family = reader.Text("family", "");
  env.steps = reader.Int("steps", defaults.steps, 1, kMaxSteps);
  if (env.steps == 0) {
    reader.Fail(env.line, StrCat("[[env]] '", env.name, "' needs steps, here or in [sweep]"));
  }
  env.eval_every = reader.Int("eval_every", defaults.eval_every, 1, kMaxSteps);
  env.eval_episodes =
      static_cast<int>(reader.Int("eval_episodes", defaults.eval_episodes, 1, 100'000));
  env.written = reader.Settings("settings");
  return env;
}

SweepMethod ReadMethod(const Reader& reader) {
  reader.Allow({"name", "title", "agent", "role", "paper", "component", "init", "unaligned",
                "shared", "envs", "settings"});
  SweepMethod method;
  method.line = reader.line();
  method.name = reader.Name("name");
  method.title = reader.Text("title", method.name);
  method.agent = reader.RequiredText("agent");
  method.init = reader.Text("init", "");
  method.unaligned = reader.Bool("unaligned", false);
  if (method.unaligned && method.init.empty()) {
    reader.Fail(reader.LineOf("unaligned"), "unaligned says how to take init, which is missing");
  }
  method.role = reader.Choice("role", "", MethodRoles());
  method.paper = reader.Choice("paper", "", PaperRows("control"));
  method.component = reader.Text("component", method.init.empty() ? "none" : "matrix-value branch");
  method.shared = reader.Bool("shared", true);
  method.envs = reader.Texts("envs");
  method.written = reader.Settings("settings");
  return method;
}

template <typename Item>
std::vector<std::string> Names(const std::vector<Item>& items) {
  std::vector<std::string> names;
  for (const Item& item : items) names.push_back(item.name);
  return names;
}

template <typename Item>
void RequireDistinct(const Reader& reader, const std::vector<Item>& items, std::string_view kind) {
  std::set<std::string> seen;
  for (const Item& item : items) {
    if (!seen.insert(item.name).second) {
      reader.Fail(item.line, StrCat("two ", kind, " are called '", item.name, "'"));
    }
  }
}

void RequireReferences(const Reader& reader, const SweepSpec& spec) {
  const std::vector<std::string> branches = Names(spec.branches);
  const std::vector<std::string> envs = Names(spec.envs);
  std::set<std::string> used;
  for (const SweepMethod& method : spec.methods) {
    if (!method.init.empty()) {
      if (std::find(branches.begin(), branches.end(), method.init) == branches.end()) {
        reader.Fail(method.line,
                    StrCat("method '", method.name, "' starts from '", method.init,
                           "', which nothing here pretrains", DidYouMean(method.init, branches)));
      }
      used.insert(method.init);
    }
    for (const std::string& env : method.envs) {
      if (std::find(envs.begin(), envs.end(), env) == envs.end()) {
        reader.Fail(method.line, StrCat("method '", method.name, "' names '", env,
                                        "', which is no [[env]]", DidYouMean(env, envs)));
      }
    }
  }
  for (const SweepBranch& branch : spec.branches) {
    if (!used.contains(branch.name)) {
      reader.Fail(branch.line, StrCat("no method starts from branch '", branch.name, "'"));
    }
  }
}

}  // namespace

const std::vector<std::string>& MethodRoles() {
  static const std::vector<std::string> roles{"baseline", "scratch",  "transfer",
                                              "control",  "ablation", "reference"};
  return roles;
}

std::vector<std::uint64_t> ParseSeeds(std::string_view text) {
  std::vector<std::uint64_t> seeds;
  std::set<std::uint64_t> seen;
  const auto require = [text](bool good, const auto&... what) {
    if (!good) throw UserError(StrCat("seeds '", text, "': ", what...));
  };
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = ParseNumber<std::uint64_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : ParseNumber<std::uint64_t>(part.substr(dash + 1));
    require(first && last && *first <= INT64_MAX && *last <= INT64_MAX,
            "write them as 100-104 or 1,5,7-9");
    require(*first <= *last, "a range goes from the smaller to the larger");
    require(*last - *first + seeds.size() < kMaxSeeds, "more than 10000 seeds");
    for (std::uint64_t seed = *first; seed <= *last; ++seed) {
      require(seen.insert(seed).second, seed, " is named twice");
      seeds.push_back(seed);
    }
  }
  return seeds;
}

SweepSpec ParseSweepSpec(std::string_view text, std::string_view file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const std::string ascii = AsciiOf(text, file);
  toml::table document;
  try {
    document = toml::parse(ascii, file);
  } catch (const toml::parse_error& error) {
    throw UserError(StrCat(file, ":", error.source().begin.line,
                           ": not TOML: ", OneLine(std::string(error.description()))));
  }
  SweepSpec spec;
  spec.file = file;
  const Reader top(file, document, "the file");
  const auto section = [&](const toml::table* table, std::string where) {
    return Reader(file, *table, std::move(where));
  };
  top.Allow({"sweep", "settings", "source", "branch", "pretrain", "env", "method"});
  const toml::table* sweep = top.Table("sweep");
  const toml::table* settings = top.Table("settings");
  const toml::table* source = top.Table("source");
  const std::vector<const toml::table*> branches = top.Tables("branch");
  const std::vector<const toml::table*> envs = top.Tables("env");
  const std::vector<const toml::table*> methods = top.Tables("method");
  if (sweep == nullptr) top.Fail(1, "there is no section [sweep]");
  const Defaults defaults = ReadSweep(section(sweep, "[sweep]"), spec);
  if (settings != nullptr) spec.settings = top.SettingsOf(*settings);
  if (source != nullptr) {
    spec.has_source = true;
    ReadSource(section(source, "[source]"), spec.source);
  }
  for (const toml::table* table : branches) {
    spec.branches.push_back(ReadBranch(section(table, "[[branch]]"), /*any_kind=*/false));
  }
  for (const toml::table* table : top.Tables("pretrain")) {
    spec.branches.push_back(ReadBranch(section(table, "[[pretrain]]"), /*any_kind=*/true));
  }
  for (const toml::table* table : envs) {
    spec.envs.push_back(ReadEnv(section(table, "[[env]]"), defaults));
  }
  for (const toml::table* table : methods) {
    spec.methods.push_back(ReadMethod(section(table, "[[method]]")));
  }
  if (spec.envs.empty()) top.Fail(1, "there is no [[env]]");
  if (spec.methods.empty()) top.Fail(1, "there is no [[method]]");
  if (!spec.branches.empty() && !spec.has_source) {
    top.Fail(spec.branches.front().line, "what is pretrained needs a section [source]");
  }
  RequireDistinct(top, spec.branches, "branches");
  RequireDistinct(top, spec.envs, "environments");
  RequireDistinct(top, spec.methods, "methods");
  RequireReferences(top, spec);
  return spec;
}

SweepSpec ReadSweepSpec(const std::filesystem::path& file) {
  return ParseSweepSpec(ReadWholeFile(file, 1 << 20), file.string());
}

}  // namespace msrl
