// MicroGrid: does the obstruction score tell compositions that break a rule of the maze from those
// that keep them?
#include "msrl/env/micro_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/gluing.h"
#include "msrl/core/obstruction.h"
#include "msrl/core/statistics.h"
#include "msrl/diagnose/descriptor_scan.h"
#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/diagnose/grid_walks.h"
#include "msrl/diagnose/learned_obstruction.h"
#include "msrl/env/graph_motif.h"

namespace msrl {
namespace {

using internal::ActionCode;
using internal::AnyOf;
using internal::Blocked;
using internal::Composition;
using internal::DescriptorScan;
using internal::DrawBlocked;
using internal::DrawPhaseJump;
using internal::DrawReal;
using internal::GraphOf;
using internal::kBlockedKinds;
using internal::MakeWorld;
using internal::RandomWalk;
using internal::SegmentOf;
using internal::Walk;
using internal::World;

constexpr int kPieceLength = 2;  // of the prefix, and of what is appended to it
constexpr int kHorizon = 2 * kPieceLength;
constexpr int kMaxInstances = 12;
constexpr int kQueriesPerInstance = 10;
constexpr std::array kSlots{0, 1, 2};  // place and phase

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Share(int part, int whole) {
  MSRL_CHECK_GT(whole, 0);
  return static_cast<double>(part) / static_cast<double>(whole);
}

int InstanceCount(int queries) {
  return std::clamp(queries / kQueriesPerInstance, 4, kMaxInstances);
}
// At least one candidate of each kind.
int PerInstance(int queries) { return std::max(4, (queries - 1) / InstanceCount(queries) + 1); }

// All matrices of walks in the instance, up to the length of a composition.
ReachableSet ReachableIn(const World& world, const Lift::Ptr& lift) {
  return ReachableSet(lift, GraphOf(world), world.starts, kHorizon);
}

// Sees walks with noise, and keeps how far their matrices are from the sum of their parts'.
class Observer {
 public:
  Observer(Lift::Ptr lift, double noise) : lift_(std::move(lift)), noise_(noise) {}

  Segment See(const World& world, const Walk& walk, Rng& rng) {
    Segment seen = ObserveNoisily(SegmentOf(world, walk), kSlots, noise_, rng);
    additive_errors_.push_back(AdditiveError(lift_, seen));
    return seen;
  }

  SegmentMatrix See(const World& world, const Composition& composition, Rng& rng) {
    const SegmentMatrix prefix = Describe(lift_, See(world, composition.prefix, rng));
    return prefix + Describe(lift_, See(world, composition.piece, rng));
  }

  double additive_error() const { return Mean(additive_errors_); }

 private:
  Lift::Ptr lift_;
  double noise_;
  std::vector<double> additive_errors_;
};

// ---- detection: scores of candidates that are observed with noise ----

struct Candidates {
  std::vector<SegmentMatrix> matrices;
  std::vector<std::optional<Blocked>> rules;  // that each breaks; none if it is real
};

// Real and blocked ones in turn.
Candidates DrawCandidates(const World& world, int count, Observer& observer, Rng& rng, Rng& noise) {
  const Blocked rule_of_maze = world.phases > 1 ? Blocked::kPhase : Blocked::kOneWay;
  Candidates candidates;
  const auto add = [&](const Composition& composition, std::optional<Blocked> rule) {
    candidates.matrices.push_back(observer.See(world, composition, noise));
    candidates.rules.push_back(rule);
  };
  for (int n = 0; n < count; ++n) {
    if (n % 2 == 0) {
      add(DrawReal(world, kPieceLength, kPieceLength, rng), std::nullopt);
      continue;
    }
    const Blocked rule = n % 4 == 1 ? Blocked::kWalkedBack : rule_of_maze;
    const auto blocked = DrawBlocked(world, rule, kPieceLength, kPieceLength, rng);
    if (blocked) add(*blocked, rule);
  }
  return candidates;
}

// AUROC of the obstruction score, in the whole descriptor and in parts of it.
class Detection {
 public:
  // `rng` as for DescriptorScan.
  Detection(const Lift::Ptr& lift, Rng& rng)
      : scan_(lift, rng), real_(scan_.parts()), blocked_(scan_.parts()) {}

  void Score(const Candidates& candidates, const ReachableSet& reachable) {
    const Eigen::MatrixXd gallery = scan_.Gather(reachable.At(kHorizon));
    const Eigen::MatrixXd queries = scan_.Gather(candidates.matrices);
    for (std::size_t k = 0; k < scan_.parts(); ++k) {
      const std::vector<double> scores = scan_.Nearest(k, queries, gallery);
      for (std::size_t n = 0; n < scores.size(); ++n) {
        const std::optional<Blocked> rule = candidates.rules[n];
        (rule ? blocked_[k][static_cast<std::size_t>(*rule)] : real_[k]).push_back(scores[n]);
      }
      if (k == 0) {
        // the scan over all entries is the exact score
        const double score = ExactObstruction(candidates.matrices[0], reachable).score;
        MSRL_CHECK(std::abs(score - scores[0]) < 1e-6 * (1.0 + score));
      }
    }
  }

