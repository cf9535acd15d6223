// What a user asks for: a file in TOML that names environments, methods and seeds (docs/sweeps.md).
#ifndef MSRL_SWEEP_SWEEP_SPEC_H_
#define MSRL_SWEEP_SWEEP_SPEC_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msrl {

// A setting with the line that it is from, so that an error found later can still say where.
struct SweepSetting {
  std::string key;
  std::string value;
  int line = 0;

  std::string Assignment() const { return key + "=" + value; }
};

// Episodes of the source families, which branches are pretrained on.
struct SweepSource {
  int episodes = 4000;
  int held_out_episodes = 1000;
  std::uint64_t seed = 0;
  std::vector<std::string> targets;  // none: those that the branches learn
};

struct SweepBranch {
  std::string name;
  std::string objective = "shape";
  std::string control = "none";
  int updates = -1;  // -1: the objective's default
  std::vector<std::uint64_t> seeds{0};
  std::vector<SweepSetting> settings;
  int line = 0;
};

struct SweepEnv {
  std::string id;
  std::string name;    // of its folder; the id if none is given
  std::string family;  // empty: what the environment says
  std::int64_t steps = 0;
  std::int64_t eval_every = 0;  // 0: as RunSpec
  int eval_episodes = 0;
  std::vector<SweepSetting> settings;  // of the environment
  int line = 0;
};

struct SweepMethod {
  std::string name;
  std::string title;  // the name if none is given
  std::string agent;
  std::string role;
  std::string paper;      // row of the paper's tables; empty: none
  std::string component;  // what is transferred
  std::string init;       // the branch that its runs start from; empty: none
  bool unaligned = false;
  bool shared = true;             // whether [settings] apply
  std::vector<std::string> envs;  // none: all
  std::vector<SweepSetting> settings;
  int line = 0;
};

struct SweepSpec {
  std::string file;  // for errors
  std::string name;
  std::vector<std::uint64_t> seeds;
  std::int64_t log_every = 1000;
  double few_shot = 0.25;              // share of the budget that counts as few steps
  std::vector<SweepSetting> settings;  // of every agent that knows them
  bool has_source = false;
  SweepSource source;
  std::vector<SweepBranch> branches;
  std::vector<SweepEnv> envs;
  std::vector<SweepMethod> methods;
};

// Form only: types, ranges, names that are missing, doubled or refer to nothing within the file.
// What environments and agents make of it is checked by MakePlan. UserError "file:line: what".
SweepSpec ParseSweepSpec(std::string_view text, std::string_view file);
SweepSpec ReadSweepSpec(const std::filesystem::path& file);

// "100-104", "1,5,7-9"; UserError on anything else and on a seed that is named twice.
std::vector<std::uint64_t> ParseSeeds(std::string_view text);

// Rows of the paper's tables that a method can be compared with, and roles.
std::span<const std::string> PaperMethods();
std::span<const std::string> MethodRoles();

}  // namespace msrl

#endif  // MSRL_SWEEP_SWEEP_SPEC_H_
