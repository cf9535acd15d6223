#include "msrl/nn/graph_ops.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"
#include "msrl/nn/kernels.h"

namespace msrl::internal {
namespace {

const GraphKernels& K() { return ActiveKernels().graph; }

constexpr UnaryFunction kCopy{};

MatrixView Columns(const MatrixView& m, int first, int count) {
  return {m.data + first * m.stride, m.rows, count, m.stride};
}
ConstMatrixView Columns(const ConstMatrixView& m, int first, int count) {
  return {m.data + first * m.stride, m.rows, count, m.stride};
}
// Nothing of nothing.
MatrixView ColumnsIfAny(const MatrixView& m, int first, int count) {
  return m.data == nullptr ? m : Columns(m, first, count);
}
template <typename View>
View Rows(const View& m, int first, int count) {
  return {m.data + first, count, m.columns, m.stride};
}

// y = a x + bias
void Product(const ConstMatrixView& a, const ConstMatrixView& x, const float* bias,
             const MatrixView& y) {
  GemmArgs gemm;
  gemm.m = y.rows;
  gemm.n = y.columns;
  gemm.k = x.rows;
  gemm.a = a.data;
  gemm.a_col = a.stride;
  gemm.b = x.data;
  gemm.b_col = x.stride;
  gemm.c = y.data;
  gemm.c_col = y.stride;
  gemm.bias = bias;
  ActiveKernels().gemm(gemm);
}

// d_x = or += a' d_y
void ProductBackward(const ConstMatrixView& a, const ConstMatrixView& d_y, const MatrixView& d_x,
                     bool add) {
  GemmArgs gemm;
  gemm.m = d_x.rows;
  gemm.n = d_x.columns;
  gemm.k = d_y.rows;
  gemm.a = a.data;
  gemm.a_row = a.stride;
  gemm.a_col = 1;
  gemm.b = d_y.data;
  gemm.b_col = d_y.stride;
  gemm.c = d_x.data;
  gemm.c_col = d_x.stride;
  gemm.accumulate = add;
  ActiveKernels().gemm(gemm);
}

// d_a = or += d_y x'; the row sums of d_y to `sums`, if not null.
void WeightGradient(const ConstMatrixView& d_y, const ConstMatrixView& x, const MatrixView& d_a,
                    bool add, float* sums) {
  GemmArgs gemm;
  gemm.m = d_a.rows;
  gemm.n = d_a.columns;
  gemm.k = x.columns;
  gemm.a = d_y.data;
  gemm.a_col = d_y.stride;
  gemm.b = x.data;
  gemm.b_row = x.stride;
  gemm.b_col = 1;
  gemm.c = d_a.data;
  gemm.c_col = d_a.stride;
  gemm.accumulate = add;
  gemm.row_sum = sums;
  ActiveKernels().gemm(gemm);
}

void AddVector(const float* x, const MatrixView& to) {
  K().expand({x, to.rows, 1, to.rows}, 1.0F, to, true);
}

StridedMap AsMap(const MatrixView& m) {
  return {m.data, m.rows, m.columns, Eigen::OuterStride<>(m.stride)};
}

// A whole number in {0, ..., count - 1}.
int IndexAt(const MatrixView& index, int i, int j, int count) {
  const float value = index.Column(j)[i];
  MSRL_CHECK(value >= 0.0F && value < static_cast<float>(count) && value == std::floor(value),
             "index ", value, " at (", i, ", ", j, "), not one of ", count);
  return static_cast<int>(value);
}

}  // namespace

void UnaryOp::Forward(GraphState& g) { K().unary(f_, g.Value(inputs[0]), g.Value(output)); }

void UnaryOp::Backward(GraphState& g) {
  const auto [d_x, add] = g.Into(inputs[0]);
  K().unary_backward(f_, g.Value(inputs[0]), g.Value(output), g.Gradient(output), d_x, add);
}

void BinaryOp::Forward(GraphState& g) {
  K().binary(f_, g.Value(inputs[0]), g.Value(inputs[1]), g.Value(output));
}

void BinaryOp::Backward(GraphState& g) {
  const ConstMatrixView d_y = g.Gradient(output);
  const auto into = [&](int id) -> GraphState::Target {
    const MatrixView x = g.Value(id);
    if (x.rows == d_y.rows && x.columns == d_y.columns) return g.Into(id);
    return {g.AddTo(id), true};
  };
  const ConstMatrixView a = g.Value(inputs[0]);
  const ConstMatrixView b = g.Value(inputs[1]);
  // one after the other: a and b may be the same node
  const GraphState::Target to_a = into(inputs[0]);
  K().binary_backward(f_, a, b, d_y, to_a.to, to_a.add, {}, false);
  const GraphState::Target to_b = into(inputs[1]);
  K().binary_backward(f_, a, b, d_y, {}, false, to_b.to, to_b.add);
}

void LinearOp::Forward(GraphState& g) {
  Product(g.Value(inputs[1]), g.Value(inputs[0]),
          inputs.size() > 2 ? g.Value(inputs[2]).data : nullptr, g.Value(output));
}

void LinearOp::Backward(GraphState& g) {
  const ConstMatrixView d_y = g.Gradient(output);
  const bool bias = inputs.size() > 2 && g.Wants(inputs[2]);
  float* const sums = bias ? g.scratch() : nullptr;
  const auto [d_weight, add_weight] = g.Into(inputs[1]);
  if (d_weight.data != nullptr) {
    WeightGradient(d_y, g.Value(inputs[0]), d_weight, add_weight, sums);
    if (bias) AddVector(sums, g.AddTo(inputs[2]));
  } else if (bias) {
    const MatrixView d_bias = g.AddTo(inputs[2]);
    K().reduce(d_y, 1.0F, {sums, d_y.rows, 1, d_y.rows});
    AddVector(sums, d_bias);
  }
  const auto [d_x, add_x] = g.Into(inputs[0]);
  if (d_x.data != nullptr) ProductBackward(g.Value(inputs[1]), d_y, d_x, add_x);
}

namespace {

// All values of the owner, as this use sees them.
std::span<const float> ValuesOf(const MlpParameters& network, ParameterUse use) {
  if (use == ParameterUse::kTarget) return network.owner->target();
  return network.owner->values();
}

// Where the gradients of some consecutive tensors go, nothing if they are not trained.
void GradientsInto(const MlpParameters& network, ParameterUse use, std::size_t first_tensor,
                   std::size_t tensors, std::size_t offset, std::size_t size,
                   MlpFunction::Gradients& to) {
  if (use != ParameterUse::kTrained) return;
  to.add_parameters = network.owner->StartGradients(first_tensor, tensors);
  to.parameters = {network.owner->gradient_data() + offset, size};
}

// Runs the backward pass with the gradient of the input if it is wanted.
void BackwardThrough(const MlpFunction& f, std::span<const float> values,
                     const ConstMatrixView& d_y, MlpTape& tape, const GraphState::Target& d_x,
                     MlpFunction::Gradients& to) {
  const ConstStridedMap d_output(d_y.data, d_y.rows, d_y.columns, Eigen::OuterStride<>(d_y.stride));
  if (d_x.to.data == nullptr) {
    f.Backward(values, d_output, tape, to);
    return;
  }
  MatrixRef d_input = AsMap(d_x.to);
  to.d_input = &d_input;
  to.add_input = d_x.add;
  f.Backward(values, d_output, tape, to);
}

}  // namespace

template <typename F>
void BlockLinearOp::ForBlocks(GraphState& g, const F& f) const {
  const int rows = g.Value(output).rows / (blocks_ * parts_);
  const int x_rows = g.Value(inputs[0]).rows / blocks_;
  for (int i = 0; i < blocks_ * parts_; ++i) f(i * rows, rows, i % blocks_ * x_rows, x_rows);
}

void BlockLinearOp::Forward(GraphState& g) {
  const MatrixView x = g.Value(inputs[0]);
  const MatrixView weight = g.Value(inputs[1]);
  const float* const bias = inputs.size() > 2 ? g.Value(inputs[2]).data : nullptr;
  const MatrixView y = g.Value(output);
  ForBlocks(g, [&](int row, int rows, int x_row, int x_rows) {
    Product(Rows(weight, row, rows), Rows(x, x_row, x_rows), bias == nullptr ? bias : bias + row,
            Rows(y, row, rows));
  });
}

void BlockLinearOp::Backward(GraphState& g) {
  const MatrixView x = g.Value(inputs[0]);
  const MatrixView weight = g.Value(inputs[1]);
  const ConstMatrixView d_y = g.Gradient(output);
  const auto [d_weight, add_weight] = g.Into(inputs[1]);
  if (d_weight.data != nullptr) {
    ForBlocks(g, [&, to = d_weight, add = add_weight](int row, int rows, int x_row, int x_rows) {
      WeightGradient(Rows(d_y, row, rows), Rows(x, x_row, x_rows), Rows(to, row, rows), add,
                     nullptr);
    });
  }
  if (inputs.size() > 2 && g.Wants(inputs[2])) {
    K().reduce(d_y, 1.0F, {g.scratch(), d_y.rows, 1, d_y.rows});
    AddVector(g.scratch(), g.AddTo(inputs[2]));
  }
  const auto [d_x, add_x] = g.Into(inputs[0]);
  if (d_x.data != nullptr) {
    ForBlocks(g, [&, to = d_x, add = add_x](int row, int rows, int x_row, int x_rows) {
      ProductBackward(Rows(weight, row, rows), Rows(d_y, row, rows), Rows(to, x_row, x_rows),
                      add || row >= blocks_ * rows);
    });
  }
}

MlpOp::MlpOp(const MlpParameters& network, ParameterUse use, int batch)
    : network_(network),
      use_(use),
      tape_(std::make_unique<MlpTape>(network.function->spec(), batch)) {}

std::span<const float> MlpOp::Values() const {
  return ValuesOf(network_, use_).subspan(network_.offset, network_.function->parameter_count());
}

void MlpOp::Forward(GraphState& g) {
  const MlpFunction& f = *network_.function;
  AsMap(g.Value(output)) =
      f.Forward(Values(), AsMap(g.Value(inputs[0])), *tape_, {0, f.spec().members});
}

void MlpOp::Backward(GraphState& g) {
  const MlpFunction& f = *network_.function;
  MlpFunction::Gradients to;
  GradientsInto(network_, use_, network_.index, f.tensors().size(), network_.offset,
                f.parameter_count(), to);
  BackwardThrough(f, Values(), g.Gradient(output), *tape_, g.Into(inputs[0]), to);
}

MlpMembersOp::MlpMembersOp(const MlpParameters& network, ParameterUse use, int count, int batch)
    : network_(network), use_(use) {
  MlpSpec spec = network.function->spec();
  spec.members = 1;
  one_ = std::make_unique<const MlpFunction>(spec);
  for (int i = 0; i < count; ++i) tapes_.emplace_back(spec, batch);
}

std::span<const float> MlpMembersOp::Values(int member) const {
  return ValuesOf(network_, use_)
      .subspan(network_.offset + member * one_->parameter_count(), one_->parameter_count());
}

void MlpMembersOp::Forward(GraphState& g) {
  const MatrixView members = g.Value(inputs[1]);
  const int out = one_->spec().output;
  for (int i = 0; i < members.rows; ++i) {
    const int member = IndexAt(members, i, 0, network_.function->spec().members);
    AsMap(Rows(g.Value(output), i * out, out)) =
        one_->Forward(Values(member), AsMap(g.Value(inputs[0])), tapes_[i], {0, 1});
  }
}

void MlpMembersOp::Backward(GraphState& g) {
  const MatrixView members = g.Value(inputs[1]);
  const int out = one_->spec().output;
  for (int i = 0; i < members.rows; ++i) {
    const auto member = static_cast<std::size_t>(members.data[i]);
    MlpFunction::Gradients to;
    GradientsInto(network_, use_, network_.index + member * one_->tensors().size(),
                  one_->tensors().size(), network_.offset + member * one_->parameter_count(),
                  one_->parameter_count(), to);
    BackwardThrough(*one_, Values(static_cast<int>(member)), Rows(g.Gradient(output), i * out, out),
                    tapes_[i], g.Into(inputs[0]), to);
  }
}

void NormOp::Forward(GraphState& g) {
  K().normalise(
      centre_, epsilon_, g.Value(inputs[0]), inputs.size() > 1 ? g.Value(inputs[1]).data : nullptr,
      inputs.size() > 2 ? g.Value(inputs[2]).data : nullptr, g.At(moments_), g.Value(output));
}

void NormOp::Backward(GraphState& g) {
  const auto [d_x, add] = g.Into(inputs[0]);
  K().normalise_backward(centre_, g.Value(inputs[0]),
                         inputs.size() > 1 ? g.Value(inputs[1]).data : nullptr, g.At(moments_),
                         g.Gradient(output), inputs.size() > 1 ? g.AddTo(inputs[1]).data : nullptr,
                         inputs.size() > 2 ? g.AddTo(inputs[2]).data : nullptr, d_x, add);
}

void ConcatOp::Forward(GraphState& g) {
  const MatrixView y = g.Value(output);
  int start = 0;
  for (const int id : inputs) {
    const MatrixView x = g.Value(id);
    const int count = rows_ ? x.rows : x.columns;
    K().unary(kCopy, x, rows_ ? Rows(y, start, count) : Columns(y, start, count));
    start += count;
  }
}

void ConcatOp::Backward(GraphState& g) {
  const ConstMatrixView d_y = g.Gradient(output);
  int start = 0;
  for (const int id : inputs) {
    const int count = rows_ ? g.Value(id).rows : g.Value(id).columns;
    const auto [d_x, add] = g.Into(id);
    if (d_x.data != nullptr) {
      K().expand(rows_ ? Rows(d_y, start, count) : Columns(d_y, start, count), 1.0F, d_x, add);
    }
    start += count;
  }
}

void ReshapeOp::Forward(GraphState& g) {
  const MatrixView x = g.Value(inputs[0]);
  const MatrixView y = g.Value(output);
  // one of the two divides the other
  const int run = std::min(x.rows, y.rows);
  const int count = x.rows * x.columns / run;
  for (int i = 0; i < count; ++i) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * run;
    std::copy_n(x.Column(static_cast<int>(at / x.rows)) + at % x.rows, run,
                y.Column(static_cast<int>(at / y.rows)) + at % y.rows);
  }
}

