// What is done, under way and left of a sweep, read from its directory.
#ifndef MSRL_SWEEP_LEDGER_H_
#define MSRL_SWEEP_LEDGER_H_

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msrl/sweep/sweep_directory.h"

namespace msrl {

// Which runs are wanted: all whose environment, method and seed are named. Where none is, all are.
struct SweepSelection {
  std::map<std::string, std::set<std::string>> names;  // by "env", "method" and "seed"

  // From "env=reacher,method=msrl,method=sac,seed=100". UserError on unknown names.
  static SweepSelection Parse(std::string_view text, const SweepPlan& plan);
  bool Has(const SweepPlan& plan, const PlannedRun& run) const;
};

struct TaskEntry {
  enum class State {
    kWaiting,    // can begin, or waits for what it needs
    kRunning,    // a process of this sweep is at it, or a job of it is queued
    kElsewhere,  // a process that this sweep did not start is at it
    kDone,
    kFailed,
  };
  SweepTask task;
  bool wanted = true;
  State state = State::kWaiting;
  std::string message;  // of a failure
  RunRecord record;     // of a run
  // of this process alone
  std::chrono::steady_clock::time_point started;
  std::chrono::steady_clock::time_point not_before;
  int deaths = 0;  // in a row without a step further
  std::int64_t step_at_death = -1;
};

struct TaskCounts {
  int done = 0, running = 0, failed = 0, waiting = 0;
  int total() const { return done + running + failed + waiting; }
};

class Ledger {
 public:
  Ledger(SweepDirectory directory, SweepPlan plan, const SweepSelection& selection = {});

  const SweepDirectory& directory() const { return directory_; }
  const SweepPlan& plan() const { return plan_; }
  std::vector<TaskEntry>& entries() { return entries_; }
  const std::vector<TaskEntry>& entries() const { return entries_; }

  // Reads anew what the disk says of a task that no process of ours is at.
  void Read(TaskEntry& entry) const;
  // Only how far a run has come.
  void ReadProgress(TaskEntry& entry) const;
  // Failed ones wait again.
  void Retry();

  // Wanted, waiting, and everything that it needs is there.
  bool Ready(const TaskEntry& entry) const;
  // The failed task that it waits for in vain, directly or not.
  const TaskEntry* BlockedBy(const TaskEntry& entry) const;

  // Of what is wanted: runs alone, or data and branches alone.
  TaskCounts Runs() const { return Count(true); }
  TaskCounts Preparations() const { return Count(false); }
  // Wanted, and neither there nor failed nor waiting in vain.
  bool Open(const TaskEntry& entry) const;
  // Nothing is open.
  bool Ended() const;
  // Seconds that are left with so many processes, from measured speeds; empty if none is known.
  std::optional<double> SecondsLeft(int processes) const;

 private:
  TaskCounts Count(bool runs) const;

  SweepDirectory directory_;
  SweepPlan plan_;
  std::vector<TaskEntry> entries_;
};

}  // namespace msrl

#endif  // MSRL_SWEEP_LEDGER_H_
