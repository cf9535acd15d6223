#include "msrl/sweep/sweep_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <set>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/env/behaviour.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/toml.h"
#include "msrl/paper/figures.h"
#include "msrl/run/run_spec.h"
#include "msrl/transfer/value_target.h"

namespace msrl {
namespace {

constexpr std::size_t kMaxSeeds = 10'000;

int LineOf(const toml::source_region& place) { return static_cast<int>(place.begin.line); }

// Where we are in the file: everything that goes wrong is said with a line. What is not in the file
// stays as it is, or is `otherwise`.
class Reader {
  // Null if the key is not there.
  template <typename T>
  auto As(std::string_view key, std::string_view wanted) const {
    const toml::node* node = table_.get(key);
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
  // With the nearest known name, unless this is one.
  void RequireKnown(int line, std::string_view name, std::span<const std::string> known,
                    const std::string& problem) const {
    if (std::ranges::find(known, name) == known.end())
      Fail(line, problem + DidYouMean(name, known));
  }
  int line() const { return LineOf(table_.source()); }
  int KeyLine(std::string_view key) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? line() : LineOf(node->source());
  }

  std::string Text(std::string_view key, std::string otherwise) const {
    const auto* value = As<std::string>(key, "a text in quotes");
    if (value == nullptr) return otherwise;
    if (std::ranges::any_of(**value, IsControl)) Wrong(key, *value, "one line of text");
    return **value;
  }
  std::string RequiredText(std::string_view key) const {
    if (!table_.contains(key)) Fail(line(), StrCat(where_, " needs ", key));
    std::string text = Text(key, "");
    if (text.empty()) Fail(KeyLine(key), StrCat(key, " is empty"));
    return text;
  }
  // A text that becomes part of a path.
  std::string Name(std::string_view key, std::string_view otherwise = "") const {
    const std::string name =
        otherwise.empty() ? RequiredText(key) : Text(key, std::string(otherwise));
    const bool good = !name.empty() && name.size() <= kMaxNameLength && name[0] != '.' &&
                      name[0] != '-' && std::ranges::all_of(name, [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                      });
    if (!good) {
      Fail(KeyLine(key),
           StrCat(key, " '", name, "' must be of letters, digits, '-', '_' and '.', at most 100"));
    }
    return name;
  }
  // Empty if none is made.
  std::string Choice(std::string_view key, std::span<const std::string> choices) const {
    const std::string text = Text(key, "");
    if (!text.empty()) {
      RequireKnown(KeyLine(key), text, choices, StrCat("unknown ", key, " '", text, "'"));
    }
    return text;
  }
  template <std::integral Number>
  void Int(std::string_view key, std::int64_t low, std::int64_t high, Number& number) const {
    const auto* value = As<std::int64_t>(key, "a whole number");
    if (value == nullptr) return;
    if (**value < low || **value > high) {
      Fail(KeyLine(key), StrCat(key, " is ", **value, "; it must be ", low, " to ", high));
    }
    number = static_cast<Number>(**value);
  }
  void Share(std::string_view key, double& share) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
    const std::optional<double> value = node->value<double>();
    if (!value || !node->is_number()) Wrong(key, *node, "a number");
    if (!(*value > 0.0 && *value <= 1.0)) {
      Fail(KeyLine(key), StrCat(key, " is ", *value, "; it must be above 0 and at most 1"));
    }
    share = *value;
  }
  void Bool(std::string_view key, bool& flag) const {
    if (const auto* value = As<bool>(key, "true or false")) flag = **value;
  }
  std::vector<std::string> Texts(std::string_view key) const {
    std::vector<std::string> texts;
    const auto* array = As<toml::array>(key, "a list of texts");
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const auto* text = (*array)[i].as_string();
      if (text == nullptr) Wrong(key, (*array)[i], "a list of texts");
      if (std::ranges::find(texts, **text) != texts.end()) {
        Fail(KeyLine(key), StrCat("'", **text, "' is twice in ", key));
      }
      texts.push_back(**text);
    }
    return texts;
  }
  void Seeds(std::string_view key, std::vector<std::uint64_t>& seeds) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return;
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
      seeds = ParseSeeds(list);
    } catch (const UserError& error) {
      Fail(KeyLine(key), error.what());
    }
  }
  std::vector<SweepSetting> Settings(std::string_view wanted = "a table as { key = value }") const {
    std::vector<SweepSetting> settings;
    const auto* table = As<toml::table>("settings", wanted);
    if (table == nullptr) return settings;
    for (const auto& [name, node] : *table) {
      SweepSetting setting{.key = std::string(name.str()), .value = {}, .line = 0};
      setting.line = LineOf(node.source());
      if (const toml::array* list = node.as_array()) {
        setting.values = Values(setting.key, *list);
      } else {
        setting.value = Value(setting.key, node);
      }
      settings.push_back(std::move(setting));
    }
    // in the order of the file, as --set would be given
    std::ranges::stable_sort(settings, {}, &SweepSetting::line);
    return settings;
  }
  // Without lists.
  std::vector<SweepSetting> PlainSettings() const {
    std::vector<SweepSetting> settings = Settings();
    for (const SweepSetting& setting : settings) {
      if (!setting.values.empty()) {
        Fail(setting.line, StrCat("setting ", setting.key, " has one value here, no list: write a ",
                                  where_, " for each"));
      }
    }
    return settings;
  }
  std::vector<SearchedSetting> Searched() const {
    std::vector<SearchedSetting> settings;
    const auto* table = As<toml::table>("settings", "a section [search.settings]");
    if (table == nullptr || table->empty()) {
      Fail(line(), "[search] needs settings: [search.settings] says what to draw");
    }
    for (const auto& [name, node] : *table) {
      SearchedSetting setting{.key = std::string(name.str()), .line = LineOf(node.source())};
      if (const toml::array* list = node.as_array()) {
        setting.choices = Values(setting.key, *list);
      } else {
        ReadRange(node, setting);
      }
      settings.push_back(std::move(setting));
    }
    std::ranges::stable_sort(settings, {}, &SearchedSetting::line);
    return settings;
  }
  std::optional<Reader> Section(std::string_view key) const {
    const std::string name = StrCat("[", key, "]");
    const auto* table = As<toml::table>(key, "a section " + name);
    return table == nullptr ? std::nullopt : std::optional(Reader(file_, *table, name));
  }
  std::vector<Reader> Sections(std::string_view key) const {
    const std::string name = StrCat("[[", key, "]]");
    std::vector<Reader> sections;
    const auto* array = As<toml::array>(key, "sections " + name);
    if (array == nullptr) return sections;
    if (array->size() > kMaxSweepNames) Fail(KeyLine(key), "more than 1000 " + name);
    for (const toml::node& element : *array) {
      if (!element.is_table()) Wrong(key, element, "sections " + name);
      sections.emplace_back(file_, *element.as_table(), name);
    }
    return sections;
  }
  // Any other key is a mistake. Asked first: a misspelt key is not also a missing one.
  void Allow(const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table_) {
      RequireKnown(LineOf(key.source()), key.str(), known,
                   StrCat("unknown key '", key.str(), "' in ", where_));
    }
  }

 private:
  [[noreturn]] void Wrong(std::string_view key, const toml::node& node,
                          std::string_view wanted) const {
    Fail(LineOf(node.source()), StrCat(key, " must be ", wanted));
  }

  // As SetField takes it.
  std::string Value(std::string_view key, const toml::node& node) const {
    const auto* text = node.as_string();
    if (text != nullptr && std::ranges::none_of(**text, IsControl)) return **text;
    if (const auto* flag = node.as_boolean()) return **flag ? "true" : "false";
    if (const auto* whole = node.as_integer()) return std::to_string(**whole);
    if (const auto* number = node.as_floating_point(); number && std::isfinite(**number)) {
      char digits[64];
      return {digits, std::to_chars(digits, digits + 64, **number).ptr};
    }
    Fail(LineOf(node.source()),
         StrCat("setting ", key, " must be a text, a finite number, true or false, or a list"));
  }
  std::vector<std::string> Values(std::string_view key, const toml::array& list) const {
    const int line = LineOf(list.source());
    if (list.empty()) Fail(line, StrCat("setting ", key, " is an empty list"));
    if (list.size() > kMaxSweepNames)
      Fail(line, StrCat("setting ", key, ": more than 1000 values"));
    std::vector<std::string> values;
    for (const toml::node& element : list) {
      values.push_back(Value(key, element));
      if (std::ranges::count(values, values.back()) > 1) {
        Fail(line, StrCat("setting ", key, " has ", values.back(), " twice"));
      }
    }
    return values;
  }
  // { range = [low, high] } or { log = [low, high] }.
  void ReadRange(const toml::node& node, SearchedSetting& setting) const {
    const auto wrong = [&] {
      Fail(setting.line, StrCat("setting ", setting.key,
                                " must be a list of choices, { range = [low, high] } or "
                                "{ log = [low, high] }"));
    };
    const toml::table* table = node.as_table();
    if (table == nullptr || table->size() != 1) wrong();
    const auto only = table->begin();
    const auto& [kind, bounds] = *only;
    setting.log = kind == "log";
    const toml::array* pair = bounds.as_array();
    if ((kind != "range" && !setting.log) || pair == nullptr || pair->size() != 2) wrong();
    const toml::node &first = *pair->get(0), &last = *pair->get(1);
    if (!first.is_number() || !last.is_number()) wrong();
    setting.low = *first.value<double>();
    setting.high = *last.value<double>();
    setting.whole = first.is_integer() && last.is_integer();
    const auto require = [&](bool good, std::string_view what) {
      if (!good) Fail(setting.line, StrCat("setting ", setting.key, ": ", what));
    };
    require(std::isfinite(setting.low) && std::isfinite(setting.high) &&
                setting.low < setting.high && std::isfinite(setting.high - setting.low),
            "a range goes from the smaller to the larger number");
    require(!setting.log || setting.low > 0.0, "a logarithmic range begins above 0");
    require(!setting.whole || std::max(-setting.low, setting.high) <= 1e15,
            "whole numbers are at most 1e15");
  }

  std::string_view file_;
  const toml::table& table_;
  std::string where_;
};

