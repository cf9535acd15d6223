#include "msrl/value/matrix_features.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "msrl/core/patterns.h"
#include "msrl/core/segment.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::DrawScene;
using testing::Scene;
using testing::SceneOptions;
using testing::Tol;
using testing::UserErrorText;

Scene DrawCompactScene() {
  SceneOptions options;
  options.kinds = {LiftKind::kCompact, LiftKind::kCompactNoAction, LiftKind::kCompactNoReward};
  return DrawScene(options);
}

std::vector<float> Features(const MatrixFeatures& map, const SegmentMatrix& matrix) {
  std::vector<float> out(static_cast<std::size_t>(map.size()), NAN);
  map.Compute(matrix, out);
  return out;
}

// A path of the paper's sizes with states of about `scale`.
Segment Path(Index steps, double scale, std::uint64_t seed) {
  Rng rng(seed, "path");
  Segment segment;
  segment.x.resize(8, steps + 1);
  segment.a.resize(10, steps);
  segment.r.resize(steps);
  for (double& v : segment.x.reshaped()) v = scale * rng.Uniform(-1.0, 1.0);
  for (double& v : segment.a.reshaped()) v = rng.Uniform(-1.0, 1.0);
  for (double& v : segment.r) v = rng.Uniform(-1.0, 1.0);
  return segment;
}

Lift::Ptr PaperLift() { return Lift::Make({LiftKind::kCompact, 8, 10, {}}); }
Lift::Ptr SquaresLift() { return Lift::Make({LiftKind::kCompactSquares, 8, 10, {}}); }
Lift::Ptr EffortLift() { return Lift::Make({LiftKind::kCompactEffort, 8, 10, {}}); }

constexpr MatrixFeatureOptions kRegressions{.endpoints = true, .regressions = true};

TEST(MatrixFeatures, SizesAndNamesOfThePapersLift) {
  const MatrixFeatures selected(PaperLift());
  EXPECT_EQ(selected.size(), 81 + 1 + 16 + 36 + 1);
  EXPECT_EQ(MatrixFeatures(PaperLift(), {.all_entries = true, .endpoints = false}).size(), 406 + 1);
  const std::vector<std::string> names = selected.Names();
  ASSERT_EQ(std::ssize(names), selected.size());
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.front(), "x[0]*x[0]");
  EXPECT_EQ(names[80], "1*1");
  EXPECT_EQ(names[81], "log(1+T)");
  EXPECT_EQ(names[static_cast<std::size_t>(selected.last_state_begin())], "xT[0]");
  EXPECT_EQ(names[static_cast<std::size_t>(selected.last_state_end())], "D[0,0]");
  EXPECT_EQ(names.back(), "ends");
}

RC_GTEST_PROP(MatrixFeatures, AveragesEqualTheFormula, ()) {
  Scene scene = DrawCompactScene();
  const Segment segment = scene.RandomSegment();
  const SegmentMatrix matrix = Describe(scene.lift, segment);
  for (const bool all : {false, true}) {
    const MatrixFeatures map(scene.lift, {.all_entries = all, .endpoints = true});
    const std::vector<float> features = Features(map, matrix);
    const std::vector<std::string> names = map.Names();
    const std::vector<std::string> labels = scene.lift->Labels();
    const double t = static_cast<double>(segment.horizon());
    std::size_t found = 0;
    for (std::size_t j = 0; j < labels.size(); ++j) {
      for (std::size_t i = 0; i <= j; ++i) {
        const bool selected = i == j || labels[j] == "1" || labels[i] == "r" || labels[j] == "r";
        if (!all && !selected) continue;
        RC_ASSERT(names[found] == labels[i] + "*" + labels[j]);
        const double average =
            4.0 * matrix(static_cast<Index>(i), static_cast<Index>(j)) / (t + 10.0);
        const double expected = std::copysign(std::log(1.0 + std::abs(average)), average);
        RC_ASSERT(std::abs(features[found] - expected) <= Tol(1e-6) * (1.0 + std::abs(expected)));
        ++found;
      }
    }
    RC_ASSERT(names[found] == "log(1+T)");
    RC_ASSERT(std::abs(features[found] - std::log(1.0 + t) / 7.0) <= Tol(1e-6));
  }
}

