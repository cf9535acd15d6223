#include "msrl/report/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/report/aggregates.h"
#include "msrl/report/cautions.h"
#include "msrl/report/selection.h"

namespace msrl::report {
namespace {

constexpr double kThresholdShare = 0.8;

// By task and method; none is empty.
using Scores = std::map<std::pair<int, int>, SeedScores>;

template <typename Entry>
std::map<std::string, int> Places(const std::vector<Entry>& entries) {
  std::map<std::string, int> places;
  for (const Entry& entry : entries) places.emplace(entry.name, static_cast<int>(places.size()));
  return places;
}

Scores Collect(const Analysis& analysis, std::optional<double> RunScore::*field) {
  Scores scores;
  for (const RunScore& score : analysis.scores) {
    if (score.*field) scores[{score.task, score.method}].Add(score.seed(), *(score.*field));
  }
  return scores;
}

const SeedScores& At(const Scores& scores, int task, int method) {
  static const SeedScores none;
  const auto found = scores.find({task, method});
  return found == scores.end() ? none : found->second;
}

std::vector<CurvePoint> ReturnCurve(const RunRecord& run) {
  std::vector<CurvePoint> curve;
  for (const Evaluation& evaluation : run.evaluations) {
    curve.push_back({evaluation.step, evaluation.mean_return});
  }
  return curve;
}

void ListTasks(const RunRecords& records, const EnvRegistry& envs, Analysis& analysis) {
  for (const SweepEnv& env : records.sweep.envs) {
    TaskInfo task{.name = env.name, .id = env.id, .family = env.family, .settings = env.settings};
    task.steps = env.steps;
    for (const RunRecord& run : records.runs) {
      if (run.env != env.name) continue;
      task.steps = std::max(task.steps, run.facts.spec.steps);
      if (!task.random_return) task.random_return = run.facts.random_return;
      if (!task.reference_return) task.reference_return = run.facts.reference_return;
    }
    try {
      const EnvSpec spec = envs.Make(env.id, env.settings)->spec();
      // while no run says it
      const auto take = [](std::optional<double>& known, const auto& measured) {
        if (!known && measured) known = measured->value;
      };
      take(task.random_return, spec.random_return);
      take(task.reference_return, spec.reference_return);
      take(task.still_return, spec.still_return);
    } catch (const UserError&) {
      // an environment of another version: what the runs say is enough
    }
    task.few_shot_steps = analysis.few_shot * static_cast<double>(task.steps);
    if (!task.Normalised(0.0)) {
      analysis.problems.push_back(
          {env.name, "no random and reference return: raw returns instead of normalised scores"});
    }
    analysis.tasks.push_back(std::move(task));
  }
}

void ListMethods(const RunRecords& records, const AgentRegistry& agents, Analysis& analysis) {
  const std::vector<SweepMethod>& run = records.sweep.methods;
  for (const SweepMethod& method : run) analysis.methods.push_back({method});
  const auto add = [&](std::optional<MeasuredReturn> EnvSpec::*measured, const char* title,
                       std::optional<double> TaskInfo::*value) {
    const bool known = std::ranges::any_of(
        analysis.tasks, [value](const TaskInfo& task) { return (task.*value).has_value(); });
    const auto agent = std::ranges::find(agents, measured, &AgentEntry::measured);
    if (!known || agent == agents.end()) return;
    if (std::ranges::find(run, agent->id, &SweepMethod::agent) != run.end() ||
        std::ranges::find(run, agent->id, &SweepMethod::name) != run.end()) {
      return;
    }
    analysis.methods.push_back(
        {{.name = agent->id, .title = title, .agent = agent->id, .role = "reference"}, value});
  };
  add(&EnvSpec::random_return, "Random actions", &TaskInfo::random_return);
  add(&EnvSpec::still_return, "Standing still", &TaskInfo::still_return);
}

void ListFamilies(Analysis& analysis) {
  std::vector<std::string> families = PaperFamilies();
  for (const TaskInfo& task : analysis.tasks) {
    if (std::ranges::find(families, task.family) == families.end()) families.push_back(task.family);
  }
  for (const std::string& family : families) {
    if (!analysis.TasksOf(family).empty()) analysis.families.push_back(family);
  }
}

// Scores that need no other run.
void ScoreRuns(const RunRecords& records, Analysis& analysis) {
  const auto tasks = Places(records.sweep.envs);
  const auto methods = Places(records.sweep.methods);
  for (const RunRecord& run : records.runs) {
    RunScore score{.run = &run, .task = tasks.at(run.env), .method = methods.at(run.method)};
    const TaskInfo& task = analysis.Task(score.task);
    const std::vector<CurvePoint> curve = ReturnCurve(run);
    const double window = analysis.few_shot * static_cast<double>(run.facts.spec.steps);
    // beyond the window a run may still be going on
    score.few_shot_return = MeanOverWindow(curve, window);
    if (score.few_shot_return) score.auc = task.Normalised(*score.few_shot_return);
    if (run.finished()) {
      score.final_return = curve.back().value;
      score.final_normalised = task.Normalised(curve.back().value);
      score.success = run.evaluations.back().success_rate;
    }
    analysis.scores.push_back(score);
  }
}

// Scores relative to the best of the comparison.
void ScoreAgainstBest(Analysis& analysis) {
  for (const auto& [place, scores] : Collect(analysis, &RunScore::final_return)) {
    auto& best = analysis.tasks[static_cast<std::size_t>(place.first)].best_final_return;
    const double mean = MeanAndStd(scores.values()).mean;
    best = std::max(best.value_or(mean), mean);
  }
  for (TaskInfo& task : analysis.tasks) {
    if (task.PaperStyle(0.0)) {
      task.threshold_return =
          *task.random_return + kThresholdShare * (*task.best_final_return - *task.random_return);
    }
  }
  for (RunScore& score : analysis.scores) {
    const TaskInfo& task = analysis.Task(score.task);
    if (score.few_shot_return) score.paper_style = task.PaperStyle(*score.few_shot_return);
    if (task.threshold_return) {
      score.threshold_step = StepsToThreshold(ReturnCurve(*score.run), *task.threshold_return);
    }
  }
}

// One family: the score of a seed is its mean over the family's tasks.
struct FamilyScores {
  std::vector<SeedScores> tasks;  // the seeds that all of them have
  SeedScores means;
};

std::optional<FamilyScores> OfFamily(const Scores& scores, const std::vector<int>& tasks,
                                     int method) {
  FamilyScores family;
  for (const int task : tasks) family.tasks.push_back(At(scores, task, method));
  const std::vector<std::uint64_t> seeds = CommonSeeds(family.tasks);
  if (seeds.empty()) return std::nullopt;
  for (SeedScores& task : family.tasks) task = task.Only(seeds);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    double sum = 0.0;
    for (const SeedScores& task : family.tasks) sum += task.values()[i];
    family.means.Add(seeds[i], sum / static_cast<double>(family.tasks.size()));
  }
  return family;
}

ScoreCell Cell(const std::vector<SeedScores>& tasks, const TaskStatistic& mean,
               const BootstrapOptions& bootstrap) {
  std::vector<std::vector<double>> values;
  ScoreCell cell;
  cell.n = tasks.front().n();
  for (const SeedScores& task : tasks) {
    values.push_back(task.values());
    cell.n = std::min(cell.n, task.n());
  }
  cell.mean = mean(values);
  cell.iqm = PooledInterquartileMean(values);
  cell.interval = StratifiedBootstrap(tasks, PooledInterquartileMean, bootstrap);
  BootstrapOptions expanded = bootstrap;
  expanded.expanded = true;
  cell.mean_interval = StratifiedBootstrap(tasks, mean, expanded);
  return cell;
}

ScoreCell OverSeeds(const SeedScores& scores) {
  const MeanStd over_seeds = MeanAndStd(scores.values());
  ScoreCell cell{.mean = over_seeds.mean, .n = scores.n()};
  if (cell.n > 1) cell.std = over_seeds.std;
  return cell;
}

// The families of a report and those of the paper are the same: only then are averages comparable.
bool SameFamiliesAsPaper(const Analysis& analysis) { return analysis.families == PaperFamilies(); }

// Families, then the average over them: only where there is a score in every family.
std::vector<std::optional<ScoreCell>> ScoreColumns(const Analysis& analysis, const Scores& scores,
                                                   int method, bool with_paper,
                                                   const BootstrapOptions& bootstrap) {
  const std::string& paper = analysis.Method(method).paper;
  std::vector<std::optional<ScoreCell>> cells;
  std::vector<SeedScores> all;
  std::vector<std::size_t> sizes;
  for (const std::string& family : analysis.families) {
    const auto found = OfFamily(scores, analysis.TasksOf(family), method);
    if (!found) {
      cells.emplace_back();
      continue;
    }
    ScoreCell cell = Cell(found->tasks, MeanOfMeans, bootstrap);
    cell.std = OverSeeds(found->means).std;
    if (with_paper) cell.paper = FindPaperFigure("control", paper, family);
    all.insert(all.end(), found->tasks.begin(), found->tasks.end());
    sizes.push_back(found->tasks.size());
    cells.push_back(cell);
  }
  if (sizes.size() < analysis.families.size() || sizes.empty()) {
    cells.emplace_back();
    return cells;
  }
  const auto mean_of_families = [&sizes](std::span<const std::vector<double>> tasks) {
    double sum = 0.0;
    std::size_t begin = 0;
    for (const std::size_t size : sizes) {
      sum += MeanOfMeans(tasks.subspan(begin, size));
      begin += size;
    }
    return sum / static_cast<double>(sizes.size());
  };
  ScoreCell average = Cell(all, mean_of_families, bootstrap);
  if (with_paper && SameFamiliesAsPaper(analysis)) {
    average.paper = FindPaperFigure("control", paper, "Average");
  }
  cells.emplace_back(average);
  return cells;
}

std::vector<std::optional<ScoreCell>> RateColumns(const Analysis& analysis, const Scores& scores,
                                                  int method) {
  std::vector<std::optional<ScoreCell>> cells;
  ScoreCell average;
  int families = 0;
  for (const std::string& family : analysis.families) {
    const auto found = OfFamily(scores, analysis.TasksOf(family), method);
    cells.emplace_back();
    if (!found) continue;
    const ScoreCell cell = OverSeeds(found->means);
    average.mean += cell.mean;
    average.n = families == 0 ? cell.n : std::min(average.n, cell.n);
    ++families;
    cells.back() = cell;
  }
  cells.emplace_back();
  if (families > 0 && families == static_cast<int>(analysis.families.size())) {
    average.mean /= families;
    cells.back() = average;
  }
  return cells;
}

std::vector<std::optional<ThresholdSummary>> ThresholdColumns(const Analysis& analysis,
                                                              int method) {
  std::vector<std::optional<ThresholdSummary>> cells;
  for (const std::string& family : analysis.families) {
    const std::vector<int> tasks = analysis.TasksOf(family);
    std::map<std::uint64_t, std::vector<std::optional<std::int64_t>>> by_seed;
    for (const RunScore& score : analysis.scores) {
      const TaskInfo& task = analysis.Task(score.task);
      if (task.family == family && score.method == method && score.run->finished() &&
          task.threshold_return) {
        by_seed[score.seed()].push_back(score.threshold_step);
      }
    }
    std::vector<std::optional<std::int64_t>> steps;  // of seeds that all tasks have
    for (const auto& [seed, of_tasks] : by_seed) {
      if (of_tasks.size() == tasks.size()) {
        steps.insert(steps.end(), of_tasks.begin(), of_tasks.end());
      }
    }
    cells.emplace_back();
    if (!steps.empty()) cells.back() = SummariseThreshold(steps);
  }
  cells.emplace_back();  // steps of different families have no average
  return cells;
}

// Of a policy that was not run: what it was measured to get in the task.
std::optional<double> MeasuredReturn(const Analysis& analysis, const TaskInfo& task, int method) {
  const auto measured = analysis.methods[static_cast<std::size_t>(method)].measured;
  return measured ? task.*measured : std::nullopt;
}

void MakeRows(Analysis& analysis, Scores auc, const BootstrapOptions& bootstrap) {
  Scores finals = Collect(analysis, &RunScore::final_normalised);
  Scores paper_style = Collect(analysis, &RunScore::paper_style);
  const Scores success = Collect(analysis, &RunScore::success);
  for (int m = 0; m < std::ssize(analysis.methods); ++m) {
    const auto measured = analysis.methods[static_cast<std::size_t>(m)].measured;
    // a policy that was not run: one value per task
    for (int t = 0; t < std::ssize(analysis.tasks); ++t) {
      const TaskInfo& task = analysis.Task(t);
      const auto value = MeasuredReturn(analysis, task, m);
      const auto add = [&](Scores& scores, const std::optional<double>& score) {
        if (score) scores[{t, m}].Add(0, *score);
      };
      if (!value) continue;
      add(auc, task.Normalised(*value));
      add(finals, task.Normalised(*value));
      add(paper_style, task.PaperStyle(*value));
    }
    const auto columns = [&](const Scores& scores, bool with_paper) {
      auto cells = ScoreColumns(analysis, scores, m, with_paper, bootstrap);
      for (auto& cell : cells) {
        if (measured && cell) cell = ScoreCell{.mean = cell->mean};
      }
      return cells;
    };
    analysis.rows.push_back({.method = m,
                             .auc = columns(auc, /*with_paper=*/true),
                             .final_return = columns(finals, /*with_paper=*/false),
                             .paper_style = columns(paper_style, /*with_paper=*/true),
                             .success = RateColumns(analysis, success, m),
                             .threshold = ThresholdColumns(analysis, m)});
  }
}

void AddRawReturns(Analysis& analysis) {
  const Scores few_shot = Collect(analysis, &RunScore::few_shot_return);
  const Scores finals = Collect(analysis, &RunScore::final_return);
  for (int t = 0; t < std::ssize(analysis.tasks); ++t) {
    const TaskInfo& task = analysis.Task(t);
    if (task.Normalised(0.0)) continue;
    for (int m = 0; m < std::ssize(analysis.methods); ++m) {
      const auto cell = [&](const Scores& scores) -> std::optional<ScoreCell> {
        if (const auto value = MeasuredReturn(analysis, task, m)) return ScoreCell{.mean = *value};
        const SeedScores& found = At(scores, t, m);
        if (found.empty()) return std::nullopt;
        return OverSeeds(found);
      };
      const RawReturns entry{t, m, cell(few_shot), cell(finals)};
      if (entry.few_shot || entry.final_return) analysis.raw_returns.push_back(entry);
    }
  }
}

// Runs of one method in one task, by seed.
using Runs = std::map<std::uint64_t, const RunRecord*>;

void AddCurve(Analysis& analysis, int task, int method, Runs runs, std::map<int, MeanBands>& bands,
              const BootstrapOptions& bootstrap) {
  std::erase_if(runs, [](const auto& run) { return run.second->evaluations.empty(); });
  if (runs.empty()) return;
  Curve curve{.task = task, .method = method};
  std::set<std::int64_t> steps;
  for (const auto& [seed, run] : runs) {
    for (const Evaluation& evaluation : run->evaluations) steps.insert(evaluation.step);
  }
  curve.steps.assign(steps.begin(), steps.end());
  const std::size_t count = curve.steps.size();
  for (auto* column : {&curve.mean, &curve.low, &curve.high, &curve.success}) {
    column->resize(count);
  }
  std::vector<std::vector<double>> returns(count), success(count);
  for (const auto& [seed, run] : runs) {
    CurveOfSeed line{seed, std::vector<std::optional<double>>(count)};
    std::size_t i = 0;
    for (const Evaluation& evaluation : run->evaluations) {
      while (curve.steps[i] < evaluation.step) ++i;
      line.values[i] = evaluation.mean_return;
      returns[i].push_back(evaluation.mean_return);
      if (evaluation.success_rate) success[i].push_back(*evaluation.success_rate);
    }
    curve.seeds.push_back(std::move(line));
  }
  const auto n = static_cast<int>(runs.size());
  MeanBands& band = bands.try_emplace(n, n, bootstrap).first->second;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mean = [n](const std::vector<double>& values) -> std::optional<double> {
      if (std::ssize(values) != n) return std::nullopt;
      return MeanAndStd(values).mean;
    };
    curve.mean[i] = mean(returns[i]);
    curve.success[i] = mean(success[i]);
    if (!curve.mean[i]) continue;
    if (const auto interval = band.Of(returns[i])) {
      curve.low[i] = interval->low;
      curve.high[i] = interval->high;
    }
  }
  analysis.curves.push_back(std::move(curve));
}

