#include "msrl/report/run_records.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/json_text.h"
#include "msrl/paper/figures.h"
#include "msrl/run/json_fields.h"
#include "msrl/run/manifest.h"
#include "msrl/run/run_directory.h"
#include "msrl/sweep/sweep_directory.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uintmax_t kMaxJsonBytes = std::uintmax_t{1} << 26;
constexpr std::uintmax_t kMaxLogBytes = std::uintmax_t{1} << 32;
constexpr std::size_t kMaxRuns = 1'000'000;
constexpr int kMaxDepth = 8;

[[noreturn]] void Damaged(std::string_view source, std::string_view what) {
  throw UserError(StrCat(source, " is damaged: ", what));
}

double FiniteNumber(const Json& json, const std::string& key, std::string_view source) {
  const double value = json.at(key).get<double>();
  if (!std::isfinite(value)) Damaged(source, StrCat(key, " is not finite"));
  return value;
}

// A whole number from 0 on, small enough for sums and differences.
std::int64_t WholeNumber(const Json& json, const std::string& key, std::string_view source) {
  const Json& value = json.at(key);
  // all whole numbers that are not negative are unsigned ones to the parser
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 1'000'000'000'000'000) {
    Damaged(source, StrCat(key, " ", value.dump()));
  }
  return value.get<std::int64_t>();
}

std::int64_t StepNumber(const Json& json, std::string_view source) {
  return WholeNumber(json, "step", source);
}

// Calls visit(line) for every line. A last line without its end is half a line.
template <typename Visit>
void ForEachLine(std::string_view text, bool half_line_allowed, std::string_view source,
                 const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      if (!half_line_allowed) Damaged(source, "its last line is cut");
      return;
    }
    visit(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

Evaluation ParseEvaluation(std::string_view line, const RunSpec& spec, std::string_view source) {
  const auto json = ParseJson<Json>(line, source);
  Evaluation evaluation;
  evaluation.step = StepNumber(json, source);
  evaluation.mean_return = FiniteNumber(json, "mean_return", source);
  const auto& returns = json.at("returns").get_ref<const Json::array_t&>();
  if (std::ssize(returns) != spec.eval_episodes) {
    Damaged(source, StrCat("step ", evaluation.step, " has ", returns.size(),
                           " returns instead of ", spec.eval_episodes));
  }
  double sum = 0.0, size = 0.0;
  for (const Json& value : returns) {
    sum += value.get<double>();
    size += std::abs(value.get<double>());
  }
  const double n = spec.eval_episodes;
  if (!(std::abs(sum / n - evaluation.mean_return) <= 1e-9 * (1.0 + size / n))) {
    Damaged(source, StrCat("the mean of step ", evaluation.step, " is not that of its returns"));
  }
  if (json.contains("success_rate")) {
    evaluation.success_rate = FiniteNumber(json, "success_rate", source);
    if (*evaluation.success_rate < 0.0 || *evaluation.success_rate > 1.0) {
      Damaged(source, StrCat("the success rate of step ", evaluation.step, " is no share"));
    }
  }
  return evaluation;
}

void RequireSchedule(const std::vector<Evaluation>& evaluations, const RunSpec& spec,
                     std::string_view source) {
  std::size_t next = 0;
  const auto require = [&](std::int64_t step) {
    // a budget that was made longer leaves an evaluation at its old end
    while (next < evaluations.size() && evaluations[next].step < step) ++next;
    if (next == evaluations.size() || evaluations[next].step != step) {
      Damaged(source, StrCat("the evaluation of step ", step, " is missing"));
    }
  };
  for (std::int64_t step = 0; step < spec.steps; step += spec.eval_every) require(step);
  require(spec.steps);
  if (evaluations.back().step != spec.steps) {
    Damaged(source, StrCat("step ", evaluations.back().step, " is after the end of the budget"));
  }
}

// Folders with a run.json, sorted; runs are not looked into.
std::vector<fs::path> FindRuns(const fs::path& folder, int depth = 0) {
  if (fs::exists(folder / "run.json")) return {folder};
  if (depth == kMaxDepth) return {};
  std::vector<fs::path> below;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) below.push_back(entry.path());
  }
  std::sort(below.begin(), below.end(), [](const fs::path& a, const fs::path& b) {
    const std::string left = a.filename().string(), right = b.filename().string();
    const auto number = [](const std::string& text) {
      return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    };
    // seeds by value
    if (number(left) && number(right) && left.size() != right.size()) {
      return left.size() < right.size();
    }
    return left < right;
  });
  std::vector<fs::path> found;
  for (const fs::path& path : below) {
    const std::vector<fs::path> more = FindRuns(path, depth + 1);
    found.insert(found.end(), more.begin(), more.end());
    if (found.size() > kMaxRuns) throw UserError(StrCat("more than ", kMaxRuns, " runs"));
  }
  return found;
}

