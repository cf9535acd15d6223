#include "msrl/sweep/variants.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/text.h"
#include "msrl/files/toml.h"

namespace msrl {
namespace {

std::string ForName(std::string text) {
  for (char& c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  return text;
}

std::string Digits(double value, int significant) {
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, significant);
  return {text, end.ptr};
}

// A number as it is shown in a title.
std::string Short(const std::string& value) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  return is_number && value.size() > 7 ? Digits(number, 3) : value;
}

class Expander {
 public:
  Expander(SweepSpec spec, const AgentRegistry& agents) : spec_(std::move(spec)), agents_(agents) {}

  SweepSpec Make() {
    ExpandEnvs();
    ExpandMethods();
    if (spec_.search) Search();
    spec_.search.reset();
    // the values are with the methods now
    for (SweepSetting& setting : spec_.settings) {
      if (!setting.values.empty()) setting.value = setting.values.front();
      setting.values.clear();
    }
    return std::move(spec_);
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& what) const {
    throw UserError(StrCat(spec_.file, ":", line, ": ", OneLine(what)));
  }

  template <typename Item>
  void RequireNames(const std::vector<Item>& items, std::string_view kind) const {
    std::set<std::string> seen;
    for (const Item& item : items) {
      if (item.name.size() > kMaxNameLength) {
        Fail(item.line, StrCat("the variant '", item.name,
                               "' has a name of more than 100 letters; "
                               "write its ",
                               kind, " out with a shorter one"));
      }
      if (!seen.insert(item.name).second) {
        Fail(item.line, StrCat("two ", kind, "s are called '", item.name, "'"));
      }
    }
  }
  template <typename Item>
  void RequireFew(const std::vector<Item>& items, std::string_view kind) const {
    if (items.size() <= kMaxSweepNames) return;
    Fail(items.back().line, StrCat("more than 1000 ", kind, "s, variants included"));
  }

  // One for each combination of values; `add(item, setting)` says what a value does besides.
  template <typename Item, typename Add>
  std::vector<Item> Combinations(const Item& item, const Add& add) const {
    std::vector<Item> made{item};
    for (std::size_t s = 0; s < item.written.size(); ++s) {
      if (item.written[s].values.empty()) continue;
      std::vector<Item> more;
      for (const Item& so_far : made) {
        for (const std::string& value : item.written[s].values) {
          Item variant = so_far;
          SweepSetting& setting = variant.written[s];
          setting.value = value;
          setting.values.clear();
          variant.name += StrCat("-", ForName(setting.key), "-", ForName(value));
          add(variant, setting);
          more.push_back(std::move(variant));
        }
        if (more.size() > kMaxSweepNames) {
          Fail(item.line, StrCat("'", item.name, "' has more than 1000 variants"));
        }
      }
      made = std::move(more);
    }
    return made;
  }

  void ExpandEnvs() {
    std::vector<SweepEnv> envs;
    std::map<std::string, std::vector<std::string>> names;
    for (const SweepEnv& env : spec_.envs) {
      for (SweepEnv& variant : Combinations(env, [](const auto&...) {})) {
        names[env.name].push_back(variant.name);
        envs.push_back(std::move(variant));
      }
      RequireFew(envs, "environment");
    }
    RequireNames(envs, "environment");
    for (SweepMethod& method : spec_.methods) {
      std::vector<std::string> wanted;
      for (const std::string& env : method.envs) {
        wanted.insert(wanted.end(), names.at(env).begin(), names.at(env).end());
      }
      method.envs = std::move(wanted);
    }
    spec_.envs = std::move(envs);
  }

  // Empty of an agent that there is not, which is an error later.
  std::vector<std::string> SettingsOf(const SweepMethod& method) const {
    std::vector<std::string> keys;
    const auto agent = std::ranges::find(agents_, method.agent, &AgentEntry::id);
    if (agent == agents_.end()) return keys;
    for (const ConfigField& field : agent->options({})) keys.push_back(field.key);
    return keys;
  }

  void ExpandMethods() {
    std::vector<SweepMethod> methods;
    for (SweepMethod method : spec_.methods) {
      const std::vector<std::string> known = SettingsOf(method);
      std::vector<SweepSetting> shared;
      for (const SweepSetting& setting : spec_.settings) {
        if (setting.values.empty() || !method.shared || !Has(known, setting.key)) continue;
        if (Has(method.written, setting.key)) continue;
        shared.push_back(setting);
      }
      method.written.insert(method.written.begin(), shared.begin(), shared.end());
      const bool lists = std::ranges::any_of(
          method.written, [](const SweepSetting& setting) { return !setting.values.empty(); });
      if (lists) method.variant_of = method.name;
      for (SweepMethod& variant :
           Combinations(method, [](SweepMethod&made, const SweepSetting&setting) {
             made.title += StrCat(", ", setting.key, " ", Short(setting.value));
             made.varied.push_back(setting.Assignment());
           })) {
        methods.push_back(std::move(variant));
      }
      RequireFew(methods, "method");
    }
    RequireNames(methods, "method");
    spec_.methods = std::move(methods);
  }

