// Direction and shape of walks on small graphs, from matrices of noisy walks without action labels.
#include "msrl/env/graph_motif.h"

#include <array>
#include <cmath>
#include <optional>

#include "msrl/core/gauge.h"
#include "msrl/core/patterns.h"
#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/env/env_registry.h"

namespace msrl {
namespace {

constexpr int kRoutes = 4;  // the gallery: these, and each of them walked back
constexpr int kMotifs = 5;
constexpr int kTourSteps = 120;
constexpr std::array kSlots{0, 1};
constexpr double kPenalty = 1e-3;
// Walks that look alike in both directions cannot be told apart by any matrix; they are not asked.
constexpr double kMinAsymmetry = 0.3;

// A graph of the environment with the moves that change the state.
class Walker {
 public:
  Walker(const std::string& split, const std::string& two_way, std::uint64_t seed)
      : rng_(seed, "diagnose-graph-motif/" + split + "/" + two_way) {
    const std::vector<std::string> options{"split=" + split, "two_way=" + two_way};
    env_ = MakeEnv(MakeEnvEntry<GraphMotif, GraphMotifConfig>(GraphMotif::kId), options);
    graph_ = UnwrapAs<GraphMotif>(*env_);
  }

  Rng& rng() { return rng_; }
  void NextInstance() { env_->Reset(rng_.NextU64()); }
  Motif motif() const { return graph_->motif(); }

  // A walk of `steps` moves from a random node, turning back only where there is no other way;
  // empty if it gets stuck.
  std::optional<Segment> Walk(int steps) {
    const TabularInstance& instance = graph_->instance();
    int state = static_cast<int>(rng_.Index(instance.mdp.states));
    int previous = -1;
    Segment walk{Eigen::MatrixXd(2, steps + 1), Eigen::MatrixXd(0, steps),
                 Eigen::VectorXd::Zero(steps)};
    walk.x.col(0) = instance.position[static_cast<std::size_t>(state)];
    for (int t = 0; t < steps; ++t) {
      std::vector<int> onward;
      std::vector<int> back;
      for (int action = 0; action < instance.mdp.actions; ++action) {
        const int next = instance.mdp.next[instance.mdp.At(state, action)];
        if (next == state) continue;
        (next == previous ? back : onward).push_back(next);
      }
      if (onward.empty()) onward = back;
      if (onward.empty()) return std::nullopt;
      previous = state;
      state =
          onward[static_cast<std::size_t>(rng_.Index(static_cast<std::int64_t>(onward.size())))];
      walk.x.col(t + 1) = instance.position[static_cast<std::size_t>(state)];
    }
    return walk;
  }

  Segment Observe(const Segment& walk, double noise) {
    const Index steps = walk.horizon();
    const Eigen::MatrixXd moves = walk.x.rightCols(steps) - walk.x.leftCols(steps);
    const double typical = std::sqrt(moves.squaredNorm() / static_cast<double>(steps));
    return ObserveNoisily(walk, kSlots, noise * typical, rng_);
  }