RunRecord ReadRun(const fs::path& folder, std::vector<RecordProblem>& notes) {
  RunRecord run;
  // what parse(text, name of the file) says; nothing if there is no file
  const auto read = [&folder](const char* file, std::uintmax_t most, const auto& parse,
                              auto& result) {
    if (!fs::exists(folder / file)) return false;
    result = parse(ReadWholeFile(folder / file, most), (folder / file).string());
    return true;
  };
  read("run.json", kMaxJsonBytes, ParseRunFile, run.facts);
  const RunSpec& spec = run.facts.spec;
  read("status.json", kMaxJsonBytes, ParseStatus, run.status);
  if (run.finished() && run.status.step < spec.steps) {
    // finished before its budget was made longer
    run.status.state = RunState::kInterrupted;
  }
  if (const auto changed = ChangedRecords(folder); !changed.empty()) {
    throw UserError(DescribeChanges(changed));
  }
  const auto parse_evaluations = [&](std::string_view text, std::string_view name) {
    return ParseEvaluations(text, spec, run.finished(), name);
  };
  const bool evaluated = read("evals.jsonl", kMaxLogBytes, parse_evaluations, run.evaluations);
  if (run.finished() && !evaluated) Damaged((folder / "evals.jsonl").string(), "it is missing");
  try {
    read("timing.jsonl", kMaxLogBytes, ParseTiming, run.timing);
    // only a run that took a branch over says how it fits
    if (!spec.init.empty()) {
      read("metrics.jsonl", kMaxLogBytes, ParseTransferFigures, run.transfer);
    }
    const fs::path metrics = folder / "metrics.jsonl";
    run.simulator_steps = ParseSimulatorSteps(FileTail(metrics, 1 << 16), metrics.string());
  } catch (const UserError& error) {
    // no result depends on these
    notes.push_back({folder.string(), error.what()});
  }
  // a process that was killed could not say so
  if (run.status.state == RunState::kRunning && !RunDirectory::HolderOf(folder)) {
    run.status.state = RunState::kInterrupted;
  }
  return run;
}

std::string Relative(const fs::path& path, const fs::path& folder) {
  const std::string text = path.lexically_relative(folder).generic_string();
  return text.empty() ? "." : text;
}

// ENV/METHOD/SEED as far as the folders are called so, ids otherwise.
void NameByFolders(RunRecord& run) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(run.path)) parts.push_back(part.string());
  const RunSpec& spec = run.facts.spec;
  run.env = spec.env;
  run.method = spec.agent;
  if (parts.size() < 2 || parts.back() != std::to_string(spec.seed)) return;
  run.method = parts[parts.size() - 2];
  if (parts.size() >= 3) run.env = parts[parts.size() - 3];
}

// Of an agent that adds to another one, or starts from something, the run alone does not tell.
std::string RoleOf(const AgentEntry& agent, const RunSpec& spec) {
  if (agent.measured) return "reference";
  return agent.over.empty() && spec.init.empty() ? "baseline" : "";
}

