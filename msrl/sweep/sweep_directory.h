// A sweep on disk (docs/sweeps.md lists the files). Run directories are the truth about runs; the
// only thing that is kept beside them is why a task failed before it had a run directory.
#ifndef MSRL_SWEEP_SWEEP_DIRECTORY_H_
#define MSRL_SWEEP_SWEEP_DIRECTORY_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "msrl/run/lease.h"
#include "msrl/sweep/plan.h"
#include "msrl/sweep/run_state.h"

namespace msrl {

class SweepDirectory {
 public:
  explicit SweepDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path File(std::string_view relative) const { return path_ / relative; }
  // A folder of the sweep, made if need be; UserError if it would be reached through a link.
  Folder Make(const std::filesystem::path& relative) const { return Folder(path_).Make(relative); }

  bool HasPlan() const;
  // sweep.json; UserError if there is none or it is damaged.
  SweepPlan ReadPlan() const;

  // Where a task's process writes what it has to say.
  std::filesystem::path LogOf(std::string_view task) const;
  std::string LastLogLine(std::string_view task) const;

  // Why a task failed the last time it was tried; empty if it did not. A missing record is not
  // missed: a full disk may be the reason for it.
  std::optional<std::string> FailureOf(std::string_view task) const;
  void RecordFailure(std::string_view task, const std::string& message) const;
  void ForgetFailure(std::string_view task) const;

  // Who drives the sweep now; empty if nobody does.
  std::optional<LeaseHolder> Driver() const;

 private:
  std::filesystem::path FailureFile(std::string_view task) const;

  std::filesystem::path path_;
};

struct PrepareOptions {
  bool any_version = false;  // go on with runs that other code began
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

// UserError unless the plan can be carried out in the directory without overwriting anything: it
// is new, empty, or holds this sweep or a smaller one, and every run in it is what the plan says.
// Changes nothing on disk. Sets the identity of runs that are there to that of the code that made
// them.
void RequireFits(const SweepDirectory& directory, SweepPlan& plan, const Registries& registries,
                 const PrepareOptions& options);

// Makes the directory, takes it for this process and writes sweep.json and the libraries.
// LeaseError if another process drives a sweep there.
Lease TakeDirectory(const SweepDirectory& directory, const SweepPlan& plan);

// UserError unless a run that is there is the planned one: same settings, same initialisation.
void RequirePlanned(const SweepDirectory& directory, const PlannedRun& run, const RunRecord& record,
                    const RunSpec& wanted);
// Whether the code that made the run is this code.
bool SameCode(const RunRecord& record);

// Without blanks and line ends after it.
std::string LastLine(std::string text);

}  // namespace msrl

#endif  // MSRL_SWEEP_SWEEP_DIRECTORY_H_
