// MicroGrid: does the obstruction score tell compositions that break a rule of the maze from those
// that keep them?
#include "msrl/env/micro_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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
constexpr int kMaxInstances = 12;
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
  config.width = RandomInt(3, 4, rng);
  config.height = config.width == 3 ? RandomInt(3, 4, rng) : 3;
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
        // prefix or piece is a loop: then they also make a legal walk with the piece not reversed,
        // which has the same places under the same actions
        const int entry = piece.front().from;
        if (piece.back().to != exit || (entry != exit && drawn.prefix.front().from != exit) ||
            std::all_of(piece.begin(), piece.end(),
                        [](const Move& move) { return move.from == move.to; })) {
          continue;
        }
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

// Distances to the reachable matrices, in the whole descriptor and in parts of it. With one-hot
// actions most entries of the matrices vanish or repeat others; each is held once, and Frobenius
// norms are sums weighted by how often it occurs.
class DescriptorScan {
 public:
  DescriptorScan(const Lift::Ptr& lift, Rng& rng) : typical_(Typical(lift, rng)) {
    std::vector<std::string> all;
    for (const LiftBlock& block : lift->blocks()) all.push_back(block.name);
    const Index c = lift->FindBlock("c").offset;
    AddPart("full", Channels(*lift, all));
    AddPart("occupancy", {c, c + 1});
    AddPart("without displacement", Channels(*lift, {{"c", "xi_c", "1"}}));
    AddPart("without actions", Channels(*lift, {{"c", "delta", "1"}}));
  }

  std::size_t parts() const { return parts_.size(); }
  const std::string& name(std::size_t part) const { return parts_[part].name; }

  // The entries that are held, one column per matrix.
  Eigen::MatrixXd Gather(std::span<const SegmentMatrix> matrices) const {
    Eigen::MatrixXd values(std::ssize(entries_), std::ssize(matrices));
    for (std::size_t n = 0; n < matrices.size(); ++n) {
      for (std::size_t k = 0; k < entries_.size(); ++k) {
        values(static_cast<Index>(k), static_cast<Index>(n)) =
            matrices[n](entries_[k].first, entries_[k].second);
      }
    }
    return values;
  }

  // For each candidate the distance to the nearest reachable matrix; both as gathered.
  std::vector<double> Nearest(std::size_t part, const Eigen::MatrixXd& candidates,
                              const Eigen::MatrixXd& reachable) const {
    const Part& p = parts_[part];
    const Eigen::VectorXd weights =
        Eigen::Map<const Eigen::VectorXd>(p.counts.data(), std::ssize(p.counts)).cwiseSqrt();
    const Eigen::MatrixXd gallery = weights.asDiagonal() * reachable(p.rows, Eigen::all);
    const Eigen::MatrixXd queries = weights.asDiagonal() * candidates(p.rows, Eigen::all);
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
  struct Part {
    std::string name;
    std::vector<Index> rows;     // of what is gathered
    std::vector<double> counts;  // how often each occurs in this part of the matrix
  };

  // A generic matrix: entries that vanish or are equal here do so for all one-hot actions.
  static SegmentMatrix Typical(const Lift::Ptr& lift, Rng& rng) {
    constexpr Index kLength = 20;
    Segment segment{Eigen::MatrixXd(lift->d(), kLength + 1),
                    Eigen::MatrixXd::Zero(lift->q(), kLength), Eigen::VectorXd::Zero(kLength)};
    for (double& value : segment.x.reshaped()) value = rng.Normal();
    for (Index t = 0; t < kLength; ++t) segment.a(t % lift->q(), t) = 1.0;
    return Describe(lift, segment);
  }

  static std::vector<Index> Channels(const Lift& lift, const std::vector<std::string>& blocks) {
    std::vector<Index> channels;
    for (const std::string& name : blocks) {
      const LiftBlock& block = lift.FindBlock(name);
      for (Index i = 0; i < block.size; ++i) channels.push_back(block.offset + i);
    }
    return channels;
  }

  void AddPart(std::string name, const std::vector<Index>& channels) {
    std::map<Index, double> counts;
    for (std::size_t j = 0; j < channels.size(); ++j) {
      for (std::size_t i = 0; i <= j; ++i) {
        const double value = typical_(channels[i], channels[j]);
        if (value == 0.0) continue;
        const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
          return std::abs(typical_(entry.first, entry.second) - value) < 1e-11;
        });
        const Index row = same - entries_.begin();
        if (same == entries_.end()) entries_.emplace_back(channels[i], channels[j]);
        counts[row] += i == j ? 1.0 : 2.0;
      }
    }
    Part part{.name = std::move(name), .rows = {}, .counts = {}};
    for (const auto& [row, count] : counts) {
      part.rows.push_back(row);
      part.counts.push_back(count);
    }
    parts_.push_back(std::move(part));
  }

  SegmentMatrix typical_;
  std::vector<std::pair<Index, Index>> entries_;
  std::vector<Part> parts_;
};

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