void StandInForSweep(const AgentRegistry& agents, RunRecords& records) {
  SweepPlan& sweep = records.sweep;
  const fs::path folder = fs::absolute(records.folder).lexically_normal();
  sweep.name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  std::set<std::string> environments, methods;
  for (const RunRecord& run : records.runs) {
    const RunSpec& spec = run.facts.spec;
    if (environments.insert(run.env).second) {
      sweep.envs.push_back({.name = run.env,
                            .id = spec.env,
                            .family = PaperFamily(run.facts.family),
                            .settings = spec.env_settings});
    }
    if (methods.insert(run.method).second) {
      sweep.methods.push_back({.name = run.method,
                               .title = run.method,
                               .agent = spec.agent,
                               .role = RoleOf(agents.FactsOf(spec.agent), spec)});
    }
  }
}

// A run that is whole, and not a repetition of what it stands beside.
class OtherRun : public UserError {
  using UserError::UserError;
};

// What a listed run says about itself must be what the sweep says about it.
void RequireAsListed(const RunRecord& run, const PlannedRun& listed, const SweepPlan& sweep) {
  const RunSpec& spec = run.facts.spec;
  const auto require = [](std::string_view what, const auto& found, const auto& wanted) {
    if (found == wanted) return;
    throw OtherRun(
        StrCat("its ", what, " is ", found, ", the sweep says ", wanted, "; not the same run"));
  };
  require("seed", spec.seed, listed.seed);
  require("environment", spec.env, sweep.envs[listed.env].id);
  require("budget", spec.steps, sweep.envs[listed.env].steps);
  require("agent", spec.agent, sweep.methods[listed.method].agent);
}

// Reads a run; accept(run) names it. What is damaged or another run than its place says is left
// out.
template <typename Accept>
void Take(RunRecords& records, const fs::path& folder, const Accept& accept) {
  const std::string path = Relative(folder, records.folder);
  const auto leave_out = [&](int& count, const std::string& why) {
    ++count;
    records.problems.push_back({path, why});
  };
  try {
    if (!fs::exists(folder / "run.json")) {
      ++records.counts.missing;
      return;
    }
    RunRecord run = ReadRun(folder, records.problems);
    run.path = path;
    accept(run);
    const RunState state = run.status.state;
    RunCounts& counts = records.counts;
    ++(state == RunState::kFinished  ? counts.finished
       : state == RunState::kRunning ? counts.running
       : state == RunState::kFailed  ? counts.failed
                                     : counts.interrupted);
    records.runs.push_back(std::move(run));
  } catch (const OtherRun& error) {
    leave_out(records.counts.other, error.what());
  } catch (const UserError& error) {
    leave_out(records.counts.damaged, error.what());
  } catch (const fs::filesystem_error& error) {
    leave_out(records.counts.damaged, error.code().message());
  }
}

void ReadListedRuns(RunRecords& records) {
  std::set<std::string> listed_paths;
  for (const PlannedRun& listed : records.sweep.runs) {
    listed_paths.insert(listed.path);
    Take(records, records.folder / listed.path, [&](RunRecord& run) {
      RequireAsListed(run, listed, records.sweep);
      run.env = records.sweep.envs[listed.env].name;
      run.method = records.sweep.methods[listed.method].name;
    });
  }
  for (const fs::path& folder : FindRuns(records.folder)) {
    const std::string path = Relative(folder, records.folder);
    if (!listed_paths.contains(path)) {
      records.problems.push_back({path, "a run that the sweep does not list; left out"});
    }
  }
}

// Runs that nothing but their folders puts together must be repetitions of one thing: the first
// run of a task says with which settings, and so does the first of a method in it.
class Repetitions {
 public:
  void Require(const RunRecord& run) {
    const RunSpec& spec = run.facts.spec;
    const auto first = [&](const std::string& method) -> const First& {
      return firsts_.try_emplace({run.env, method}, First{spec, run.path}).first->second;
    };
    const First& task = first("");
    Require("environment", {spec.env}, {task.spec.env}, task);
    Require("environment", spec.env_settings, task.spec.env_settings, task);
    const First& method = first(run.method);
    Require("agent", {spec.agent}, {method.spec.agent}, method);
    Require("agent", spec.agent_settings, method.spec.agent_settings, method);
    Require("start", StartOf(spec), StartOf(method.spec), method);
    if (!seeds_.insert({run.env, run.method, spec.seed}).second) {
      throw OtherRun(StrCat("another run of ", run.method, " in ", run.env, " with seed ",
                            spec.seed, "; the first one is used"));
    }
  }

