#include "msrl/inspect/value_theory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>

#include "msrl/agents/episode_tracker.h"
#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::Tol;
using ::msrl::testing::UserErrorText;

// f(<A, Z>) with its derivative.
class OfLinear : public MatrixValue {
 public:
  OfLinear(SegmentMatrix a, std::function<double(double)> f, std::function<double(double)> slope)
      : a_(std::move(a)), f_(std::move(f)), slope_(std::move(slope)) {}
  double Value(const SegmentMatrix& z) const override { return f_(a_.Inner(z)); }
  SegmentMatrix Gradient(const SegmentMatrix& z) const override {
    SegmentMatrix gradient = a_;
    gradient *= slope_(a_.Inner(z));
    return gradient;
  }

 private:
  SegmentMatrix a_;
  std::function<double(double)> f_, slope_;
};

SegmentMatrix RandomSymmetric(Rng& rng) {
  std::vector<double> packed(SegmentMatrix(CompactLift()).packed().size());
  for (double& value : packed) value = rng.Normal();
  return SegmentMatrix::FromPacked(CompactLift(), packed);
}

// Prefixes of real play with the step taken there.
struct Play {
  std::vector<SegmentMatrix> prefixes;
  std::vector<SegmentMatrix> increments;
};

Play RecordPlay(const char* id, int episodes) {
  Play play;
  const auto env = MakeEnv(id);
  EpisodeTracker tracker(env->spec(), CompactLift());
  Rng rng(1, "behaviour");
  for (int e = 0; e < episodes; ++e) {
    env->Reset(static_cast<std::uint64_t>(e));
    tracker.Begin(*env);
    Behaviour behaviour = MakeBehaviour(*env, rng);
    for (bool running = true; running;) {
      const Action action = behaviour.Act();
      const StepResult result = env->Step(action);
      const Experience seen = tracker.Advance(action, result, *env);
      if (seen.before.step % 5 == 3) {
        play.prefixes.push_back(seen.before.matrix);
        play.increments.push_back(seen.after.matrix - seen.before.matrix);
      }
      running = !result.terminated && !result.truncated;
    }
  }
  return play;
}

TEST(FirstOrderError, OfFunctionsThatAreKnown) {
  Rng rng(1, "theory");
  const SegmentMatrix a = RandomSymmetric(rng);
  const SegmentMatrix z = RandomSymmetric(rng);
  const SegmentMatrix h_1 = RandomSymmetric(rng);
  const SegmentMatrix h_2 = RandomSymmetric(rng);

  const OfLinear linear(
      a, [](double x) { return 3.0 * x + 1.0; }, [](double) { return 3.0; });
  EXPECT_TRUE(FirstOrderError(linear, z, h_1).exact);
  EXPECT_FALSE(FirstOrderError(linear, z, h_1).slope.has_value());
  EXPECT_TRUE(AdditivityError(linear, z, h_1, h_2).exact);

  const OfLinear square(
      a, [](double x) { return x * x; }, [](double x) { return 2.0 * x; });
  const ErrorCurve quadratic = FirstOrderError(square, z, h_1);
  EXPECT_FALSE(quadratic.exact);
  EXPECT_NEAR(quadratic.slope.value(), 2.0, 1e-3);
  EXPECT_NEAR(AdditivityError(square, z, h_1, h_2).slope.value(), 2.0, 1e-3);
  // e^2 <A, H>^2, and 2 e^2 <A, H1> <A, H2>
  const double e = quadratic.size[0] / h_1.Norm();
  EXPECT_EQ(e, Ladder{}.first);
  EXPECT_NEAR(quadratic.error[0], e * e * std::pow(a.Inner(h_1), 2), 1e-9 * quadratic.error[0]);
  const ErrorCurve mixed = AdditivityError(square, z, h_1, h_2);
  EXPECT_NEAR(mixed.error[0], std::abs(2.0 * e * e * a.Inner(h_1) * a.Inner(h_2)),
              1e-9 * mixed.error[0]);
  EXPECT_NEAR(mixed.size[0], e * (h_1.Norm() + h_2.Norm()), Tol(1e-9));

  // no gradient where it has a kink: the theorem's assumption fails, and it shows
  const OfLinear kink(
      a, [](double x) { return std::abs(x); }, [](double x) { return x > 0.0 ? 1.0 : 0.0; });
  const SegmentMatrix zero(CompactLift());
  const SegmentMatrix down = a.Inner(h_1) < 0.0 ? h_1 : zero - h_1;
  EXPECT_NEAR(FirstOrderError(kink, zero, down).slope.value(), 1.0, 1e-3);

  // a wrong gradient shows as well
  const OfLinear wrong(
      a, [](double x) { return x * x; }, [](double x) { return 2.1 * x; });
  EXPECT_LT(FirstOrderError(wrong, z, h_1, {.first = 1e-3, .rungs = 8}).slope.value(), 1.2);
}

