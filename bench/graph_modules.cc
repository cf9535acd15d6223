// The workloads of graph_bench.cc with libtorch's modules, on one thread.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <cmath>

#include "bench/graph_workload.h"
#include "msrl/nn/runtime.h"

namespace msrl::bench {
namespace {

// libtorch's own threads, and those of OpenBLAS below it.
void OneThread() {
  torch::set_num_threads(1);
  UseOneThread();
}

void GruModules(benchmark::State& state) {
  OneThread();
  torch::manual_seed(0);
  torch::nn::GRU gru(torch::nn::GRUOptions(kGruWidth, kGruWidth));
  const torch::Tensor input = torch::randn({kGruSteps, kGruBatch, kGruWidth}).requires_grad_();
  const torch::Tensor start = torch::zeros({1, kGruBatch, kGruWidth});
  const torch::Tensor d_output = torch::randn({kGruSteps, kGruBatch, kGruWidth});
  for (auto _ : state) {
    gru->zero_grad();
    input.mutable_grad() = torch::Tensor();
    const torch::Tensor output = std::get<0>(gru->forward(input, start));
    output.backward(d_output);
    benchmark::DoNotOptimize(input.grad().data_ptr<float>());
  }
}
BENCHMARK(GruModules)->Unit(benchmark::kMicrosecond);

void AttentionModules(benchmark::State& state) {
  OneThread();
  torch::manual_seed(0);
  const int head = kAttentionWidth / kAttentionHeads;
  torch::nn::Linear qkv(kAttentionWidth, 3 * kAttentionWidth);
  torch::nn::Linear out(kAttentionWidth, kAttentionWidth);
  const torch::Tensor input =
      torch::randn({kAttentionBatch, kAttentionTokens, kAttentionWidth}).requires_grad_();
  const torch::Tensor d_output = torch::randn({kAttentionBatch, kAttentionTokens, kAttentionWidth});
  for (auto _ : state) {
    qkv->zero_grad();
    out->zero_grad();
    input.mutable_grad() = torch::Tensor();
    const torch::Tensor parts =
        qkv->forward(input)
            .view({kAttentionBatch, kAttentionTokens, 3, kAttentionHeads, head})
            .permute({2, 0, 3, 1, 4});
    const torch::Tensor weights =
        torch::softmax(torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(head), -1);
    const torch::Tensor mixed = torch::matmul(weights, parts[2])
                                    .transpose(1, 2)
                                    .reshape({kAttentionBatch, kAttentionTokens, kAttentionWidth});
    out->forward(mixed).backward(d_output);
    benchmark::DoNotOptimize(input.grad().data_ptr<float>());
  }
}
BENCHMARK(AttentionModules)->Unit(benchmark::kMicrosecond);

void AttentionModule(benchmark::State& state) {
  OneThread();
  torch::manual_seed(0);
  torch::nn::MultiheadAttention attention(kAttentionWidth, kAttentionHeads);
  const torch::Tensor input =
      torch::randn({kAttentionTokens, kAttentionBatch, kAttentionWidth}).requires_grad_();
  const torch::Tensor d_output = torch::randn({kAttentionTokens, kAttentionBatch, kAttentionWidth});
  for (auto _ : state) {
    attention->zero_grad();
    input.mutable_grad() = torch::Tensor();
    const torch::Tensor output =
        std::get<0>(attention->forward(input, input, input, {}, /*need_weights=*/false));
    output.backward(d_output);
    benchmark::DoNotOptimize(input.grad().data_ptr<float>());
  }
}
BENCHMARK(AttentionModule)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace msrl::bench