  // All rules together, then each of them.
  std::vector<SeedOutcome> Outcomes() const {
    std::vector<SeedOutcome> outcomes;
    outcomes.push_back(Outcome("invalid-composition detection", [&](std::size_t part) {
      std::vector<double> all;
      for (const auto& scores : blocked_[part]) all.insert(all.end(), scores.begin(), scores.end());
      return Auroc(all, real_[part]);
    }));
    outcomes.back().headline = true;
    const std::array<std::string, kBlockedKinds> rules = {"one-way passages", "keys and doors",
                                                          "pieces walked back"};
    for (std::size_t rule = 0; rule < rules.size(); ++rule) {
      outcomes.push_back(Outcome("invalid composition: " + rules[rule], [&](std::size_t part) {
        return Auroc(blocked_[part][rule], real_[part]);
      }));
    }
    return outcomes;
  }

 private:
  template <typename AucOfPart>
  SeedOutcome Outcome(const std::string& diagnostic, const AucOfPart& auc) const {
    SeedOutcome outcome{.diagnostic = diagnostic,
                        .metric = "AUROC",
                        .headline = false,
                        .score = auc(0),
                        .weaker = {}};
    for (std::size_t k = 1; k < scan_.parts(); ++k) {
      outcome.weaker.emplace_back(scan_.name(k), auc(k));
    }
    outcome.weaker.emplace_back("chance", 0.5);
    return outcome;
  }

