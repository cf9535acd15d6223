#include "msrl/report/aggregates.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace msrl::report {
namespace {

constexpr int kPlaces = 41;

// The finished runs of one method, by task.
using Runs = std::vector<std::vector<const RunScore*>>;

std::vector<double> EvenlyFrom(double low, double high) {
  std::vector<double> places(kPlaces);
  for (int i = 0; i < kPlaces; ++i) {
    places[static_cast<std::size_t>(i)] = low + (high - low) * i / (kPlaces - 1);
  }
  return places;
}

// The curve of evaluations at a step, a straight line between two of them.
double ReturnAt(const std::vector<Evaluation>& evaluations, double step) {
  const auto after = std::ranges::find_if(evaluations, [step](const Evaluation& evaluation) {
    return static_cast<double>(evaluation.step) >= step;
  });
  if (after == evaluations.end()) return evaluations.back().mean_return;
  if (after == evaluations.begin()) return after->mean_return;
  const Evaluation& before = *(after - 1);
  const double share =
      (step - static_cast<double>(before.step)) / static_cast<double>(after->step - before.step);
  return before.mean_return + share * (after->mean_return - before.mean_return);
}

double NormalisedAt(const Analysis& analysis, const RunScore& score, double share) {
  const RunRecord& run = *score.run;
  const double step = share * static_cast<double>(run.facts.spec.steps);
  return analysis.Task(score.task).Normalised(ReturnAt(run.evaluations, step)).value();
}

// A statistic of all runs at each place, with its interval over seeds within tasks.
template <typename ValueOf>
Aggregate Over(const Runs& runs, int method, const std::vector<double>& places,
               const TaskStatistic& statistic, const ValueOf& value_of,
               const BootstrapOptions& bootstrap) {
  Aggregate aggregate{.method = method, .at = places};
  for (const double place : places) {
    std::vector<SeedScores> tasks(runs.size());
    std::vector<std::vector<double>> values;
    for (std::size_t t = 0; t < runs.size(); ++t) {
      for (const RunScore* score : runs[t]) tasks[t].Add(score->seed(), value_of(*score, place));
      values.push_back(tasks[t].values());
    }
    aggregate.value.push_back(statistic(values));
    const auto interval = StratifiedBootstrap(tasks, statistic, bootstrap);
    aggregate.low.push_back(interval ? std::optional(interval->low) : std::nullopt);
    aggregate.high.push_back(interval ? std::optional(interval->high) : std::nullopt);
  }
  return aggregate;
}

double PooledMean(std::span<const std::vector<double>> tasks) {
  double sum = 0.0;
  std::size_t count = 0;
  for (const std::vector<double>& task : tasks) {
    for (const double value : task) sum += value;
    count += task.size();
  }
  return sum / static_cast<double>(count);
}

}  // namespace

void AddAggregates(Analysis& analysis, const BootstrapOptions& bootstrap) {
  std::vector<int> tasks;  // that can be normalised
  for (int t = 0; t < std::ssize(analysis.tasks); ++t) {
    if (analysis.Task(t).Normalised(0.0)) tasks.push_back(t);
  }
  if (tasks.empty()) return;
  std::vector<std::pair<int, Runs>> methods;
  double lowest = 0.0, highest = 1.0;
  for (int m = 0; m < std::ssize(analysis.methods); ++m) {
    Runs runs;
    for (const int task : tasks) {
      std::vector<const RunScore*> own;
      for (const RunScore& score : analysis.scores) {
        if (score.method == m && score.task == task && score.final_normalised) {
          own.push_back(&score);
        }
      }
      if (own.empty()) break;
      runs.push_back(std::move(own));
    }
    if (runs.size() < tasks.size()) continue;
    for (const auto& own : runs) {
      for (const RunScore* score : own) {
        lowest = std::min(lowest, *score->final_normalised);
        highest = std::max(highest, *score->final_normalised);
      }
    }
    methods.emplace_back(m, std::move(runs));
  }
  // a task that is far below random must not squeeze all else together
  const std::vector<double> thresholds =
      EvenlyFrom(std::max(lowest, -0.5), std::min(std::ceil(10.0 * highest) / 10.0, 2.0));
  const std::vector<double> shares = EvenlyFrom(0.0, 1.0);
  for (const auto& [method, runs] : methods) {
    analysis.aggregate_curves.push_back(Over(
        runs, method, shares, PooledInterquartileMean,
        [&analysis](const RunScore& score, double share) {
          return NormalisedAt(analysis, score, share);
        },
        bootstrap));
    analysis.profiles.push_back(Over(
        runs, method, thresholds, PooledMean,
        [](const RunScore& score, double threshold) {
          return *score.final_normalised > threshold ? 1.0 : 0.0;
        },
        bootstrap));
  }
}

}  // namespace msrl::report
