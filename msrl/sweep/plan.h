// What a sweep will do: every file that has to be made, checked before the first one is.
#ifndef MSRL_SWEEP_PLAN_H_
#define MSRL_SWEEP_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/run/run_spec.h"
#include "msrl/sweep/sweep_spec.h"

namespace msrl {

struct PlannedRun {
  std::string path = {};  // env/method/seed
  std::size_t env = 0;
  std::size_t method = 0;
  std::uint64_t seed = 0;
  std::string branch = {};    // path of the file that it starts from; empty: none
  std::string identity = {};  // 16 hexadecimal digits
};

struct SweepPlan {
  std::string name;
  std::string version;  // of the msrl that made the plan
  std::string commit;
  std::string command;
  double few_shot = 0.25;  // share of the budget that counts as few steps
  std::int64_t log_every = 1000;
  std::optional<SweepSource> source;
  std::vector<SweepBranch> branches;
  std::vector<SweepEnv> envs;
  std::vector<SweepMethod> methods;
  std::vector<std::uint64_t> seeds;
  std::vector<PlannedRun> runs;  // by seed, so that an early stop leaves whole comparisons
  // Contents of the segment libraries by their hashes; only of a plan that was made from its file.
  std::map<std::string, std::string> libraries;

  // Of sweep.json, which has a list of runs besides. Libraries are files beside it.
  template <typename V>
  void Fields(V&& visit) {
    visit("name", name);
    visit("msrl_version", version);
    visit("commit", commit);
    visit("command", command);
    visit("few_shot", few_shot);
    visit("log_every", log_every);
    visit("source", source);
    visit("branches", branches);
    visit("environments", envs);
    visit("methods", methods);
    visit("seeds", seeds);
  }

  const SweepBranch* FindBranch(std::string_view name) const;
  // The run as `msrl train` would be told; a branch comes on top (StartFromBranch).
  RunSpec SpecOf(const PlannedRun& run) const;
  // The same with every setting written out, those that the branch brings too. `init` is empty.
  RunSpec ResolvedSpecOf(const PlannedRun& run, const Registries& registries) const;
};

// Checks everything that can be checked: environments, agents, settings, branches, libraries.
// UserError with file and line.
SweepPlan MakePlan(const SweepSpec& spec, const Registries& registries);

// A hash of what the run's results depend on: its resolved settings and seed, the branch it starts
// from, and the code. Never of a place or a job.
std::string Identity(const SweepPlan& plan, const PlannedRun& run, const RunSpec& resolved,
                     const PretrainerRegistry& pretrainers, std::string_view version,
                     std::string_view commit);

// sweep.json, and back. UserError that names `source` unless names and seeds are distinct, roles
// known, and every run is one of the plan's environments and methods.
std::string ToJson(const SweepPlan& plan);
SweepPlan PlanFromJson(std::string_view text, std::string_view source);

// UserError that names the first difference, unless `grown` repeats all that `old` has. More
// seeds, environments, methods and branches are fine; so are other titles.
void RequireGrown(const SweepPlan& old, const SweepPlan& grown, std::string_view directory);

// One piece of work, named by the path of what it makes.
struct SweepTask {
  enum class Kind { kData, kBranch, kRun };
  Kind kind = Kind::kRun;
  std::string path;
  std::vector<std::size_t> needs;  // tasks that come first
  std::size_t item = 0;            // branch or run in the plan
  std::uint64_t seed = 0;          // of the branch or run

  bool is_run() const { return kind == Kind::kRun; }
};

inline constexpr const char* kTrainData = "source/train.h5";
inline constexpr const char* kHeldOutData = "source/held-out.h5";

// In the sweep's directory: the segment library with these contents.
std::string LibraryPath(std::string_view hash);

// In an order in which they can be done.
std::vector<SweepTask> TasksOf(const SweepPlan& plan);

}  // namespace msrl

#endif  // MSRL_SWEEP_PLAN_H_
