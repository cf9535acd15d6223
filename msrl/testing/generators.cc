#include "msrl/testing/generators.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "msrl/core/symmetric_eigen.h"

namespace msrl::testing {
namespace {

// Eigenvectors of a random symmetric matrix.
Eigen::MatrixXd RandomOrthogonal(Scene& scene, Index n) {
  const Eigen::MatrixXd gaussian = scene.Matrix(n, n);
  return internal::DecomposeSymmetric(gaussian + gaussian.transpose()).vectors;
}

Eigen::MatrixXd RandomWellConditioned(Scene& scene, Index n) {
  Eigen::VectorXd singular(n);
  for (double& value : singular) value = std::pow(3.0, scene.rng.Uniform(-1.0, 1.0));
  return RandomOrthogonal(scene, n) * singular.asDiagonal() * RandomOrthogonal(scene, n);
}

}  // namespace

Eigen::VectorXd Scene::Vector(Index n) {
  Eigen::VectorXd vector(n);
  for (double& value : vector) value = rng.Normal();
  return vector;
}

Eigen::MatrixXd Scene::Matrix(Index rows, Index columns) {
  Eigen::MatrixXd matrix(rows, columns);
  for (double& value : matrix.reshaped()) value = rng.Normal();
  return matrix;
}

Segment Scene::RandomSegment(Index horizon) {
  return {scale * Matrix(lift->d(), horizon + 1), Matrix(lift->q(), horizon), Vector(horizon)};
}

Segment Scene::RandomOneHotSegment() {
  Segment segment = RandomSegment();
  for (Index t = 0; t < segment.horizon(); ++t) {
    segment.a.col(t).setZero();
    segment.a(rng.Index(lift->q()), t) = 1.0;
  }
  return segment;
}

Segment Scene::RandomCycle() {
  Segment segment = RandomSegment(std::max<Index>(steps, 1));
  segment.x.col(segment.horizon()) = segment.x.col(0);
  return segment;
}

Gauge Scene::RandomGauge() {
  return {RandomWellConditioned(*this, lift->d()), RandomWellConditioned(*this, lift->q())};
}

Multigraph Scene::RandomGraph(int nodes, int edges) {
  Multigraph graph{scale * Matrix(lift->d(), nodes), {}};
  for (int e = 0; e < edges; ++e) {
    Eigen::VectorXd action = Eigen::VectorXd::Zero(lift->q());
    if (lift->q() > 0) action[rng.Index(lift->q())] = 1.0;
    graph.edges.push_back({static_cast<int>(rng.Index(nodes)), static_cast<int>(rng.Index(nodes)),
                           action, rng.Normal()});
  }
  return graph;
}

std::vector<Interval> Scene::RandomCover(Index horizon, int extra) {
  std::vector<Interval> cover;
  Index covered = 0;
  while (covered < horizon) {
    const Index begin = covered - rng.Index(std::min<Index>(covered, 4) + 1);
    const Index end = std::min(horizon, covered + 1 + rng.Index(12));
    cover.push_back({begin, end});
    covered = end;
  }
  for (int k = 0; k < extra && horizon > 0; ++k) {
    const Index begin = rng.Index(horizon);
    cover.push_back({begin, begin + 1 + rng.Index(std::min<Index>(horizon - begin, 6))});
  }
  for (std::size_t k = cover.size(); k > 1; --k) {
    std::swap(cover[k - 1], cover[static_cast<std::size_t>(rng.Index(static_cast<Index>(k)))]);
  }
  return cover;
}

Scene DrawScene(const SceneOptions& options) {
  const LiftKind kind = *rc::gen::elementOf(options.kinds);
  const Index d = *rc::gen::inRange(options.min_d, options.max_d + 1);
  const Index q = *rc::gen::inRange(options.min_q, options.max_q + 1);
  const Index steps = *rc::gen::weightedOneOf<Index>({{1, rc::gen::just<Index>(0)},
                                                      {1, rc::gen::just<Index>(1)},
                                                      {6, rc::gen::inRange<Index>(2, 40)},
                                                      {1, rc::gen::inRange<Index>(180, 420)}});
  const double scale = std::pow(10.0, *rc::gen::inRange(-3, 4));
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  return {Lift::Make({kind, d, q, {}}), steps, scale, Rng(seed, "scene")};
}

Scene DrawFullScene() { return DrawScene({.kinds = {LiftKind::kFull}}); }
Scene DrawActionScene() {
  return DrawScene(
      {.kinds = {LiftKind::kFull, LiftKind::kCompact, LiftKind::kCompactNoReward}, .min_q = 1});
}

std::ostream& operator<<(std::ostream& out, const Scene& scene) {
  return out << scene.lift->Describe() << " T=" << scene.steps << " scale=" << scene.scale;
}

Eigen::MatrixXd NaiveMatrix(const Lift& lift, const Segment& segment) {
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(lift.m(), lift.m());
  for (Index t = 0; t < segment.horizon(); ++t) {
    const Eigen::VectorXd x = segment.x.col(t);
    const Eigen::VectorXd delta = segment.x.col(t + 1) - x;
    const Eigen::VectorXd a = segment.a.col(t);
    std::vector<double> psi;
    const auto append = [&psi](const Eigen::VectorXd& v) {
      psi.insert(psi.end(), v.begin(), v.end());
    };
    if (lift.kind() == LiftKind::kFull) {
      const Eigen::VectorXd c = x + delta / 2;
      append(c);
      append(delta);
      for (const double action : a) append(action * c);
      for (const double action : a) append(action * delta);
    } else {
      append(x);
      append(delta);
      if (lift.HasBlock("a")) append(a);
    }
    if (lift.HasBlock("r")) psi.push_back(segment.r[t]);
    psi.push_back(1.0);
    for (std::size_t i = 0; i < psi.size(); ++i) {
      for (std::size_t j = 0; j < psi.size(); ++j) {
        sum(static_cast<Index>(i), static_cast<Index>(j)) += psi[i] * psi[j];
      }
    }
  }
  return sum;
}

}  // namespace msrl::testing
