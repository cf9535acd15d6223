// The update of nn_bench.cc as one writes it with libtorch's modules and optimisers.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <vector>

#include "bench/td3_workload.h"

namespace msrl::bench {
namespace {

using torch::Tensor;
using torch::nn::Linear;

struct NetImpl : torch::nn::Module {
  NetImpl(int input, int width, int output, bool tanh_output)
      : first(register_module("first", Linear(input, width))),
        second(register_module("second", Linear(width, width))),
        last(register_module("last", Linear(width, output))),
        bounded(tanh_output) {}

  Tensor forward(const Tensor& x) {
    const Tensor y = last(torch::relu(second(torch::relu(first(x)))));
    return bounded ? torch::tanh(y) : y;
  }

  Linear first, second, last;
  bool bounded;
};
TORCH_MODULE(Net);

void Copy(Net& target, const Net& source) {
  const torch::NoGradGuard no_grad;
  const std::vector<Tensor> from = source->parameters();
  std::vector<Tensor> to = target->parameters();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

void Polyak(Net& target, const Net& source) {
  const torch::NoGradGuard no_grad;
  const std::vector<Tensor> from = source->parameters();
  std::vector<Tensor> to = target->parameters();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].mul_(1.0 - kTau).add_(from[i], kTau);
}

class ModuleTd3 {
 public:
  explicit ModuleTd3(const Td3Shape& shape) : shape_(shape) {
    Copy(actor_target_, actor_);
    Copy(critic1_target_, critic1_);
    Copy(critic2_target_, critic2_);
    Eigen::MatrixXf records = RandomTransitions(shape);
    records_ = torch::from_blob(records.data(), {kTransitions, shape.record()}).clone();
  }

  void Update() {
    const int n = shape_.observation;
    const int m = shape_.action;
    const Tensor rows = records_.index_select(0, torch::randint(kTransitions, {kBatch}));
    const Tensor observation = rows.slice(1, 0, n);
    const Tensor input = rows.slice(1, 0, n + m);
    const Tensor next = rows.slice(1, n + m, 2 * n + m);
    const Tensor reward = rows.slice(1, 2 * n + m, 2 * n + m + 1);
    const Tensor live = rows.slice(1, 2 * n + m + 1, 2 * n + m + 2);

    Tensor y;
    {
      const torch::NoGradGuard no_grad;
      const Tensor noise = (torch::randn({kBatch, m}) * kNoise).clamp(-kNoiseLimit, kNoiseLimit);
      const Tensor action = (actor_target_(next) + noise).clamp(-1.0, 1.0);
      const Tensor next_input = torch::cat({next, action}, 1);
      const Tensor q = torch::min(critic1_target_(next_input), critic2_target_(next_input));
      y = reward + kGamma * live * q;
    }
    const Tensor loss = torch::mse_loss(critic1_(input), y) + torch::mse_loss(critic2_(input), y);
    critic_adam_.zero_grad();
    loss.backward();
    critic_adam_.step();
    if (++updates_ % 2 != 0) return;

    const Tensor actor_loss = -critic1_(torch::cat({observation, actor_(observation)}, 1)).mean();
    actor_adam_.zero_grad();
    actor_loss.backward();
    actor_adam_.step();
    Polyak(actor_target_, actor_);
    Polyak(critic1_target_, critic1_);
    Polyak(critic2_target_, critic2_);
  }

 private:
  Net Critic() const { return Net(shape_.input(), shape_.width, 1, false); }
  Net Actor() const { return Net(shape_.observation, shape_.width, shape_.action, true); }
  std::vector<Tensor> CriticParameters() const {
    std::vector<Tensor> all = critic1_->parameters();
    for (const Tensor& parameter : critic2_->parameters()) all.push_back(parameter);
    return all;
  }

  Td3Shape shape_;
  Tensor records_;
  std::int64_t updates_ = 0;
  Net actor_ = Actor(), actor_target_ = Actor();
  Net critic1_ = Critic(), critic1_target_ = Critic();
  Net critic2_ = Critic(), critic2_target_ = Critic();
  torch::optim::Adam actor_adam_{actor_->parameters(), torch::optim::AdamOptions(kLearningRate)};
  torch::optim::Adam critic_adam_{CriticParameters(), torch::optim::AdamOptions(kLearningRate)};
};

void Td3Modules(benchmark::State& state) {
  torch::set_num_threads(1);
  ModuleTd3 td3({static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                 static_cast<int>(state.range(2))});
  for (auto _ : state) {
    td3.Update();
    td3.Update();
  }
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(Td3Modules)
    ->ArgsProduct({{3}, {1}, {64, 128, 256}})
    ->ArgsProduct({{27}, {8}, {64, 128, 256}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace msrl::bench
