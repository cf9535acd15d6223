// What the descriptor shows of the source environments (paper, Part I and appendix "Simple source
// environments"): one score per diagnostic, beside what weaker descriptors score on the same data.
#ifndef MSRL_DIAGNOSE_DIAGNOSTIC_H_
#define MSRL_DIAGNOSE_DIAGNOSTIC_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/core/lift.h"

namespace msrl {

struct DiagnoseConfig {
  int seeds = 5;
  std::int64_t first_seed = 100;
  int queries = 400;
  double noise = 0.1;

  template <typename V>
  void Fields(V&& visit) {
    visit("seeds", seeds, "repetitions, each on other held-out instances", Between(1, 1000));
    visit("first_seed", first_seed, "seeds from here on; 0 to 9 are for tuning", Between(0, 1e15));
    visit("queries", queries, "queries per diagnostic and seed", Between(20, 100'000));
    visit("noise", noise, "standard deviation of the observation noise, in typical steps",
          Between(0, 10));
  }
};

// A score with the standard deviation over seeds.
struct Score {
  double mean = 0.0;
  double std = 0.0;
};

struct WeakerScore {
  std::string name;  // "occupancy", "without ...", "chance"
  Score score;
};

struct DiagnosticRow {
  std::string env;
  std::string diagnostic;
  std::string metric;     // "accuracy", "AUROC", "error", "share"
  bool headline = false;  // the family's row in the paper's table
  Score score;
  Score compact;         // the same asked of the compact lift
  Score additive_error;  // |M(a*b) - M(a) - M(b)|_F over the row's segments
  std::vector<WeakerScore> weaker;
  std::optional<Score> paper;
  std::optional<Score> paper_additive_error;
};

// One seed's outcome of one diagnostic: what families produce and RunDiagnostics averages.
struct SeedOutcome {
  std::string diagnostic;
  std::string metric;
  bool headline = false;
  double score = 0.0;
  std::vector<std::pair<std::string, double>> weaker;
};

struct FamilyOutcome {
  double additive_error = 0.0;  // mean over the segments used
  std::vector<SeedOutcome> diagnostics;
};

// With matrices of this lift, kFull or kCompact; of the same segments for both.
FamilyOutcome DiagnoseGraphMotif(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind);
FamilyOutcome DiagnoseMicroGrid(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind);
FamilyOutcome DiagnosePointRooms(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind);
FamilyOutcome DiagnoseDubinsReacher(const DiagnoseConfig& config, std::uint64_t seed,
                                    LiftKind kind);

// The registry ids of the families that can be diagnosed.
const std::vector<std::string>& DiagnosableFamilies();

// All diagnostics of the named families (all if empty). `progress` is told how many of how many
// parts are done. UserError on an unknown family, with the nearest name.
std::vector<DiagnosticRow> RunDiagnostics(const DiagnoseConfig& config,
                                          const std::vector<std::string>& families,
                                          const std::function<void(int done, int total)>& progress);

}  // namespace msrl

#endif  // MSRL_DIAGNOSE_DIAGNOSTIC_H_
