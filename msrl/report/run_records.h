// What is on disk below a folder of runs, read for a report. Nothing is written: runs may be
// going on meanwhile.
//
// A record that is damaged is named in `problems` and left out; the others are used.
#ifndef MSRL_REPORT_RUN_RECORDS_H_
#define MSRL_REPORT_RUN_RECORDS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/run/run_spec.h"
#include "msrl/sweep/plan.h"
#include "msrl/sweep/run_state.h"

namespace msrl::report {

struct Evaluation {
  std::int64_t step = 0;
  double mean_return = 0.0;
  std::optional<double> success_rate = {};
};

// Running, finished, interrupted (killed counts as such) or failed.
struct RunStatus {
  RunState state = RunState::kRunning;
  std::int64_t step = 0;
  std::string message = {};  // why it failed
};

// run.json: the spec and what was known about environment and agent when the run was made.
struct RunFacts {
  RunSpec spec;
  std::string family = {};
  std::optional<double> random_return = {}, reference_return = {};
  std::int64_t parameters = 0;
  std::vector<CodeRecord> code = {};  // that made it
};

struct RunTiming {
  double seconds = 0.0;  // of all its processes, as far as they logged it
  double steps_per_second = 0.0;
  std::string host = {};  // of the last process
};

// How much a branch that was taken over has to do with the task (docs/transfer.md).
struct TransferFigures {
  double predictor = 0.0;
  std::optional<double> amplitude = {};
};

struct RunRecord {
  std::string path = {};  // below the folder; "." if the folder is the run
  std::string env = {};   // names in the sweep
  std::string method = {};
  RunFacts facts;
  RunStatus status;
  std::vector<Evaluation> evaluations = {};
  RunTiming timing;
  std::optional<TransferFigures> transfer = {};
  std::int64_t simulator_steps = 0;  // tries beside the budget

  bool finished() const { return status.state == RunState::kFinished; }
};

// What `msrl pretrain --json` printed for the files of one branch: means over seeds.
struct BranchRecord {
  std::string branch = {};  // name without the seed
  int seeds = 1;
  std::string dataset = {};
  std::int64_t updates = 0;
  std::map<std::string, double> figures = {};  // whatever numbers the record has

  std::optional<double> Figure(const std::string& key) const;
};

struct RecordProblem {
  std::string path = {};
  std::string what = {};
};

struct RunCounts {
  int finished = 0, running = 0, failed = 0, interrupted = 0, missing = 0, damaged = 0;
  int other = 0;  // whole, but with other settings than its place says
};

struct RunRecords {
  std::filesystem::path folder = {};
  bool has_sweep = false;
  // sweep.json, or what stands in for it: environments and methods as the folders are called.
  SweepPlan sweep;
  std::vector<RunRecord> runs = {};  // in the order of the sweep
  std::vector<BranchRecord> branches = {};
  // What the runs started from, by the hash in their spec.
  std::map<std::string, ArtefactHeader> inits = {};
  std::map<std::string, std::int64_t> init_parameters = {};
  std::string pretrain_json = {}, diagnose_json = {};  // whole JSON objects, or empty
  RunCounts counts;
  std::vector<RecordProblem> problems = {};
};

// UserError if the folder or its sweep.json cannot be read, or if there is no run below it.
// Without a sweep.json the agents say what part their runs play.
RunRecords ReadRunRecords(const std::filesystem::path& folder, const AgentRegistry& agents);

// The readers of single files. UserError that names `source` on anything that is not whole.
RunFacts ParseRunFile(std::string_view text, std::string_view source);
RunStatus ParseStatus(std::string_view text, std::string_view source);
// Steps increase from 0. Where `finished`, evaluations must be complete: every multiple of
// eval_every and the end of the budget. Otherwise half a line at the end is ignored.
std::vector<Evaluation> ParseEvaluations(std::string_view text, const RunSpec& spec, bool finished,
                                         std::string_view source);
RunTiming ParseTiming(std::string_view text, std::string_view source);
// The line of metrics.jsonl that has them; the other lines are not looked at.
std::optional<TransferFigures> ParseTransferFigures(std::string_view text, std::string_view source);
// The last count in the end of metrics.jsonl; 0 if there is none.
std::int64_t ParseSimulatorSteps(std::string_view text, std::string_view source);
BranchRecord ParseBranchRecord(std::string_view text, std::string_view source);

}  // namespace msrl::report

#endif  // MSRL_REPORT_RUN_RECORDS_H_
