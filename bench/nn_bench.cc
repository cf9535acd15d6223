// Updates of the TD3 agent, sampling included, next to the bare matrix products of the same update.
// td3_modules.cc adds the same update with libtorch modules.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <Eigen/Core>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "bench/ratio_main.h"
#include "bench/td3_workload.h"
#include "msrl/agents/td3/td3.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/mlp.h"
#include "msrl/nn/random.h"
#include "msrl/nn/runtime.h"
#include "msrl/nn/squashed_gaussian.h"
#include "msrl/value/matrix_features.h"

namespace msrl::bench {
namespace {

Td3Shape ShapeOf(const benchmark::State& state) {
  return {static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
          static_cast<int>(state.range(2))};
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  for (const int width : {64, 128, 256}) {
    benchmark->Args({3, 1, width})->Args({27, 8, width});
  }
  benchmark->Unit(benchmark::kMicrosecond);
}

// ---- the agent ----

// A task without dynamics: just the sizes, and a memory full of random steps.
EnvSpec SpecOf(const Td3Shape& shape) {
  EnvSpec spec;
  spec.id = "bench";
  spec.observation_size = shape.observation;
  spec.action = {ActionKind::kContinuous, shape.action};
  return spec;
}

Td3Config ConfigOf(const Td3Shape& shape) {
  Td3Config config;
  config.hidden_width = shape.width;
  config.batch_size = kBatch;
  config.replay_size = kTransitions;
  config.random_steps = kTransitions / 2;  // every step is an episode of two states
  config.actor_learning_rate = config.critic_learning_rate = kLearningRate;
  return config;
}

void Fill(const Td3Shape& shape, Td3& agent) {
  const SegmentMatrix matrix(CompactLift());
  const Eigen::VectorXd geometry = Eigen::VectorXd::Zero(kGeometrySize);
  const Eigen::MatrixXd records = RandomTransitions(shape).cast<double>();
  const auto situation = [&](const double* observation) {
    return Situation{.observation = EnvView(observation, shape.observation),
                     .geometry = EnvView(geometry.data(), kGeometrySize),
                     .matrix = matrix,
                     .step = 0};
  };
  Carry carry;
  for (int i = 0; i < kTransitions / 2; ++i) {
    const double* record = records.col(i).data();
    const double* action = record + shape.observation;
    const double* next = action + shape.action;
    agent.Observe({.before = situation(record),
                   .action = Action::Continuous({action, static_cast<std::size_t>(shape.action)}),
                   .action_code = {},
                   .reward = next[shape.observation],
                   .scaled_reward = next[shape.observation],
                   .psi = {},
                   .after = situation(next),
                   .terminated = false,
                   .truncated = true},
                  carry);
  }
}

void Td3Fused(benchmark::State& state) {
  const Td3Shape shape = ShapeOf(state);
  Td3 td3(SpecOf(shape), ConfigOf(shape), 0);
  Fill(shape, td3);
  for (auto _ : state) {
    td3.Update();
    td3.Update();
  }
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(Td3Fused)->Apply(Shapes);

// ---- its matrix products and nothing else ----

// The three products of a layer out x in: with the transposed weights only `rows` rows.
struct BlasProducts {
  static void Forward(int out, int in, const float* w, const float* x, float* y) {
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, out, kBatch, in, 1.0F, w, out, x, in,
                0.0F, y, out);
  }
  static void Weight(int out, int in, const float* d, const float* x, float* dw) {
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, out, in, kBatch, 1.0F, d, out, x, in, 0.0F,
                dw, out);
  }
  static void Down(int out, int rows, const float* w, const float* d, float* dx) {
    cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, rows, kBatch, out, 1.0F, w, out, d, out,
                0.0F, dx, rows);
  }
};

const internal::Kernels& Fastest() { return internal::ActiveKernels(); }
const internal::Kernels& AtMostAvx2() {
  const internal::Kernels* kernels = internal::Avx2Kernels();
  return kernels == nullptr ? internal::PortableKernels() : *kernels;
}

