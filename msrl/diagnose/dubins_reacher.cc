// Which action causes which transport? Motion is recorded with its two action channels perhaps
// swapped and their signs perhaps flipped; segments have to be matched to those labelled alike.
//
// Paths, occupancy and displacement are distributed alike for all eight labellings: only blocks
// that couple actions with motion can tell them apart.
#include "msrl/env/dubins_reacher.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>

#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/env/env_registry.h"
#include "msrl/env/record.h"

namespace msrl {
namespace {

constexpr int kLabellings = 8;
constexpr int kSteps = 60;
constexpr std::array kSlots{0, 1, 4, 5};  // position and velocity
constexpr double kPenalty = 1e-2;
constexpr double kRidge = 0.1;  // share of the mean diagonal: short segments excite few directions

// The signed permutations of two channels: bit 0 swaps, bits 1 and 2 flip.
Eigen::MatrixXd Relabel(const Eigen::MatrixXd& actions, int labelling) {
  Eigen::MatrixXd relabelled = actions;
  if ((labelling & 1) != 0) relabelled.row(0).swap(relabelled.row(1));
  if ((labelling & 2) != 0) relabelled.row(0) *= -1.0;
  if ((labelling & 4) != 0) relabelled.row(1) *= -1.0;
  return relabelled;
}

struct Examples {
  std::vector<SegmentMatrix> matrices;
  std::vector<int> labels;
  double additive_error = 0.0;
};

// Segments of at least `count` instances, the labellings in turn: each occurs twice or more.
Examples Collect(LiftKind kind, const std::string& task, const std::string& split, int count,
                 double noise, std::uint64_t seed) {
  // the car without a goal has no border to get stuck at
  const std::string reward = task == "dubins" ? "reward=velocity" : "reward=distance";
  const std::vector<std::string> options{"task=" + task, "split=" + split, reward, "scale=1"};
  const std::unique_ptr<Env> env =
      MakeEnv(MakeEnvEntry<DubinsReacher, DubinsReacherConfig>("dubins-reacher"), options);
  const auto lift = Lift::Make({kind, static_cast<Index>(kSlots.size()), 2, {}});
  count = std::max(count, 2 * kLabellings);
  Rng rng(seed, "diagnose-dubins-reacher/" + task + "/" + split);
  Behaviour behaviour(*env, {.skill = 0.0, .persistence = 4.0}, Rng(rng.NextU64(), "behaviour"));
  Examples examples;
  while (static_cast<int>(examples.labels.size()) < count) {
    env->Reset(rng.NextU64());
    const Segment segment = Record(*env, behaviour, kSteps).segment;
    if (segment.horizon() < kSteps) continue;
    const Eigen::MatrixXd steps = segment.x.rightCols(kSteps) - segment.x.leftCols(kSteps);
    const double typical = std::sqrt(steps.topRows(2).squaredNorm() / kSteps);
    Segment seen = ObserveNoisily(segment, kSlots, noise * typical, rng);
    // velocity slots are in units of the speed, not of a step
    for (Index i = 2; i < 4; ++i) {
      for (Index t = 0; t <= kSteps; ++t) {
        seen.x(i, t) = segment.x(kSlots[static_cast<std::size_t>(i)], t) + noise * rng.Normal();
      }
    }
    examples.labels.push_back(static_cast<int>(examples.labels.size()) % kLabellings);
    seen.a = Relabel(segment.a.topRows(2), examples.labels.back());
    seen.r.setZero();
    examples.additive_error += AdditiveError(lift, seen) / count;
    examples.matrices.push_back(Describe(lift, seen));
  }
  return examples;
}

// The least-squares answer to "how do these channels move the state?", delta = B z, read off the
// normal equations that the matrix holds. Channels are named as in the full lift.
Eigen::VectorXd TransportOperator(const SegmentMatrix& matrix,
                                  const std::vector<std::string>& full) {
  const std::vector<std::string> channels = BlocksOf(*matrix.lift(), full);
  const std::string& displacement = matrix.lift()->blocks()[1].name;
  const Index d = matrix.lift()->d();
  Index size = 0;
  for (const std::string& name : channels) size += matrix.lift()->FindBlock(name).size;
  Eigen::MatrixXd normal(size, size);
  Eigen::MatrixXd moments(size, d);
  Index row = 0;
  for (const std::string& row_name : channels) {
    const Eigen::MatrixXd transport = matrix.Block(row_name, displacement);
    moments.middleRows(row, transport.rows()) = transport;
    Index column = 0;
    for (const std::string& column_name : channels) {
      const Eigen::MatrixXd block = matrix.Block(row_name, column_name);
      normal.block(row, column, block.rows(), block.cols()) = block;
      column += block.cols();
    }
    row += transport.rows();
  }
  normal.diagonal().array() += kRidge * normal.trace() / static_cast<double>(size);
  const Eigen::MatrixXd solution = normal.ldlt().solve(moments);
  return solution.reshaped();
}

// Top-1 retrieval among eight segments, one per labelling, in the space of class scores that ridge
// regression learns on the training instances.
double RetrievalAccuracy(const Examples& train, const Examples& held_out, const FeatureMap& map,
                         std::uint64_t seed) {
  const RidgeClassifier classifier(StackColumns(train.matrices, map), train.labels, kLabellings,
                                   kPenalty);
  Eigen::MatrixXd scores =
      classifier.Scores(StackColumns(held_out.matrices, map)).array() - 1.0 / kLabellings;
  scores.colwise().normalize();  // instances differ in how strongly actions act, not only in which
  std::array<std::vector<Index>, kLabellings> by_label;
  for (std::size_t n = 0; n < held_out.labels.size(); ++n) {
    by_label[static_cast<std::size_t>(held_out.labels[n])].push_back(static_cast<Index>(n));
  }
  Rng rng(seed, "diagnose-dubins-reacher/gallery");
  int right = 0;
  for (Index query = 0; query < scores.cols(); ++query) {
    Eigen::MatrixXd gallery(kLabellings, kLabellings);
    for (int label = 0; label < kLabellings; ++label) {
      const std::vector<Index>& candidates = by_label[static_cast<std::size_t>(label)];
      Index pick = query;
      while (pick == query) {
        pick = candidates[static_cast<std::size_t>(
            rng.Index(static_cast<std::int64_t>(candidates.size())))];
      }
      gallery.col(label) = scores.col(pick);
    }
    const Index best = Nearest(scores.col(query), gallery);
    right += best == held_out.labels[static_cast<std::size_t>(query)] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(scores.cols());
}

SeedOutcome Retrieve(const Examples& train, const Examples& held_out, std::uint64_t seed) {
  const auto accuracy = [&](const FeatureMap& map) {
    return RetrievalAccuracy(train, held_out, map, seed);
  };
  const auto transport = [&](const std::vector<std::string>& channels) {
    return accuracy(
        [&](const SegmentMatrix& matrix) { return TransportOperator(matrix, channels); });
  };
  const std::vector<std::string> position{"c"};
  SeedOutcome outcome;
  outcome.metric = "accuracy";
  outcome.score = transport({"c", "xi_c", "1"});
  outcome.weaker = {{"occupancy", accuracy([&](const SegmentMatrix& matrix) {
                       const auto blocks = BlocksOf(*matrix.lift(), position);
                       return Eigen::VectorXd(BlockEntries(matrix, blocks) / kSteps);
                     })},
                    {"without action blocks", transport({"c", "1"})},
                    {"chance", 1.0 / kLabellings}};
  return outcome;
}

}  // namespace

FamilyOutcome DiagnoseDubinsReacher(const DiagnoseConfig& config, std::uint64_t seed,
                                    LiftKind kind) {
  FamilyOutcome family;
  for (const std::string task : {"dubins", "arm"}) {
    const Examples train = Collect(kind, task, "train", 6 * config.queries, config.noise, seed);
    const Examples held_out = Collect(kind, task, "held-out", config.queries, config.noise, seed);
    SeedOutcome outcome = Retrieve(train, held_out, seed);
    outcome.diagnostic = "action-conditioned transport retrieval (" + task + ")";
    outcome.headline = task == "dubins";
    family.diagnostics.push_back(outcome);
    family.additive_error += 0.5 * held_out.additive_error;
  }
  return family;
}

}  // namespace msrl