void ReshapeOp::Backward(GraphState& g) {
  const auto [d_x, add] = g.Into(inputs[0]);
  const ConstMatrixView d_y = g.Gradient(output);
  const int run = std::min(d_x.rows, d_y.rows);
  const int count = d_x.rows * d_x.columns / run;
  for (int i = 0; i < count; ++i) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * run;
    const float* const from = d_y.Column(static_cast<int>(at / d_y.rows)) + at % d_y.rows;
    float* const to = d_x.Column(static_cast<int>(at / d_x.rows)) + at % d_x.rows;
    K().expand({from, run, 1, run}, 1.0F, {to, run, 1, run}, add);
  }
}

void GatherColumnsOp::Forward(GraphState& g) {
  const MatrixView x = g.Value(inputs[0]);
  const MatrixView index = g.Value(inputs[1]);
  const MatrixView y = g.Value(output);
  for (int j = 0; j < y.columns; ++j) {
    std::copy_n(x.Column(IndexAt(index, 0, j, x.columns)), y.rows, y.Column(j));
  }
}

void GatherColumnsOp::Backward(GraphState& g) {
  const MatrixView d_x = g.AddTo(inputs[0]);
  const MatrixView index = g.Value(inputs[1]);
  const ConstMatrixView d_y = g.Gradient(output);
  for (int j = 0; j < d_y.columns; ++j) {
    K().expand(Columns(d_y, j, 1), 1.0F, Columns(d_x, IndexAt(index, 0, j, d_x.columns), 1), true);
  }
}

