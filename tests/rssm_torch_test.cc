// libtorch as the second oracle of DreamerV3's recurrent model: a few steps with posterior and
// prior, values and gradients of all parameters.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "msrl/agents/dreamer/rssm.h"
#include "msrl/testing/tolerance.h"
#include "msrl/torch/fused_mlp_function.h"

namespace msrl {
namespace {

using testing::Tol;
using torch::Tensor;

constexpr int kBatch = 5;
constexpr int kSteps = 3;
const RssmSizes kSizes{
    {.deter = 12, .blocks = 3, .stoch = 4, .classes = 5, .hidden = 7, .units = 9, .layers = 2},
    /*observation=*/6,
    /*action=*/2};

class TorchRssm {
 public:
  explicit TorchRssm(Parameters& parameters) {
    for (const NamedTensor& tensor : parameters.tensors()) {
      // vectors as such; a view of our out x in is libtorch's weight
      Tensor value = AsTensor(parameters.values(), tensor).to(torch::kDouble).clone();
      if (tensor.columns == 1) value = value.view({-1});
      tensors_[tensor.name] = value.requires_grad_();
    }
  }
  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }

  Tensor Linear(const std::string& name, const Tensor& x) const {
    return torch::nn::functional::linear(x, (*this)[name + ".weight"], (*this)[name + ".bias"]);
  }
  Tensor NormSilu(const std::string& name, const Tensor& x) const {
    return torch::silu(x * torch::rsqrt((x * x).mean(-1, true) + 1e-4) * (*this)[name + ".weight"]);
  }
  Tensor Dense(const std::string& name, const Tensor& x) const {
    return NormSilu(name + ".norm", Linear(name, x));
  }
  // [block, out, in] of rows block by block.
  static Tensor BlockProduct(const Tensor& x, const Tensor& weight, int blocks) {
    return torch::einsum("nbi,boi->nbo", {x, weight.reshape({blocks, -1, weight.size(1)})});
  }
  Tensor Core(const Tensor& h, const Tensor& z, const Tensor& a) const {
    const auto n = h.size(0);
    const Tensor parts = torch::cat({Dense("core.h", h), Dense("core.z", z), Dense("core.a", a)}, 1)
                             .unsqueeze(1)
                             .expand({n, kSizes.blocks, 3 * kSizes.hidden});
    const Tensor x = torch::cat({parts, h.view({n, kSizes.blocks, -1})}, 2);
    const Tensor mix = BlockProduct(x, (*this)["core.mix.weight"], kSizes.blocks).reshape({n, -1});
    const Tensor g = NormSilu("core.mix.norm", mix + (*this)["core.mix.bias"]);
    const std::vector<Tensor> weights = (*this)["core.gates.weight"].chunk(3);
    const std::vector<Tensor> biases = (*this)["core.gates.bias"].chunk(3);
    const auto gate = [&](std::size_t i) {
      return BlockProduct(g.view({n, kSizes.blocks, -1}), weights[i], kSizes.blocks)
                 .reshape({n, -1}) +
             biases[i];
    };
    const Tensor u = torch::sigmoid(gate(2) - 1.0);
    return u * torch::tanh(torch::sigmoid(gate(0)) * gate(1)) + (1.0 - u) * h;
  }
  static Tensor Mixed(const Tensor& logits) {
    const Tensor p = torch::softmax(logits.view({-1, kSizes.stoch, kSizes.classes}), -1);
    return (0.99 * p + 0.01 / kSizes.classes).view({-1, kSizes.latent()});
  }
  Tensor Posterior(const Tensor& h, const Tensor& o) const {
    Tensor x = torch::sign(o) * torch::log1p(torch::abs(o));
    for (int i = 0; i < kSizes.layers; ++i) x = Dense("encoder." + std::to_string(i), x);
    return Mixed(Linear("posterior.output", Dense("posterior.0", torch::cat({h, x}, 1))));
  }
  Tensor Prior(const Tensor& h) const {
    return Mixed(Linear("prior.output", Dense("prior.1", Dense("prior.0", h))));
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

Tensor TensorOf(const ConstStridedMap& m) {
  Eigen::MatrixXf copy = m;
  return AsTensor(copy).to(torch::kDouble).clone();
}

TEST(RssmOracleTest, StepsAreLibtorchs) {
  constexpr auto kUse = ParameterUse::kTrained;
  Rng rng(4, "rssm");
  Parameters parameters;
  const Rssm rssm(parameters, kSizes, rng);
  for (float& v : parameters.values()) v += static_cast<float>(0.2 * rng.Normal());
  StaticGraph g;
  const Node o = g.Input(kSizes.observation, kSteps * kBatch);
  const Node a = g.Input(kSizes.action, kSteps * kBatch);
  const Node noise = g.Input(kSizes.stoch, kSteps * kBatch);
  const Node start_h = g.Input(kSizes.deter, kBatch);
  const Node start_z = g.Input(kSizes.latent(), kBatch);
  const Node tokens = rssm.Tokens(g, g.Symlog(o), kUse);
  const Node inputs = rssm.ActionInput(g, a, kUse);
  std::vector<Node> hs{start_h};
  std::vector<Node> zs{start_z};
  std::vector<Node> qs;
  std::vector<Node> ps;
  for (int t = 0; t < kSteps; ++t) {
    const auto now = [&](Node x) { return g.SliceColumns(x, t * kBatch, kBatch); };
    hs.push_back(rssm.Core(g, hs.back(), zs.back(), now(inputs), kUse));
    qs.push_back(rssm.Posterior(g, hs.back(), now(tokens), kUse));
    ps.push_back(rssm.Prior(g, hs.back(), kUse));
    zs.push_back(g.SampleOneHot(qs.back(), now(noise), kSizes.classes));
  }
  const Node q = g.ConcatColumns(qs);
  const Node p = g.ConcatColumns(ps);
  const Node loss =
      g.Add(g.Mean(Divergence(g, q, p)), g.Mean(g.Square(g.ConcatRows({hs.back(), zs.back()}))));
  g.Finish();
  for (const Node node : {o, a, start_h, start_z}) g.FillNormal(node, rng);
  g.FillUniform(noise, rng);
  g.Forward();
  g.Backward(loss);

  const TorchRssm theirs(parameters);
  const Tensor observation = TensorOf(g.value(o));
  const Tensor action = TensorOf(g.value(a));
  Tensor h = TensorOf(g.value(start_h));
  Tensor z = TensorOf(g.value(start_z));
  std::vector<Tensor> their_q;
  std::vector<Tensor> their_p;
  for (int t = 0; t < kSteps; ++t) {
    const auto now = [&](const Tensor& x) { return x.slice(0, t * kBatch, (t + 1) * kBatch); };
    h = theirs.Core(h, z, now(action));
    their_q.push_back(theirs.Posterior(h, now(observation)));
    their_p.push_back(theirs.Prior(h));
    // the sample that was drawn here, straight through
    const auto i = static_cast<std::size_t>(t);
    z = TensorOf(g.value(zs[i + 1])) + their_q[i] - their_q[i].detach();
    EXPECT_LT((TensorOf(g.value(hs[i + 1])) - h).abs().max().item<double>(), Tol(2e-6)) << t;
    EXPECT_LT((TensorOf(g.value(qs[i])) - their_q[i]).abs().max().item<double>(), Tol(2e-6)) << t;
    EXPECT_LT((TensorOf(g.value(ps[i])) - their_p[i]).abs().max().item<double>(), Tol(2e-6)) << t;
  }
  const Tensor all_q = torch::cat(their_q);
  const Tensor all_p = torch::cat(their_p);
  const Tensor their_loss =
      (all_q * (all_q.log() - all_p.log())).sum(1).mean() + torch::cat({h, z}, 1).square().mean();
  their_loss.backward();
  EXPECT_NEAR(g.value(loss)(0, 0), their_loss.item<double>(), Tol(1e-5));
  for (const NamedTensor& tensor : parameters.tensors()) {
    const Tensor expected = theirs[tensor.name].grad();
    const Tensor got =
        AsTensor(parameters.gradients(), tensor).to(torch::kDouble).view(expected.sizes());
    EXPECT_LT((got - expected).abs().max().item<double>(), Tol(5e-6)) << tensor.name;
    EXPECT_GT(expected.abs().max().item<double>(), 1e-5) << tensor.name;
  }
}

}  // namespace
}  // namespace msrl