 private:
  struct First {
    RunSpec spec;
    std::string path;
  };
  using Texts = std::vector<std::string>;

  static Texts StartOf(const RunSpec& spec) {
    return {spec.init.empty() ? "nothing pretrained" : "something pretrained",
            spec.library.empty() ? "no library" : "a library"};
  }
  // Names what one has and the other does not.
  static void Require(std::string_view what, const Texts& found, const Texts& wanted,
                      const First& first) {
    const auto only = [](const Texts& in, const Texts& not_in) {
      constexpr std::size_t kShown = 3;
      std::string text;
      std::size_t count = 0;
      for (const std::string& entry : in) {
        if (std::ranges::find(not_in, entry) != not_in.end()) continue;
        if (++count <= kShown) text += StrCat(text.empty() ? "" : ", ", entry);
      }
      if (count > kShown) text += StrCat(" and ", count - kShown, " more");
      return text.empty() ? std::string("no more") : text;
    };
    if (found == wanted) return;
    throw OtherRun(StrCat("other settings than ", first.path, ", which counts as the same method ",
                          "in the same task: ", what, " with ", only(found, wanted),
                          ", there with ", only(wanted, found), "; left out"));
  }

  std::map<std::pair<std::string, std::string>, First> firsts_;  // method "": of the task
  std::set<std::tuple<std::string, std::string, std::uint64_t>> seeds_;
};

void ReadFoundRuns(RunRecords& records) {
  const std::vector<fs::path> found = FindRuns(records.folder);
  Repetitions repetitions;
  for (const fs::path& folder : found) {
    Take(records, folder, [&](RunRecord& run) {
      NameByFolders(run);
      repetitions.Require(run);
    });
  }
  if (found.empty()) {
    throw UserError(StrCat("no run below ", records.folder.string(),
                           "; the commands sweep and train make some"));
  }
}

// What went wrong in the runs themselves, one line each.
void NoteUnfinished(RunRecords& records) {
  for (const RunRecord& run : records.runs) {
    const RunStatus& status = run.status;
    std::string what;
    if (status.state == RunState::kFailed) {
      what = StrCat("failed: ", status.message.empty() ? "no message" : status.message);
    } else if (status.state == RunState::kInterrupted) {
      what = StrCat("stopped at step ", status.step, " of ", run.facts.spec.steps,
                    "; the command resume goes on");
    }
    if (!what.empty()) records.problems.push_back({run.path, what});
  }
}

void ReadInits(RunRecords& records) {
  std::set<std::string> tried;
  for (const RunRecord& run : records.runs) {
    const std::string& hash = run.facts.spec.init;
    if (hash.empty() || !tried.insert(hash).second) continue;
    try {
      const Artefact init = RunDirectory::OpenForReading(records.folder / run.path).ReadInit();
      records.inits[hash] = init.header();
      records.init_parameters[hash] = init.parameter_count();
    } catch (const UserError& error) {
      records.problems.push_back({run.path, error.what()});
    }
  }
}

void ReadBranches(RunRecords& records) {
  const fs::path folder = records.folder / "source";
  if (!fs::is_directory(folder)) return;
  std::set<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) files.insert(entry.path());
  }
  for (const fs::path& file : files) {
    // <branch>-<seed>.json
    const std::string stem = file.stem().string();
    const std::size_t dash = stem.rfind('-');
    if (dash == std::string::npos || !ParseNumber<std::uint64_t>(stem.substr(dash + 1))) continue;
    try {
      BranchRecord record = ParseBranchRecord(ReadWholeFile(file, kMaxJsonBytes), file.string());
      record.branch = stem.substr(0, dash);
      if (records.branches.empty() || records.branches.back().branch != record.branch) {
        records.branches.push_back(std::move(record));
        continue;
      }
      BranchRecord& sum = records.branches.back();
      ++sum.seeds;
      for (const auto& [key, figure] : record.figures) sum.figures[key] += figure;
    } catch (const UserError& problem) {
      records.problems.push_back({Relative(file, records.folder), problem.what()});
    }
  }
  for (BranchRecord& branch : records.branches) {
    for (auto& [key, figure] : branch.figures) figure /= branch.seeds;
  }
}

