#include "msrl/torch/fused_mlp_function.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/float_buffer.h"
#include "msrl/nn/squashed_gaussian.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

double MaxDifference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

torch::Tensor Activate(Activation f, const torch::Tensor& x) {
  switch (f) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return torch::relu(x);
    case Activation::kTanh:
      return torch::tanh(x);
    case Activation::kElu:
      return torch::elu(x);
    case Activation::kSilu:
      return torch::silu(x);
    case Activation::kMish:
      return torch::mish(x);
  }
  return x;
}

// The modules of one member, with the parameters of the fused network.
class Modules {
 public:
  Modules(Mlp& mlp, int member) : spec_(mlp.spec()) {
    const std::size_t per_member = mlp.tensors().size() / spec_.members;
    std::size_t next = member * per_member;
    const auto fill = [&](torch::Tensor& parameter) {
      const torch::NoGradGuard no_grad;
      parameter.copy_(AsTensor(mlp.parameters(), mlp.tensors()[next++]).view_as(parameter));
      parameters.push_back(parameter);
    };
    for (std::size_t l = 0; l <= spec_.hidden.size(); ++l) {
      const bool last = l == spec_.hidden.size();
      linear_.emplace_back(torch::nn::Linear(l == 0 ? spec_.input : spec_.hidden[l - 1],
                                             last ? spec_.output : spec_.hidden[l]));
      fill(linear_.back()->weight);
      fill(linear_.back()->bias);
      if (spec_.layer_norm && !last) {
        norm_.emplace_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({spec_.hidden[l]})));
        fill(norm_.back()->weight);
        fill(norm_.back()->bias);
      }
    }
  }

  torch::Tensor Forward(torch::Tensor x) {
    for (std::size_t l = 0; l < linear_.size(); ++l) {
      const bool last = l + 1 == linear_.size();
      x = linear_[l]->forward(x);
      if (spec_.layer_norm && !last) x = norm_[l]->forward(x);
      x = Activate(last ? spec_.output_activation : spec_.activation, x);
    }
    return x;
  }

  std::vector<torch::Tensor> parameters;  // in the order of Mlp::tensors()

 private:
  MlpSpec spec_;
  std::vector<torch::nn::Linear> linear_;
  std::vector<torch::nn::LayerNorm> norm_;
};

class FusedMlpSpecTest : public ::testing::TestWithParam<MlpSpec> {};