  std::string Draw(const SearchedSetting& setting, int trial) const {
    Rng rng(spec_.search->seed, StrCat("search/", setting.key, "/", trial));
    if (!setting.choices.empty()) {
      return setting.choices[static_cast<std::size_t>(rng.Index(std::ssize(setting.choices)))];
    }
    if (setting.whole && !setting.log) {
      const auto low = static_cast<std::int64_t>(setting.low);
      return std::to_string(low + rng.Index(static_cast<std::int64_t>(setting.high) - low + 1));
    }
    double value = setting.log
                       ? std::exp(rng.Uniform(std::log(setting.low), std::log(setting.high)))
                       : rng.Uniform(setting.low, setting.high);
    if (setting.whole) value = std::round(value);
    value = std::clamp(value, setting.low, setting.high);
    if (setting.whole) return std::to_string(static_cast<std::int64_t>(value));
    // six digits are enough to find it again, and may not leave the range
    const std::string text = Digits(value, 6);
    double read = value;
    std::from_chars(text.data(), text.data() + text.size(), read);
    return read < setting.low || read > setting.high ? Digits(value, 17) : text;
  }

  void Search() {
    const SweepSearch& search = *spec_.search;
    std::vector<SweepMethod> methods;
    std::set<std::string> used, searched;
    std::vector<std::string> known_to_any;
    for (const SweepMethod& method : spec_.methods) {
      const std::string& base = method.variant_of.empty() ? method.name : method.variant_of;
      const std::vector<std::string> known = SettingsOf(method);
      std::vector<const SearchedSetting*> drawn;
      if (search.methods.empty() || Has(search.methods, base)) {
        known_to_any.insert(known_to_any.end(), known.begin(), known.end());
        for (const SearchedSetting& setting : search.settings) {
          if (Has(known, setting.key)) drawn.push_back(&setting);
        }
      }
      if (drawn.empty()) {
        methods.push_back(method);
        continue;
      }
      searched.insert(base);
      for (const SearchedSetting* setting : drawn) {
        used.insert(setting->key);
        RequireFree(method, *setting);
      }
      for (int trial = 1; trial <= search.trials; ++trial) {
        methods.push_back(Trial(method, base, drawn, trial));
      }
      RequireFew(methods, "method");
    }
    for (const SearchedSetting& setting : search.settings) {
      if (used.contains(setting.key)) continue;
      Fail(setting.line, StrCat("no agent that is searched has the setting '", setting.key, "'",
                                DidYouMean(setting.key, known_to_any)));
    }
    for (const std::string& method : search.methods) {
      if (!searched.contains(method)) {
        Fail(search.line, StrCat("the agent of '", method, "' has none of the searched settings"));
      }
    }
    RequireNames(methods, "method");
    spec_.methods = std::move(methods);
  }

  // What is drawn is not also said.
  void RequireFree(const SweepMethod& method, const SearchedSetting& setting) const {
    const auto refuse = [&](const std::vector<SweepSetting>& settings, std::string_view where) {
      const auto found = std::ranges::find(settings, setting.key, &SweepSetting::key);
      if (found == settings.end()) return;
      Fail(setting.line, StrCat("setting ", setting.key, " is searched, but ", where,
                                " sets it in line ", found->line));
    };
    refuse(method.written, StrCat("method '", method.name, "'"));
    if (method.shared) refuse(spec_.settings, "[settings]");
  }

  SweepMethod Trial(const SweepMethod& method, const std::string& base,
                    const std::vector<const SearchedSetting*>& drawn, int trial) const {
    SweepMethod made = method;
    made.name += StrCat("-trial-", trial);
    made.title += StrCat(", trial ", trial);
    made.variant_of = base;
    for (const SearchedSetting* setting : drawn) {
      SweepSetting value{
          .key = setting->key, .value = Draw(*setting, trial), .line = setting->line};
      made.title += StrCat(", ", value.key, " ", Short(value.value));
      made.varied.push_back(value.Assignment());
      made.written.push_back(std::move(value));
    }
    return made;
  }

  static bool Has(const std::vector<std::string>& keys, const std::string& key) {
    return std::ranges::find(keys, key) != keys.end();
  }
  static bool Has(const std::vector<SweepSetting>& settings, const std::string& key) {
    return std::ranges::find(settings, key, &SweepSetting::key) != settings.end();
  }

  SweepSpec spec_;
  const AgentRegistry& agents_;
};

}  // namespace

SweepSpec WithVariants(SweepSpec spec, const AgentRegistry& agents) {
  return Expander(std::move(spec), agents).Make();
}

}  // namespace msrl
