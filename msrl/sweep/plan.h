// What a sweep will do: every file that has to be made, checked before the first one is.
#ifndef MSRL_SWEEP_PLAN_H_
#define MSRL_SWEEP_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/run/run_spec.h"
#include "msrl/sweep/sweep_spec.h"
#include "msrl/transfer/value_branch_pretrainer.h"

namespace msrl {

struct PlannedBranch {
  std::string name;
  std::string objective;
  std::string control;
  int updates = 0;
  std::vector<std::string> settings;
  std::vector<std::uint64_t> seeds;

  PretrainConfig Config() const;
  // In the sweep's directory.
  std::string Path(std::uint64_t seed) const;
  // Targets with many seeds share branches: that of seed s is number s modulo n.
  std::uint64_t SeedFor(std::uint64_t run_seed) const { return seeds[run_seed % seeds.size()]; }
};

struct PlannedEnv {
  std::string name;
  std::string id;
  std::string family;
  std::vector<std::string> settings;
  std::int64_t steps = 0;
  std::int64_t eval_every = 0;
  int eval_episodes = 0;
};

struct PlannedMethod {
  std::string name;
  std::string title;
  std::string agent;
  std::string role;
  std::string paper;
  std::string component;
  std::string init;
  bool unaligned = false;
  std::vector<std::string> settings;  // shared ones included
};

struct PlannedRun {
  std::string path;  // env/method/seed
  std::size_t env = 0;
  std::size_t method = 0;
  std::uint64_t seed = 0;
  std::string branch;    // path of the file that it starts from; empty: none
  std::string identity;  // 16 hexadecimal digits
};

struct SweepPlan {
  std::string name;
  std::string version;  // of the msrl that made the plan
  std::string commit;
  std::string command;
  double few_shot = 0.25;
  std::int64_t log_every = 1000;
  std::optional<SweepSource> source;
  std::vector<PlannedBranch> branches;
  std::vector<PlannedEnv> envs;
  std::vector<PlannedMethod> methods;
  std::vector<std::uint64_t> seeds;
  std::vector<PlannedRun> runs;  // by seed, so that an early stop leaves whole comparisons

  const PlannedBranch* FindBranch(std::string_view name) const;
  // The run as `msrl train` would be told; a branch comes on top (StartFromBranch).
  RunSpec SpecOf(const PlannedRun& run) const;
  // The same with every setting written out, those that the branch brings too. `init` is empty.
  RunSpec ResolvedSpecOf(const PlannedRun& run, const Registries& registries) const;
};

// Checks everything that can be checked: environments, agents, settings, branches. UserError with
// file and line.
SweepPlan MakePlan(const SweepSpec& spec, const Registries& registries);

// A hash of what the run's results depend on: its resolved settings and seed, the branch it starts
// from, and the code. Never of a place or a job.
std::string Identity(const SweepPlan& plan, const PlannedRun& run, const RunSpec& resolved,
                     std::string_view version, std::string_view commit);

// sweep.json, and back. UserError that names `source`.
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
};

inline constexpr const char* kTrainData = "source/train.h5";
inline constexpr const char* kHeldOutData = "source/held-out.h5";

// In an order in which they can be done.
std::vector<SweepTask> TasksOf(const SweepPlan& plan);

}  // namespace msrl

#endif  // MSRL_SWEEP_PLAN_H_