void PickOp::Forward(GraphState& g) {
  const MatrixView x = g.Value(inputs[0]);
  const MatrixView index = g.Value(inputs[1]);
  const MatrixView y = g.Value(output);
  for (int j = 0; j < y.columns; ++j) {
    for (int i = 0; i < y.rows; ++i) y.Column(j)[i] = x.Column(j)[IndexAt(index, i, j, x.rows)];
  }
}

void PickOp::Backward(GraphState& g) {
  const MatrixView d_x = g.AddTo(inputs[0]);
  const MatrixView index = g.Value(inputs[1]);
  const ConstMatrixView d_y = g.Gradient(output);
  for (int j = 0; j < d_y.columns; ++j) {
    for (int i = 0; i < d_y.rows; ++i) {
      d_x.Column(j)[IndexAt(index, i, j, d_x.rows)] += d_y.Column(j)[i];
    }
  }
}

void SoftmaxOp::Forward(GraphState& g) {
  K().softmax(g.Value(inputs[0]), group_, log_, g.Value(output));
}

void SoftmaxOp::Backward(GraphState& g) {
  const auto [d_x, add] = g.Into(inputs[0]);
  K().softmax_backward(g.Value(output), group_, log_, g.Gradient(output), d_x, add);
}

void OneHotOp::Forward(GraphState& g) {
  const MatrixView p = g.Value(inputs[0]);
  const MatrixView y = g.Value(output);
  for (int c = 0; c < p.columns; ++c) {
    std::fill_n(y.Column(c), y.rows, 0.0F);
    for (int group = 0; group * group_ < p.rows; ++group) {
      const float* const from = p.Column(c) + group * group_;
      int chosen = 0;
      if (inputs.size() == 1) {
        chosen = static_cast<int>(std::max_element(from, from + group_) - from);
      } else {
        // the sum may round to less than one: the last possible one is then the choice
        float left = g.Value(inputs[1]).Column(c)[group];
        for (int i = 0; i < group_; ++i) {
          if (from[i] > 0.0F) chosen = i;
          left -= from[i];
          if (left < 0.0F) break;
        }
      }
      y.Column(c)[group * group_ + chosen] = 1.0F;
    }
  }
}

