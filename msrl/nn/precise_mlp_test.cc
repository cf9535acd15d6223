#include "msrl/nn/precise_mlp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

Eigen::VectorXd RandomVector(Eigen::Index size, Rng& rng) {
  Eigen::VectorXd values(size);
  for (double& value : values) value = rng.Normal();
  return values;
}

class PreciseMlpOf : public ::testing::TestWithParam<MlpSpec> {};

TEST_P(PreciseMlpOf, EqualsTheFusedNetworkUpToRounding) {
  const MlpSpec& spec = GetParam();
  Rng rng(1, "precise");
  Mlp network(spec);
  network.Init(rng);
  MlpTape tape(spec, 1);
  for (int member = 0; member < spec.members; ++member) {
    const PreciseMlp precise(network, member);
    const Eigen::VectorXf input = RandomVector(spec.input, rng).cast<float>();
    const auto output = network.Forward(input, tape, {member, 1});
    const PreciseMlp::Result result = precise.Forward(input.cast<double>());
    EXPECT_LT((result.output - output.col(0).cast<double>()).norm(), Tol(1e-5));
    if (spec.members == 1 && !spec.hidden.empty()) {
      EXPECT_LT((result.hidden - network.LastHidden(tape).col(0).cast<double>()).norm(), Tol(1e-5));
    }
  }
}

TEST_P(PreciseMlpOf, InputGradientIsTheDerivative) {
  const MlpSpec& spec = GetParam();
  Rng rng(2, "precise");
  Mlp network(spec);
  network.Init(rng);
  // norm scales and shifts that do something
  for (float& value : network.parameters()) value += static_cast<float>(0.1 * rng.Normal());
  const PreciseMlp precise(network);
  for (int round = 0; round < 10; ++round) {
    const Eigen::VectorXd x = RandomVector(spec.input, rng);
    const Eigen::VectorXd d_output = RandomVector(spec.output, rng);
    const Eigen::VectorXd d_hidden =
        spec.hidden.empty() ? Eigen::VectorXd() : RandomVector(spec.hidden.back(), rng);
    const auto loss = [&](const Eigen::VectorXd& at) {
      const PreciseMlp::Result result = precise.Forward(at);
      return d_output.dot(result.output) +
             (spec.hidden.empty() ? 0.0 : d_hidden.dot(result.hidden));
    };
    const Eigen::VectorXd gradient = precise.InputGradient(x, d_output, d_hidden);
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      Eigen::VectorXd step = Eigen::VectorXd::Zero(x.size());
      step[i] = 1e-6;
      EXPECT_NEAR(gradient[i], (loss(x + step) - loss(x - step)) / 2e-6, Tol(1e-7));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PreciseMlpOf,
    ::testing::Values(
        MlpSpec{.input = 5, .hidden = {}, .output = 2},
        MlpSpec{.input = 5, .hidden = {7, 6}, .output = 2},
        MlpSpec{.input = 5, .hidden = {7, 6}, .output = 1, .layer_norm = true},
        MlpSpec{.input = 4,
                .hidden = {9},
                .output = 3,
                .activation = Activation::kTanh,
                .output_activation = Activation::kTanh,
                .members = 3},
        MlpSpec{.input = 5, .hidden = {7, 6}, .output = 2, .activation = Activation::kElu},
        MlpSpec{.input = 5,
                .hidden = {7, 6},
                .output = 2,
                .activation = Activation::kSilu,
                .layer_norm = true}));

TEST(PreciseMlp, RefusesAMemberThatIsNotThere) {
  EXPECT_THROW(PreciseMlp(Mlp({.input = 1, .hidden = {}, .output = 1}), 1), InvariantError);
}

}  // namespace
}  // namespace msrl