int InstanceCount(int queries) {
  return std::clamp(queries / kQueriesPerInstance, 4, kMaxInstances);
}
// At least one candidate of each kind.
int PerInstance(int queries) { return std::max(4, (queries - 1) / InstanceCount(queries) + 1); }

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

OneStep DrawRealStep(const World& world, Rng& rng) {
  const int junction = AnyOf(world.starts, rng);
  // without phases only moves can be blocked: staying is left out of both classes
  const int actions = world.phases > 1 ? MicroGrid::kActions : MicroGrid::kStay;
  const int action = static_cast<int>(rng.Index(actions));
  return {junction, {junction, action, world.Next(junction, action)}};
}

OneStep DrawBlockedStep(const World& world, Rng& rng) {
  const OneStep model = DrawRealStep(world, rng);
  const bool moves = model.move.to != model.junction;
  for (;;) {
    const auto [junction, real] = DrawRealStep(world, rng);
    if (world.phases > 1) {
      if (world.PhaseOf(junction) != 0) continue;
      const int held = world.InPhase(junction, RandomInt(1, world.phases - 1, rng));
      return {junction, {held, real.action, world.Next(held, real.action)}};
    }
    // a sibling layout has a wall where here is none, or none where here is one; as often as real
    // steps stay or move, so that the step alone says nothing
    if ((real.to == junction) != moves) continue;
    if (!moves) return {junction, {junction, real.action, junction}};
    const Eigen::Vector2d shift((real.action == 1) - (real.action == 3),
                                (real.action == 0) - (real.action == 2));
    for (const int other : world.starts) {
      const Eigen::Vector2d gap =
          world.nodes.col(other).head<2>() - world.nodes.col(junction).head<2>() - shift;
      if (gap.norm() < 0.01) return {junction, {junction, real.action, other}};
    }
  }
}

ProxyExamples DrawProxyExamples(const std::string& split, const DiagnoseConfig& config, int count,
                                Rng& rng) {
  ProxyExamples examples;
  const int instances = std::max(4, count / 20);
  constexpr Index kLocal = 2 * MicroGrid::kActions;
  for (int n = 0; n < count; ++n) examples.labels.push_back(n % 2);
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
      const bool blocked = examples.labels[static_cast<std::size_t>(done)] == 1;
      const OneStep step = blocked ? DrawBlockedStep(world, rng) : DrawRealStep(world, rng);
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
  const ProxyExamples test =
      DrawProxyExamples("held-out", config, std::max(20, config.queries), rng);
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

  const DescriptorScan scan(lift, rng);
  Detection detection;
  detection.real.resize(scan.parts());
  detection.blocked.resize(scan.parts());
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
    const Eigen::MatrixXd gallery = scan.Gather(reachable.At(kHorizon));
    const Eigen::MatrixXd queries = scan.Gather(candidates);
    for (std::size_t k = 0; k < scan.parts(); ++k) {
      const std::vector<double> scores = scan.Nearest(k, queries, gallery);
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
    CertifyBlocked(lift, world, reachable, (per_instance + 1) / 2, exact, certificates);

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
  for (std::size_t k = 1; k < scan.parts(); ++k) {
    headline.weaker.emplace_back(scan.name(k), detection.Auc(k));
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
    for (std::size_t k = 1; k < scan.parts(); ++k) {
      part.weaker.emplace_back(scan.name(k), Auroc(detection.blocked[k][rule], detection.real[k]));
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