void OneHotOp::Backward(GraphState& g) {
  const auto [d_p, add] = g.Into(inputs[0]);
  if (d_p.data != nullptr) K().expand(g.Gradient(output), 1.0F, d_p, add);
}

GruOp::GruOp(int width, int batch, int steps, GraphState& g)
    : width_(width), batch_(batch), steps_(steps) {
  const std::size_t columns = static_cast<std::size_t>(batch) * steps;
  saved_ = g.Reserve(4 * columns * width);
  d_u_ = g.Reserve(3 * columns * width);
  // the gradient of a state, twice, and the row sums
  g.ReserveScratch(2 * static_cast<std::size_t>(width) * batch + 3 * width);
}

void GruOp::Forward(GraphState& g) {
  const MatrixView gates = g.Value(inputs[0]);
  const MatrixView weight = g.Value(inputs[2]);
  const float* const bias = g.Value(inputs[3]).data;
  const MatrixView y = g.Value(output);
  const MatrixView saved{g.At(saved_), 4 * width_, steps_ * batch_, 4 * width_};
  for (int t = 0; t < steps_; ++t) {
    GruArgs args;
    args.x = Columns(gates, t * batch_, batch_);
    args.h = t == 0 ? g.Value(inputs[1]) : Columns(y, (t - 1) * batch_, batch_);
    args.saved = Columns(saved, t * batch_, batch_);
    args.next = Columns(y, t * batch_, batch_);
    Product(weight, args.h, bias, Rows(args.saved, 0, 3 * width_));
    K().gru(args);
  }
}