std::string ReadRows(const fs::path& file, std::vector<RecordProblem>& problems) {
  if (!fs::exists(file)) return {};
  try {
    std::string text = ReadWholeFile(file, kMaxJsonBytes);
    Strictly<Json>(file.string(), [&] {
      const auto json = ParseJson<Json>(text, file.string());
      return json.at("rows").get_ref<const Json::array_t&>().size();
    });
    return text;
  } catch (const UserError& error) {
    problems.push_back({file.filename().string(), error.what()});
    return {};
  }
}

}  // namespace

std::optional<double> BranchRecord::Figure(const std::string& key) const {
  const auto found = figures.find(key);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

RunFacts ParseRunFile(std::string_view text, std::string_view source) {
  RunFacts facts;
  facts.spec = RunSpecFromJson(text, source);
  return Strictly<Json>(source, [&] {
    const auto json = ParseJson<Json>(text, source);
    const Json& env = json.at("env").at("spec");
    facts.family = env.at("family").get<std::string>();
    const auto measured = [&](const char* key) -> std::optional<double> {
      const Json& value = env.at(key);
      if (value.is_null()) return std::nullopt;
      return FiniteNumber(value, "value", source);
    };
    facts.random_return = measured("random_return");
    facts.reference_return = measured("reference_return");
    facts.parameters = WholeNumber(json.at("agent"), "parameters", source);
    facts.code = CodeFromJson(text, source);
    return facts;
  });
}

RunStatus ParseStatus(std::string_view text, std::string_view source) {
  return Strictly<Json>(source, [&] {
    const auto json = ParseJson<Json>(text, source);
    RunStatus status;
    const std::string state = json.at("state").get<std::string>();
    constexpr RunState kKnown[] = {RunState::kRunning, RunState::kFinished, RunState::kInterrupted,
                                   RunState::kFailed};
    const auto* const found = std::ranges::find(kKnown, state, StateName);
    if (found == std::end(kKnown)) Damaged(source, StrCat("unknown state '", state, "'"));
    status.state = *found;
    status.step = StepNumber(json, source);
    status.message = json.value("message", "");
    return status;
  });
}

std::vector<Evaluation> ParseEvaluations(std::string_view text, const RunSpec& spec, bool finished,
                                         std::string_view source) {
  return Strictly<Json>(source, [&] {
    std::vector<Evaluation> evaluations;
    ForEachLine(text, !finished, source, [&](std::string_view line) {
      const Evaluation evaluation = ParseEvaluation(line, spec, source);
      const std::int64_t before = evaluations.empty() ? -1 : evaluations.back().step;
      if (evaluation.step <= before) {
        Damaged(source, StrCat("step ", evaluation.step, " follows step ", before));
      }
      if (evaluations.empty() && evaluation.step != 0) {
        Damaged(source, StrCat("it begins at step ", evaluation.step));
      }
      evaluations.push_back(evaluation);
    });
    if (finished) RequireSchedule(evaluations, spec, source);
    return evaluations;
  });
}

RunTiming ParseTiming(std::string_view text, std::string_view source) {
  return Strictly<Json>(source, [&] {
    RunTiming timing;
    std::int64_t first = 0, steps = 0;
    std::string_view speed;  // the last of the present process
    const auto close = [&] {
      if (speed.empty()) return;
      const auto json = ParseJson<Json>(speed, source);
      timing.seconds += FiniteNumber(json, "seconds", source);
      steps += StepNumber(json, source) - first;
      if (!(timing.seconds >= 0.0 && std::isfinite(timing.seconds))) Damaged(source, "bad seconds");
      speed = {};
    };
    ForEachLine(text, /*half_line_allowed=*/true, source, [&](std::string_view line) {
      if (line.find("\"event\":\"start\"") == std::string_view::npos) {
        speed = line;
        return;
      }
      close();
      const auto json = ParseJson<Json>(line, source);
      first = StepNumber(json, source);
      timing.host = json.at("host").get<std::string>();
    });
    close();
    if (timing.seconds > 0.0) timing.steps_per_second = static_cast<double>(steps) / timing.seconds;
    return timing;
  });
}

namespace {

// The whole line that has this place; empty if there is none, or if its end is still to come.
std::string_view LineAt(std::string_view text, std::size_t place) {
  if (place == std::string_view::npos) return {};
  const std::size_t begin = text.rfind('\n', place) + 1;  // npos + 1 is 0
  const std::size_t end = text.find('\n', place);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin);
}

}  // namespace

