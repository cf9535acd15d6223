// What a user asks for: a file in TOML that names environments, methods and seeds (docs/sweeps.md).
#ifndef MSRL_SWEEP_SWEEP_SPEC_H_
#define MSRL_SWEEP_SWEEP_SPEC_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/transfer/pretrainer.h"

namespace msrl {

// A setting with the line that it is from, so that an error found later can still say where.
struct SweepSetting {
  std::string key;
  std::string value;
  int line = 0;
  // Of a list in the file, in place of the value: each makes a variant (variants.h).
  std::vector<std::string> values = {};

  std::string Assignment() const { return key + "=" + value; }
};

// The parts of a sweep, in the file and in its plan. Fields lists what sweep.json holds of them;
// what is below it is of the file alone.

// Episodes of the source families, which branches are pretrained on.
struct SweepSource {
  int episodes = 4000;
  int held_out_episodes = 1000;
  std::uint64_t seed = 0;
  std::vector<std::string> targets;  // in the file, none: those that the branches learn
  std::string behaviour = "skills";  // CollectOptions::behaviour

  template <typename V>
  void Fields(V&& visit) {
    visit("episodes", episodes);
    visit("held_out_episodes", held_out_episodes);
    visit("seed", seed);
    visit("targets", targets);
    visit("behaviour", behaviour);
  }
};

// Something to pretrain, of any kind.
struct SweepBranch {
  std::string name;
  std::string kind;       // in the file, empty: the first
  std::string objective;  // empty: the kind's own
  std::string control = "none";
  int updates = -1;                   // in the file, -1: the kind's own
  std::vector<std::string> settings;  // "key=value"
  std::vector<std::uint64_t> seeds{0};

  template <typename V>
  void Fields(V&& visit) {
    visit("name", name);
    visit("kind", kind);
    visit("objective", objective);
    visit("control", control);
    visit("updates", updates);
    visit("settings", settings);
    visit("seeds", seeds);
  }

  std::vector<SweepSetting> written = {};
  int line = 0;

  // All of it as options of the pretrainer.
  std::vector<std::string> Options() const;
  // In the sweep's directory.
  std::string Path(std::uint64_t seed) const;
  // Targets with many seeds share branches: that of seed s is number s modulo n.
  std::uint64_t SeedFor(std::uint64_t run_seed) const { return seeds[run_seed % seeds.size()]; }
};

struct SweepEnv {
  std::string name = {};  // of its folder; the id if none is given
  std::string id = {};
  std::string family = {};  // in the file, empty: what the environment says
  std::vector<std::string> settings = {};
  std::int64_t steps = 0;
  std::int64_t eval_every = 0;  // 0: as RunSpec
  int eval_episodes = 0;

  template <typename V>
  void Fields(V&& visit) {
    visit("name", name);
    visit("id", id);
    visit("family", family);
    visit("settings", settings);
    visit("steps", steps);
    visit("eval_every", eval_every);
    visit("eval_episodes", eval_episodes);
  }

  std::vector<SweepSetting> written = {};
  int line = 0;
};

struct SweepMethod {
  std::string name = {};
  std::string title = {};  // the name if none is given
  std::string agent = {};
  std::string role = {};       // in the file, empty: guessed
  std::string paper = {};      // row of the paper's tables; empty: none
  std::string component = {};  // what is transferred, in words
  std::string init = {};       // the branch that its runs start from; empty: none
  bool unaligned = false;
  std::string library = {};  // hash of the segments that its runs start with; empty: none
  std::vector<std::string> settings = {};  // shared ones included
  std::string variant_of = {};             // [[method]] with lists or a search; empty: none
  std::vector<std::string> varied = {};    // which of the settings make this variant

  template <typename V>
  void Fields(V&& visit) {
    visit("name", name);
    visit("title", title);
    visit("agent", agent);
    visit("role", role);
    visit("paper", paper);
    visit("component", component);
    visit("init", init);
    visit("unaligned", unaligned);
    visit("library", library);
    visit("settings", settings);
    visit("variant_of", variant_of);
    visit("varied", varied);
  }

  std::string library_place = {};  // the file with these segments, or a run that has them
  std::vector<SweepSetting> written = {};
  bool shared = true;                  // whether [settings] apply
  std::vector<std::string> envs = {};  // none: all
  int line = 0;
};

// What a random search draws for one setting.
struct SearchedSetting {
  std::string key;
  int line = 0;
  std::vector<std::string> choices = {};  // one of these; empty: from low to high
  double low = 0.0, high = 0.0;
  bool log = false;    // evenly in the logarithm
  bool whole = false;  // whole numbers only
};

struct SweepSearch {
  int trials = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> methods = {};  // none: all that know one of the settings
  std::vector<SearchedSetting> settings = {};
  int line = 0;
};

struct SweepSpec {
  std::string file;  // for errors
  std::string name;
  std::vector<std::uint64_t> seeds;
  std::int64_t log_every = 1000;
  double few_shot = 0.25;              // share of the budget that counts as few steps
  std::vector<SweepSetting> settings;  // of every agent that knows them
  std::optional<SweepSource> source;
  std::vector<SweepBranch> branches;
  std::vector<SweepEnv> envs;
  std::vector<SweepMethod> methods;
  std::optional<SweepSearch> search;
};

// More methods, environments or values of one setting are refused.
inline constexpr std::size_t kMaxSweepNames = 1'000;
// Names become folders.
inline constexpr std::size_t kMaxNameLength = 100;

// Form only: types, ranges, names that are missing, doubled or refer to nothing within the file.
// What environments and agents make of it is checked by MakePlan. UserError "file:line: what".
SweepSpec ParseSweepSpec(std::string_view text, std::string_view file);
SweepSpec ReadSweepSpec(const std::filesystem::path& file);

// "100-104", "1,5,7-9"; UserError on anything else and on a seed that is named twice.
std::vector<std::uint64_t> ParseSeeds(std::string_view text);

const std::vector<std::string>& MethodRoles();

}  // namespace msrl

#endif  // MSRL_SWEEP_SWEEP_SPEC_H_