template <const internal::Kernels& (*kKernels)()>
struct KernelProducts {
  static void Forward(int out, int in, const float* w, const float* x, float* y) {
    Run({.m = out,
         .n = kBatch,
         .k = in,
         .a = w,
         .a_col = out,
         .b = x,
         .b_col = in,
         .c = y,
         .c_col = out});
  }
  static void Weight(int out, int in, const float* d, const float* x, float* dw) {
    Run({.m = out,
         .n = in,
         .k = kBatch,
         .a = d,
         .a_col = out,
         .b = x,
         .b_row = in,
         .b_col = 1,
         .c = dw,
         .c_col = out});
  }
  static void Down(int out, int rows, const float* w, const float* d, float* dx) {
    Run({.m = rows,
         .n = kBatch,
         .k = out,
         .a = w,
         .a_row = out,
         .a_col = 1,
         .b = d,
         .b_col = out,
         .c = dx,
         .c_col = rows});
  }
  static void Run(const internal::GemmArgs& args) { kKernels().gemm(args); }
};
using OwnProducts = KernelProducts<Fastest>;
using Avx2Products = KernelProducts<AtMostAvx2>;

template <typename Products>
class ProductNet {
 public:
  ProductNet(int input, int width, int output) : sizes_{input, width, width, output} {
    for (int l = 0; l < 4; ++l) activations_.emplace_back(Random(sizes_[l] * kBatch));
    for (int l = 0; l < 3; ++l) weights_.emplace_back(Random(sizes_[l] * sizes_[l + 1]));
    gradients_ = weights_;
    deltas_ = activations_;
  }

  void Forward() {
    for (int l = 0; l < 3; ++l) {
      Products::Forward(sizes_[l + 1], sizes_[l], weights_[l].data(), activations_[l].data(),
                        activations_[l + 1].data());
    }
  }
  void Weights() {
    for (int l = 2; l >= 0; --l) {
      Products::Weight(sizes_[l + 1], sizes_[l], deltas_[l + 1].data(), activations_[l].data(),
                       gradients_[l].data());
    }
  }
  void Down(int input_rows) {
    for (int l = 2; l >= 0; --l) {
      const int rows = l == 0 ? input_rows : sizes_[l];
      if (rows == 0) continue;
      Products::Down(sizes_[l + 1], rows, weights_[l].data(), deltas_[l + 1].data(),
                     deltas_[l].data());
    }
  }

 private:
  static FloatBuffer Random(int size) {
    Rng rng(0, "products");
    FloatBuffer buffer(size);
    for (float& value : buffer) value = static_cast<float>(rng.Uniform(-0.1, 0.1));
    return buffer;
  }

  std::array<int, 4> sizes_;
  std::vector<FloatBuffer> activations_, weights_, gradients_, deltas_;
};

template <typename Products>
void Td3Products(benchmark::State& state) {
  UseOneThread();
  const Td3Shape shape = ShapeOf(state);
  using Net = ProductNet<Products>;
  Net actor(shape.observation, shape.width, shape.action);
  Net actor_target = actor;
  std::vector<Net> critics(2, Net(shape.input(), shape.width, 1));
  std::vector<Net> critic_targets = critics;
  for (auto _ : state) {
    for (int update = 0; update < 2; ++update) {
      actor_target.Forward();
      for (Net& critic : critic_targets) critic.Forward();
      for (Net& critic : critics) critic.Forward();
      for (Net& critic : critics) {
        critic.Weights();
        critic.Down(0);
      }
    }
    actor.Forward();
    critics[0].Forward();
    critics[0].Down(shape.action);
    actor.Weights();
    actor.Down(0);
  }
  state.SetItemsProcessed(2 * state.iterations());
}
void Td3OpenBlasProducts(benchmark::State& state) { Td3Products<BlasProducts>(state); }
BENCHMARK(Td3OpenBlasProducts)->Apply(Shapes);
void Td3OwnProducts(benchmark::State& state) { Td3Products<OwnProducts>(state); }
BENCHMARK(Td3OwnProducts)->Apply(Shapes);

// what the same kernels do without AVX-512; where the processor has none, the same once more
void Td3Avx2Products(benchmark::State& state) { Td3Products<Avx2Products>(state); }
BENCHMARK(Td3Avx2Products)->Apply(Shapes);