std::optional<TransferFigures> ParseTransferFigures(std::string_view text,
                                                    std::string_view source) {
  const std::string_view line = LineAt(text, text.find("\"transfer/predictor\":"));
  if (line.empty()) return std::nullopt;
  return Strictly<Json>(source, [&] {
    const auto json = ParseJson<Json>(line, source);
    TransferFigures figures;
    figures.predictor = FiniteNumber(json, "transfer/predictor", source);
    if (json.contains("transfer/amplitude")) {
      figures.amplitude = FiniteNumber(json, "transfer/amplitude", source);
    }
    return std::optional(figures);
  });
}

std::int64_t ParseSimulatorSteps(std::string_view text, std::string_view source) {
  text = text.substr(0, text.rfind('\n') + 1);  // without what is being written; npos + 1 is 0
  const std::string_view line = LineAt(text, text.rfind("\"train/simulator_steps\":"));
  if (line.empty()) return 0;
  return Strictly<Json>(source, [&] {
    const double steps =
        FiniteNumber(ParseJson<Json>(line, source), "train/simulator_steps", source);
    if (steps < 0.0 || steps > 1e15) Damaged(source, "train/simulator_steps is no count");
    return static_cast<std::int64_t>(steps);
  });
}

BranchRecord ParseBranchRecord(std::string_view text, std::string_view source) {
  return Strictly<Json>(source, [&] {
    const auto json = ParseJson<Json>(text, source);
    BranchRecord record;
    record.dataset = json.at("dataset").get<std::string>();
    record.updates = WholeNumber(json.at("config"), "updates", source);
    const auto& rows = json.at("rows").get_ref<const Json::array_t&>();
    if (rows.empty()) Damaged(source, "it has no rows");
    const Json& row = rows.back();  // mixed, or the only one
    for (const auto& [key, value] : row.get_ref<const Json::object_t&>()) {
      if (value.is_number()) record.figures[key] = FiniteNumber(row, key, source);
    }
    return record;
  });
}

RunRecords ReadRunRecords(const fs::path& folder, const AgentRegistry& agents) {
  if (!fs::is_directory(folder)) {
    throw UserError(StrCat(folder.string(), " is not a folder; name one with runs below it"));
  }
  RunRecords records;
  records.folder = folder;
  try {
    const SweepDirectory directory(folder);
    records.has_sweep = directory.HasPlan();
    if (records.has_sweep) {
      records.sweep = directory.ReadPlan();
      ReadListedRuns(records);
    } else {
      ReadFoundRuns(records);
      StandInForSweep(agents, records);
    }
    NoteUnfinished(records);
    ReadInits(records);
    ReadBranches(records);
  } catch (const fs::filesystem_error& error) {
    throw UserError(StrCat("cannot read ", folder.string(), ": ", error.code().message()));
  }
  records.pretrain_json = ReadRows(folder / "pretrain.json", records.problems);
  records.diagnose_json = ReadRows(folder / "diagnose.json", records.problems);
  return records;
}

}  // namespace msrl::report
