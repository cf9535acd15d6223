// Shapes shared by the graph's benchmarks and those of libtorch's modules.
#ifndef BENCH_GRAPH_WORKLOAD_H_
#define BENCH_GRAPH_WORKLOAD_H_

namespace msrl::bench {

constexpr int kGruSteps = 16;
constexpr int kGruBatch = 32;
constexpr int kGruWidth = 128;  // of input and state

constexpr int kAttentionBatch = 32;
constexpr int kAttentionTokens = 16;
constexpr int kAttentionWidth = 64;
constexpr int kAttentionHeads = 4;

}  // namespace msrl::bench

#endif  // BENCH_GRAPH_WORKLOAD_H_