void GruOp::Backward(GraphState& g) {
  const MatrixView weight = g.Value(inputs[2]);
  const MatrixView h = g.Value(inputs[1]);
  const MatrixView y = g.Value(output);
  const ConstMatrixView d_y = g.Gradient(output);
  const int columns = steps_ * batch_;
  const MatrixView saved{g.At(saved_), 4 * width_, columns, 4 * width_};
  const MatrixView d_u{g.At(d_u_), 3 * width_, columns, 3 * width_};
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(width_) * batch_;
  const MatrixView total{g.scratch(), width_, batch_, width_};         // d loss / d state t
  const MatrixView carry{g.scratch() + size, width_, batch_, width_};  // the part of later steps
  const auto [d_gates, add_gates] = g.Into(inputs[0]);
  for (int t = steps_ - 1; t >= 0; --t) {
    GruArgs args;
    args.h = t == 0 ? h : Columns(y, (t - 1) * batch_, batch_);
    args.saved = Columns(saved, t * batch_, batch_);
    args.d_next = Columns(d_y, t * batch_, batch_);
    if (t + 1 < steps_) {
      K().binary(Binary::kAdd, args.d_next, carry, total);
      args.d_next = total;
    }
    args.d_x = ColumnsIfAny(d_gates, t * batch_, batch_);
    args.add_x = add_gates;
    args.d_u = Columns(d_u, t * batch_, batch_);
    if (t > 0) {
      args.d_h = carry;
    } else {
      const auto [d_h, add_h] = g.Into(inputs[1]);
      args.d_h = d_h;
      args.add_h = add_h;
    }
    K().gru_backward(args);
    if (args.d_h.data != nullptr) ProductBackward(weight, args.d_u, args.d_h, true);
  }
  const ConstMatrixView d_first = Columns(d_u, 0, batch_);
  const ConstMatrixView d_rest = Columns(d_u, batch_, columns - batch_);
  const auto [d_weight, add_weight] = g.Into(inputs[2]);
  if (d_weight.data != nullptr) {
    WeightGradient(d_first, h, d_weight, add_weight, nullptr);
    if (steps_ > 1) {
      WeightGradient(d_rest, Columns(y, 0, columns - batch_), d_weight, true, nullptr);
    }
  }
  if (g.Wants(inputs[3])) {
    float* const sums = g.scratch() + 2 * size;
    K().reduce(d_u, 1.0F, {sums, 3 * width_, 1, 3 * width_});
    AddVector(sums, g.AddTo(inputs[3]));
  }
}