TEST_P(FusedMlpSpecTest, ValuesAndGradientsAreThoseOfModules) {
  const MlpSpec& spec = GetParam();
  torch::manual_seed(1);
  Rng rng(1, "torch");
  Mlp mlp(spec);
  mlp.Init(rng);
  torch::Tensor input = torch::randn({33, spec.input}).requires_grad_();
  torch::Tensor same_input = input.detach().clone().requires_grad_();

  // the network in the middle of a graph, used twice
  torch::Tensor parameters = AsTensor(mlp.parameters()).requires_grad_();
  const auto loss = [](const torch::Tensor& y1, const torch::Tensor& y2) {
    return (torch::sin(y1) * 2.0 + y2 * y2).mean();
  };
  const torch::Tensor y = FusedMlp(mlp, input * 2.0, parameters);
  loss(y, FusedMlp(mlp, input + 1.0, parameters)).backward();

  std::vector<Modules> members;
  std::vector<torch::Tensor> y1;
  std::vector<torch::Tensor> y2;
  for (int k = 0; k < spec.members; ++k) {
    members.emplace_back(mlp, k);
    y1.push_back(members.back().Forward(same_input * 2.0));
    y2.push_back(members.back().Forward(same_input + 1.0));
  }
  const torch::Tensor same_y = torch::cat(y1, 1);
  loss(same_y, torch::cat(y2, 1)).backward();

  EXPECT_LT(MaxDifference(y, same_y), Tol(3e-6));
  EXPECT_LT(MaxDifference(input.grad(), same_input.grad()), Tol(1e-6));
  torch::Tensor gradient = parameters.grad().contiguous();
  const std::span<float> flat(gradient.data_ptr<float>(), mlp.parameter_count());
  std::size_t next = 0;
  double largest = 0.0;
  for (const Modules& member : members) {
    for (const torch::Tensor& parameter : member.parameters) {
      const torch::Tensor ours = AsTensor(flat, mlp.tensors()[next++]).view_as(parameter);
      EXPECT_LT(MaxDifference(ours, parameter.grad()), Tol(2e-6));
      largest = std::max(largest, parameter.grad().abs().max().item<double>());
    }
  }
  EXPECT_GT(largest, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, FusedMlpSpecTest,
    ::testing::Values(
        MlpSpec{.input = 5, .hidden = {64, 64}, .output = 3},
        MlpSpec{.input = 35, .hidden = {256, 256}, .output = 1, .members = 2},
        MlpSpec{.input = 4,
                .hidden = {32, 20},
                .output = 2,
                .activation = Activation::kTanh,
                .output_activation = Activation::kTanh},
        MlpSpec{.input = 4, .hidden = {32, 20}, .output = 2, .activation = Activation::kElu},
        MlpSpec{.input = 4,
                .hidden = {32, 20},
                .output = 2,
                .activation = Activation::kSilu,
                .layer_norm = true,
                .members = 3}));

TEST(FusedMlpTest, CentralDifferences) {
  const MlpSpec spec{.input = 3, .hidden = {8}, .output = 2, .activation = Activation::kTanh};
  Rng rng(2, "torch");
  Mlp mlp(spec);
  mlp.Init(rng);
  torch::Tensor parameters = AsTensor(mlp.parameters()).requires_grad_();
  torch::manual_seed(2);
  const torch::Tensor input = torch::randn({4, 3});
  const auto loss = [&] { return FusedMlp(mlp, input, parameters).to(torch::kDouble).sum(); };
  loss().backward();
  for (std::size_t i = 0; i < mlp.parameter_count(); ++i) {
    const float saved = mlp.parameters()[i];
    const float h = 1e-2F;
    mlp.parameters()[i] = saved + h;
    const double above = loss().item<double>();
    mlp.parameters()[i] = saved - h;
    const double below = loss().item<double>();
    mlp.parameters()[i] = saved;
    EXPECT_NEAR(parameters.grad()[static_cast<std::int64_t>(i)].item<double>(),
                (above - below) / (2.0 * h), Tol(1e-3));
  }
}

TEST(FusedMlpTest, AdamIsLibtorchs) {
  for (const double decay : {0.0, 0.1}) {
    for (const double max_norm : {0.0, 0.5}) {
      torch::manual_seed(3);
      torch::Tensor theirs = torch::randn({103});
      FloatBuffer ours(theirs.data_ptr<float>(), theirs.data_ptr<float>() + 103);
      const torch::Tensor start = theirs.clone();
      theirs.requires_grad_();
      Adam adam(103, {.beta1 = 0.8,
                      .beta2 = 0.99,
                      .epsilon = 1e-5,
                      .weight_decay = decay,
                      .max_norm = max_norm});
      torch::optim::AdamW adamw(
          {theirs},
          torch::optim::AdamWOptions(0.01).betas({0.8, 0.99}).eps(1e-5).weight_decay(decay));
      for (int step = 0; step < 20; ++step) {
        torch::Tensor gradient = torch::randn({103}) * 0.2;
        const double norm = adam.Step(ours, {gradient.data_ptr<float>(), 103}, 0.01);
        theirs.mutable_grad() = gradient.clone();
        if (max_norm > 0.0) {
          EXPECT_NEAR(norm, torch::nn::utils::clip_grad_norm_(theirs, max_norm), Tol(1e-5));
        }
        adamw.step();
        ASSERT_LT(MaxDifference(AsTensor(std::span<float>(ours)), theirs.detach()), Tol(2e-6));
      }
      EXPECT_GT(MaxDifference(start, theirs.detach()), 0.05);
    }
  }
  // without decay AdamW is Adam
  torch::Tensor theirs = torch::ones({5}).requires_grad_();
  FloatBuffer ours(5, 1.0F);
  torch::optim::Adam torch_adam({theirs}, torch::optim::AdamOptions(0.01));
  Adam adam(5);
  for (int step = 0; step < 5; ++step) {
    FloatBuffer gradient(5, 0.3F * static_cast<float>(step) - 0.5F);
    adam.Step(ours, gradient, 0.01);
    theirs.mutable_grad() = AsTensor(std::span<float>(gradient)).clone();
    torch_adam.step();
  }
  EXPECT_LT(MaxDifference(AsTensor(std::span<float>(ours)), theirs.detach()), Tol(1e-6));
}

TEST(FusedMlpTest, SquashedGaussianIsLibtorchs) {
  for (const LogStdKind kind : {LogStdKind::kClamp, LogStdKind::kTanh}) {
    torch::manual_seed(4);
    torch::Tensor head = torch::randn({50, 6}) * 1.5;
    torch::Tensor noise = torch::randn({50, 3});
    torch::Tensor d_action = torch::randn({50, 3});
    torch::Tensor d_log_prob = torch::randn({50});
    SquashedGaussian policy(3, 50, {.kind = kind, .low = -2.0, .high = 1.0});
    Eigen::MatrixXf action(3, 50);
    std::vector<float> log_prob(50);
    Eigen::MatrixXf d_head(6, 50);
    policy.Sample(AsMatrix(head), AsMatrix(noise), action, log_prob);
    policy.Backward(AsMatrix(d_action), {d_log_prob.data_ptr<float>(), 50}, d_head);

    const torch::Tensor x = head.to(torch::kDouble).requires_grad_();
    torch::Tensor log_std = x.slice(1, 3, 6);
    log_std = kind == LogStdKind::kClamp ? log_std.clamp(-2.0, 1.0)
                                         : -2.0 + 1.5 * (torch::tanh(log_std) + 1.0);
    const torch::Tensor mu = x.slice(1, 0, 3);
    const torch::Tensor u = mu + torch::exp(log_std) * noise;
    const torch::Tensor a = torch::tanh(u);
    const torch::Tensor density = -0.5 * ((u - mu) / torch::exp(log_std)).square() - log_std -
                                  0.5 * std::log(2.0 * M_PI) - torch::log(1.0 - a * a);
    const torch::Tensor log_p = density.sum(1);
    ((a * d_action).sum() + (log_p * d_log_prob).sum()).backward();
    EXPECT_LT(MaxDifference(AsTensor(action), a), Tol(1e-6));
    EXPECT_LT(MaxDifference(AsTensor(std::span<float>(log_prob)), log_p), Tol(2e-5));
    EXPECT_LT(MaxDifference(AsTensor(d_head), x.grad()), Tol(5e-5));
    EXPECT_GT(x.grad().abs().max().item<double>(), 0.1);
  }
}

TEST(BridgeTest, ViewsShareTheirMemory) {
  Eigen::MatrixXf matrix = Eigen::MatrixXf::Random(3, 5);
  torch::Tensor tensor = AsTensor(matrix);
  EXPECT_EQ(tensor.sizes(), torch::IntArrayRef({5, 3}));
  EXPECT_EQ(tensor[4][1].item<float>(), matrix(1, 4));
  AsMatrix(tensor)(2, 0) = 7.0F;
  EXPECT_EQ(matrix(2, 0), 7.0F);
  EXPECT_THROW(AsMatrix(tensor.t()), UserError);
  EXPECT_THROW(AsMatrix(tensor.to(torch::kDouble)), UserError);
  EXPECT_THROW(AsMatrix(torch::zeros({3})), UserError);
  Mlp mlp({.input = 1, .hidden = {}, .output = 1});
  EXPECT_THROW(FusedMlp(mlp, torch::zeros({1, 1}), torch::zeros({2})), InvariantError);
}

}  // namespace
}  // namespace msrl
