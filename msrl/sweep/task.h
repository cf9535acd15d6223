// Carries out one task of a sweep, in the process that calls it.
#ifndef MSRL_SWEEP_TASK_H_
#define MSRL_SWEEP_TASK_H_

#include <functional>
#include <string>
#include <string_view>

#include "msrl/sweep/sweep_directory.h"

namespace msrl {

struct TaskOptions {
  double checkpoint_seconds = 60.0;
  bool any_version = false;
  std::function<bool()> stop = [] { return false; };
  std::function<void(const std::string&)> say = [](const std::string&) {};  // lines for the log
};

enum class TaskOutcome { kDone, kInterrupted };

// Makes the file or goes on with the run that `path` names; kDone at once if it is there already.
// Data and branches are made whole or not at all, always with the same contents. LeaseError if
// another process is at it. Any other exception is recorded as the task's failure and passed on.
TaskOutcome RunTask(const SweepDirectory& directory, std::string_view path,
                    const Registries& registries, const TaskOptions& options);

}  // namespace msrl

#endif  // MSRL_SWEEP_TASK_H_
