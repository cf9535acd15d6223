// The inner loops of networks and optimisers, once per instruction set and chosen at run time.
//
// Everything here is one thread, allocates nothing and is deterministic: for one instruction set
// the order of all sums depends on the shapes only. AVX-512 gives the same bits as AVX2.
#ifndef MSRL_NN_KERNELS_H_
#define MSRL_NN_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "msrl/nn/graph_kernels.h"

namespace msrl {

enum class Activation { kIdentity, kRelu, kTanh, kElu, kSilu, kMish };

namespace internal {

using Stride = std::ptrdiff_t;

enum class Epilogue {
  kNone,
  kRelu,      // C = max(C, 0)
  kReluGate,  // C = 0 where gate <= 0
};

// C (m x n) = epilogue(bias + A (m x k) * B (k x n)); any strides, fast if A or its transpose has
// unit row stride and C has unit row stride.
struct GemmArgs {
  int m = 0, n = 0, k = 0;
  const float* a = nullptr;
  Stride a_row = 1, a_col = 0;
  const float* b = nullptr;
  Stride b_row = 1, b_col = 0;
  float* c = nullptr;
  Stride c_row = 1, c_col = 0;
  const float* bias = nullptr;  // m values, or none
  bool accumulate = false;      // add to C instead (then without bias)
  Epilogue epilogue = Epilogue::kNone;
  const float* gate = nullptr;  // m x n with the strides of C
  float* row_sum = nullptr;     // m values: the sums of A's rows, a by-product of packing
};

struct AdamArgs {
  std::size_t n = 0;
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;
  float* target = nullptr;  // or none: target += tau (parameter - target) after the step
  float tau = 0.0F;
  float gradient_scale = 1.0F;
  float one_minus_beta1 = 0.0F, one_minus_beta2 = 0.0F;
  float step = 0.0F;        // learning rate / (1 - beta1^t)
  float root_scale = 1.0F;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0.0F;
  float decay = 1.0F;  // 1 - learning rate * weight decay
};

struct LaPropArgs {
  std::size_t n = 0;
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;
  float gradient_scale = 1.0F;
  float one_minus_beta1 = 0.0F, one_minus_beta2 = 0.0F;
  float step = 0.0F;        // learning rate / (1 - beta1^t)
  float root_scale = 1.0F;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0.0F;
};

struct Kernels {
  const char* name;
  void (*gemm)(const GemmArgs& args);
  // h = f(z); may be in place.
  void (*activate)(Activation f, const float* z, float* h, std::size_t n);
  // d *= f'; `x` is z for SiLU and Mish, h = f(z) for the others.
  void (*activate_backward)(Activation f, const float* x, float* d, std::size_t n);
  void (*adam)(const AdamArgs& args);
  void (*laprop)(const LaPropArgs& args);
  void (*polyak)(float* target, const float* source, float tau, std::size_t n);
  double (*sum_of_squares)(const float* x, std::size_t n);
  // Elementwise, a few ulp; exp saturates beyond +-87, log needs positive normal numbers.
  void (*exp)(const float* x, float* y, std::size_t n);
  void (*log)(const float* x, float* y, std::size_t n);
  void (*tanh)(const float* x, float* y, std::size_t n);
  // Every 16 random words make 16 standard normal numbers.
  void (*normals)(const std::uint32_t* words, float* out, std::size_t blocks);
  GraphKernels graph;
};

const Kernels& PortableKernels();
// Null if this build or this processor has no AVX2 and FMA.
const Kernels* Avx2Kernels();
// Null if this build or this processor has no AVX-512.
const Kernels* Avx512Kernels();
// The fastest that this processor runs.
const Kernels& ActiveKernels();

}  // namespace internal
}  // namespace msrl

#endif  // MSRL_NN_KERNELS_H_