 private:
  Rng rng_;
  std::unique_ptr<Env> env_;
  GraphMotif* graph_;
};

Lift::Ptr PlaneLift(LiftKind kind) { return Lift::Make({kind, 2, 0, {}}); }

// How much of the transport changes sign when the walk is turned round, 0 to about 1.
double Asymmetry(const SegmentMatrix& matrix) { return GeometricReversalParity(matrix).Relative(); }

// Different routes of one length in one instance, none of them alike in both directions.
std::optional<std::vector<Segment>> DrawRoutes(Walker& walker) {
  static const Lift::Ptr lift = PlaneLift(LiftKind::kFull);
  walker.NextInstance();
  const int steps = 6 + static_cast<int>(walker.rng().Index(9));
  std::vector<Segment> routes;
  std::vector<SegmentMatrix> matrices;
  for (int attempt = 0; attempt < 60 && routes.size() < kRoutes; ++attempt) {
    std::optional<Segment> walk = walker.Walk(steps);
    if (!walk) continue;
    const SegmentMatrix matrix = Describe(lift, *walk);
    bool usable = Asymmetry(matrix) >= kMinAsymmetry;
    for (const SegmentMatrix& other : matrices) {
      const double least = kMinAsymmetry * matrix.Norm();
      usable =
          usable && matrix.Distance(other) > least && ReverseEdges(matrix).Distance(other) > least;
    }
    if (!usable) continue;
    matrices.push_back(matrix);
    routes.push_back(std::move(*walk));
  }
  if (routes.size() < kRoutes) return std::nullopt;
  return routes;
}

const std::vector<std::string> kAll{"c", "delta", "1"};
const std::vector<std::string> kWithoutIncidence{"c", "1"};
const std::vector<std::string> kOccupancy{"c"};

// ---- order-sensitive retrieval ----

struct Retrieval {
  std::vector<std::vector<SegmentMatrix>> galleries;  // the answer is the first
  std::vector<SegmentMatrix> queries;
  double additive_error = 0.0;
};

Retrieval AskForRoutes(const Lift::Ptr& lift, const DiagnoseConfig& config, std::uint64_t seed) {
  Walker walker("held-out", "yes", seed);
  Retrieval retrieval;
  while (static_cast<int>(retrieval.queries.size()) < config.queries) {
    const auto routes = DrawRoutes(walker);
    if (!routes) continue;
    const Segment query = walker.Observe(routes->front(), config.noise);
    retrieval.additive_error += AdditiveError(lift, query) / config.queries;
    retrieval.queries.push_back(Describe(lift, query));
    std::vector<SegmentMatrix>& gallery = retrieval.galleries.emplace_back();
    for (const Segment& route : *routes) {
      gallery.push_back(Describe(lift, walker.Observe(route, config.noise)));
      gallery.push_back(Describe(lift, walker.Observe(WalkedBack(route), config.noise)));
    }
  }
  return retrieval;
}

double RetrievalAccuracy(const Retrieval& retrieval, const std::vector<std::string>& blocks) {
  const FeatureMap entries = [&](const SegmentMatrix& matrix) {
    return BlockEntries(matrix, BlocksOf(*matrix.lift(), blocks));
  };
  int right = 0;
  for (std::size_t n = 0; n < retrieval.queries.size(); ++n) {
    const Eigen::MatrixXd gallery = StackColumns(retrieval.galleries[n], entries);
    const Standardizer standardize(gallery);
    right += Nearest(standardize(entries(retrieval.queries[n])), standardize(gallery)) == 0 ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(retrieval.queries.size());
}

// ---- reversal detection: the same route again, the route walked back, or another one? ----

struct Pairs {
  std::vector<std::pair<SegmentMatrix, SegmentMatrix>> pairs;
  std::vector<int> labels;  // 0 again, 1 back, 2 other
};

Pairs DrawPairs(const Lift::Ptr& lift, const std::string& split, int count, double noise,
                std::uint64_t seed) {
  Walker walker(split, "yes", seed ^ 0x5eed);
  Pairs pairs;
  while (static_cast<int>(pairs.labels.size()) < count) {
    const auto routes = DrawRoutes(walker);
    if (!routes) continue;
    const int label = static_cast<int>(walker.rng().Index(3));
    const Segment& route = routes->front();
    const Segment second = label == 0 ? route : label == 1 ? WalkedBack(route) : (*routes)[1];
    pairs.pairs.emplace_back(Describe(lift, walker.Observe(route, noise)),
                             Describe(lift, walker.Observe(second, noise)));
    pairs.labels.push_back(label);
  }
  return pairs;
}

// Relative distances of the second matrix from the first and from the first one reversed.
Eigen::MatrixXd PairFeatures(const Pairs& pairs, const std::vector<std::string>& blocks) {
  Eigen::MatrixXd features(5, static_cast<Index>(pairs.pairs.size()));
  for (std::size_t n = 0; n < pairs.pairs.size(); ++n) {
    const auto& [first, second] = pairs.pairs[n];
    const std::vector<std::string> here = BlocksOf(*first.lift(), blocks);
    const Eigen::VectorXd entries = BlockEntries(second, here);
    const double scale = entries.norm() + 1e-12;
    const double again = (entries - BlockEntries(first, here)).norm() / scale;
    const double back = (entries - BlockEntries(ReverseEdges(first), here)).norm() / scale;
    features.col(static_cast<Index>(n)) << again, back, std::log(again + 1e-3),
        std::log(back + 1e-3), std::min(again, back);
  }
  return features;
}

// ---- motif classification from a long walk ----

struct Tours {
  std::vector<SegmentMatrix> matrices;
  std::vector<int> labels;
};

Tours DrawTours(const Lift::Ptr& lift, const std::string& split, int count, double noise,
                std::uint64_t seed) {
  Walker walker(split, "no", seed);
  Tours tours;
  while (static_cast<int>(tours.labels.size()) < count) {
    walker.NextInstance();
    // several short walks, because one-way graphs end somewhere
    SegmentMatrix matrix(lift);
    for (int attempt = 0; attempt < 400 && matrix.HorizonEntry() < kTourSteps; ++attempt) {
      const auto walk = walker.Walk(3 + static_cast<int>(walker.rng().Index(4)));
      if (walk) matrix += Describe(lift, walker.Observe(*walk, noise));
    }
    if (matrix.HorizonEntry() < kTourSteps) continue;
    tours.matrices.push_back(matrix);
    tours.labels.push_back(static_cast<int>(walker.motif()));
  }
  return tours;
}

// The shape of the walked graph, incidence included.
Eigen::VectorXd IncidenceShape(const SegmentMatrix& matrix) {
  const Eigen::VectorXd invariants = CongruenceInvariants(matrix);
  const SegmentMatrix form = MidpointForm(matrix);
  const std::string& position = form.lift()->blocks()[0].name;
  const std::string& displacement = form.lift()->blocks()[1].name;
  const Eigen::MatrixXd cc = form.Block(position, position);
  const Eigen::MatrixXd dd = form.Block(displacement, displacement);
  const double circulation = Circulation(matrix)(0, 1) / std::sqrt(cc.trace() * dd.trace());
  Eigen::VectorXd values(invariants.size() + 3);
  values << invariants, std::abs(circulation), std::log(dd.trace() / cc.trace()),
      GeometricReversalParity(matrix).Relative();
  return values;
}

// The shape of the occupied region: spread and elongation about its mean.
Eigen::VectorXd OccupancyShape(const SegmentMatrix& matrix) {
  const std::string& position = matrix.lift()->blocks()[0].name;
  const Eigen::Vector2d mean = matrix.Block(position, "1");
  const Eigen::Matrix2d spread =
      Eigen::Matrix2d(matrix.Block(position, position)) - mean * mean.transpose();
  Eigen::VectorXd values(3);
  values << std::log(spread.trace()),
      4.0 * (spread(0, 0) * spread(1, 1) - spread(0, 1) * spread(0, 1)) /
          std::pow(spread.trace(), 2),
      mean.squaredNorm() / spread.trace();
  return values;
}

// The values with their squares and products: ridge regression is linear, these let it draw curved
// borders.
Eigen::VectorXd WithProducts(const Eigen::VectorXd& values) {
  const Index linear = values.size();
  Eigen::VectorXd curved(linear + linear * (linear + 1) / 2);
  curved.head(linear) = values;
  Index k = linear;
  for (Index i = 0; i < linear; ++i) {
    for (Index j = 0; j <= i; ++j) curved[k++] = values[i] * values[j];
  }
  return curved;
}

Eigen::MatrixXd TourFeatures(const Tours& tours, bool incidence) {
  return StackColumns(tours.matrices, [&](const SegmentMatrix& tour) {
    SegmentMatrix matrix = tour;
    matrix *= 1.0 / matrix.HorizonEntry();
    return WithProducts(incidence ? IncidenceShape(matrix) : OccupancyShape(matrix));
  });
}

}  // namespace

FamilyOutcome DiagnoseGraphMotif(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind) {
  const Lift::Ptr lift = PlaneLift(kind);
  FamilyOutcome family;
  const Retrieval retrieval = AskForRoutes(lift, config, seed);
  family.additive_error = retrieval.additive_error;
  family.diagnostics.push_back(
      {.diagnostic = "order-sensitive retrieval",
       .metric = "accuracy",
       .headline = true,
       .score = RetrievalAccuracy(retrieval, kAll),
       .weaker = {{"occupancy", RetrievalAccuracy(retrieval, kOccupancy)},
                  {"without displacement", RetrievalAccuracy(retrieval, kWithoutIncidence)},
                  {"chance", 1.0 / (2 * kRoutes)}}});

  const Pairs train_pairs = DrawPairs(lift, "train", 2 * config.queries, config.noise, seed);
  const Pairs pairs = DrawPairs(lift, "held-out", config.queries, config.noise, seed);
  const auto detect = [&](const std::vector<std::string>& blocks) {
    return RidgeClassifier(PairFeatures(train_pairs, blocks), train_pairs.labels, 3, kPenalty)
        .Accuracy(PairFeatures(pairs, blocks), pairs.labels);
  };
  family.diagnostics.push_back({.diagnostic = "reversal detection",
                                .metric = "accuracy",
                                .headline = false,
                                .score = detect(kAll),
                                .weaker = {{"occupancy", detect(kOccupancy)},
                                           {"without displacement", detect(kWithoutIncidence)},
                                           {"chance", 1.0 / 3.0}}});

  const Tours train_tours = DrawTours(lift, "train", 4 * config.queries, config.noise, seed);
  const Tours tours = DrawTours(lift, "held-out", config.queries, config.noise, seed);
  const auto classify = [&](bool incidence) {
    return RidgeClassifier(TourFeatures(train_tours, incidence), train_tours.labels, kMotifs,
                           kPenalty)
        .Accuracy(TourFeatures(tours, incidence), tours.labels);
  };
  family.diagnostics.push_back(
      {.diagnostic = "motif classification",
       .metric = "accuracy",
       .headline = false,
       .score = classify(true),
       .weaker = {{"occupancy", classify(false)}, {"chance", 1.0 / kMotifs}}});
  return family;
}

}  // namespace msrl
