#include "msrl/report/cautions.h"

#include <algorithm>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"

namespace msrl::report {
namespace {

// What a policy that learns nothing has over the window: its runs, or else what was measured once.
std::optional<double> MeanReturn(const Analysis& analysis, int task, int method) {
  if (const auto measured = analysis.methods[static_cast<std::size_t>(method)].measured) {
    return analysis.Task(task).*measured;
  }
  std::vector<double> returns;
  for (const RunScore& score : analysis.scores) {
    if (score.task == task && score.method == method && score.few_shot_return) {
      returns.push_back(*score.few_shot_return);
    }
  }
  if (returns.empty()) return std::nullopt;
  return MeanAndStd(returns).mean;
}

void AddLeadingReferences(Analysis& analysis, int task) {
  std::vector<double> learners;
  for (int m = 0; m < std::ssize(analysis.methods); ++m) {
    if (analysis.Method(m).role == "reference") continue;
    if (const auto mean = MeanReturn(analysis, task, m)) learners.push_back(*mean);
  }
  if (learners.empty()) return;
  for (int m = 0; m < std::ssize(analysis.methods); ++m) {
    if (analysis.Method(m).role != "reference") continue;
    const auto reference = MeanReturn(analysis, task, m);
    if (!reference) continue;
    const auto below = std::ranges::count_if(
        learners, [&reference](double learner) { return learner < *reference; });
    if (2 * below < std::ssize(learners)) continue;
    analysis.cautions.push_back(
        {task,
         StrCat("“", analysis.Method(m).title, "” is above ",
                below == std::ssize(learners) ? std::string("every method")
                                              : StrCat(below, " of ", learners.size(), " methods"),
                " over the few-shot window")});
  }
}

std::optional<double> RandomSteps(const RunRecord& run) {
  constexpr std::string_view kKey = "random_steps=";
  for (const std::string& setting : run.facts.spec.agent_settings) {
    if (setting.starts_with(kKey))
      return ParseNumber<double>(std::string_view(setting).substr(kKey.size()));
  }
  return std::nullopt;
}

void AddWarmUp(Analysis& analysis, int task) {
  const double window = analysis.Task(task).few_shot_steps;
  double most = 0.0;
  for (const RunScore& score : analysis.scores) {
    if (score.task != task) continue;
    most = std::max(most, RandomSteps(*score.run).value_or(0.0));
  }
  if (window <= 0.0 || most < kMuchWarmUp * window) return;
  analysis.cautions.push_back(
      {task, StrCat("random steps before learning fill up to ",
                    static_cast<int>(std::min(100.0, 100.0 * most / window) + 0.5),
                    " % of the few-shot window, the same for all: differences are diluted")});
}

}  // namespace

void AddCautions(Analysis& analysis) {
  for (int t = 0; t < std::ssize(analysis.tasks); ++t) {
    AddLeadingReferences(analysis, t);
    AddWarmUp(analysis, t);
  }
}

}  // namespace msrl::report
