#include "msrl/sweep/ledger.h"

#include <algorithm>
#include <map>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"

namespace msrl {
namespace {

using State = TaskEntry::State;

bool Listed(const std::vector<std::string>& list, const std::string& name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

SweepSelection SweepSelection::Parse(std::string_view text, const SweepPlan& plan) {
  SweepSelection selection;
  if (text.empty()) return selection;
  std::vector<std::string> envs, methods, seeds;
  for (const SweepEnv& env : plan.envs) envs.push_back(env.name);
  for (const SweepMethod& method : plan.methods) methods.push_back(method.name);
  for (const std::uint64_t seed : plan.seeds) seeds.push_back(std::to_string(seed));
  const auto add = [](std::vector<std::string>& list, const std::string& name,
                      std::string_view kind, const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UserError(
          StrCat("--only: the sweep has no ", kind, " '", name, "'", DidYouMean(name, known)));
    }
    list.push_back(name);
  };
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string name(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (key == "env") {
      add(selection.envs, name, "environment", envs);
    } else if (key == "method") {
      add(selection.methods, name, "method", methods);
    } else if (key == "seed") {
      add(selection.seeds, name, "seed", seeds);
    } else {
      throw UserError(StrCat("--only '", part, "' is not env=NAME, method=NAME or seed=NUMBER"));
    }
  }
  return selection;
}

bool SweepSelection::Has(const SweepPlan& plan, const PlannedRun& run) const {
  return Listed(envs, plan.envs[run.env].name) && Listed(methods, plan.methods[run.method].name) &&
         Listed(seeds, std::to_string(run.seed));
}

Ledger::Ledger(SweepDirectory directory, SweepPlan plan, const SweepSelection& selection)
    : directory_(std::move(directory)), plan_(std::move(plan)) {
  for (SweepTask& task : TasksOf(plan_)) {
    TaskEntry entry;
    entry.task = std::move(task);
    entry.wanted = entry.task.kind == SweepTask::Kind::kRun &&
                   selection.Has(plan_, plan_.runs[entry.task.item]);
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
  if (entry.task.kind != SweepTask::Kind::kRun) {
    std::error_code error;
    if (std::filesystem::exists(directory_.File(path), error)) {
      entry.state = State::kDone;
      return;
    }
  } else {
    entry.record = ReadRunRecord(directory_.File(path));
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
  if (entry.task.kind != SweepTask::Kind::kRun) return;
  entry.record = ReadRunRecord(directory_.File(entry.task.path));
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
  return entry.wanted && entry.state == State::kWaiting &&
         std::all_of(entry.task.needs.begin(), entry.task.needs.end(),
                     [this](std::size_t need) { return entries_[need].state == State::kDone; });
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
    if (!entry.wanted || (entry.task.kind == SweepTask::Kind::kRun) != runs) continue;
    const State state = entry.state;
    ++(state == State::kDone      ? counts.done
       : state == State::kFailed  ? counts.failed
       : state == State::kWaiting ? counts.waiting
                                  : counts.running);
  }
  return counts;
}

bool Ledger::Ended() const {
  return std::all_of(entries_.begin(), entries_.end(), [this](const TaskEntry& entry) {
    if (!entry.wanted || entry.state == State::kDone || entry.state == State::kFailed) return true;
    return entry.state == State::kWaiting && BlockedBy(entry) != nullptr;
  });
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
    if (entry.task.kind != SweepTask::Kind::kRun || entry.record.steps_per_second <= 0.0) continue;
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
    const bool open = entry.state == State::kWaiting || entry.state == State::kRunning ||
                      entry.state == State::kElsewhere;
    if (!entry.wanted || !open || entry.task.kind != SweepTask::Kind::kRun) continue;
    if (BlockedBy(entry) != nullptr) continue;
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
