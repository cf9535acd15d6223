// What a run's directory says about it, for those that look on from outside.
#ifndef MSRL_SWEEP_RUN_STATE_H_
#define MSRL_SWEEP_RUN_STATE_H_

#include <cstdint>
#include <filesystem>
#include <ios>
#include <optional>
#include <string>

#include "msrl/run/lease.h"
#include "msrl/run/run_spec.h"

namespace msrl {

enum class RunState {
  kAbsent,       // nothing there yet
  kRunning,      // a process holds its lock
  kFinished,     //
  kInterrupted,  // stopped with a checkpoint
  kKilled,       // was running, and nobody holds its lock
  kFailed,       // ended by an error
  kDamaged,      // its run.json cannot be read
};

std::string_view StateName(RunState state);

struct RunRecord {
  RunState state = RunState::kAbsent;
  std::int64_t step = 0;  // as far as is known
  std::int64_t steps = 0;
  double steps_per_second = 0.0;  // as last measured; 0: never
  std::optional<LeaseHolder> holder;
  std::string message;           // of a failure or damage
  std::vector<CodeRecord> code;  // that made it
  std::optional<RunSpec> spec;
};

// The end of a file that grows, so that looking costs the same however long it is.
std::string FileTail(const std::filesystem::path& file, std::streamoff most);

// Never an error: what cannot be read is a state of its own.
RunRecord ReadRunRecord(const std::filesystem::path& run);

// The mean return of its last evaluation, if it has one.
std::optional<double> LastReturn(const std::filesystem::path& run);

// The first setting in which two resolved specs differ, "steps is 10, not 20"; empty if none does.
// `init` is not looked at.
std::string FirstDifference(const RunSpec& found, const RunSpec& wanted);

}  // namespace msrl

#endif  // MSRL_SWEEP_RUN_STATE_H_