RC_GTEST_PROP(MatrixFeatures, EndpointsAreThoseOfThePath, ()) {
  Scene scene = DrawCompactScene();
  const Segment segment = scene.RandomSegment(1 + scene.steps);
  const MatrixFeatures map(scene.lift);
  const std::vector<float> features = Features(map, Describe(scene.lift, segment));
  const Index d = scene.lift->d();
  const Eigen::VectorXd move = segment.exit() - segment.entry();
  RC_PRE(move.norm() > 1e-3 * scene.scale);
  RC_ASSERT(features.back() == 1.0F);
  const auto begin = static_cast<std::size_t>(map.last_state_begin() - d);
  for (Index i = 0; i < d; ++i) {
    const auto cut = [](double v, double bound) { return std::clamp(v, -bound, bound); };
    const auto k = static_cast<std::size_t>(i);
    const double tolerance = Tol(1e-5) * (1.0 + scene.scale);
    RC_ASSERT(std::abs(features[begin + k] - cut(3.0 * segment.entry()[i], 12.0)) <= tolerance);
    RC_ASSERT(std::abs(features[begin + static_cast<std::size_t>(d) + k] -
                       cut(3.0 * segment.exit()[i], 12.0)) <= tolerance);
  }
  // D
  std::size_t k = begin + static_cast<std::size_t>(2 * d);
  for (Index j = 0; j < d; ++j) {
    for (Index i = 0; i <= j; ++i, ++k) {
      const double full =
          segment.exit()[i] * segment.exit()[j] - segment.entry()[i] * segment.entry()[j];
      const double expected = std::clamp(full, -9.0, 9.0);
      RC_ASSERT(std::abs(features[k] - expected) <= Tol(1e-6) * (1.0 + scene.scale * scene.scale));
    }
  }
}

TEST(MatrixFeatures, LastStateStaysExactOnLongPaths) {
  const Lift::Ptr lift = PaperLift();
  const MatrixFeatures map(lift);
  for (const Index steps : {1, 10, 100, 1000}) {
    const Segment segment = Path(steps, 1.0, 7);
    const std::vector<float> features = Features(map, Describe(lift, segment));
    for (Index i = 0; i < 8; ++i) {
      EXPECT_NEAR(features[static_cast<std::size_t>(map.last_state_begin() + i)],
                  3.0 * segment.exit()[i], Tol(1e-5))
          << steps;
    }
  }
}

TEST(MatrixFeatures, ClosedPathsShowTheirMeanState) {
  const Lift::Ptr lift = PaperLift();
  const MatrixFeatures map(lift);
  // at rest: the mean is the state
  Segment rest = Path(5, 1.0, 1);
  for (Index t = 1; t <= 5; ++t) rest.x.col(t) = rest.x.col(0);
  std::vector<float> features = Features(map, Describe(lift, rest));
  EXPECT_EQ(features.back(), 0.0F);
  for (Index i = 0; i < 8; ++i) {
    EXPECT_NEAR(features[static_cast<std::size_t>(map.last_state_begin() + i)], 3.0 * rest.x(i, 0),
                Tol(1e-6));
  }
  // away and back
  Segment loop = Path(2, 1.0, 2);
  loop.x.col(2) = loop.x.col(0);
  features = Features(map, Describe(lift, loop));
  EXPECT_EQ(features.back(), 0.0F);
  for (Index i = 0; i < 8; ++i) {
    EXPECT_NEAR(features[static_cast<std::size_t>(map.last_state_begin() + i)],
                1.5 * (loop.x(i, 0) + loop.x(i, 1)), Tol(1e-6));
  }
  // nothing at all
  for (const float f : Features(map, SegmentMatrix(lift))) EXPECT_EQ(f, 0.0F);
}

// The set "state" is a part of the others, and changes with nothing else.
TEST(MatrixFeatures, TheStateAloneIsTheLastState) {
  const Lift::Ptr lift = PaperLift();
  const MatrixFeatures whole(lift);
  const MatrixFeatures state(lift, MatrixFeatureOptions::Of(FeatureSet::kState));
  ASSERT_EQ(state.size(), 8);
  EXPECT_EQ(state.last_state_begin(), 0);
  EXPECT_EQ(state.last_state_end(), 8);
  EXPECT_EQ(MatrixFeatureOptions::FromName("state"), state.options());
  const std::vector<std::string> names = whole.Names();
  const auto begin = names.begin() + whole.last_state_begin();
  EXPECT_EQ(state.Names(), std::vector<std::string>(begin, begin + 8));
  const Segment path = Path(30, 1.0, 5);
  Segment another = Path(30, 1.0, 6);
  another.x.col(30) = path.x.col(30);
  const std::vector<float> all = Features(whole, Describe(lift, path));
  const std::vector<float> last = Features(state, Describe(lift, path));
  const std::vector<float> same_end = Features(state, Describe(lift, another));
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(last[i], all[static_cast<std::size_t>(whole.last_state_begin()) + i]);
    EXPECT_NEAR(last[i], same_end[i], Tol(1e-5));
  }
}

