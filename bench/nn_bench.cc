// TD3 updates with msrl::nn, next to the bare matrix products of the same update. td3_modules.cc
// adds the same update with libtorch modules.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <Eigen/Core>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "bench/ratio_main.h"
#include "bench/td3_workload.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/mlp.h"
#include "msrl/nn/random.h"
#include "msrl/nn/runtime.h"
#include "msrl/nn/squashed_gaussian.h"

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

// ---- the update ----

class Td3 {
 public:
  explicit Td3(const Td3Shape& shape) : shape_(shape) {
    Rng init(0, "init");
    actor_.Init(init);
    critic_.Init(init);
    actor_target_ = actor_;
    critic_target_ = critic_;
  }

  void Update() {
    SampleBatch();
    const int n = shape_.observation;
    const int m = shape_.action;

    // y = r + gamma (1 - terminal) min_i Q'_i(s', clip(pi'(s') + clip(noise)))
    FillNormal(rng_, {noise_.data(), static_cast<std::size_t>(noise_.size())});
    const auto next_policy = actor_target_.Forward(next_input_.topRows(n), actor_tape_);
    next_input_.bottomRows(m) =
        (next_policy + (kNoise * noise_).cwiseMax(-kNoiseLimit).cwiseMin(kNoiseLimit))
            .cwiseMax(-1.0F)
            .cwiseMin(1.0F);
    const auto next_q = critic_target_.Forward(next_input_, critic_tape_);
    y_ = reward_ + kGamma * live_.cwiseProduct(next_q.colwise().minCoeff());

    // L_Q = sum_i mean (Q_i(s, a) - y)^2
    const auto q = critic_.Forward(input_, critic_tape_);
    d_q_ = (q.rowwise() - y_) * (2.0F / kBatch);
    critic_.Backward(d_q_, critic_tape_, critic_gradients_);
    if (++updates_ % 2 != 0) {
      critic_adam_.Step(critic_.parameters(), critic_gradients_, kLearningRate);
      return;
    }
    critic_adam_.Step(critic_.parameters(), critic_gradients_, kLearningRate,
                      critic_target_.parameters(), kTau);

    // L_pi = -mean Q_1(s, pi(s))
    input_.bottomRows(m) = actor_.Forward(input_.topRows(n), actor_tape_);
    critic_.Forward(input_, critic_tape_, {0, 1});
    critic_.InputGradient(minus_mean_, critic_tape_, n, d_action_);
    actor_.Backward(d_action_, actor_tape_, actor_gradients_);
    actor_adam_.Step(actor_.parameters(), actor_gradients_, kLearningRate,
                     actor_target_.parameters(), kTau);
  }

 private:
  void SampleBatch() {
    std::array<Eigen::Index, kBatch> chosen;
    for (Eigen::Index& index : chosen) {
      index = rng_.Index(kTransitions);
      for (int i = 0; i < shape_.record(); i += 16) __builtin_prefetch(&records_(i, index));
    }
    for (int b = 0; b < kBatch; ++b) {
      const auto record = records_.col(chosen[b]);
      input_.col(b) = record.head(shape_.input());
      next_input_.col(b).head(shape_.observation) =
          record.segment(shape_.input(), shape_.observation);
      reward_[b] = record[shape_.record() - 2];
      live_[b] = record[shape_.record() - 1];
    }
  }

  Td3Shape shape_;
  Eigen::MatrixXf records_ = RandomTransitions(shape_);
  Rng rng_{0, "td3"};
  std::int64_t updates_ = 0;

  MlpSpec actor_spec_{.input = shape_.observation,
                      .hidden = {shape_.width, shape_.width},
                      .output = shape_.action,
                      .output_activation = Activation::kTanh};
  MlpSpec critic_spec_{
      .input = shape_.input(), .hidden = {shape_.width, shape_.width}, .output = 1, .members = 2};
  Mlp actor_{actor_spec_}, actor_target_{actor_spec_};
  Mlp critic_{critic_spec_}, critic_target_{critic_spec_};
  MlpTape actor_tape_{actor_spec_, kBatch}, critic_tape_{critic_spec_, kBatch};
  Adam actor_adam_{actor_.parameter_count()}, critic_adam_{critic_.parameter_count()};
  FloatBuffer actor_gradients_ = FloatBuffer(actor_.parameter_count());
  FloatBuffer critic_gradients_ = FloatBuffer(critic_.parameter_count());

  Eigen::MatrixXf input_{shape_.input(), kBatch}, next_input_{shape_.input(), kBatch};
  Eigen::MatrixXf noise_{shape_.action, kBatch}, d_action_{shape_.action, kBatch};
  Eigen::MatrixXf d_q_{2, kBatch};
  Eigen::MatrixXf minus_mean_ = Eigen::MatrixXf::Constant(1, kBatch, -1.0F / kBatch);
  Eigen::RowVectorXf reward_{kBatch}, live_{kBatch}, y_{kBatch};
};

void Td3Fused(benchmark::State& state) {
  Td3 td3(ShapeOf(state));
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

struct OwnProducts {
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
  static void Run(const internal::GemmArgs& args) { internal::ActiveKernels().gemm(args); }
};

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
      promises.push_back({"TD3 update vs its products in our kernels, " + shape,
                          "Td3OwnProducts/" + shape, fused, w.products});
      promises.push_back(
          {"TD3 update vs libtorch modules, " + shape, "Td3Modules/" + shape, fused, w.modules});
    }
  }
  return promises;
}

}  // namespace msrl::bench
