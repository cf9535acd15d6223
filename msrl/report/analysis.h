// From records to figures: every number of the tables and of the page. Definitions: docs/report.md.
#ifndef MSRL_REPORT_ANALYSIS_H_
#define MSRL_REPORT_ANALYSIS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msrl/paper/figures.h"
#include "msrl/report/run_records.h"
#include "msrl/report/statistics.h"
#include "msrl/run/registries.h"

namespace msrl::report {

struct AnalysisOptions {
  std::optional<double> few_shot = {};  // share of the budget; empty: as the sweep says
  std::string baseline = {};            // a method that every other one is compared with
  BootstrapOptions bootstrap = {};
};

struct TaskInfo {
  std::string name = {}, id = {}, family = {};
  std::vector<std::string> settings = {};
  std::int64_t steps = 0;
  double few_shot_steps = 0.0;
  std::optional<double> random_return = {}, reference_return = {}, still_return = {};
  // Of the method with the best mean final return; empty while no run has finished.
  std::optional<double> best_final_return = {};
  // Return at 80 % of the way from random to best.
  std::optional<double> threshold_return = {};

  std::optional<double> Normalised(double value) const;
  // With the best final return of the comparison in place of the reference.
  std::optional<double> PaperStyle(double value) const;
};

struct MethodInfo {
  SweepMethod facts;
  // A reference policy that was not run: its figures are these returns of the tasks.
  std::optional<double> TaskInfo::*measured = nullptr;
};

// What one run contributes. Empty: not known (yet).
struct RunScore {
  const RunRecord* run = nullptr;
  int task = 0;
  int method = 0;
  // The few-shot return is what the AUC is before it is normalised.
  std::optional<double> few_shot_return = {}, auc = {}, paper_style = {}, final_return = {},
                        final_normalised = {}, success = {};
  std::optional<std::int64_t> threshold_step = {};  // empty for a finished run: never reached

  std::uint64_t seed() const { return run->facts.spec.seed; }
};

struct ScoreCell {
  double mean = 0.0;
  std::optional<double> std = {};  // over seeds; none for averages and measured returns
  int n = 0;                       // seeds; 0 for measured returns
  std::optional<double> iqm = {};
  std::optional<Interval> interval = {};       // of the interquartile mean
  std::optional<Interval> mean_interval = {};  // of the mean
  std::optional<PaperFigure> paper = {};
};

// A row of the tables; one entry per column.
struct MethodRow {
  int method = 0;
  std::vector<std::optional<ScoreCell>> auc = {}, final_return = {}, paper_style = {};
  std::vector<std::optional<ScoreCell>> success = {};  // mean, std and n only
  std::vector<std::optional<ThresholdSummary>> threshold = {};
};

// A method in a task whose returns cannot be normalised, in the task's own unit.
struct RawReturns {
  int task = 0, method = 0;
  std::optional<ScoreCell> few_shot = {}, final_return = {};  // mean, std and n only
};

struct CurveOfSeed {
  std::uint64_t seed = 0;
  std::vector<std::optional<double>> values = {};  // one per step
};

// Returns in the task's own unit. Normalising is an affine map: it can be done to all of them.
struct Curve {
  int task = 0;
  int method = 0;
  std::vector<std::int64_t> steps = {};
  // Empty at steps that not all seeds have reached.
  std::vector<std::optional<double>> mean = {}, low = {}, high = {}, success = {};
  std::vector<CurveOfSeed> seeds = {};
};

struct Comparison {
  int a = 0, b = 0;  // methods
  bool operator==(const Comparison&) const = default;
};

inline constexpr int kAllTasks = -1;
// With fewer pairs even wins in all of them happen by chance more often than once in ten.
inline constexpr int kMinVerdictPairs = 5;

struct GainEntry {
  int task = kAllTasks;
  Comparison of;
  PairedGain gain;
  std::optional<double> paper = {};
};

struct ImprovementEntry {
  int task = kAllTasks;
  Comparison of;
  double probability = 0.0;
  std::optional<Interval> interval = {};
};

struct Verdict {
  int task = kAllTasks;
  Comparison of;
  PairedGain gain;
  std::string text = {};  // "clear gain", "clear loss", "not clear", "too few seeds"
};

// Over all tasks that can be normalised, of a method with runs in all of them. One entry per place.
struct Aggregate {
  int method = 0;
  std::vector<double> at = {};
  std::vector<double> value = {};
  std::vector<std::optional<double>> low = {}, high = {};
};

// What a reader must know of a task before its figures.
struct Caution {
  int task = 0;
  std::string text = {};
};

// The best variant of a method. It was chosen by what was measured, so its score flatters it.
struct Selection {
  std::string of = {};  // name of the [[method]] in the sweep's file
  int variants = 0, scored = 0, tasks = 0;
  bool raw = false;                            // scores are returns, not normalised
  int best = 0;                                // method
  double score = 0.0, next = 0.0, last = 0.0;  // of the best, the second and the worst
  std::vector<std::uint64_t> seeds = {};
};

struct CostEntry {
  int task = 0, method = 0;
  double steps_per_second = 0.0;
  double seconds = 0.0;  // of a run
  std::int64_t parameters = 0;
  double simulator_steps = 0.0;  // of a run, beside its budget
};

struct Analysis {
  double few_shot = 0.25;
  std::vector<TaskInfo> tasks = {};
  std::vector<MethodInfo> methods = {};    // in the order of the sweep; unmeasured references last
  std::vector<std::string> families = {};  // the paper's first, in its order
  std::vector<RunScore> scores = {};       // in the order of the records
  std::vector<MethodRow> rows = {};  // of every method; columns are families, then the average
  std::vector<RawReturns> raw_returns = {};
  std::vector<Curve> curves = {};
  std::vector<GainEntry> gains = {};
  std::vector<ImprovementEntry> improvements = {};
  std::vector<Verdict> verdicts = {};
  std::vector<Caution> cautions = {};
  std::vector<Selection> selections = {};
  // At shares of the budget: interquartile mean of the normalised returns of all runs.
  std::vector<Aggregate> aggregate_curves = {};
  // At normalised returns: share of runs whose last evaluation is above.
  std::vector<Aggregate> profiles = {};
  std::vector<CostEntry> costs = {};
  std::vector<RecordProblem> problems = {};  // what could not be worked out

  const TaskInfo& Task(int task) const { return tasks[static_cast<std::size_t>(task)]; }
  const SweepMethod& Method(int method) const {
    return methods[static_cast<std::size_t>(method)].facts;
  }
  // "all" for kAllTasks.
  std::string TaskName(int task) const { return task == kAllTasks ? "all" : Task(task).name; }
  bool HasRole(std::string_view role) const;
  // Whether a verdict is about something that was transferred.
  bool JudgesTransfer() const;
  std::vector<std::string> Columns() const;
  std::vector<int> TasksOf(const std::string& family) const;
};

// `records` must outlive the result. UserError on an unknown baseline or an impossible share.
Analysis Analyse(const RunRecords& records, const Registries& registries,
                 const AnalysisOptions& options = {});

}  // namespace msrl::report

#endif  // MSRL_REPORT_ANALYSIS_H_