TEST(MatrixFeatures, StayBoundedWhateverTheScale) {
  const Lift::Ptr lift = PaperLift();
  const MatrixFeatures map(lift, {.all_entries = true, .endpoints = true});
  for (const double scale : {1e-12, 1e-3, 1.0, 4.0, 1e6}) {
    for (const float f : Features(map, Describe(lift, Path(300, scale, 3)))) {
      EXPECT_TRUE(std::isfinite(f)) << scale;
      EXPECT_LE(std::abs(f), 40.0F) << scale;
    }
  }
  // at the environments' own scale they are of the size that networks like
  double squares = 0.0;
  const std::vector<float> features = Features(map, Describe(lift, Path(300, 1.0, 4)));
  for (const float f : features) squares += static_cast<double>(f) * f;
  const double rms = std::sqrt(squares / static_cast<double>(features.size()));
  EXPECT_GT(rms, 0.1);
  EXPECT_LT(rms, 3.0);
}

TEST(MatrixFeatures, DoesNotAllocateAndRefusesOtherLifts) {
  const Lift::Ptr lift = PaperLift();
  const MatrixFeatures map(lift, {.all_entries = true, .endpoints = true});
  const SegmentMatrix matrix = Describe(lift, Path(20, 1.0, 5));
  std::vector<float> out(static_cast<std::size_t>(map.size()));
  map.Compute(matrix, out);
  const std::int64_t before = AllocationCount();
  map.Compute(matrix, out);
  EXPECT_EQ(AllocationCount(), before);

  const SegmentMatrix other(Lift::Make({LiftKind::kCompact, 8, 9, {}}));
  EXPECT_NE(UserErrorText([&] { map.Compute(other, out); }).find("lift"), std::string::npos);
  EXPECT_NE(UserErrorText([] {
              MatrixFeatures(Lift::Make({LiftKind::kFull, 2, 2, {}}));
            }).find("compact"),
            std::string::npos);
  EXPECT_EQ(MatrixFeatureOptions::FromName("all").Name(), "all");
  EXPECT_NE(UserErrorText([] { MatrixFeatureOptions::FromName("al"); }).find("did you mean"),
            std::string::npos);
}

std::vector<double> PreciseFeatures(const MatrixFeatures& map, const SegmentMatrix& matrix) {
  std::vector<double> out(static_cast<std::size_t>(map.size()), NAN);
  map.Compute(matrix, out);
  return out;
}

SegmentMatrix RandomDirection(const Lift::Ptr& lift, Rng& rng) {
  std::vector<double> packed(SegmentMatrix(lift).packed().size());
  for (double& value : packed) value = rng.Normal();
  return SegmentMatrix::FromPacked(lift, packed);
}

// (L(Z + h H) - L(Z - h H)) / 2h for L = w . features.
double Slope(const MatrixFeatures& map, const SegmentMatrix& z, const std::vector<double>& w,
             const SegmentMatrix& direction, double h) {
  SegmentMatrix step = direction;
  step *= h;
  const std::vector<double> above = PreciseFeatures(map, z + step);
  const std::vector<double> below = PreciseFeatures(map, z - step);
  double sum = 0.0;
  for (std::size_t k = 0; k < w.size(); ++k) sum += w[k] * (above[k] - below[k]);
  return sum / (2.0 * h);
}

TEST(MatrixFeatures, InDoubleAreThoseInFloat) {
  const MatrixFeatures map(PaperLift());
  for (const double scale : {0.1, 1.0, 6.0}) {
    for (const Index steps : {0, 1, 30}) {
      const SegmentMatrix z = Describe(PaperLift(), Path(steps, scale, 3));
      const std::vector<float> rounded = Features(map, z);
      const std::vector<double> precise = PreciseFeatures(map, z);
      for (std::size_t k = 0; k < precise.size(); ++k) {
        EXPECT_NEAR(rounded[k], precise[k], Tol(1e-6) * (1.0 + std::abs(precise[k])));
      }
    }
  }
}

