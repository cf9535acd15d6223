// MicroGrid: does the obstruction score tell compositions that break a rule of the maze from those
// that keep them?
#include "msrl/env/micro_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/gluing.h"
#include "msrl/core/obstruction.h"
#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/env/graph_motif.h"

namespace msrl {
namespace {

constexpr int kPieceLength = 2;  // of the prefix, and of what is appended to it
constexpr int kHorizon = 2 * kPieceLength;
constexpr int kMaxInstances = 24;
constexpr int kQueriesPerInstance = 10;

// One transition of a walk over the states of an instance.
struct Move {
  int from = 0;
  int action = 0;
  int to = 0;
};
using Walk = std::vector<Move>;

struct Composition {
  Walk prefix;
  Walk piece;
};

// What the descriptors see of an instance: states embedded with a cell as the unit of length.
struct World {
  FiniteMdp mdp;
  Eigen::MatrixXd nodes;    // d x states
  std::vector<int> starts;  // all states that the task can be in
  int phases = 1;

  int Next(int state, int action) const { return mdp.next[mdp.At(state, action)]; }
  int PhaseOf(int state) const { return state % phases; }
  int InPhase(int state, int phase) const { return state - PhaseOf(state) + phase; }
};

Eigen::VectorXd ActionCode(int action, int actions) {
  return Eigen::VectorXd::Unit(actions, action);
}

World MakeWorld(const TabularInstance& instance, int phases, Index dimensions) {
  World world{.mdp = instance.mdp,
              .nodes = Eigen::MatrixXd::Zero(dimensions, instance.mdp.states),
              .starts = {},
              .phases = phases};
  for (int s = 0; s < world.mdp.states; ++s) {
    world.nodes.col(s).head<2>() =
        instance.position[static_cast<std::size_t>(s)] / instance.step_length;
    if (dimensions > 2) world.nodes(2, s) = world.PhaseOf(s);
  }
  std::set<int> seen = {instance.start};
  std::vector<int> open = {instance.start};
  while (!open.empty()) {
    const int state = open.back();
    open.pop_back();
    for (int a = 0; a < world.mdp.actions; ++a) {
      const int next = world.Next(state, a);
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  world.starts.assign(seen.begin(), seen.end());
  return world;
}

Multigraph GraphOf(const World& world) {
  Multigraph graph{.nodes = world.nodes, .edges = {}};
  for (const int state : world.starts) {
    for (int a = 0; a < world.mdp.actions; ++a) {
      graph.edges.push_back({state, world.Next(state, a), ActionCode(a, world.mdp.actions), 0.0});
    }
  }
  return graph;
}

Segment SegmentOf(const World& world, const Walk& walk) {
  const auto length = static_cast<Index>(walk.size());
  Segment segment{Eigen::MatrixXd(world.nodes.rows(), length + 1),
                  Eigen::MatrixXd(world.mdp.actions, length), Eigen::VectorXd::Zero(length)};
  for (Index t = 0; t < length; ++t) {
    const Move& move = walk[static_cast<std::size_t>(t)];
    segment.x.col(t) = world.nodes.col(move.from);
    segment.x.col(t + 1) = world.nodes.col(move.to);
    segment.a.col(t) = ActionCode(move.action, world.mdp.actions);
  }
  return segment;
}

MicroGrid MakeGrid(const std::string& split, GridKind kind, Rng& rng) {
  MicroGridConfig config;
  config.common.split = split;
  config.kind = GridKindName(kind);
  config.width = RandomInt(4, 5, rng);
  config.height = 3;
  MicroGrid grid(config);
  grid.Reset(rng.NextU64());
  return grid;
}

template <typename T>
const T& AnyOf(const std::vector<T>& values, Rng& rng) {
  return values[static_cast<std::size_t>(rng.Index(std::ssize(values)))];
}

Walk RandomWalk(const World& world, int state, int length, Rng& rng) {
  Walk walk;
  for (int t = 0; t < length; ++t) {
    const int action = static_cast<int>(rng.Index(world.mdp.actions));
    walk.push_back({state, action, world.Next(state, action)});
    state = walk.back().to;
  }
  return walk;
}

bool IsLegal(const World& world, const Move& move) {
  return world.Next(move.from, move.action) == move.to;
}

// Whether the same places can be visited by walking in the other direction, so that occupancy
// cannot tell the walk from a legal one.
bool HasLegalTwin(const World& world, const Walk& walk) {
  return std::all_of(walk.begin(), walk.end(), [&](const Move& move) {
    for (int a = 0; a < world.mdp.actions; ++a) {
      if (world.Next(move.to, a) == move.from) return true;
    }
    return false;
  });
}

// The instance with every one-way passage open in both directions.
World OpenedBothWays(const World& world) {
  World sibling = world;
  for (const int state : world.starts) {
    for (int a = 0; a < MicroGrid::kStay; ++a) {
      const int next = world.Next(state, a);
      if (next == state) continue;
      int& back = sibling.mdp.next[sibling.mdp.At(next, (a + 2) % 4)];
      if (back == next) back = state;
    }
  }
  return sibling;
}

enum class Blocked {
  kOneWay,      // crosses a one-way passage against its direction, as a sibling layout allows
  kPhase,       // goes on with the key, which the prefix does not have
  kWalkedBack,  // the states of a real piece in reverse order under the actions of the real one
};
constexpr int kBlockedKinds = 3;

std::optional<Composition> DrawBlocked(const World& world, Blocked kind, int prefix_length,
                                       int piece_length, Rng& rng) {
  const World sibling = kind == Blocked::kOneWay ? OpenedBothWays(world) : World{};
  constexpr int kAttempts = 5000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Composition drawn;
    drawn.prefix = RandomWalk(world, AnyOf(world.starts, rng), prefix_length, rng);
    const int exit = drawn.prefix.back().to;
    switch (kind) {
      case Blocked::kOneWay: {
        drawn.piece = RandomWalk(sibling, exit, piece_length, rng);
        const bool legal = std::all_of(drawn.piece.begin(), drawn.piece.end(),
                                       [&](const Move& move) { return IsLegal(world, move); });
        if (legal || !HasLegalTwin(world, drawn.prefix) || !HasLegalTwin(world, drawn.piece)) {
          continue;
        }
        return drawn;
      }
      case Blocked::kPhase: {
        if (world.PhaseOf(exit) != 0) continue;
        const int phase = RandomInt(1, world.phases - 1, rng);
        drawn.piece = RandomWalk(world, world.InPhase(exit, phase), piece_length, rng);
        return drawn;
      }
      case Blocked::kWalkedBack: {
        Walk piece = RandomWalk(world, AnyOf(world.starts, rng), piece_length, rng);
        if (piece.back().to != exit || piece.front().from == exit) continue;
        for (Move& move : piece) std::swap(move.from, move.to);
        std::reverse(piece.begin(), piece.end());
        drawn.piece = std::move(piece);
        return drawn;
      }
    }
  }
  return std::nullopt;
}

Composition DrawReal(const World& world, int prefix_length, int piece_length, Rng& rng) {
  Walk walk = RandomWalk(world, AnyOf(world.starts, rng), prefix_length + piece_length, rng);
  const auto cut = walk.begin() + prefix_length;
  return {Walk(walk.begin(), cut), Walk(cut, walk.end())};
}

SegmentMatrix Exact(const Lift::Ptr& lift, const World& world, const Composition& composition) {
  return Describe(lift, SegmentOf(world, composition.prefix)) +
         Describe(lift, SegmentOf(world, composition.piece));
}

// Distances in a part of the descriptor: the Frobenius norm over some channels.
class PartialDescriptor {
 public:
  // `typical` is any generic matrix: entries that vanish there vanish for all one-hot actions.
  PartialDescriptor(std::string name, const std::vector<Index>& channels,
                    const SegmentMatrix& typical)
      : name_(std::move(name)) {
    for (std::size_t j = 0; j < channels.size(); ++j) {
      for (std::size_t i = 0; i <= j; ++i) {
        if (typical(channels[i], channels[j]) == 0.0) continue;
        entries_.push_back({channels[i], channels[j], i == j ? 1.0 : std::sqrt(2.0)});
      }
    }
  }

  const std::string& name() const { return name_; }

  Eigen::MatrixXd operator()(std::span<const SegmentMatrix> matrices) const {
    Eigen::MatrixXd values(std::ssize(entries_), std::ssize(matrices));
    for (std::size_t n = 0; n < matrices.size(); ++n) {
      for (std::size_t k = 0; k < entries_.size(); ++k) {
        const Entry& entry = entries_[k];
        values(static_cast<Index>(k), static_cast<Index>(n)) =
            entry.weight * matrices[n](entry.row, entry.column);
      }
    }
    return values;
  }

  // For each candidate the distance to the nearest of the matrices.
  std::vector<double> Nearest(std::span<const SegmentMatrix> candidates,
                              std::span<const SegmentMatrix> matrices) const {
    const Eigen::MatrixXd gallery = (*this)(matrices);
    const Eigen::MatrixXd queries = (*this)(candidates);
    const Eigen::VectorXd norms = gallery.colwise().squaredNorm();
    const Eigen::MatrixXd products = gallery.transpose() * queries;
    std::vector<double> nearest;
    for (Index n = 0; n < queries.cols(); ++n) {
      const double squared = (norms - 2.0 * products.col(n)).minCoeff();
      nearest.push_back(std::sqrt(std::max(0.0, squared + queries.col(n).squaredNorm())));
    }
    return nearest;
  }

 private:
  struct Entry {
    Index row = 0;
    Index column = 0;
    double weight = 1.0;
  };
  std::string name_;
  std::vector<Entry> entries_;
};

std::vector<Index> Channels(const Lift& lift, std::span<const std::string> blocks) {
  std::vector<Index> channels;
  for (const std::string& name : blocks) {
    const LiftBlock& block = lift.FindBlock(name);
    for (Index i = 0; i < block.size; ++i) channels.push_back(block.offset + i);
  }
  return channels;
}

std::vector<PartialDescriptor> Descriptors(const Lift::Ptr& lift, Rng& rng) {
  constexpr Index kLength = 20;
  Segment typical{Eigen::MatrixXd(lift->d(), kLength + 1),
                  Eigen::MatrixXd::Zero(lift->q(), kLength), Eigen::VectorXd::Zero(kLength)};
  for (double& value : typical.x.reshaped()) value = rng.Normal();
  for (Index t = 0; t < kLength; ++t) typical.a(t % lift->q(), t) = 1.0;
  const SegmentMatrix matrix = Describe(lift, typical);

  std::vector<Index> all(static_cast<std::size_t>(lift->m()));
  std::iota(all.begin(), all.end(), Index{0});
  const Index c = lift->FindBlock("c").offset;
  const std::vector<std::string> still = {"c", "xi_c", "1"};
  const std::vector<std::string> without_actions = {"c", "delta", "1"};
  return {PartialDescriptor("full", all, matrix),
          PartialDescriptor("occupancy", {c, c + 1}, matrix),
          PartialDescriptor("without displacement", Channels(*lift, still), matrix),
          PartialDescriptor("without actions", Channels(*lift, without_actions), matrix)};
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

int InstanceCount(int queries) {
  return std::clamp(queries / kQueriesPerInstance, 4, kMaxInstances);
}
int PerInstance(int queries) { return (queries - 1) / InstanceCount(queries) + 1; }

// Scores of candidates that are observed with noise.
struct Detection {
  // per descriptor
  std::vector<std::vector<double>> real;
  std::vector<std::array<std::vector<double>, kBlockedKinds>> blocked;

  double Auc(std::size_t descriptor) const {
    std::vector<double> all;
    for (const auto& scores : blocked[descriptor]) {
      all.insert(all.end(), scores.begin(), scores.end());
    }
    return Auroc(all, real[descriptor]);
  }
};

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

// A composition of real pieces that meet in the same place, but in different phases of the task.
std::optional<Composition> DrawPhaseJump(const World& world, int prefix_length, int piece_length,
                                         bool same_transitions, Rng& rng) {
  constexpr int kAttempts = 2000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Composition drawn = DrawReal(world, prefix_length, piece_length, rng);
    if (same_transitions) {
      // the parts of a real walk in the wrong order
      std::swap(drawn.prefix, drawn.piece);
      const int exit = drawn.prefix.back().to;
      const int entry = drawn.piece.front().from;
      if (exit != entry && world.InPhase(exit, 0) == world.InPhase(entry, 0)) return drawn;
      continue;
    }
    const int exit = drawn.prefix.back().to;
    const int entry = AnyOf(world.starts, rng);
    if (exit == entry || world.InPhase(exit, 0) != world.InPhase(entry, 0)) continue;
    drawn.piece = RandomWalk(world, entry, piece_length, rng);
    return drawn;
  }
  return std::nullopt;
}

struct Certificates {
  int real = 0;
  int real_certified = 0;
  int blocked = 0;
  int blocked_certified = 0;
  int same_transitions = 0;
};

double Share(int part, int whole) {
  MSRL_CHECK_GT(whole, 0);
  return static_cast<double>(part) / static_cast<double>(whole);
}

void CertifyReal(const Lift::Ptr& lift, const World& world, const ReachableSet& reachable,
                 int count, Rng& rng, Certificates& certificates) {
  for (int i = 0; i < count; ++i) {
    const Composition real =
        DrawReal(world, RandomInt(1, kPieceLength, rng), RandomInt(1, kPieceLength, rng), rng);
    ++certificates.real;
    certificates.real_certified +=
        ExactObstruction(Exact(lift, world, real), reachable).certified() ? 1 : 0;
  }
}

void CertifyBlocked(const Lift::Ptr& lift, const World& world, const ReachableSet& reachable,
                    int count, Rng& rng, Certificates& certificates) {
  for (int i = 0; i < count; ++i) {
    const int prefix_length = RandomInt(1, kPieceLength, rng);
    const int piece_length = RandomInt(1, kPieceLength, rng);
    const std::optional<Composition> blocked =
        world.phases == 1
            ? DrawBlocked(world, Blocked::kOneWay, prefix_length, piece_length, rng)
            : DrawPhaseJump(world, prefix_length, piece_length, rng.Bernoulli(0.2), rng);
    if (!blocked) continue;
    ++certificates.blocked;
    certificates.blocked_certified +=
        ExactObstruction(Exact(lift, world, *blocked), reachable).certified() ? 1 : 0;
    certificates.same_transitions += SameTransitionsAsLegalWalk(*lift, world, *blocked) ? 1 : 0;
  }
}

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

// Examples for the learned proxy: one transition appended to a prefix.
struct ProxyExamples {
  Eigen::MatrixXd full;   // with what is observed where the prefix ends
  Eigen::MatrixXd piece;  // the transition alone
  std::vector<int> labels;
};

struct OneStep {
  int junction = 0;
  Move move;
};

OneStep DrawOneStep(const World& world, bool blocked, Rng& rng) {
  for (;;) {
    const int junction = AnyOf(world.starts, rng);
    const int action = static_cast<int>(rng.Index(world.mdp.actions));
    const int next = world.Next(junction, action);
    if (!blocked) return {junction, {junction, action, next}};
    if (world.phases > 1) {
      if (world.PhaseOf(junction) != 0) continue;
      const int held = world.InPhase(junction, RandomInt(1, world.phases - 1, rng));
      return {junction, {held, action, world.Next(held, action)}};
    }
    // in a sibling layout the passage is open where there is a wall, or closed where there is none
    if (action == MicroGrid::kStay) continue;
    if (next != junction) return {junction, {junction, action, junction}};
    const Eigen::Vector2d shift((action == 1) - (action == 3), (action == 0) - (action == 2));
    for (const int other : world.starts) {
      const Eigen::Vector2d gap =
          world.nodes.col(other).head<2>() - world.nodes.col(junction).head<2>() - shift;
      if (gap.norm() < 0.01) return {junction, {junction, action, other}};
    }
  }
}

ProxyExamples DrawProxyExamples(const std::string& split, const DiagnoseConfig& config, int count,
                                Rng& rng) {
  ProxyExamples examples;
  const int instances = std::max(4, count / 20);
  constexpr Index kLocal = 2 * MicroGrid::kActions;
  for (int n = 0; n < count; ++n) examples.labels.push_back(rng.Bernoulli(0.5) ? 1 : 0);
  int done = 0;
  for (int i = 0; i < instances; ++i) {
    MicroGrid grid = MakeGrid(split, i % 2 == 0 ? GridKind::kOneWay : GridKind::kKeyDoor, rng);
    const World world = MakeWorld(grid.instance(), grid.phases(), 3);
    const auto noisy = [&](const Eigen::VectorXd& value) -> Eigen::VectorXd {
      Eigen::VectorXd seen = value;
      for (double& entry : seen) entry += config.noise * rng.Normal();
      return seen;
    };
    for (; done < count * (i + 1) / instances; ++done) {
      const OneStep step =
          DrawOneStep(world, examples.labels[static_cast<std::size_t>(done)] == 1, rng);
      const int extra_size = grid.instance().extra_size;
      Eigen::VectorXd local(kLocal + extra_size);
      for (int a = 0; a < MicroGrid::kActions; ++a) {
        local.segment<2>(2 * Index{a}) =
            (world.nodes.col(world.Next(step.junction, a)) - world.nodes.col(step.junction))
                .head<2>();
      }
      for (int k = 0; k < extra_size; ++k) {
        local[kLocal + k] =
            grid.instance().extra[static_cast<std::size_t>(step.junction * extra_size + k)] /
            grid.instance().step_length;
      }
      local = noisy(local);
      const Eigen::VectorXd entry = noisy(world.nodes.col(step.move.from));
      const Eigen::VectorXd delta = noisy(world.nodes.col(step.move.to)) - entry;
      const Eigen::VectorXd mismatch = entry - noisy(world.nodes.col(step.junction));
      Eigen::MatrixXd xi_delta = Eigen::MatrixXd::Zero(3, MicroGrid::kActions);
      xi_delta.col(step.move.action) = delta;

      Eigen::VectorXd piece(3 + MicroGrid::kActions + xi_delta.size());
      piece << delta, ActionCode(step.move.action, MicroGrid::kActions), xi_delta.reshaped();
      Eigen::VectorXd first(piece.size() + mismatch.size());
      first << piece, mismatch;
      Eigen::VectorXd full(local.size() + first.size() + local.size() * first.size());
      full << local, first, (local * first.transpose()).reshaped();
      if (done == 0) {
        examples.full.resize(full.size(), count);
        examples.piece.resize(piece.size(), count);
      }
      examples.full.col(done) = full;
      examples.piece.col(done) = piece;
    }
  }
  return examples;
}

double ProxyAuroc(const Eigen::MatrixXd& train, const std::vector<int>& train_labels,
                  const Eigen::MatrixXd& test, const std::vector<int>& test_labels) {
  constexpr double kPenalty = 1e-2;
  const RidgeClassifier proxy(train, train_labels, 2, kPenalty);
  const Eigen::MatrixXd scores = proxy.Scores(test);
  std::vector<double> positives;
  std::vector<double> negatives;
  for (std::size_t n = 0; n < test_labels.size(); ++n) {
    (test_labels[n] == 1 ? positives : negatives).push_back(scores(1, static_cast<Index>(n)));
  }
  return Auroc(positives, negatives);
}

SeedOutcome LearnedProxy(const DiagnoseConfig& config, std::uint64_t seed) {
  constexpr int kTrainingExamples = 2000;
  Rng rng(seed, "diagnose-micro-grid/proxy");
  const ProxyExamples train = DrawProxyExamples("train", config, kTrainingExamples, rng);
  const ProxyExamples test = DrawProxyExamples("held-out", config, config.queries, rng);
  return {.diagnostic = "learned obstruction proxy",
          .metric = "AUROC",
          .headline = false,
          .score = ProxyAuroc(train.full, train.labels, test.full, test.labels),
          .weaker = {{"without observation",
                      ProxyAuroc(train.piece, train.labels, test.piece, test.labels)},
                     {"chance", 0.5}}};
}

double GraphMotifFalseCertificates(const DiagnoseConfig& config, std::uint64_t seed) {
  Rng rng(seed, "diagnose-micro-grid/graph-motif");
  Certificates certificates;
  for (int i = 0; i < InstanceCount(config.queries); ++i) {
    GraphMotifConfig motif;
    motif.common.split = "held-out";
    motif.size = RandomInt(4, 8, rng);
    GraphMotif env(motif);
    env.Reset(rng.NextU64());
    const World world = MakeWorld(env.instance(), 1, 2);
    const auto lift =
        Lift::Make({.kind = LiftKind::kFull, .d = 2, .q = world.mdp.actions, .slots = {}});
    const ReachableSet reachable(lift, GraphOf(world), world.starts, kHorizon);
    CertifyReal(lift, world, reachable, PerInstance(config.queries), rng, certificates);
  }
  return Share(certificates.real_certified, certificates.real);
}

}  // namespace

FamilyOutcome DiagnoseMicroGrid(const DiagnoseConfig& config, std::uint64_t seed) {
  constexpr Index kDimensions = 3;  // place and phase
  const std::array<int, 3> slots = {0, 1, 2};
  const auto lift = Lift::Make(
      {.kind = LiftKind::kFull, .d = kDimensions, .q = MicroGrid::kActions, .slots = {}});
  Rng layouts(seed, "diagnose-micro-grid/layouts");
  Rng rng(seed, "diagnose-micro-grid/candidates");
  Rng noise(seed, "diagnose-micro-grid/noise");
  Rng exact(seed, "diagnose-micro-grid/certificates");
  Rng covers(seed, "diagnose-micro-grid/covers");

  const std::vector<PartialDescriptor> descriptors = Descriptors(lift, rng);
  Detection detection;
  detection.real.resize(descriptors.size());
  detection.blocked.resize(descriptors.size());
  Certificates certificates;
  std::vector<double> additive_errors;
  std::vector<double> gluing_errors;
  const int per_instance = PerInstance(config.queries);
  for (int i = 0; i < InstanceCount(config.queries); ++i) {
    const GridKind kind = i % 2 == 0 ? GridKind::kOneWay : GridKind::kKeyDoor;
    const MicroGrid grid = MakeGrid("held-out", kind, layouts);
    const World world = MakeWorld(grid.instance(), grid.phases(), kDimensions);
    const ReachableSet reachable(lift, GraphOf(world), world.starts, kHorizon);

    const auto observe = [&](const Composition& composition) {
      const auto see = [&](const Walk& walk) {
        const Segment seen = ObserveNoisily(SegmentOf(world, walk), slots, config.noise, noise);
        additive_errors.push_back(AdditiveError(lift, seen));
        return Describe(lift, seen);
      };
      const SegmentMatrix prefix = see(composition.prefix);
      return prefix + see(composition.piece);
    };
    std::vector<SegmentMatrix> candidates;
    std::vector<int> labels;  // -1: real, else the kind of Blocked
    for (int n = 0; n < per_instance; ++n) {
      if (n % 2 == 0) {
        candidates.push_back(observe(DrawReal(world, kPieceLength, kPieceLength, rng)));
        labels.push_back(-1);
        continue;
      }
      const Blocked rule = n % 4 == 1                   ? Blocked::kWalkedBack
                           : kind == GridKind::kKeyDoor ? Blocked::kPhase
                                                        : Blocked::kOneWay;
      const auto blocked = DrawBlocked(world, rule, kPieceLength, kPieceLength, rng);
      if (!blocked) continue;
      candidates.push_back(observe(*blocked));
      labels.push_back(static_cast<int>(rule));
    }
    for (std::size_t k = 0; k < descriptors.size(); ++k) {
      const std::vector<double> scores = descriptors[k].Nearest(candidates, reachable.At(kHorizon));
      for (std::size_t n = 0; n < scores.size(); ++n) {
        const int label = labels[n];
        (label < 0 ? detection.real[k] : detection.blocked[k][static_cast<std::size_t>(label)])
            .push_back(scores[n]);
      }
      if (k == 0) {
        // the scan over all entries is the exact score
        const double score = ExactObstruction(candidates[0], reachable).score;
        MSRL_CHECK(std::abs(score - scores[0]) < 1e-6 * (1.0 + score));
      }
    }

    CertifyReal(lift, world, reachable, per_instance, exact, certificates);
    CertifyBlocked(lift, world, reachable, per_instance, exact, certificates);

    constexpr int kLongWalk = 24;
    const Segment walk =
        SegmentOf(world, RandomWalk(world, AnyOf(world.starts, covers), kLongWalk, covers));
    const Segment seen = ObserveNoisily(walk, slots, config.noise, covers);
    additive_errors.push_back(AdditiveError(lift, seen));
    for (int n = 0; n < 4; ++n) gluing_errors.push_back(GluingError(lift, seen, covers));
  }

  FamilyOutcome outcome;
  outcome.additive_error = Mean(additive_errors);
  SeedOutcome headline{.diagnostic = "invalid-composition detection",
                       .metric = "AUROC",
                       .headline = true,
                       .score = detection.Auc(0),
                       .weaker = {}};
  for (std::size_t k = 1; k < descriptors.size(); ++k) {
    headline.weaker.emplace_back(descriptors[k].name(), detection.Auc(k));
  }
  headline.weaker.emplace_back("chance", 0.5);
  outcome.diagnostics.push_back(std::move(headline));

  const std::array<std::string, kBlockedKinds> rules = {"one-way passages", "keys and doors",
                                                        "pieces walked back"};
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    SeedOutcome part{.diagnostic = "invalid composition: " + rules[rule],
                     .metric = "AUROC",
                     .headline = false,
                     .score = Auroc(detection.blocked[0][rule], detection.real[0]),
                     .weaker = {}};
    for (std::size_t k = 1; k < descriptors.size(); ++k) {
      part.weaker.emplace_back(descriptors[k].name(),
                               Auroc(detection.blocked[k][rule], detection.real[k]));
    }
    part.weaker.emplace_back("chance", 0.5);
    outcome.diagnostics.push_back(std::move(part));
  }

  const auto add = [&](const std::string& diagnostic, const std::string& metric, double score) {
    outcome.diagnostics.push_back({.diagnostic = diagnostic,
                                   .metric = metric,
                                   .headline = false,
                                   .score = score,
                                   .weaker = {}});
  };
  add("false certificates", "share", Share(certificates.real_certified, certificates.real));
  add("graph-motif false certificates", "share", GraphMotifFalseCertificates(config, seed));
  add("blocked compositions certified", "share",
      Share(certificates.blocked_certified, certificates.blocked));
  add("blocked with the multiset of a legal walk", "share",
      Share(certificates.same_transitions, certificates.blocked));
  outcome.diagnostics.push_back(LearnedProxy(config, seed));
  add("gluing error", "error", Mean(gluing_errors));
  return outcome;
}

}  // namespace msrl