void AddCost(Analysis& analysis, int task, int method, const Runs& runs) {
  CostEntry cost{.task = task, .method = method};
  int timed = 0;
  for (const auto& [seed, run] : runs) {
    cost.parameters = std::max(cost.parameters, run->facts.parameters);
    cost.simulator_steps +=
        static_cast<double>(run->simulator_steps) / static_cast<double>(runs.size());
    if (run->timing.seconds <= 0.0) continue;
    cost.steps_per_second += run->timing.steps_per_second;
    cost.seconds += run->timing.seconds;
    ++timed;
  }
  cost.steps_per_second /= std::max(1, timed);
  cost.seconds /= std::max(1, timed);
  analysis.costs.push_back(cost);
}

// Whether no setting that makes one a variant is another in the other: width 64 is compared with
// width 64.
bool SameVariant(const SweepMethod& a, const SweepMethod& b) {
  return std::ranges::all_of(a.varied, [&b](const std::string& setting) {
    const std::string key = setting.substr(0, setting.find('=') + 1);
    return std::ranges::all_of(b.varied, [&](const std::string& other) {
      return !other.starts_with(key) || other == setting;
    });
  });
}

std::vector<Comparison> ChooseComparisons(const Analysis& analysis, const AgentRegistry& agents,
                                          const std::string& baseline) {
  std::vector<Comparison> chosen;
  const auto add = [&chosen](int a, int b) {
    const bool known = std::ranges::find(chosen, Comparison{a, b}) != chosen.end();
    if (!known && a != b) chosen.push_back({a, b});
  };
  const int methods = static_cast<int>(analysis.methods.size());
  const auto with = [&](int a, std::string_view role, const std::string& agent) {
    for (int b = 0; b < methods; ++b) {
      const SweepMethod& other = analysis.Method(b);
      if (other.role == role && other.agent == agent && SameVariant(analysis.Method(a), other)) {
        add(a, b);
      }
    }
  };
  for (int a = 0; a < methods; ++a) {
    const SweepMethod& facts = analysis.Method(a);
    const std::string over = agents.FactsOf(facts.agent).over;
    if (facts.role == "transfer") with(a, "scratch", facts.agent);
    if (facts.role == "transfer" || facts.role == "scratch") with(a, "baseline", over);
    if (facts.role == "transfer") with(a, "control", facts.agent);
  }
  if (baseline.empty()) return chosen;
  std::vector<std::string> names;
  for (const MethodInfo& method : analysis.methods) {
    if (!method.measured) names.push_back(method.facts.name);
  }
  const auto found = std::ranges::find(names, baseline);
  if (found == names.end()) {
    throw UserError(
        StrCat("--baseline: no method is called '", baseline, "'", DidYouMean(baseline, names)));
  }
  for (int a = 0; a < std::ssize(names); ++a) {
    if (analysis.Method(a).role != "reference") add(a, static_cast<int>(found - names.begin()));
  }
  return chosen;
}