  DescriptorScan scan_;
  // scores per part of the descriptor, and per rule
  std::vector<std::vector<double>> real_;
  std::vector<std::array<std::vector<double>, kBlockedKinds>> blocked_;
};

// ---- certificates: exact scores of what is observed without noise ----

SegmentMatrix Exact(const Lift::Ptr& lift, const World& world, const Composition& composition) {
  return Describe(lift, SegmentOf(world, composition.prefix)) +
         Describe(lift, SegmentOf(world, composition.piece));
}

// Whether a legal walk has exactly these lifted transitions, in some order. A search of its own,
// which shares nothing with the enumeration of matrices.
bool SameTransitionsAsLegalWalk(const Lift& lift, const World& world, int state,
                                std::vector<Eigen::VectorXd>& left) {
  if (left.empty()) return true;
  Eigen::VectorXd psi(lift.m());
  for (int a = 0; a < world.mdp.actions; ++a) {
    const int next = world.Next(state, a);
    lift.Apply(world.nodes.col(state), ActionCode(a, world.mdp.actions), 0.0, world.nodes.col(next),
               psi);
    const auto used = std::find(left.begin(), left.end(), psi);
    if (used == left.end()) continue;
    std::vector<Eigen::VectorXd> rest = left;
    rest.erase(rest.begin() + (used - left.begin()));
    if (SameTransitionsAsLegalWalk(lift, world, next, rest)) return true;
  }
  return false;
}

bool SameTransitionsAsLegalWalk(const Lift& lift, const World& world,
                                const Composition& composition) {
  std::vector<Eigen::VectorXd> psi;
  for (const Walk* walk : {&composition.prefix, &composition.piece}) {
    const Eigen::MatrixXd lifted = LiftedSteps(lift, SegmentOf(world, *walk));
    for (Index t = 0; t < lifted.cols(); ++t) psi.emplace_back(lifted.col(t));
  }
  return std::any_of(world.starts.begin(), world.starts.end(), [&](int start) {
    return SameTransitionsAsLegalWalk(lift, world, start, psi);
  });
}

struct Certificates {
  int real = 0;
  int real_certified = 0;
  int blocked = 0;
  int blocked_certified = 0;
  int same_transitions = 0;
};

// Of prefix and piece. Mostly short of the full horizon, where a certificate takes longest.
std::pair<int, int> DrawLengths(Rng& rng) {
  if (rng.Bernoulli(0.05)) return {kPieceLength, kPieceLength};
  const int prefix = RandomInt(1, kPieceLength, rng);
  return {prefix, RandomInt(1, kPieceLength + 1 - prefix, rng)};
}

void CertifyReal(const Lift::Ptr& lift, const World& world, const ReachableSet& reachable,
                 int count, Rng& rng, Certificates& certificates) {
  for (int i = 0; i < count; ++i) {
    const auto [prefix_length, piece_length] = DrawLengths(rng);
    const Composition real = DrawReal(world, prefix_length, piece_length, rng);
    ++certificates.real;
    certificates.real_certified +=
        ExactObstruction(Exact(lift, world, real), reachable).certified() ? 1 : 0;
  }
}

void CertifyBlocked(const Lift::Ptr& lift, const World& world, const ReachableSet& reachable,
                    int count, Rng& rng, Certificates& certificates) {
  for (int i = 0; i < count; ++i) {
    const auto [prefix_length, piece_length] = DrawLengths(rng);
    const std::optional<Composition> blocked =
        world.phases == 1
            ? DrawBlocked(world, Blocked::kOneWay, prefix_length, piece_length, rng)
            : DrawPhaseJump(world, prefix_length, piece_length, rng.Bernoulli(0.2), rng);
    if (!blocked) continue;
    const bool certified = ExactObstruction(Exact(lift, world, *blocked), reachable).certified();
    const bool same_transitions = SameTransitionsAsLegalWalk(*lift, world, *blocked);
    // the matrix is that of the legal walk, hence reachable
    MSRL_CHECK(!certified || !same_transitions);
    ++certificates.blocked;
    certificates.blocked_certified += certified ? 1 : 0;
    certificates.same_transitions += same_transitions ? 1 : 0;
  }
}

double GraphMotifFalseCertificates(const DiagnoseConfig& config, std::uint64_t seed,
                                   LiftKind kind) {
  Rng rng(seed, "diagnose-micro-grid/graph-motif");
  Certificates certificates;
  for (int i = 0; i < InstanceCount(config.queries); ++i) {
    GraphMotifConfig motif;
    motif.common.split = Split::kHeldOut;
    motif.size = RandomInt(4, 8, rng);
    GraphMotif env(motif);
    env.Reset(rng.NextU64());
    const World world = MakeWorld(env.instance(), 1, 2);
    const auto lift = Lift::Make({.kind = kind, .d = 2, .q = world.mdp.actions, .slots = {}});
    CertifyReal(lift, world, ReachableIn(world, lift), PerInstance(config.queries), rng,
                certificates);
  }
  return Share(certificates.real_certified, certificates.real);
}

// ---- gluing ----

double GluingError(const Lift::Ptr& lift, const Segment& segment, Rng& rng) {
  const Index horizon = segment.horizon();
  std::vector<Interval> cover;
  // every interval begins where the last one still runs
  for (Index end = 0; end < horizon;) {
    const Index begin = std::max<Index>(0, end - rng.Index(4));
    end = std::min(horizon, end + 1 + rng.Index(6));
    cover.push_back({begin, end});
  }
  const SegmentMatrix direct = Describe(lift, segment);
  const SegmentMatrix glued = GlueIntervals(cover, horizon, [&](Interval interval) {
    return Describe(lift, Restrict(segment, interval));
  });
  return glued.Distance(direct) / direct.Norm();
}

// Of some covers of one long walk.
void AddGluingErrors(const Lift::Ptr& lift, const World& world, Observer& observer, Rng& rng,
                     std::vector<double>& errors) {
  constexpr int kLongWalk = 24;
  constexpr int kCovers = 4;
  const Walk walk = RandomWalk(world, AnyOf(world.starts, rng), kLongWalk, rng);
  const Segment seen = observer.See(world, walk, rng);
  for (int n = 0; n < kCovers; ++n) errors.push_back(GluingError(lift, seen, rng));
}

}  // namespace

FamilyOutcome DiagnoseMicroGrid(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind) {
  const auto lift =
      Lift::Make({.kind = kind, .d = std::ssize(kSlots), .q = MicroGrid::kActions, .slots = {}});
  Rng layouts(seed, "diagnose-micro-grid/layouts");
  Rng rng(seed, "diagnose-micro-grid/candidates");
  Rng noise(seed, "diagnose-micro-grid/noise");
  Rng exact(seed, "diagnose-micro-grid/certificates");
  Rng covers(seed, "diagnose-micro-grid/covers");

  Observer observer(lift, config.noise);
  Detection detection(lift, rng);
  Certificates certificates;
  std::vector<double> gluing_errors;
  const int per_instance = PerInstance(config.queries);
  for (int i = 0; i < InstanceCount(config.queries); ++i) {
    const GridKind rule = i % 2 == 0 ? GridKind::kOneWay : GridKind::kKeyDoor;
    const MicroGrid grid = internal::MakeGrid(Split::kHeldOut, rule, layouts);
    const World world = MakeWorld(grid.instance(), grid.phases(), lift->d());
    const ReachableSet reachable = ReachableIn(world, lift);
    detection.Score(DrawCandidates(world, per_instance, observer, rng, noise), reachable);
    CertifyReal(lift, world, reachable, per_instance, exact, certificates);
    CertifyBlocked(lift, world, reachable, (per_instance + 1) / 2, exact, certificates);
    AddGluingErrors(lift, world, observer, covers, gluing_errors);
  }

  FamilyOutcome outcome{.additive_error = observer.additive_error(),
                        .diagnostics = detection.Outcomes()};
  const auto add = [&](const std::string& diagnostic, const std::string& metric, double score) {
    outcome.diagnostics.push_back({.diagnostic = diagnostic,
                                   .metric = metric,
                                   .headline = false,
                                   .score = score,
                                   .weaker = {}});
  };
  add("false certificates", "share", Share(certificates.real_certified, certificates.real));
  add("graph-motif false certificates", "share", GraphMotifFalseCertificates(config, seed, kind));
  add("blocked compositions certified", "share",
      Share(certificates.blocked_certified, certificates.blocked));
  add("blocked with the multiset of a legal walk", "share",
      Share(certificates.same_transitions, certificates.blocked));
  outcome.diagnostics.push_back(internal::LearnedProxy(config, seed, kind));
  add("gluing error", "error", Mean(gluing_errors));
  return outcome;
}

}  // namespace msrl