// <W, H> = 0 exactly for what the analysis calls null, and it changes a value only to second order.
TEST(IncrementSpan, FindsTheValueNullDirections) {
  Rng rng(2, "theory");
  const Play play = RecordPlay("point-rooms", 3);
  const IncrementSpan span(play.increments);
  EXPECT_GT(span.rank(), 10);
  double energy = 0.0;
  for (const SegmentMatrix& h : play.increments) energy += h.Inner(h);
  EXPECT_NEAR(span.energy(), energy, 1e-8 * energy);

  const SegmentMatrix w = RandomSymmetric(rng);
  const NullAnalysis analysis = span.Analyse(w);
  EXPECT_NEAR(analysis.gradient_norm, w.Norm(), Tol(1e-9));
  EXPECT_GT(analysis.within_span, 0.0);
  EXPECT_LT(analysis.within_span, analysis.gradient_norm);
  EXPECT_GT(analysis.null_share, 0.0);
  EXPECT_LT(analysis.null_share, 1.0);

  const std::vector<SegmentMatrix> null = span.ValueNullDirections(w, 1000);
  ASSERT_EQ(std::ssize(null), span.rank() - 1);
  double in_null = 0.0;
  double last = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < null.size(); ++k) {
    EXPECT_NEAR(w.Inner(null[k]), 0.0, Tol(1e-8) * w.Norm());
    EXPECT_NEAR(null[k].Norm(), 1.0, Tol(1e-9));
    EXPECT_NEAR(null[k].Inner(null[0]), k == 0 ? 1.0 : 0.0, Tol(1e-9));
    double along = 0.0;
    for (const SegmentMatrix& h : play.increments) along += std::pow(h.Inner(null[k]), 2);
    EXPECT_LE(along, last * (1.0 + 1e-6) + 1e-9 * energy) << "most energy first";
    last = along;
    in_null += along;
  }
  EXPECT_NEAR(in_null / energy, analysis.null_share, Tol(1e-8));
  EXPECT_EQ(span.ValueNullDirections(w, 2).size(), 2u);
}

TEST(IncrementSpan, ByHand) {
  // two orthogonal increments, energies 9 and 16; W along the first, W across, W outside
  Eigen::MatrixXd first = Eigen::MatrixXd::Zero(28, 28);
  Eigen::MatrixXd second = first;
  Eigen::MatrixXd outside = first;
  first(0, 0) = 3.0;
  second(1, 2) = second(2, 1) = 4.0 / std::sqrt(2.0);
  outside(5, 5) = 1.0;
  const auto matrix = [](const Eigen::MatrixXd& dense) {
    return SegmentMatrix::FromDense(CompactLift(), dense);
  };
  const std::vector<SegmentMatrix> increments{matrix(first), matrix(second)};
  const IncrementSpan span(increments);
  EXPECT_EQ(span.rank(), 2);
  EXPECT_NEAR(span.energy(), 25.0, Tol(1e-12));
  EXPECT_NEAR(span.Analyse(matrix(first)).null_share, 16.0 / 25.0, Tol(1e-12));
  EXPECT_NEAR(span.Analyse(matrix(second)).null_share, 9.0 / 25.0, Tol(1e-12));
  // the unit vectors' sum sees half of each
  EXPECT_NEAR(span.Analyse(matrix(first / 3.0 + second / 4.0)).null_share, 0.5, Tol(1e-12));
  EXPECT_EQ(span.Analyse(matrix(outside)).null_share, 1.0);
  EXPECT_EQ(span.ValueNullDirections(matrix(outside), 10).size(), 2u);
  const std::vector<SegmentMatrix> null = span.ValueNullDirections(matrix(first), 10);
  ASSERT_EQ(null.size(), 1u);
  EXPECT_NEAR(std::abs(null[0].Inner(matrix(second))), 4.0, Tol(1e-12));
  EXPECT_THROW(IncrementSpan({}), InvariantError);
  EXPECT_THROW(IncrementSpan(std::vector{SegmentMatrix(CompactLift())}), InvariantError);
}