std::string Judge(const PairedGain& gain) {
  if (gain.n < kMinVerdictPairs || !gain.interval) return "too few seeds";
  if (gain.interval->low > 0.0) return "clear gain";
  if (gain.interval->high < 0.0) return "clear loss";
  return "not clear";
}

void Compare(Analysis& analysis, const Scores& auc, const AgentRegistry& agents,
             const std::string& baseline, const BootstrapOptions& bootstrap) {
  for (const Comparison& of : ChooseComparisons(analysis, agents, baseline)) {
    const SweepMethod& a = analysis.Method(of.a);
    const SweepMethod& b = analysis.Method(of.b);
    const bool verdict = (a.role == "transfer" && b.role == "scratch") || b.name == baseline;
    std::vector<SeedScores> all_a, all_b;
    const auto enter = [&](int task, std::span<const SeedScores> left,
                           std::span<const SeedScores> right, std::optional<double> paper) {
      if (const auto gain = PairedGainOf(left, right, bootstrap)) {
        analysis.gains.push_back({task, of, *gain, paper});
        if (verdict) analysis.verdicts.push_back({task, of, *gain, Judge(*gain)});
      }
      analysis.improvements.push_back({task, of, ProbabilityOfImprovement(left, right),
                                       ProbabilityOfImprovementInterval(left, right, bootstrap)});
    };
    for (int t = 0; t < std::ssize(analysis.tasks); ++t) {
      const SeedScores& left = At(auc, t, of.a);
      const SeedScores& right = At(auc, t, of.b);
      if (left.empty() || right.empty()) continue;
      enter(t, std::span(&left, 1), std::span(&right, 1),
            PaperGain(a.paper, b.paper, analysis.Task(t).family));
      // only tasks with pairs go into the mean over tasks
      if (PairedDifferences(left, right).empty()) continue;
      all_a.push_back(left);
      all_b.push_back(right);
    }
    if (all_a.size() < 2) continue;
    // the paper's average gives every family the same weight
    const bool comparable = SameFamiliesAsPaper(analysis) &&
                            all_a.size() == analysis.tasks.size() &&
                            all_a.size() == analysis.families.size();
    enter(kAllTasks, all_a, all_b,
          comparable ? PaperGain(a.paper, b.paper, "Average") : std::nullopt);
  }
}

}  // namespace