TEST(MatrixFeatures, RegressionsFindAHiddenGoal) {
  // minus the distance to a goal that no channel shows, and a price of effort
  for (const Lift::Ptr& lift : {PaperLift(), EffortLift(), SquaresLift()}) {
    const MatrixFeatures map(lift, kRegressions);
    Segment path = Path(60, 0.3, 5);
    const Eigen::Vector2d goal(2.0, -1.0);
    const bool costs = lift->HasBlock("e");
    for (Index t = 0; t < 60; ++t) {
      path.r[t] = -0.5 * (goal - path.x.col(t).head<2>()).norm() -
                  (costs ? 0.3 * path.a.col(t).squaredNorm() : 0.0);
    }
    const std::vector<double> features = PreciseFeatures(map, Describe(lift, path));
    const std::vector<std::string> names = map.Names();
    ASSERT_EQ(std::ssize(names), map.size());
    const auto of = [&](std::string_view name) {
      const auto found = std::find(names.begin(), names.end(), name);
      EXPECT_NE(found, names.end()) << name;
      return features[static_cast<std::size_t>(found - names.begin())];
    };
    EXPECT_NEAR(of("r~x way[0]"), goal.normalized()[0], 0.05);
    EXPECT_NEAR(of("r~x way[1]"), goal.normalized()[1], 0.05);
    // from the mean position, which is near 0
    EXPECT_NEAR(std::expm1(of("r~x top[0]")), 2.0, 0.4);
    EXPECT_NEAR(-std::expm1(-of("r~x top[1]")), -1.0, 0.4);
  }
}

TEST(MatrixFeatures, SquaresSayWhereAHiddenGoalIs) {
  const MatrixFeatures map(SquaresLift(), kRegressions);
  Segment path = Path(30, 0.3, 5);
  const Eigen::Vector2d goal(0.8, -0.5);
  for (Index t = 0; t < 30; ++t) {
    path.r[t] =
        -0.5 * (goal - path.x.col(t + 1).head<2>()).norm() - 0.3 * path.a.col(t).squaredNorm();
  }
  const std::vector<std::string> names = map.Names();
  ASSERT_EQ(std::ssize(names), map.size());
  const auto at =
      static_cast<std::size_t>(std::find(names.begin(), names.end(), "goal[0]") - names.begin());
  const std::vector<double> features = PreciseFeatures(map, Describe(SquaresLift(), path));
  EXPECT_NEAR(features[at], goal[0] - path.x(0, 30), 1e-2);
  EXPECT_NEAR(features[at + 1], goal[1] - path.x(1, 30), 1e-2);
  EXPECT_EQ(names[at + 5], "goal fit");
  EXPECT_GT(features[at + 5], 1.0);
  for (double& r : path.r) r = std::sin(100.0 * r);
  EXPECT_LT(PreciseFeatures(map, Describe(SquaresLift(), path))[at + 5], 0.3);
}

TEST(MatrixFeatures, RegressionsNeedTheirChannels) {
  EXPECT_THROW(MatrixFeatures(Lift::Make({LiftKind::kCompactNoReward, 8, 10, {}}), kRegressions),
               UserError);
  EXPECT_THROW(MatrixFeatures(Lift::Make({LiftKind::kCompact, 4, 2, {}}), kRegressions), UserError);
  const MatrixFeatures map(PaperLift(), kRegressions);
  for (const Index steps : {0, 1}) {
    const std::vector<float> features = Features(map, Describe(PaperLift(), Path(steps, 1.0, 1)));
    EXPECT_TRUE(std::all_of(features.begin() + MatrixFeatures(PaperLift()).size(), features.end(),
                            [](float v) { return v == 0.0F; }));
  }
  std::vector<float> out(static_cast<std::size_t>(map.size()));
  const SegmentMatrix z = Describe(PaperLift(), Path(30, 1.0, 2));
  const std::int64_t before = AllocationCount();
  map.Compute(z, out);
  EXPECT_EQ(AllocationCount(), before);
}

TEST(MatrixFeatures, PullbackOfRegressions) {
  Rng rng(5, "pullback");
  for (const Lift::Ptr& lift : {PaperLift(), EffortLift(), SquaresLift()}) {
    const MatrixFeatures map(lift, kRegressions);
    for (const Index steps : {40, 80}) {
      const SegmentMatrix z = Describe(lift, Path(steps, 1.0, 20 + steps));
      // the regressions alone: others have their own test
      std::vector<double> w(static_cast<std::size_t>(map.size()), 0.0);
      for (std::size_t k = static_cast<std::size_t>(MatrixFeatures(lift).size()); k < w.size();
           ++k) {
        w[k] = rng.Normal();
      }
      const SegmentMatrix gradient = map.Pullback(z, w);
      for (int i = 0; i < 10; ++i) {
        const SegmentMatrix direction = RandomDirection(lift, rng);
        EXPECT_NEAR(gradient.Inner(direction), Slope(map, z, w, direction, 1e-5),
                    Tol(1e-6) * gradient.Norm() * 20.0);
      }
    }
  }
}