AttentionOp::AttentionOp(const StaticGraph::AttentionOptions& options, int width, int queries,
                         int keys, GraphState& g)
    : options_(options), width_(width), queries_(queries), keys_(keys) {
  const std::size_t size = static_cast<std::size_t>(queries) * keys;
  weights_ = g.Reserve(size * options.batch * options.heads);
  g.ReserveScratch(size);
}

AttentionArgs AttentionOp::Args(GraphState& g) const {
  AttentionArgs args;
  args.heads = options_.heads;
  args.width = width_ / options_.heads;
  args.batch = options_.batch;
  args.queries = queries_;
  args.keys = keys_;
  args.causal = options_.causal;
  args.q = g.Value(inputs[0]);
  args.k = g.Value(inputs[1]);
  args.v = g.Value(inputs[2]);
  args.weights = g.At(weights_);
  args.scratch = g.scratch();
  return args;
}

void AttentionOp::Forward(GraphState& g) {
  AttentionArgs args = Args(g);
  args.y = g.Value(output);
  K().attention(args);
}

void AttentionOp::Backward(GraphState& g) {
  AttentionArgs args = Args(g);
  args.d_y = g.Gradient(output);
  // all three may be one node: then they must all add
  const bool same = inputs[0] == inputs[1] || inputs[0] == inputs[2] || inputs[1] == inputs[2];
  const auto into = [&](int id) -> GraphState::Target {
    return same ? GraphState::Target{g.AddTo(id), true} : g.Into(id);
  };
  const GraphState::Target q = into(inputs[0]);
  const GraphState::Target k = into(inputs[1]);
  const GraphState::Target v = into(inputs[2]);
  args.d_q = q.to;
  args.add_q = q.add;
  args.d_k = k.to;
  args.add_k = k.add;
  args.d_v = v.to;
  args.add_v = v.add;
  K().attention_backward(args);
}

void ReduceOp::Forward(GraphState& g) { K().reduce(g.Value(inputs[0]), scale_, g.Value(output)); }

void ReduceOp::Backward(GraphState& g) {
  const auto [d_x, add] = g.Into(inputs[0]);
  K().expand(g.Gradient(output), scale_, d_x, add);
}