std::optional<double> TaskInfo::Normalised(double value) const {
  if (!random_return || !reference_return) return std::nullopt;
  return Rescaled(value, *random_return, *reference_return);
}

std::optional<double> TaskInfo::PaperStyle(double value) const {
  if (!random_return || !best_final_return) return std::nullopt;
  return Rescaled(value, *random_return, *best_final_return);
}

bool Analysis::HasRole(std::string_view role) const {
  return std::ranges::any_of(methods,
                             [role](const auto& method) { return method.facts.role == role; });
}

bool Analysis::JudgesTransfer() const {
  return std::ranges::any_of(
      verdicts, [this](const auto& verdict) { return Method(verdict.of.a).role == "transfer"; });
}

std::vector<std::string> Analysis::Columns() const {
  std::vector<std::string> columns = families;
  columns.emplace_back("Average");
  return columns;
}

std::vector<int> Analysis::TasksOf(const std::string& family) const {
  std::vector<int> found;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].family == family) found.push_back(static_cast<int>(t));
  }
  return found;
}

Analysis Analyse(const RunRecords& records, const Registries& registries,
                 const AnalysisOptions& options) {
  Analysis analysis;
  analysis.few_shot = options.few_shot.value_or(records.sweep.few_shot);
  if (!(analysis.few_shot > 0.0 && analysis.few_shot <= 1.0)) {
    throw UserError(StrCat("--few-shot is ", analysis.few_shot,
                           "; it is a share of the budget, above 0 and at most 1"));
  }
  ListTasks(records, registries.envs, analysis);
  ListMethods(records, registries.agents, analysis);
  ListFamilies(analysis);
  ScoreRuns(records, analysis);
  ScoreAgainstBest(analysis);
  const Scores auc = Collect(analysis, &RunScore::auc);
  MakeRows(analysis, auc, options.bootstrap);
  AddRawReturns(analysis);
  std::map<std::pair<int, int>, Runs> groups;  // by task and method
  for (const RunScore& score : analysis.scores) {
    groups[{score.task, score.method}][score.seed()] = score.run;
  }
  std::map<int, MeanBands> bands;
  BootstrapOptions expanded = options.bootstrap;
  expanded.expanded = true;
  for (const auto& [place, runs] : groups) {
    AddCurve(analysis, place.first, place.second, runs, bands, expanded);
    AddCost(analysis, place.first, place.second, runs);
  }
  Compare(analysis, auc, registries.agents, options.baseline, options.bootstrap);
  AddAggregates(analysis, options.bootstrap);
  AddCautions(analysis);
  AddSelections(analysis);
  return analysis;
}

}  // namespace msrl::report
