// The inner loops of StaticGraph's operations, once per instruction set like those of kernels.h:
// one thread, no allocation, the order of all sums depends on the shapes only.
#ifndef MSRL_NN_GRAPH_KERNELS_H_
#define MSRL_NN_GRAPH_KERNELS_H_

#include <cstddef>

namespace msrl::internal {

// A matrix stored column by column, columns `stride` floats apart. Without data: not wanted.
struct MatrixView {
  float* data = nullptr;
  int rows = 0, columns = 0;
  std::ptrdiff_t stride = 0;

  float* Column(int c) const { return data + c * stride; }
};

struct ConstMatrixView {
  const float* data = nullptr;
  int rows = 0, columns = 0;
  std::ptrdiff_t stride = 0;

  ConstMatrixView() = default;
  ConstMatrixView(const float* d, int r, int c, std::ptrdiff_t s)
      : data(d), rows(r), columns(c), stride(s) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as a pointer becomes one to const
  ConstMatrixView(const MatrixView& m)
      : data(m.data), rows(m.rows), columns(m.columns), stride(m.stride) {}

  const float* Column(int c) const { return data + c * stride; }
};

enum class Unary {
  kAffine,  // first * x + second
  kClamp,   // between first and second
  kRelu,
  kTanh,
  kSigmoid,
  kSilu,
  kElu,
  kMish,
  kSoftplus,
  kExp,
  kLog,
  kSquare,
  kSqrt,
  kAbs,
  kSymlog,  // sign(x) log(1 + |x|)
  kSymexp,  // its inverse
};

struct UnaryFunction {
  Unary kind = Unary::kAffine;
  float first = 1.0F;
  float second = 0.0F;
};

enum class Binary { kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };

// r, z, n = sigmoid(xr + ur), sigmoid(xz + uz), tanh(xn + r un); next = (1 - z) n + z h. One block
// of `saved` has four parts of h.rows rows: ur, uz, un before, r, z, un, n after the forward pass.
struct GruArgs {
  ConstMatrixView x;       // 3 width rows: r, z, n
  ConstMatrixView h;       // width rows
  MatrixView saved;        // 4 width rows
  MatrixView next;         // forward: the result
  ConstMatrixView d_next;  // backward: d loss / d next ...
  MatrixView d_x;          // ... to d loss / d x, added if add_x; or none
  bool add_x = false;
  MatrixView d_u;  // ... and d loss / d (ur, uz, un), overwritten
  MatrixView d_h;  // ... and the direct part of d loss / d h, added if add_h; or none
  bool add_h = false;
};

// Column s * tokens + t is token t of sample s; head i has rows i * width, ....
struct AttentionArgs {
  int heads = 1, width = 0, batch = 0;
  int queries = 0, keys = 0;  // tokens per sample
  bool causal = false;        // query t sees keys 0, ..., t
  ConstMatrixView q, k, v;
  MatrixView y;
  float* weights = nullptr;  // keys x queries for every head and sample, kept for the way back
  ConstMatrixView d_y;
  MatrixView d_q, d_k, d_v;  // or none
  bool add_q = false, add_k = false, add_v = false;
  float* scratch = nullptr;  // keys x queries
};

struct GraphKernels {
  void (*unary)(UnaryFunction f, ConstMatrixView x, MatrixView y);
  // d_x = or += f'(x) d_y, with y = f(x).
  void (*unary_backward)(UnaryFunction f, ConstMatrixView x, ConstMatrixView y, ConstMatrixView d_y,
                         MatrixView d_x, bool add);
  // An operand with one row or one column is repeated to the shape of y.
  void (*binary)(Binary f, ConstMatrixView a, ConstMatrixView b, MatrixView y);
  // To repeated operands it always adds.
  void (*binary_backward)(Binary f, ConstMatrixView a, ConstMatrixView b, ConstMatrixView d_y,
                          MatrixView d_a, bool add_a, MatrixView d_b, bool add_b);
  // Of every `group` consecutive rows of a column.
  void (*softmax)(ConstMatrixView x, int group, bool log, MatrixView y);
  void (*softmax_backward)(ConstMatrixView y, int group, bool log, ConstMatrixView d_y,
                           MatrixView d_x, bool add);
  // Of every `group` consecutive rows: log_sum = log sum_i exp(x_i) and, if there are points,
  // mean = sum_i points_i softmax(x)_i. The points are symmetric about zero: equal numbers have the
  // mean zero exactly.
  void (*softmax_mean)(ConstMatrixView x, int group, const float* points, MatrixView log_sum,
                       MatrixView mean);
  // d_x = or += d softmax(x)_i (points_i - mean), without points d softmax(x)_i.
  void (*softmax_mean_backward)(ConstMatrixView x, int group, const float* points,
                                ConstMatrixView log_sum, ConstMatrixView mean, ConstMatrixView d,
                                MatrixView d_x, bool add);
  // y = (x - mean) / sqrt(variance + epsilon) * scale + shift over each column, without the mean if
  // not `centre`; scale and shift may be null. Keeps mean and 1 / std, two numbers per column.
  void (*normalise)(bool centre, float epsilon, ConstMatrixView x, const float* scale,
                    const float* shift, float* moments, MatrixView y);
  // d_scale and d_shift are added to, if not null.
  void (*normalise_backward)(bool centre, ConstMatrixView x, const float* scale,
                             const float* moments, ConstMatrixView d_y, float* d_scale,
                             float* d_shift, MatrixView d_x, bool add);
  void (*gru)(const GruArgs& args);
  void (*gru_backward)(const GruArgs& args);
  void (*attention)(const AttentionArgs& args);
  void (*attention_backward)(const AttentionArgs& args);
  // y (1 x columns, or rows x 1, or 1 x 1) = scale * the sums of x over what y lacks.
  void (*reduce)(ConstMatrixView x, float scale, MatrixView y);
  // y = or += scale * x, repeated to the shape of y.
  void (*expand)(ConstMatrixView x, float scale, MatrixView y, bool add);
};

}  // namespace msrl::internal

#endif  // MSRL_NN_GRAPH_KERNELS_H_
