// StaticGraph: a GRU over time and an attention block, forward and backward, next to libtorch's
// modules (graph_modules.cc); and a perceptron in a graph next to the same one on its own.
#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <ctime>
#include <string>
#include <vector>

#include "bench/graph_workload.h"
#include "bench/ratio_main.h"
#include "msrl/nn/mlp.h"
#include "msrl/nn/parameters.h"
#include "msrl/nn/static_graph.h"

namespace msrl::bench {
namespace {

Eigen::MatrixXf RandomMatrix(int rows, int columns, Rng& rng) {
  Eigen::MatrixXf matrix(rows, columns);
  for (float& value : matrix.reshaped()) value = static_cast<float>(rng.Normal());
  return matrix;
}

// Seconds of this thread.
double ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void GruGraph(benchmark::State& state) {
  Rng rng(0, "gru");
  Parameters parameters;
  const GruParameters layer = AddGru(parameters, "gru", kGruWidth, kGruWidth, rng);
  StaticGraph graph;
  const Node x = graph.InputWithGradient(kGruWidth, kGruSteps * kGruBatch);
  const Node h = graph.Input(kGruWidth, kGruBatch);
  const Node y = graph.Gru(x, h, layer);
  graph.Finish();
  graph.FillNormal(x, rng);
  const Eigen::MatrixXf d_y = RandomMatrix(y.rows, y.columns, rng);
  for (auto _ : state) {
    parameters.ClearGradients();
    graph.Forward();
    graph.Backward({{y, d_y}});
    benchmark::DoNotOptimize(graph.gradient(x).data());
  }
}
BENCHMARK(GruGraph)->Unit(benchmark::kMicrosecond);

// The same from single cells, unrolled.
void GruCells(benchmark::State& state) {
  Rng rng(0, "gru");
  Parameters parameters;
  const GruParameters layer = AddGru(parameters, "gru", kGruWidth, kGruWidth, rng);
  StaticGraph graph;
  const Node x = graph.InputWithGradient(kGruWidth, kGruSteps * kGruBatch);
  Node h = graph.Input(kGruWidth, kGruBatch);
  std::vector<Node> states;
  for (int t = 0; t < kGruSteps; ++t) {
    h = graph.Gru(graph.SliceColumns(x, t * kGruBatch, kGruBatch), h, layer);
    states.push_back(h);
  }
  const Node y = graph.ConcatColumns(states);
  graph.Finish();
  graph.FillNormal(x, rng);
  const Eigen::MatrixXf d_y = RandomMatrix(y.rows, y.columns, rng);
  for (auto _ : state) {
    parameters.ClearGradients();
    graph.Forward();
    graph.Backward({{y, d_y}});
    benchmark::DoNotOptimize(graph.gradient(x).data());
  }
}
BENCHMARK(GruCells)->Unit(benchmark::kMicrosecond);

void AttentionGraph(benchmark::State& state) {
  constexpr int kWidth = kAttentionWidth;
  Rng rng(0, "attention");
  Parameters parameters;
  const LinearParameters project = AddLinear(parameters, "qkv", kWidth, 3 * kWidth, rng);
  const LinearParameters out = AddLinear(parameters, "out", kWidth, kWidth, rng);
  StaticGraph graph;
  const Node x = graph.InputWithGradient(kWidth, kAttentionTokens * kAttentionBatch);
  const Node qkv = graph.Linear(x, project);
  const Node mixed =
      graph.Attention(graph.SliceRows(qkv, 0, kWidth), graph.SliceRows(qkv, kWidth, kWidth),
                      graph.SliceRows(qkv, 2 * kWidth, kWidth),
                      {.heads = kAttentionHeads, .batch = kAttentionBatch});
  const Node y = graph.Linear(mixed, out);
  graph.Finish();
  graph.FillNormal(x, rng);
  const Eigen::MatrixXf d_y = RandomMatrix(y.rows, y.columns, rng);
  for (auto _ : state) {
    parameters.ClearGradients();
    graph.Forward();
    graph.Backward({{y, d_y}});
    benchmark::DoNotOptimize(graph.gradient(x).data());
  }
}
BENCHMARK(AttentionGraph)->Unit(benchmark::kMicrosecond);

// Twin critics, batch 100. Both sides in turn: the difference is smaller than what a shared machine
// changes meanwhile. The counter "ratio" is the speed in a graph, relative to Mlp.
void PerceptronGraph(benchmark::State& state) {
  constexpr int kBatch = 100;
  const auto width = static_cast<int>(state.range(0));
  const MlpSpec spec{.input = 35, .hidden = {width, width}, .output = 1, .members = 2};
  Rng rng(0, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  MlpTape tape(spec, kBatch);
  FloatBuffer gradients(mlp.parameter_count());

  Parameters parameters;
  const MlpParameters network = AddMlp(parameters, "critic", spec, rng);
  StaticGraph graph;
  const Node x = graph.Input(spec.input, kBatch);
  const Node y = graph.Mlp(x, network);
  graph.Finish();

  const Eigen::MatrixXf input = RandomMatrix(spec.input, kBatch, rng);
  const Eigen::MatrixXf d_y = RandomMatrix(y.rows, kBatch, rng);
  double alone = 0.0;
  double in_graph = 0.0;
  for (auto _ : state) {
    const double start = ProcessorTime();
    benchmark::DoNotOptimize(mlp.Forward(input, tape).data());
    mlp.Backward(d_y, tape, gradients);
    const double middle = ProcessorTime();
    graph.input(x) = input;
    graph.Forward();
    parameters.ClearGradients();
    graph.Backward({{y, d_y}});
    alone += middle - start;
    in_graph += ProcessorTime() - middle;
  }
  state.counters["ratio"] = alone / in_graph;
}
BENCHMARK(PerceptronGraph)->Arg(64)->Arg(128)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace

std::vector<Promise> Promises() {
  std::vector<Promise> promises{
      {"GRU, 16 steps, batch 32, width 128: graph vs libtorch", "GruModules", "GruGraph", 2.5},
      {"the same from single cells", "GruModules", "GruCells", 2.5},
      {"attention block: graph vs libtorch, own operations", "AttentionModules", "AttentionGraph",
       2.0},
      {"attention block: graph vs libtorch's MultiheadAttention", "AttentionModule",
       "AttentionGraph", 2.0}};
  for (const int width : {64, 128, 256}) {
    promises.push_back({"perceptron of width " + std::to_string(width) + ": in a graph vs Mlp", "",
                        "PerceptronGraph/" + std::to_string(width), 0.95});
  }
  return promises;
}

}  // namespace msrl::bench
