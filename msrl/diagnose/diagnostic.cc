#include "msrl/diagnose/diagnostic.h"

#include <cmath>
#include <numeric>

#include "msrl/core/check.h"
#include "msrl/paper/figures.h"

namespace msrl {
namespace {

struct Family {
  std::string id;
  FamilyOutcome (*run)(const DiagnoseConfig&, std::uint64_t, LiftKind);
};

const std::vector<Family>& Families() {
  static const std::vector<Family> families{{"graph-motif", DiagnoseGraphMotif},
                                            {"micro-grid", DiagnoseMicroGrid},
                                            {"point-rooms", DiagnosePointRooms},
                                            {"dubins-reacher", DiagnoseDubinsReacher}};
  return families;
}

std::optional<Score> PaperScore(const std::string& family, const char* column) {
  const auto figure = FindPaperFigure("diagnostics", family, column);
  return figure ? std::optional(Score{figure->mean, figure->std.value_or(0.0)}) : std::nullopt;
}

// Mean and standard deviation over seeds (n - 1; 0 for a single seed).
Score Summarize(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (count - 1.0)) : 0.0};
}

std::vector<DiagnosticRow> Average(const Family& family, const std::vector<FamilyOutcome>& outcomes,
                                   const std::vector<FamilyOutcome>& compact) {
  std::vector<double> errors;
  for (const FamilyOutcome& outcome : outcomes) errors.push_back(outcome.additive_error);
  std::vector<DiagnosticRow> rows;
  for (std::size_t d = 0; d < outcomes.front().diagnostics.size(); ++d) {
    const SeedOutcome& first = outcomes.front().diagnostics[d];
    const auto over_seeds = [d](const std::vector<FamilyOutcome>& seeds, const auto& value_of) {
      std::vector<double> values;
      for (const FamilyOutcome& outcome : seeds) values.push_back(value_of(outcome.diagnostics[d]));
      return Summarize(values);
    };
    const auto score_of = [](const SeedOutcome& outcome) { return outcome.score; };
    DiagnosticRow row{.env = family.id,
                      .diagnostic = first.diagnostic,
                      .metric = first.metric,
                      .headline = first.headline,
                      .score = over_seeds(outcomes, score_of),
                      .compact = over_seeds(compact, score_of),
                      .additive_error = Summarize(errors),
                      .weaker = {},
                      .paper = std::nullopt,
                      .paper_additive_error = std::nullopt};
    for (std::size_t w = 0; w < first.weaker.size(); ++w) {
      const auto weaker_of = [w](const SeedOutcome& outcome) { return outcome.weaker[w].second; };
      row.weaker.push_back({first.weaker[w].first, over_seeds(outcomes, weaker_of)});
    }
    if (row.headline) {
      row.paper = PaperScore(family.id, "score");
      row.paper_additive_error = PaperScore(family.id, "additive_error");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

const std::vector<std::string>& DiagnosableFamilies() {
  static const std::vector<std::string> ids = [] {
    std::vector<std::string> list;
    for (const Family& family : Families()) list.push_back(family.id);
    return list;
  }();
  return ids;
}

std::vector<DiagnosticRow> RunDiagnostics(const DiagnoseConfig& config,
                                          const std::vector<std::string>& families,
                                          const std::function<void(int, int)>& progress) {
  RequireInRange(config);
  std::vector<const Family*> chosen;
  for (const std::string& id : families.empty() ? DiagnosableFamilies() : families) {
    const Family* found = nullptr;
    for (const Family& family : Families()) {
      if (family.id == id) found = &family;
    }
    if (found == nullptr) {
      throw UserError(
          StrCat("no diagnostics for '", id, "'", DidYouMean(id, DiagnosableFamilies())));
    }
    chosen.push_back(found);
  }
  const int total = static_cast<int>(chosen.size()) * config.seeds;
  int done = 0;
  std::vector<DiagnosticRow> rows;
  for (const Family* family : chosen) {
    std::vector<FamilyOutcome> outcomes, compact;
    for (int k = 0; k < config.seeds; ++k) {
      progress(done, total);
      const auto seed = static_cast<std::uint64_t>(config.first_seed + k);
      outcomes.push_back(family->run(config, seed, LiftKind::kFull));
      compact.push_back(family->run(config, seed, LiftKind::kCompact));
      ++done;
    }
    for (DiagnosticRow& row : Average(*family, outcomes, compact)) rows.push_back(std::move(row));
  }
  progress(done, total);
  return rows;
}

}  // namespace msrl
