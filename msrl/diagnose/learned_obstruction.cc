#include "msrl/diagnose/learned_obstruction.h"

#include <Eigen/Core>
#include <algorithm>
#include <string>
#include <vector>

#include "msrl/core/statistics.h"
#include "msrl/diagnose/evaluation.h"
#include "msrl/diagnose/grid_walks.h"

namespace msrl::internal {
namespace {

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

ProxyExamples DrawProxyExamples(LiftKind kind, Split split, const DiagnoseConfig& config, int count,
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
      Eigen::MatrixXd xi_delta =
          Eigen::MatrixXd::Zero(3, kind == LiftKind::kFull ? MicroGrid::kActions : 0);
      if (kind == LiftKind::kFull) xi_delta.col(step.move.action) = delta;

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

}  // namespace

SeedOutcome LearnedProxy(const DiagnoseConfig& config, std::uint64_t seed, LiftKind kind) {
  constexpr int kTrainingExamples = 2000;
  Rng rng(seed, "diagnose-micro-grid/proxy");
  const ProxyExamples train =
      DrawProxyExamples(kind, Split::kTrain, config, kTrainingExamples, rng);
  const ProxyExamples test =
      DrawProxyExamples(kind, Split::kHeldOut, config, std::max(20, config.queries), rng);
  return {.diagnostic = "learned obstruction proxy",
          .metric = "AUROC",
          .headline = false,
          .score = ProxyAuroc(train.full, train.labels, test.full, test.labels),
          .weaker = {{"without observation",
                      ProxyAuroc(train.piece, train.labels, test.piece, test.labels)},
                     {"chance", 0.5}}};
}

}  // namespace msrl::internal