// In [[env]], or in [sweep] for all of them.
void ReadBudget(const Reader& reader, SweepEnv& env) {
  reader.Int("steps", 1, RunSpec::kMaxSteps, env.steps);
  reader.Int("eval_every", 1, RunSpec::kMaxSteps, env.eval_every);
  reader.Int("eval_episodes", 1, RunSpec::kMaxEvalEpisodes, env.eval_episodes);
}

// What environments are if they do not say it themselves.
SweepEnv ReadSweep(const Reader& reader, SweepSpec& spec) {
  reader.Allow({"name", "seeds", "steps", "eval_every", "eval_episodes", "log_every", "few_shot"});
  spec.name = reader.Name("name");
  reader.Seeds("seeds", spec.seeds);
  if (spec.seeds.empty()) reader.Fail(reader.line(), "[sweep] needs seeds");
  SweepEnv defaults;
  ReadBudget(reader, defaults);
  reader.Int("log_every", 1, RunSpec::kMaxSteps, spec.log_every);
  reader.Share("few_shot", spec.few_shot);
  return defaults;
}

SweepSource ReadSource(const Reader& reader) {
  reader.Allow({"episodes", "held_out_episodes", "seed", "targets", "behaviour"});
  SweepSource source;
  reader.Int("episodes", 4, 10'000'000, source.episodes);
  source.held_out_episodes = source.episodes / 4;
  reader.Int("held_out_episodes", 4, 10'000'000, source.held_out_episodes);
  reader.Int("seed", 0, INT64_MAX, source.seed);
  source.targets = reader.Texts("targets");
  try {
    for (const std::string& target : source.targets) ParseEnum<ValueTarget>("target", target);
  } catch (const UserError& error) {
    reader.Fail(reader.KeyLine("targets"), error.what());
  }
  source.behaviour = reader.Text("behaviour", source.behaviour);
  try {
    ParseEnum<BehaviourMix>("behaviour", source.behaviour);
  } catch (const UserError& error) {
    reader.Fail(reader.KeyLine("behaviour"), error.what());
  }
  return source;
}

