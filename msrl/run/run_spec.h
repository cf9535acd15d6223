// What a run is: everything that its results depend on.
#ifndef MSRL_RUN_RUN_SPEC_H_
#define MSRL_RUN_RUN_SPEC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/run/registries.h"

namespace msrl {

struct RunSpec {
  static constexpr std::int64_t kMaxSteps = 1'000'000'000'000;
  static constexpr int kMaxEvalEpisodes = 100'000;

  std::string env;
  std::vector<std::string> env_settings;  // "key=value"
  std::string agent;
  std::vector<std::string> agent_settings;
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  std::int64_t eval_every = 0;
  int eval_episodes = 0;
  std::int64_t log_every = 1000;
  std::string init;
  std::string library;

  // All but environment and agent.
  template <typename V>
  void Fields(V&& visit) {
    visit("seed", seed, "seed of everything random", NotNegative());
    visit("steps", steps, "environment steps, warm-up included", Between(1, kMaxSteps));
    visit("eval_every", eval_every,
          "steps between evaluations; 0: so that they have at most half as many steps as training",
          Between(0, kMaxSteps));
    visit("eval_episodes", eval_episodes, "episodes per evaluation; 0: up to 10, likewise",
          Between(0, kMaxEvalEpisodes));
    visit("log_every", log_every, "steps between lines of metrics", Between(1, kMaxSteps));
    visit("init", init, "hash of the file that the agent starts from; empty: of nothing");
    visit("library", library,
          "hash of the segment library that the agent starts with; empty: of nothing");
  }

  // Equal if the runs do the same up to the shorter one's budget: all but `steps` goes in.
  std::uint64_t Fingerprint() const;
};

// The code that a run was made with from a step on.
struct CodeRecord {
  std::string version;
  std::string commit;
  std::string mujoco;  // empty if unknown, or if the program has none
  std::int64_t from_step = 0;

  template <typename V>
  void Fields(V&& visit) {
    visit("msrl_version", version);
    visit("commit", commit);
    visit("mujoco", mujoco);
    visit("from_step", from_step);
  }

  // "msrl 0.1.0 (1234567890ab, MuJoCo 3.1.6)".
  std::string Describe() const;
  bool SameCode(const CodeRecord& other) const;
};
// The distinct ones of them, joined by '+'.
std::string VersionsOf(const std::vector<CodeRecord>& code);
std::string CommitsOf(const std::vector<CodeRecord>& code);
// This build, from this step on.
CodeRecord ThisCode(const Registries& registries, std::int64_t from_step);

struct EvaluationSchedule {
  std::int64_t every = 0;
  int episodes = 0;
};

// An evaluation at the start and after every hundredth of the budget, of 10 episodes; but those
// after the start have at most half as many steps as training, should all episodes be as long as
// they can. A step of evaluation never costs more than one of training, so evaluations take about a
// third of the time at most, whatever the agent. Where 10 episodes are too many every hundredth,
// intervals become longer (to a tenth of the budget), then episodes fewer (to 3), then intervals
// longer again (to the whole budget), then episodes fewer (to 1). What is not 0 in `wanted` stays.
EvaluationSchedule DefaultEvaluation(std::int64_t steps, int step_limit, EvaluationSchedule wanted);

// The same run with every setting written out, so that later versions with other defaults repeat
// it. UserError on unknown names and impossible values.
RunSpec Resolve(const RunSpec& spec, const Registries& registries);

// TOML for people: sections [run], [env] and [agent] of a resolved spec.
std::string ToToml(const RunSpec& spec, const Registries& registries);

// The contents of run.json: the spec with versions and the facts about environment and agent.
std::string ToJson(const RunSpec& spec, const Registries& registries);
// The spec in it; UserError that names `source`.
RunSpec RunSpecFromJson(std::string_view text, std::string_view source);
// All code that made the run, in the order of its steps; never empty.
std::vector<CodeRecord> CodeFromJson(std::string_view text, std::string_view source);
// The same contents with another budget and list of code: what the run was is not told anew.
std::string WithChanges(std::string_view text, std::string_view source, std::int64_t steps,
                        const std::vector<CodeRecord>& code);

// Of this build: "0.1.0", and a commit or kUnknownCommit.
inline constexpr std::string_view kUnknownCommit = "unknown";
std::string_view BuildVersion();
std::string_view BuildCommit();

}  // namespace msrl

#endif  // MSRL_RUN_RUN_SPEC_H_
