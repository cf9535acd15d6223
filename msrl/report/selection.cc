#include "msrl/report/selection.h"

#include <algorithm>
#include <map>
#include <set>

namespace msrl::report {
namespace {

// By task; scores of one variant.
using TaskScores = std::map<int, SeedScores>;

TaskScores ScoresOf(const Analysis& analysis, int method, std::optional<double> RunScore::*field) {
  TaskScores scores;
  for (const RunScore& score : analysis.scores) {
    if (score.method == method && score.*field) {
      scores[score.task].Add(score.seed(), *(score.*field));
    }
  }
  return scores;
}

// Reduces each to the tasks and seeds that all have.
void KeepCommon(std::map<int, TaskScores>& variants) {
  std::set<int> tasks;
  for (const auto& [task, scores] : variants.begin()->second) tasks.insert(task);
  for (const int task : tasks) {
    std::vector<SeedScores> of_task;
    for (const auto& [method, scores] : variants) {
      const auto found = scores.find(task);
      of_task.push_back(found == scores.end() ? SeedScores() : found->second);
    }
    const std::vector<std::uint64_t> seeds = CommonSeeds(of_task);
    for (auto& [method, scores] : variants) {
      if (seeds.empty()) {
        scores.erase(task);
      } else {
        scores[task] = scores[task].Only(seeds);
      }
    }
  }
  for (auto& [method, scores] : variants) {
    std::erase_if(scores, [&tasks](const auto& entry) { return !tasks.contains(entry.first); });
  }
}

void Select(Analysis& analysis, const std::string& of, const std::vector<int>& methods) {
  for (const auto field : {&RunScore::auc, &RunScore::few_shot_return}) {
    std::map<int, TaskScores> variants;
    for (const int method : methods) {
      TaskScores scores = ScoresOf(analysis, method, field);
      if (!scores.empty()) variants.emplace(method, std::move(scores));
    }
    if (variants.size() < 2) continue;
    KeepCommon(variants);
    const std::size_t tasks = variants.begin()->second.size();
    const bool raw = field == &RunScore::few_shot_return;
    // returns in units of their own have no mean
    if (tasks == 0 || (raw && analysis.tasks.size() > 1)) continue;
    Selection selection{.of = of,
                        .variants = static_cast<int>(methods.size()),
                        .scored = static_cast<int>(variants.size()),
                        .tasks = static_cast<int>(tasks),
                        .raw = raw};
    std::vector<std::pair<double, int>> order;
    for (const auto& [method, scores] : variants) {
      double sum = 0.0;
      for (const auto& [task, seeds] : scores) sum += MeanAndStd(seeds.values()).mean;
      order.emplace_back(-sum / static_cast<double>(tasks), method);
    }
    std::ranges::sort(order);  // of equals the first of the sweep
    std::set<std::uint64_t> seeds;
    for (const auto& [task, scores] : variants.begin()->second) {
      seeds.insert(scores.seeds().begin(), scores.seeds().end());
    }
    selection.seeds.assign(seeds.begin(), seeds.end());
    selection.best = order[0].second;
    selection.score = -order[0].first;
    selection.next = -order[1].first;
    selection.last = -order.back().first;
    analysis.selections.push_back(std::move(selection));
    return;
  }
}

}  // namespace

void AddSelections(Analysis& analysis) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<int>> groups;
  for (int m = 0; m < std::ssize(analysis.methods); ++m) {
    const std::string& of = analysis.Method(m).variant_of;
    if (of.empty()) continue;
    if (groups[of].empty()) order.push_back(of);
    groups[of].push_back(m);
  }
  for (const std::string& of : order) Select(analysis, of, groups[of]);
}

}  // namespace msrl::report
