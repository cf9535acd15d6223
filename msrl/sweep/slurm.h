// Carries a sweep out on a Slurm cluster: job arrays, one task of the array per task of the sweep.
//
// The run directories decide what is done. Slurm is asked (squeue --json) only what is still in its
// queue; what it has lost is submitted again, and what it repeats finds its work done.
#ifndef MSRL_SWEEP_SLURM_H_
#define MSRL_SWEEP_SLURM_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/sweep/local_pool.h"

namespace msrl {

struct SlurmOptions {
  PoolOptions pool;                         // jobs: most tasks at a time, 0: as many as Slurm likes
  std::vector<std::string> sbatch_options;  // passed through, e.g. "--partition=long"
};

// UserError that says what to do, unless sbatch, squeue, scontrol and scancel are on the PATH.
void RequireSlurm();

// Submits, watches, and submits again until everything wanted is there. If asked to stop, what is
// queued stays so; the same command takes it up.
SweepOutcome RunOnSlurm(Ledger& ledger, const SlurmOptions& options);

// Ids of the jobs that were submitted for this sweep, for the user to cancel.
std::vector<std::string> SubmittedJobs(const SweepDirectory& directory);

// By job name: the array indices that wait and those that run, of jobs whose name begins so. `text`
// is what `squeue --json` prints. UserError if it can't be understood.
struct QueuedIndices {
  std::vector<int> waiting;
  std::vector<int> running;
};
std::map<std::string, QueuedIndices> ParseQueue(std::string_view text, std::string_view prefix);

// "0-3,7,10-90:10%2" as Slurm writes the indices of an array. UserError on anything else.
std::vector<int> ParseArrayIndices(std::string_view text);

}  // namespace msrl

#endif  // MSRL_SWEEP_SLURM_H_
