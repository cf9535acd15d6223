// The update of MBPO's ensemble as one writes it with libtorch: all members in one batched product.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "bench/mbpo_workload.h"
#include "msrl/nn/runtime.h"

namespace msrl::bench {
namespace {

using torch::Tensor;

class ModuleEnsemble {
 public:
  explicit ModuleEnsemble(const EnsembleShape& shape) {
    int in = kEnsembleObservation + kEnsembleAction;
    for (int layer = 0; layer <= shape.layers; ++layer) {
      const int out = layer == shape.layers ? 2 * kOutputs : shape.width;
      weights_.push_back(torch::randn({shape.members, in, out}).mul_(0.5 / std::sqrt(in)));
      biases_.push_back(torch::zeros({shape.members, 1, out}));
      decays_.push_back(layer == shape.layers ? 1e-4 : 2.5e-5 * std::min(layer + 1, 3));
      in = out;
    }
    std::vector<Tensor> parameters = weights_;
    parameters.insert(parameters.end(), biases_.begin(), biases_.end());
    parameters.push_back(low_);
    parameters.push_back(high_);
    for (Tensor& parameter : parameters) parameter.requires_grad_();
    adam_ = std::make_unique<torch::optim::Adam>(parameters,
                                                 torch::optim::AdamOptions(kEnsembleLearningRate));
    x_ = torch::randn({shape.members, kEnsembleBatch, kEnsembleObservation + kEnsembleAction});
    y_ = torch::randn({shape.members, kEnsembleBatch, kOutputs});
  }

  void Update() {
    Tensor h = x_;
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      h = torch::baddbmm(biases_[layer], h, weights_[layer]);
      if (layer + 1 < weights_.size()) h = torch::silu(h);
    }
    const std::vector<Tensor> parts = h.chunk(2, -1);
    Tensor lv = high_ - torch::softplus(high_ - parts[1]);
    lv = low_ + torch::softplus(lv - low_);
    Tensor loss = ((parts[0] - y_).square() * torch::exp(-lv)).mean({1, 2}).sum() +
                  lv.mean({1, 2}).sum() + 0.01 * (high_.sum() - low_.sum());
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      loss = loss + 0.5 * decays_[layer] * weights_[layer].square().sum();
    }
    adam_->zero_grad();
    loss.backward();
    adam_->step();
  }

 private:
  static constexpr int kOutputs = 1 + kEnsembleObservation;

  std::vector<Tensor> weights_, biases_;
  std::vector<double> decays_;
  Tensor low_ = torch::full({kOutputs}, -10.0);
  Tensor high_ = torch::full({kOutputs}, 0.5);
  Tensor x_, y_;
  std::unique_ptr<torch::optim::Adam> adam_;
};

void EnsembleModules(benchmark::State& state) {
  torch::set_num_threads(1);
  UseOneThread();
  torch::manual_seed(0);
  ModuleEnsemble ensemble({static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                           static_cast<int>(state.range(2))});
  for (auto _ : state) ensemble.Update();
}
BENCHMARK(EnsembleModules)->Args({5, 3, 128})->Args({7, 4, 200})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace msrl::bench
