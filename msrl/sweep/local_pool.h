// Carries a sweep out on this machine: a process for every task, so many at a time.
#ifndef MSRL_SWEEP_LOCAL_POOL_H_
#define MSRL_SWEEP_LOCAL_POOL_H_

#include <functional>
#include <string>
#include <vector>

#include "msrl/sweep/ledger.h"

namespace msrl {

// Exit codes of `msrl task` that are no failures.
inline constexpr int kTaskInterrupted = 75;
inline constexpr int kTaskLeased = 73;
// No space on the disk: the others would end the same way.
inline constexpr int kTaskNoSpace = 7;

enum class SweepOutcome {
  kFinished,     // everything that was wanted is there
  kFailures,     // something failed or waits for what failed
  kInterrupted,  // asked to stop; the same command goes on
};

struct PoolOptions {
  // What carries out a task (RunTask), e.g. {"msrl", "task"}; options, directory and task follow.
  std::vector<std::string> worker;
  int jobs = 1;
  double checkpoint_seconds = 60.0;
  bool any_version = false;
  bool fail_fast = false;
  std::function<bool()> stop = [] { return false; };
  std::function<void(const Ledger&)> show = [](const Ledger&) {};  // a few times per second
  std::function<void(const std::string&)> say = [](const std::string&) {
  };  // what happens, in lines

  // The worker with its options; directory and task follow.
  std::vector<std::string> WorkerCommand() const;
};

// A process for each task, made by options.worker. They stop with a checkpoint if this process ends
// in whatever way. A worker that is killed is started again, a few times if it comes no further.
SweepOutcome RunLocally(Ledger& ledger, const PoolOptions& options);

// What is to be said at the end of a sweep.
SweepOutcome OutcomeOf(const Ledger& ledger);

}  // namespace msrl

#endif  // MSRL_SWEEP_LOCAL_POOL_H_