void TwoHotOp::Forward(GraphState& g) {
  const MatrixView x = g.Value(inputs[0]);
  const MatrixView y = g.Value(output);
  for (int j = 0; j < y.columns; ++j) {
    float* const column = y.Column(j);
    std::fill_n(column, y.rows, 0.0F);
    const auto [below, above] = bins_.Find(*x.Column(j));
    column[below] = 1.0F - above;
    column[below + 1] = above;
  }
}

TwoHotCrossEntropyOp::TwoHotCrossEntropyOp(TwoHotBins bins, int members, int columns, GraphState& g)
    : bins_(std::move(bins)), members_(members), columns_(columns) {
  log_sum_ = g.Reserve(static_cast<std::size_t>(members) * columns);
}

void TwoHotCrossEntropyOp::Forward(GraphState& g) {
  const MatrixView logits = g.Value(inputs[0]);
  const MatrixView x = g.Value(inputs[1]);
  const MatrixView y = g.Value(output);
  const MatrixView log_sum = LogSum(g);
  K().softmax_mean(logits, bins_.count(), nullptr, log_sum, {});
  for (int j = 0; j < y.columns; ++j) {
    for (int i = 0; i < y.rows; ++i) {
      const auto [below, above] = bins_.Find(x.Column(j)[x.rows == 1 ? 0 : i]);
      const float* const at = logits.Column(j) + i * bins_.count() + below;
      y.Column(j)[i] = log_sum.Column(j)[i] - ((1.0F - above) * at[0] + above * at[1]);
    }
  }
}

void TwoHotCrossEntropyOp::Backward(GraphState& g) {
  const auto [d_logits, add] = g.Into(inputs[0]);
  if (d_logits.data == nullptr) return;
  const MatrixView x = g.Value(inputs[1]);
  const ConstMatrixView d_y = g.Gradient(output);
  K().softmax_mean_backward(g.Value(inputs[0]), bins_.count(), nullptr, LogSum(g), {}, d_y,
                            d_logits, add);
  for (int j = 0; j < d_y.columns; ++j) {
    for (int i = 0; i < d_y.rows; ++i) {
      const auto [below, above] = bins_.Find(x.Column(j)[x.rows == 1 ? 0 : i]);
      const float d = d_y.Column(j)[i];
      float* const at = d_logits.Column(j) + i * bins_.count() + below;
      at[0] -= d * (1.0F - above);
      at[1] -= d * above;
    }
  }
}

TwoHotMeanOp::TwoHotMeanOp(TwoHotBins bins, int members, int columns, GraphState& g)
    : bins_(std::move(bins)), members_(members), columns_(columns) {
  saved_ = g.Reserve(3 * static_cast<std::size_t>(members) * columns);
}

MatrixView TwoHotMeanOp::Saved(GraphState& g, int which) const {
  const std::size_t size = static_cast<std::size_t>(members_) * columns_;
  return {g.At(saved_ + which * size), members_, columns_, members_};
}

void TwoHotMeanOp::Forward(GraphState& g) {
  const MatrixView y = g.Value(output);
  const MatrixView mean = Saved(g, 1);
  K().softmax_mean(g.Value(inputs[0]), bins_.count(), bins_.points().data(), Saved(g, 0), mean);
  for (int j = 0; j < y.columns; ++j) {
    for (int i = 0; i < y.rows; ++i) y.Column(j)[i] = bins_.FromMean(mean.Column(j)[i]);
  }
}

void TwoHotMeanOp::Backward(GraphState& g) {
  const auto [d_logits, add] = g.Into(inputs[0]);
  if (d_logits.data == nullptr) return;
  const ConstMatrixView d_y = g.Gradient(output);
  const MatrixView mean = Saved(g, 1);
  const MatrixView d_mean = Saved(g, 2);
  for (int j = 0; j < d_y.columns; ++j) {
    for (int i = 0; i < d_y.rows; ++i) {
      d_mean.Column(j)[i] = d_y.Column(j)[i] * bins_.FromMeanSlope(mean.Column(j)[i]);
    }
  }
  K().softmax_mean_backward(g.Value(inputs[0]), bins_.count(), bins_.points().data(), Saved(g, 0),
                            mean, d_mean, d_logits, add);
}

}  // namespace msrl::internal
