#include "msrl/sweep/ledger.h"

#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/run/manifest.h"

namespace msrl {
namespace {
using State = TaskEntry::State;

// Figures of a finished run count only if they are those that it wrote.
void NoteChanges(const std::filesystem::path& run, RunRecord& record) {
  if (record.state != RunState::kFinished) return;
  try {
    const std::vector<std::string> changed = ChangedRecords(run);
    if (changed.empty()) return;
    record.message =
        StrCat(DescribeChanges(changed), ": restore them, or remove the run to make it again");
  } catch (const UserError& problem) {
    record.message = problem.what();
  }
  record.state = RunState::kDamaged;
}

}  // namespace

SweepSelection SweepSelection::Parse(std::string_view text, const SweepPlan& plan) {
  SweepSelection selection;
  if (text.empty()) return selection;
  std::map<std::string_view, std::vector<std::string>> known;
  for (const SweepEnv& env : plan.envs) known["env"].push_back(env.name);
  for (const SweepMethod& method : plan.methods) known["method"].push_back(method.name);
  for (const std::uint64_t seed : plan.seeds) known["seed"].push_back(std::to_string(seed));
  for (const std::string_view part : SplitAt(text, ',')) {
    const auto [key, name] = SplitOnce(part, '=');
    const auto found = known.find(key);
    if (found == known.end()) {
      throw UserError(StrCat("--only '", part, "' is not env=NAME, method=NAME or seed=NUMBER"));
    }
    if (std::ranges::find(found->second, name) == found->second.end()) {
      throw UserError(StrCat("--only: the sweep has no ", key == "env" ? "environment" : key, " '",
                             name, "'", DidYouMean(name, found->second)));
    }
    selection.names[std::string(key)].emplace(name);
  }
  return selection;
}

bool SweepSelection::Has(const SweepPlan& plan, const PlannedRun& run) const {
  const auto listed = [this](const char* key, const std::string& name) {
    const auto found = names.find(key);
    return found == names.end() || found->second.contains(name);
  };
  return listed("env", plan.envs[run.env].name) &&
         listed("method", plan.methods[run.method].name) &&
         listed("seed", std::to_string(run.seed));
}

Ledger::Ledger(SweepDirectory directory, SweepPlan plan, const SweepSelection& selection)
    : directory_(std::move(directory)), plan_(std::move(plan)) {
  for (SweepTask& task : TasksOf(plan_)) {
    TaskEntry entry;
    entry.task = std::move(task);
    entry.wanted = entry.task.is_run() && selection.Has(plan_, plan_.runs[entry.task.item]);
    entries_.push_back(std::move(entry));
  }
  for (TaskEntry& entry : entries_) Read(entry);
  // what is needed comes before: backwards, one pass is enough
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (!entry->wanted || entry->state == State::kDone) continue;
    for (const std::size_t need : entry->task.needs) entries_[need].wanted = true;
  }
}

void Ledger::Read(TaskEntry& entry) const {
  const std::string& path = entry.task.path;
  entry.state = State::kWaiting;
  entry.message.clear();
  if (!entry.task.is_run()) {
    std::error_code error;
    if (std::filesystem::exists(directory_.File(path), error)) {
      entry.state = State::kDone;
      return;
    }
  } else {
    entry.record = ReadRunRecord(directory_.File(path));
    NoteChanges(directory_.File(path), entry.record);
    const RunState state = entry.record.state;
    if (state == RunState::kFailed || state == RunState::kDamaged) {
      entry.state = State::kFailed;
      entry.message = entry.record.message;
    }
    if (state == RunState::kFinished) entry.state = State::kDone;
    if (state == RunState::kRunning) entry.state = State::kElsewhere;
    if (entry.state != State::kWaiting) return;
  }
  if (const auto failure = directory_.FailureOf(path)) {
    entry.state = State::kFailed;
    entry.message = *failure;
  }
}

void Ledger::ReadProgress(TaskEntry& entry) const {
  if (entry.task.is_run()) entry.record = ReadRunRecord(directory_.File(entry.task.path));
}

void Ledger::Retry() {
  for (TaskEntry& entry : entries_) {
    if (entry.state != State::kFailed || !entry.wanted) continue;
    if (entry.record.state == RunState::kDamaged) continue;
    directory_.ForgetFailure(entry.task.path);
    entry.state = State::kWaiting;
    entry.message.clear();
  }
}

bool Ledger::Ready(const TaskEntry& entry) const {
  const auto there = [this](std::size_t need) { return entries_[need].state == State::kDone; };
  return entry.wanted && entry.state == State::kWaiting &&
         std::ranges::all_of(entry.task.needs, there);
}

const TaskEntry* Ledger::BlockedBy(const TaskEntry& entry) const {
  if (entry.state != State::kWaiting) return nullptr;
  for (const std::size_t need : entry.task.needs) {
    if (entries_[need].state == State::kFailed) return &entries_[need];
    if (const TaskEntry* deeper = BlockedBy(entries_[need])) return deeper;
  }
  return nullptr;
}

TaskCounts Ledger::Count(bool runs) const {
  TaskCounts counts;
  for (const TaskEntry& entry : entries_) {
    if (!entry.wanted || entry.task.is_run() != runs) continue;
    const State state = entry.state;
    ++(state == State::kDone      ? counts.done
       : state == State::kFailed  ? counts.failed
       : state == State::kWaiting ? counts.waiting
                                  : counts.running);
  }
  return counts;
}

bool Ledger::Open(const TaskEntry& entry) const {
  return entry.wanted && entry.state != State::kDone && entry.state != State::kFailed &&
         BlockedBy(entry) == nullptr;
}

bool Ledger::Ended() const {
  return std::ranges::none_of(entries_, [this](const TaskEntry& entry) { return Open(entry); });
}

std::optional<double> Ledger::SecondsLeft(int processes) const {
  // seconds per step: of the same environment and method, of the environment, of all
  struct Mean {
    double sum = 0.0;
    int count = 0;
    void Add(double value) { sum += value, ++count; }
  };
  std::map<std::pair<std::size_t, std::size_t>, Mean> pairs;
  std::map<std::size_t, Mean> envs;
  Mean all;
  for (const TaskEntry& entry : entries_) {
    if (!entry.task.is_run() || entry.record.steps_per_second <= 0.0) continue;
    const PlannedRun& run = plan_.runs[entry.task.item];
    const double seconds = 1.0 / entry.record.steps_per_second;
    pairs[{run.env, run.method}].Add(seconds);
    envs[run.env].Add(seconds);
    all.Add(seconds);
  }
  if (all.count == 0) return std::nullopt;
  double work = 0.0;
  double longest = 0.0;
  for (const TaskEntry& entry : entries_) {
    if (!entry.task.is_run() || !Open(entry)) continue;
    const PlannedRun& run = plan_.runs[entry.task.item];
    Mean mean = pairs[{run.env, run.method}];
    if (mean.count == 0) mean = envs[run.env];
    if (mean.count == 0) mean = all;
    const auto steps = static_cast<double>(plan_.envs[run.env].steps - entry.record.step);
    const double seconds = std::max(0.0, steps) * mean.sum / mean.count;
    work += seconds;
    longest = std::max(longest, seconds);
  }
  return std::max(longest, work / std::max(1, processes));
}

}  // namespace msrl