TEST(MatrixFeatures, PullbackIsTheDerivative) {
  Rng rng(1, "pullback");
  int cut = 0;
  using enum FeatureSet;
  for (const FeatureSet set : {kSelectedEndpoints, kSelected, kAllEndpoints, kAll, kState}) {
    const MatrixFeatures map(PaperLift(), MatrixFeatureOptions::Of(set));
    for (int round = 0; round < 20; ++round) {
      // large states, so that some features are at their bounds
      const SegmentMatrix z =
          Describe(PaperLift(), Path(1 + round, round % 2 == 0 ? 1.0 : 6.0, 10 + round));
      for (const double value : PreciseFeatures(map, z)) {
        cut += value == MatrixFeatures::kEndpointBound || value == MatrixFeatures::kProductBound;
      }
      std::vector<double> w(static_cast<std::size_t>(map.size()));
      for (double& each : w) each = rng.Normal();
      const SegmentMatrix gradient = map.Pullback(z, w);
      for (int i = 0; i < 10; ++i) {
        const SegmentMatrix direction = RandomDirection(PaperLift(), rng);
        const double expected = Slope(map, z, w, direction, 1e-6);
        EXPECT_NEAR(gradient.Inner(direction), expected, Tol(1e-6) * gradient.Norm() * 20.0);
      }
    }
  }
  EXPECT_GT(cut, 20);
}

// Every entry on its own: pairs off the diagonal count twice in the inner product.
TEST(MatrixFeatures, PullbackEntryByEntry) {
  Rng rng(2, "pullback");
  const auto lift = Lift::Make({LiftKind::kCompact, 3, 2, {}});
  const MatrixFeatures map(lift);
  Segment path;
  path.x.resize(3, 6);
  path.a.resize(2, 5);
  path.r.resize(5);
  for (double& v : path.x.reshaped()) v = rng.Uniform(-1.0, 1.0);
  for (double& v : path.a.reshaped()) v = rng.Uniform(-1.0, 1.0);
  for (double& v : path.r) v = rng.Uniform(-1.0, 1.0);
  const SegmentMatrix z = Describe(lift, path);
  std::vector<double> w(static_cast<std::size_t>(map.size()));
  for (double& each : w) each = rng.Normal();
  const SegmentMatrix gradient = map.Pullback(z, w);
  for (Index j = 0; j < lift->m(); ++j) {
    for (Index i = 0; i <= j; ++i) {
      Eigen::MatrixXd unit = Eigen::MatrixXd::Zero(lift->m(), lift->m());
      unit(i, j) = unit(j, i) = 1.0;
      const double slope = Slope(map, z, w, SegmentMatrix::FromDense(lift, unit), 1e-6);
      EXPECT_NEAR((i == j ? 1.0 : 2.0) * gradient(i, j), slope, Tol(1e-6) * (1.0 + gradient.Norm()))
          << i << ", " << j;
    }
  }
}

TEST(MatrixFeatures, PullbackWhereEndPointsAreNotDetermined) {
  Rng rng(3, "pullback");
  const MatrixFeatures map(PaperLift());
  std::vector<double> w(static_cast<std::size_t>(map.size()));
  for (double& each : w) each = rng.Normal();
  Segment closed = Path(6, 1.0, 4);
  closed.x.col(6) = closed.x.col(0);
  const SegmentMatrix z = Describe(PaperLift(), closed);
  ASSERT_EQ(PreciseFeatures(map, z).back(), 0.0);
  const SegmentMatrix gradient = map.Pullback(z, w);
  // along directions that keep the path closed
  for (int i = 0; i < 10; ++i) {
    Eigen::MatrixXd direction = RandomDirection(PaperLift(), rng).Dense();
    direction.block(8, 27, 8, 1).setZero();
    direction.block(27, 8, 1, 8).setZero();
    const auto h = SegmentMatrix::FromDense(PaperLift(), direction);
    EXPECT_NEAR(gradient.Inner(h), Slope(map, z, w, h, 1e-6), Tol(1e-5) * gradient.Norm());
  }
  // the empty segment: only averages and the horizon change
  const SegmentMatrix empty(PaperLift());
  const SegmentMatrix start = map.Pullback(empty, w);
  EXPECT_NEAR(start(27, 27),
              w[80] * MatrixFeatures::kAverageGain / MatrixFeatures::kDamping +
                  w[81] / MatrixFeatures::kLogHorizonUnit,
              Tol(1e-12));
}

}  // namespace
}  // namespace msrl