// [[pretrain]], and [[branch]], which is the first kind with the objective "shape".
SweepBranch ReadBranch(const Reader& reader, bool any_kind) {
  std::vector<std::string> keys{"name", "objective", "control", "updates", "seeds", "settings"};
  if (any_kind) keys.emplace_back("kind");
  reader.Allow(keys);
  SweepBranch branch;
  branch.line = reader.line();
  branch.name = reader.Name("name");
  branch.kind = reader.Text("kind", "");
  branch.objective = reader.Text("objective", any_kind ? "" : "shape");
  branch.control = reader.Text("control", branch.control);
  reader.Int("updates", 0, 1'000'000'000, branch.updates);
  reader.Seeds("seeds", branch.seeds);
  branch.written = reader.PlainSettings();
  return branch;
}

SweepEnv ReadEnv(const Reader& reader, SweepEnv env) {
  reader.Allow({"id", "name", "family", "steps", "eval_every", "eval_episodes", "settings"});
  env.line = reader.line();
  env.id = reader.RequiredText("id");
  env.name = reader.Name("name", env.id);
  // folders and files of the sweep's directory
  static const std::set<std::string> reserved{"source", "logs", "slurm", "lock"};
  if (reserved.contains(env.name) || env.name.ends_with(".json")) {
    reader.Fail(reader.KeyLine("name"), StrCat("name '", env.name, "' is taken by the sweep"));
  }
  env.family = reader.Text("family", "");
  ReadBudget(reader, env);
  if (env.steps == 0) {
    reader.Fail(env.line, StrCat("[[env]] '", env.name, "' needs steps, here or in [sweep]"));
  }
  env.written = reader.Settings();
  return env;
}

std::string ComponentOf(const SweepMethod& method) {
  if (method.library_place.empty()) return method.init.empty() ? "none" : "matrix-value branch";
  return method.init.empty() ? "segment library" : "matrix-value branch and segment library";
}

SweepMethod ReadMethod(const Reader& reader) {
  reader.Allow({"name", "title", "agent", "role", "paper", "component", "init", "unaligned",
                "library", "shared", "envs", "settings"});
  SweepMethod method;
  method.line = reader.line();
  method.name = reader.Name("name");
  method.title = reader.Text("title", method.name);
  method.agent = reader.RequiredText("agent");
  method.init = reader.Text("init", "");
  reader.Bool("unaligned", method.unaligned);
  if (method.unaligned && method.init.empty()) {
    reader.Fail(reader.KeyLine("unaligned"), "unaligned says how to take init, which is missing");
  }
  method.library_place = reader.Text("library", "");
  method.role = reader.Choice("role", MethodRoles());
  method.paper = reader.Choice("paper", PaperRows("control"));
  method.component = reader.Text("component", ComponentOf(method));
  reader.Bool("shared", method.shared);
  method.envs = reader.Texts("envs");
  method.written = reader.Settings();
  return method;
}

SweepSearch ReadSearch(const Reader& reader) {
  reader.Allow({"trials", "seed", "methods", "settings"});
  SweepSearch search;
  search.line = reader.line();
  reader.Int("trials", 1, static_cast<std::int64_t>(kMaxSweepNames), search.trials);
  if (search.trials == 0) reader.Fail(search.line, "[search] needs trials");
  reader.Int("seed", 0, INT64_MAX, search.seed);
  search.methods = reader.Texts("methods");
  search.settings = reader.Searched();
  return search;
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
      reader.RequireKnown(method.line, method.init, branches,
                          StrCat("method '", method.name, "' starts from '", method.init,
                                 "', which nothing here pretrains"));
      used.insert(method.init);
    }
    for (const std::string& env : method.envs) {
      reader.RequireKnown(
          method.line, env, envs,
          StrCat("method '", method.name, "' names '", env, "', which is no [[env]]"));
    }
  }
  if (spec.search) {
    const std::vector<std::string> methods = Names(spec.methods);
    for (const std::string& method : spec.search->methods) {
      reader.RequireKnown(spec.search->line, method, methods,
                          StrCat("[search] names '", method, "', which is no [[method]]"));
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
  const toml::table document = ParseToml(text, file);
  SweepSpec spec;
  spec.file = file;
  const Reader top(file, document, "the file");
  top.Allow({"sweep", "settings", "source", "branch", "pretrain", "env", "method", "search"});
  const std::optional<Reader> sweep = top.Section("sweep");
  const std::optional<Reader> source = top.Section("source");
  const std::vector<Reader> envs = top.Sections("env"), methods = top.Sections("method");
  if (!sweep) top.Fail(1, "there is no section [sweep]");
  const SweepEnv defaults = ReadSweep(*sweep, spec);
  spec.settings = top.Settings("a section [settings]");
  if (source) spec.source = ReadSource(*source);
  for (const Reader& branch : top.Sections("branch")) {
    spec.branches.push_back(ReadBranch(branch, /*any_kind=*/false));
  }
  for (const Reader& branch : top.Sections("pretrain")) {
    spec.branches.push_back(ReadBranch(branch, /*any_kind=*/true));
  }
  for (const Reader& env : envs) spec.envs.push_back(ReadEnv(env, defaults));
  for (const Reader& method : methods) spec.methods.push_back(ReadMethod(method));
  if (const std::optional<Reader> search = top.Section("search")) {
    spec.search = ReadSearch(*search);
  }
  if (spec.envs.empty()) top.Fail(1, "there is no [[env]]");
  if (spec.methods.empty()) top.Fail(1, "there is no [[method]]");
  if (!spec.branches.empty() && !spec.source) {
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