ValueBranch MakeBranch(std::uint64_t seed, bool layer_norm) {
  BranchInfo info;
  info.lift = CompactLift()->id();
  const MatrixFeatures features(CompactLift());
  ValueBranch branch(features.size(), {.width = 32, .layers = 2, .layer_norm = layer_norm}, info);
  Rng rng(seed, "branch");
  branch.Init(rng);
  return branch;
}

TEST(BranchValue, IsTheBranch) {
  const ValueBranch branch = MakeBranch(1, true);
  const MatrixFeatures features(CompactLift());
  const BranchValue value(branch, features);
  const Play play = RecordPlay("micro-grid", 2);
  MlpTape tape(branch.spec(), 1);
  Eigen::VectorXf input(features.size());
  for (const SegmentMatrix& z : play.prefixes) {
    features.Compute(z, std::span(input.data(), static_cast<std::size_t>(input.size())));
    EXPECT_NEAR(value.Value(z), branch.Forward(input, tape)(0, 0), Tol(1e-5));
  }
  EXPECT_NE(UserErrorText([&] {
              BranchValue(branch, MatrixFeatures(CompactLift(), {.endpoints = false}));
            }).find("selected+endpoints"),
            std::string::npos);
}

// The theorem on a network: smooth between the kinks of its ReLUs.
TEST(BranchValue, IsFirstOrderAdditive) {
  const Play play = RecordPlay("point-rooms", 6);
  ASSERT_GT(play.prefixes.size(), 40u);
  for (const bool layer_norm : {false, true}) {
    const BranchValue value(MakeBranch(2, layer_norm), MatrixFeatures(CompactLift()));
    const ValueTheoryReport report = StudyValue(value, play.prefixes, play.increments);
    std::cout << (layer_norm ? "with" : "without") << " layer norm: slopes "
              << report.first_order.slope_median << " (low " << report.first_order.slope_low
              << ") and " << report.additivity.slope_median << " (low "
              << report.additivity.slope_low << "), whole steps off by "
              << report.first_order_relative_error << ", signs equal " << report.sign_agreement
              << ", rank " << report.increment_rank << ", null " << report.null_share
              << ", W in span " << report.gradient_share_in_span << "\n";
    EXPECT_EQ(report.states, std::ssize(play.prefixes));
    EXPECT_GT(report.first_order.curves + report.first_order.exact, report.states * 9 / 10);
    EXPECT_NEAR(report.first_order.slope_median, 2.0, 0.1);
    EXPECT_NEAR(report.additivity.slope_median, 2.0, 0.1);
    EXPECT_GT(report.first_order.slope_low, 1.5);
    EXPECT_GT(report.additivity.slope_low, 1.5);
    EXPECT_GT(report.gradient_norm, 0.0);
    EXPECT_GT(report.null_share, 0.0);
    EXPECT_LT(report.null_share, 1.0);
    EXPECT_GT(report.sign_agreement, 0.5);
  }
}

TEST(StudyValue, OfALinearValue) {
  Rng rng(3, "theory");
  const Play play = RecordPlay("micro-grid", 2);
  const SegmentMatrix a = RandomSymmetric(rng);
  const OfLinear linear(
      a, [](double x) { return x; }, [](double) { return 1.0; });
  const ValueTheoryReport report = StudyValue(linear, play.prefixes, play.increments);
  EXPECT_EQ(report.first_order.exact, report.states);
  EXPECT_EQ(report.additivity.exact, report.states);
  EXPECT_EQ(report.first_order.curves, 0);
  EXPECT_LT(report.first_order_relative_error, 1e-9);
  EXPECT_EQ(report.sign_agreement, 1.0);
  EXPECT_NEAR(report.gradient_norm, a.Norm(), 1e-9 * a.Norm());
  EXPECT_NEAR(report.null_share, IncrementSpan(play.increments).Analyse(a).null_share, Tol(1e-12));
  EXPECT_THROW(StudyValue(linear, std::span(play.prefixes).first(1), play.increments),
               InvariantError);
}

}  // namespace
}  // namespace msrl