// ---- the rest, for the record ----

void ActOneSample(benchmark::State& state) {
  const auto width = static_cast<int>(state.range(0));
  const MlpSpec spec{.input = 27, .hidden = {width, width}, .output = 8};
  Mlp mlp(spec);
  Rng rng(0, "act");
  mlp.Init(rng);
  MlpTape tape(spec, 1);
  const Eigen::VectorXf observation = Eigen::VectorXf::Random(27);
  for (auto _ : state) benchmark::DoNotOptimize(mlp.Forward(observation, tape).data());
}
BENCHMARK(ActOneSample)->Arg(64)->Arg(128)->Arg(256);

void AdamAndPolyak(benchmark::State& state) {
  const bool fused = state.range(0) != 0;
  constexpr std::size_t kCount = 150'000;
  Adam adam(kCount);
  FloatBuffer p(kCount, 1.0F);
  FloatBuffer g(kCount, 0.1F);
  FloatBuffer target(kCount, 1.0F);
  for (auto _ : state) {
    if (fused) {
      adam.Step(p, g, 1e-3, target, kTau);
    } else {
      adam.Step(p, g, 1e-3);
      PolyakUpdate(target, p, kTau);
    }
  }
}
BENCHMARK(AdamAndPolyak)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

void Normals800(benchmark::State& state) {
  Rng rng(0, "normals");
  FloatBuffer values(800);
  for (auto _ : state) {
    FillNormal(rng, values);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(Normals800)->Unit(benchmark::kMicrosecond);

void SquashedSampleAndBackward(benchmark::State& state) {
  SquashedGaussian policy(8, 256);
  const Eigen::MatrixXf head = Eigen::MatrixXf::Random(16, 256);
  const Eigen::MatrixXf noise = Eigen::MatrixXf::Random(8, 256);
  Eigen::MatrixXf action(8, 256);
  Eigen::MatrixXf d_head(16, 256);
  Eigen::VectorXf log_prob(256);
  const std::span<float> values(log_prob.data(), 256);
  for (auto _ : state) {
    policy.Sample(head, noise, action, values);
    policy.Backward(action, values, d_head);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(SquashedSampleAndBackward)->Unit(benchmark::kMicrosecond);

// The features of one prefix matrix of the paper's lift: the selected averages or all.
void FeaturesOfOneMatrix(benchmark::State& state) {
  const Lift::Ptr lift = Lift::Make({LiftKind::kCompact, 8, 10, {}});
  const MatrixFeatures features(lift, {.all_entries = state.range(0) != 0, .endpoints = true});
  SegmentMatrix z(lift);
  for (int t = 0; t < 50; ++t) z.AddStep(Eigen::VectorXd::Random(lift->m()));
  std::vector<float> out(static_cast<std::size_t>(features.size()));
  for (auto _ : state) {
    features.Compute(z, out);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(FeaturesOfOneMatrix)->Arg(0)->Arg(1);

}  // namespace

std::vector<Promise> Promises() {
  struct Width {
    int width;
    double products;
    double modules;
  };
  std::vector<Promise> promises;
  for (const Width& w : {Width{64, 0.5, 3.6}, Width{128, 0.65, 2.1}, Width{256, 0.75, 1.5}}) {
    for (const std::string sizes : {"3/1/", "27/8/"}) {
      const std::string shape = sizes + std::to_string(w.width);
      const std::string fused = "Td3Fused/" + shape;
      promises.push_back({"TD3 update vs its products in OpenBLAS, " + shape,
                          "Td3OpenBlasProducts/" + shape, fused, w.products});
      promises.push_back({"products with AVX2 vs the fastest here, " + shape,
                          "Td3Avx2Products/" + shape, "Td3OwnProducts/" + shape, 1.0});
      promises.push_back({"TD3 update vs its products in our kernels, " + shape,
                          "Td3OwnProducts/" + shape, fused, w.products});
      promises.push_back(
          {"TD3 update vs libtorch modules, " + shape, "Td3Modules/" + shape, fused, w.modules});
    }
  }
  return promises;
}

}  // namespace msrl::bench
