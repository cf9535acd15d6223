#include "msrl/report/fairness.h"

#include <algorithm>
#include <map>
#include <set>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/report/tables.h"
#include "msrl/run/run_spec.h"

namespace msrl::report {
namespace {

constexpr double kComparableSizes = 1.1;  // largest over smallest

std::string Join(const auto& parts, std::string_view separator = ", ") {
  std::string text;
  for (const auto& part : parts) text += StrCat(text.empty() ? "" : separator, part);
  return text;
}

std::string Runs(std::size_t count) { return StrCat(count, count == 1 ? " run" : " runs"); }

// What made them must be the same for all branches that runs started from. `between` is put where
// commas are.
FairnessItem SameInBranches(const RunRecords& records, std::string item, const char* key,
                            std::string_view between = ",") {
  if (records.inits.empty())
    return {std::move(item), std::nullopt, "no run starts from a branch or a library"};
  std::set<std::string> values;
  for (const auto& [hash, init] : records.inits) {
    values.insert(Join(SplitAt(init.Made(key), ','), between));
  }
  return {std::move(item), values.size() == 1,
          StrCat(key, " ", Join(values), values.size() == 1 ? " in all of " : " in ",
                 records.inits.size(), records.inits.size() == 1 ? " branch" : " branches")};
}

// Facts of runs that must be the same for all methods of a task.
template <typename Fact>
FairnessItem SameInTask(const RunRecords& records, const Analysis& analysis, std::string item,
                        const Fact& fact) {
  bool ok = true;
  std::map<std::string, std::vector<std::string>> tasks_of;  // by what was found
  for (const TaskInfo& task : analysis.tasks) {
    std::set<std::string> values;
    for (const RunRecord& run : records.runs) {
      if (run.env == task.name) values.insert(fact(run));
    }
    if (values.empty()) continue;
    ok = ok && values.size() == 1;
    tasks_of[Join(values, " and ")].push_back(task.name);
  }
  std::vector<std::string> lines;
  for (const auto& [found, tasks] : tasks_of) {
    lines.push_back(StrCat(found, " (", Join(tasks), ")"));
  }
  return {std::move(item), ok, StrCat(Join(lines, "; "), "; ", Runs(records.runs.size()))};
}

// Finished runs only: what tables are made of.
FairnessItem SameSeeds(const RunRecords& records, const Analysis& analysis) {
  FairnessItem item{"Target environments", std::nullopt, ""};
  std::vector<std::string> lines;
  for (const TaskInfo& task : analysis.tasks) {
    std::map<std::string, std::set<std::uint64_t>> seeds;
    std::set<std::uint64_t> all;
    for (const RunRecord& run : records.runs) {
      if (run.env != task.name || !run.finished()) continue;
      seeds[run.method].insert(run.facts.spec.seed);
      all.insert(run.facts.spec.seed);
    }
    if (all.empty()) {
      lines.push_back(task.name + ": no finished run");
      continue;
    }
    std::vector<std::string> different;
    for (const MethodInfo& method : analysis.methods) {
      if (method.measured || method.facts.role == "reference") continue;
      if (seeds[method.facts.name] != all) different.push_back(method.facts.name);
    }
    if (!different.empty()) {
      item.ok = false;
      lines.push_back(
          StrCat(task.name, ": not all of the seeds ", Join(all), " for ", Join(different)));
    } else {
      item.ok = item.ok.value_or(true);
      lines.push_back(StrCat(task.name, ": seeds ", Join(all), " for all methods"));
    }
  }
  item.found = Join(lines, "; ");
  return item;
}

// What is transferred, and whole agents in the same task.
FairnessItem ModuleSizes(const RunRecords& records, const Analysis& analysis) {
  using Sizes = std::set<std::int64_t>;
  const auto range = [](const Sizes& sizes) {
    if (sizes.size() == 1) return StrCat(*sizes.begin());
    return StrCat(*sizes.begin(), " to ", *sizes.rbegin());
  };
  const auto ratio = [](const Sizes& sizes) {
    return static_cast<double>(*sizes.rbegin()) / static_cast<double>(*sizes.begin());
  };
  Sizes modules;
  for (const auto& [hash, count] : records.init_parameters) modules.insert(count);
  FairnessItem item{"Architecture scale", std::nullopt, "no module is transferred"};
  if (!modules.empty()) {
    item.ok = ratio(modules) <= kComparableSizes;
    item.found = StrCat("transferred modules: ", range(modules), " parameters");
  }
  std::map<std::string, Sizes> agents;
  std::map<int, Sizes> in_task;
  for (const CostEntry& cost : analysis.costs) {
    if (cost.parameters == 0) continue;  // learns nothing
    agents[analysis.Method(cost.method).name].insert(cost.parameters);
    in_task[cost.task].insert(cost.parameters);
  }
  double largest = 1.0;
  for (const auto& [task, sizes] : in_task) largest = std::max(largest, ratio(sizes));
  if (item.ok && largest > kComparableSizes) item.ok = false;
  std::vector<std::string> lines;
  for (const auto& [name, sizes] : agents) lines.push_back(StrCat(name, " ", range(sizes)));
  item.found += StrCat("; whole agents: ", Join(lines));
  if (largest > kComparableSizes) {
    item.found += StrCat("; in one task the largest has ", FixedText(largest, 1),
                         " times as many as the smallest");
  }
  return item;
}

FairnessItem NamedComponents(const RunRecords& records, const Analysis& analysis) {
  FairnessItem item{"Transferred component", std::nullopt, "no run starts from a branch"};
  std::vector<std::string> named, unnamed;
  for (const MethodInfo& method : analysis.methods) {
    const bool transfers = std::ranges::any_of(records.runs, [&method](const RunRecord& run) {
      const RunSpec& spec = run.facts.spec;
      return run.method == method.facts.name && !(spec.init.empty() && spec.library.empty());
    });
    if (!transfers) continue;
    if (method.facts.component.empty()) {
      unnamed.push_back(method.facts.name);
    } else {
      named.push_back(StrCat(method.facts.name, ": ", method.facts.component));
    }
  }
  if (named.empty() && unnamed.empty()) return item;
  item.ok = unnamed.empty();
  item.found = Join(named, "; ");
  if (!unnamed.empty()) {
    item.found += StrCat(named.empty() ? "" : "; ", "not said for ", Join(unnamed));
  }
  return item;
}

FairnessItem OneVersion(const RunRecords& records) {
  std::set<std::string> versions;
  bool known = true;
  std::size_t mixed = 0;
  for (const RunRecord& run : records.runs) {
    mixed += run.facts.code.size() > 1 ? 1 : 0;
    for (const CodeRecord& code : run.facts.code) {
      known = known && code.commit != kUnknownCommit;
      versions.insert(StrCat("msrl ", code.version, " at ", code.commit,
                             code.mujoco.empty() ? "" : " with MuJoCo " + code.mujoco));
    }
  }
  if (versions.empty()) return {"Code version", std::nullopt, "no run yet"};
  // two builds without a commit look the same, and may differ
  const auto ok = known || versions.size() > 1 ? std::optional(versions.size() == 1) : std::nullopt;
  return {"Code version", ok,
          StrCat(Join(versions), "; ", Runs(records.runs.size()),
                 mixed == 0 ? "" : StrCat(", ", mixed, " of them made by more than one"))};
}

}  // namespace

std::vector<FairnessItem> CheckFairness(const RunRecords& records, const Analysis& analysis) {
  std::vector<FairnessItem> items;
  items.push_back(SameInBranches(records, "Source environments", "sources", " + "));
  items.push_back(SameInBranches(records, "Source trajectories", "dataset"));
  items.push_back(SameInBranches(records, "Source targets", "target"));
  std::set<std::string> controls;
  for (const auto& [hash, init] : records.inits) {
    if (init.Made("control") != "none") controls.insert(init.Made("control"));
  }
  if (!controls.empty()) items.back().found += StrCat("; broken on purpose: ", Join(controls));
  items.push_back(SameInBranches(records, "Source compute", "updates"));
  if (records.runs.empty()) {
    for (const char* name :
         {"Target environments", "Target interaction budget", "Target evaluation"}) {
      items.push_back({name, std::nullopt, "no run yet"});
    }
  } else {
    items.push_back(SameSeeds(records, analysis));
    items.push_back(
        SameInTask(records, analysis, "Target interaction budget", [](const RunRecord& run) {
          return StrCat(run.facts.spec.steps, " steps",
                        run.simulator_steps > 0 ? " and more in a simulator" : "");
        }));
    items.push_back(SameInTask(records, analysis, "Target evaluation", [](const RunRecord& run) {
      const auto number = [](const std::optional<double>& value) {
        return value ? StrCat(*value) : std::string("none");
      };
      return StrCat("every ", run.facts.spec.eval_every, " steps, ", run.facts.spec.eval_episodes,
                    " episodes, random ", number(run.facts.random_return), ", reference ",
                    number(run.facts.reference_return));
    }));
  }
  items.push_back(ModuleSizes(records, analysis));
  items.push_back(NamedComponents(records, analysis));
  items.push_back(OneVersion(records));
  return items;
}

}  // namespace msrl::report
