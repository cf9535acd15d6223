#include "msrl/nn/mlp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/nn/random.h"
#include "msrl/nn/runtime.h"
#include "msrl/nn/weight_memory.h"

namespace msrl {
namespace {

using internal::ActiveKernels;
using internal::ConstMatrixView;
using internal::Epilogue;
using internal::GemmArgs;
using internal::MatrixView;

constexpr std::array<std::pair<Activation, std::string_view>, 6> kActivations{
    {{Activation::kIdentity, "identity"},
     {Activation::kRelu, "relu"},
     {Activation::kTanh, "tanh"},
     {Activation::kElu, "elu"},
     {Activation::kSilu, "silu"},
     {Activation::kMish, "mish"}}};

std::size_t RoundUp(std::size_t n) { return (n + 15) / 16 * 16; }

// Columns that are a large power of two apart fall on the same few lines of the cache.
int ColumnStride(int width) { return width % 128 == 0 ? width + 16 : width; }

// Zero inputs are looked for where there are products to save.
constexpr int kLookRows = 32;
constexpr int kLookColumns = 16;

// The derivative is a function of what goes in, not of what comes out.
bool NeedsInput(Activation activation) {
  return activation == Activation::kSilu || activation == Activation::kMish;
}

// The backward pass needs more than the activation.
bool KeepsBefore(const MlpSpec& spec) { return spec.layer_norm || NeedsInput(spec.activation); }

// The rows of `input` in the list, to columns that lie next to each other.
void Pick(std::span<const int> rows, const ConstMatrixRef& input, float* x) {
  for (Eigen::Index b = 0; b < input.cols(); ++b) {
    const float* const column = input.data() + b * input.outerStride();
    for (const int row : rows) *x++ = column[row];
  }
}

// The reverse for gradients: columns of `rows` values to those in the list, zeros elsewhere or, if
// `add`, nothing.
void Spread(std::span<const int> list, int rows, int columns, const float* from, bool add,
            float* to) {
  if (!add) std::fill_n(to, static_cast<std::ptrdiff_t>(rows) * columns, 0.0F);
  for (const int column : list) {
    float* const out = to + static_cast<std::ptrdiff_t>(column) * rows;
    for (int i = 0; i < rows; ++i) out[i] += from[i];
    from += rows;
  }
}

// Rows (or columns, if there are more rows than columns) orthonormal; Gram-Schmidt, twice.
Eigen::MatrixXd RandomOrthogonal(int rows, int columns, Rng& rng) {
  const bool tall = rows >= columns;
  Eigen::MatrixXd q(tall ? rows : columns, tall ? columns : rows);
  for (double& value : q.reshaped()) value = rng.Normal();
  for (Eigen::Index j = 0; j < q.cols(); ++j) {
    for (int pass = 0; pass < 2; ++pass) {
      for (Eigen::Index i = 0; i < j; ++i) q.col(j) -= q.col(i).dot(q.col(j)) * q.col(i);
    }
    q.col(j).normalize();
  }
  if (tall) return q;
  return q.transpose();
}

}  // namespace

Activation ParseActivation(std::string_view name) {
  for (const auto& [activation, text] : kActivations) {
    if (text == name) return activation;
  }
  throw UserError(
      StrCat("unknown activation '", name, "'; choose identity, relu, tanh, elu, silu or mish"));
}

std::string_view ActivationName(Activation activation) {
  for (const auto& [value, text] : kActivations) {
    if (value == activation) return text;
  }
  MSRL_CHECK(false, "no such activation");
  return {};
}

void RequireValid(const MlpSpec& spec) {
  const auto require_positive = [](int size, std::string_view what) {
    if (size < 1) throw UserError(StrCat("network: ", what, " is ", size, "; it must be positive"));
  };
  require_positive(spec.input, "input");
  require_positive(spec.output, "output");
  require_positive(spec.members, "members");
  for (const int width : spec.hidden) require_positive(width, "a hidden width");
  if (NeedsInput(spec.output_activation)) {
    throw UserError(StrCat("network: ", ActivationName(spec.output_activation),
                           " is not an output activation; choose another"));
  }
}

MlpTape::MlpTape(const MlpSpec& spec, int max_batch) : spec_(spec), max_batch_(max_batch) {
  RequireValid(spec);
  MSRL_CHECK_GE(max_batch, 1);
  const auto batch = static_cast<std::size_t>(max_batch);
  std::size_t end = 0;
  const auto take = [&end](std::size_t count) {
    const std::size_t start = end;
    end += RoundUp(count);
    return start;
  };
  std::size_t widest = 0;
  int most_rows = spec.output;
  for (const int width : spec.hidden) most_rows = std::max(most_rows, width);
  input_ = take(batch * spec.input * spec.members);
  for (int member = 0; member < spec.members; ++member) {
    for (const int width : spec.hidden) {
      Layer layer;
      layer.stride = ColumnStride(width);
      const std::size_t size = batch * layer.stride;
      widest = std::max(widest, size);
      layer.active = take(size);
      layer.before = take(KeepsBefore(spec) ? size : 0);
      layer.moments = take(spec.layer_norm ? 2 * batch : 0);
      layers_.push_back(layer);
    }
  }
  output_ = take(batch * spec.output * spec.members);
  d_output_ = take(batch * spec.output * spec.members);
  row_sum_ = take(static_cast<std::size_t>(most_rows));
  for (std::size_t& delta : delta_) delta = take(widest);
  buffer_.resize(end);
  if (spec.input < kLookRows || max_batch < kLookColumns || spec.hidden.empty()) return;
  seen_.resize(static_cast<std::size_t>(spec.input));
  live_.reserve(seen_.size());
  live_weight_.resize(seen_.size() * static_cast<std::size_t>(spec.hidden.front()));
}

void MlpTape::FindLiveInputs(const ConstMatrixRef& input) {
  live_.clear();
  if (seen_.empty() || own_inputs_ || batch_ < kLookColumns) return;
  const auto rows = static_cast<int>(input.rows());
  const Eigen::Index stride = input.outerStride();
  std::uint32_t* const seen = seen_.data();
  std::ranges::fill(seen_, 0U);
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  // four columns at once; the last four may overlap those before
  for (int b = 0; b < batch_; b += 4) {
    const float* const x0 = input.data() + std::min(b, batch_ - 4) * stride;
    const float* const x1 = x0 + stride;
    const float* const x2 = x1 + stride;
    const float* const x3 = x2 + stride;
    for (int i = 0; i < rows; ++i) {
      seen[i] |= bits(x0[i]) | bits(x1[i]) | bits(x2[i]) | bits(x3[i]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    if ((seen[i] & 0x7fffffffU) != 0) live_.push_back(i);  // not only 0 and -0
  }
  // picking few out costs as much as it saves
  if (4 * std::ssize(live_) > 3 * rows) live_.clear();
}

MlpFunction::MlpFunction(MlpSpec spec) : spec_(std::move(spec)) {
  RequireValid(spec_);
  std::vector<NamedTensor> tensors;
  const auto take = [this, &tensors](std::string name, int rows, int columns) {
    tensors.push_back({std::move(name), rows, columns, member_size_});
    member_size_ += tensors.back().size();
    return tensors.back().offset;
  };
  const std::size_t count = spec_.hidden.size() + 1;
  for (std::size_t l = 0; l < count; ++l) {
    Layer layer;
    layer.in = l == 0 ? spec_.input : spec_.hidden[l - 1];
    layer.out = l + 1 == count ? spec_.output : spec_.hidden[l];
    const std::string prefix = StrCat("layers.", l, ".");
    layer.weight = take(prefix + "weight", layer.out, layer.in);
    layer.bias = take(prefix + "bias", layer.out, 1);
    if (spec_.layer_norm && l + 1 < count) {
      layer.scale = take(prefix + "norm.weight", layer.out, 1);
      layer.shift = take(prefix + "norm.bias", layer.out, 1);
    }
    layers_.push_back(layer);
  }
  for (int member = 0; member < spec_.members; ++member) {
    for (NamedTensor tensor : tensors) {
      if (spec_.members > 1) tensor.name = StrCat("members.", member, ".", tensor.name);
      tensor.offset += member * member_size_;
      tensors_.push_back(std::move(tensor));
    }
  }
}

void MlpFunction::Clear(std::span<float> parameters) const {
  MSRL_CHECK_EQ(parameters.size(), parameter_count());
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  for (int member = 0; member < spec_.members; ++member) {
    for (const Layer& layer : layers_) {
      if (layer.scale == 0) continue;
      std::fill_n(parameters.data() + member * member_size_ + layer.scale, layer.out, 1.0F);
    }
  }
}

void MlpFunction::Init(std::span<float> parameters, Rng& rng, const MlpInit& init) const {
  MSRL_CHECK_EQ(parameters.size(), parameter_count());
  for (int member = 0; member < spec_.members; ++member) {
    float* const base = parameters.data() + member * member_size_;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      const bool last = l + 1 == layers_.size();
      Eigen::Map<Eigen::MatrixXf> weight(base + layer.weight, layer.out, layer.in);
      Eigen::Map<Eigen::VectorXf> bias(base + layer.bias, layer.out);
      if (init.kind == InitKind::kOrthogonal) {
        const double gain = last ? init.last_scale : init.gain;
        weight = (gain * RandomOrthogonal(layer.out, layer.in, rng)).cast<float>();
        bias.setZero();
      } else if (init.kind == InitKind::kTruncatedNormal) {
        const double deviation = init.gain * (last ? init.last_scale : 1.0);
        for (float& w : weight.reshaped()) {
          w = static_cast<float>(deviation * TruncatedNormal(rng));
        }
        bias.setZero();
      } else {
        const double bound = (last ? init.last_scale : 1.0) / std::sqrt(layer.in);
        for (float& w : weight.reshaped()) w = static_cast<float>(rng.Uniform(-bound, bound));
        for (float& b : bias) b = static_cast<float>(rng.Uniform(-bound, bound));
      }
      if (last) bias.array() += static_cast<float>(init.last_bias);
      if (layer.scale != 0) {
        std::fill_n(base + layer.scale, layer.out, 1.0F);
        std::fill_n(base + layer.shift, layer.out, 0.0F);
      }
    }
  }
}

ConstMatrixMap MlpFunction::Forward(std::span<const float> parameters, const ConstMatrixRef& input,
                                    MlpTape& tape, MemberRange members) const {
  const internal::FlushDenormals flush;
  const auto batch = static_cast<int>(input.cols());
  MSRL_CHECK(
      members.first >= 0 && members.count >= 1 && members.first + members.count <= spec_.members,
      "members ", members.first, " and ", members.count, " more of ", spec_.members);
  MSRL_CHECK(batch >= 1 && batch <= tape.max_batch_, "batch is ", batch, ", tape is for ",
             tape.max_batch_);
  MSRL_CHECK(tape.spec_ == spec_, "a tape of another spec");
  MSRL_CHECK_EQ(parameters.size(), parameter_count());
  tape.own_inputs_ = input.rows() != spec_.input;
  MSRL_CHECK(!tape.own_inputs_ || input.rows() == spec_.input * members.count, "input has ",
             input.rows(), " rows, spec.input is ", spec_.input);
  tape.batch_ = batch;
  tape.members_ = members;

  float* const x = tape.At(tape.input_);
  tape.FindLiveInputs(input);
  const auto live = static_cast<int>(tape.live_.size());
  if (live == 0) {
    Eigen::Map<Eigen::MatrixXf>(x, input.rows(), batch) = input;
  } else {
    Pick(tape.live_, input, x);
  }
  float* const y = tape.At(tape.output_);
  const int output_rows = spec_.output * members.count;
  for (int i = 0; i < members.count; ++i) {
    const int member = members.first + i;
    const float* const base = parameters.data() + member * member_size_;
    const float* in = tape.own_inputs_ ? x + static_cast<std::ptrdiff_t>(i) * spec_.input : x;
    Eigen::Index in_stride = live == 0 ? input.rows() : live;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      GemmArgs product;
      product.m = layer.out;
      product.n = batch;
      product.k = layer.in;
      product.a = base + layer.weight;
      product.a_col = layer.out;
      product.b = in;
      product.b_col = in_stride;
      product.bias = base + layer.bias;
      if (l == 0 && live > 0) {
        product.k = live;
        product.a = tape.live_weight_.data();
        const Eigen::Map<const Eigen::MatrixXf> weight(base + layer.weight, layer.out, layer.in);
        for (int c = 0; c < live; ++c) {
          std::ranges::copy(weight.col(tape.live_[c]), &tape.live_weight_[c * layer.out]);
        }
      }
      if (l + 1 == layers_.size()) {
        product.c = y + static_cast<std::ptrdiff_t>(i) * spec_.output;
        product.c_col = output_rows;
        ActiveKernels().gemm(product);
        break;
      }
      const MlpTape::Layer& cache = tape.layers_[member * spec_.hidden.size() + l];
      float* const h = tape.At(cache.active);
      float* const before = KeepsBefore(spec_) ? tape.At(cache.before) : h;
      const bool fused = spec_.activation == Activation::kRelu && !spec_.layer_norm;
      product.c = before;
      product.c_col = cache.stride;
      product.epilogue = fused ? Epilogue::kRelu : Epilogue::kNone;
      ActiveKernels().gemm(product);
      const std::size_t size = static_cast<std::size_t>(batch) * cache.stride;
      if (spec_.layer_norm) {
        ActiveKernels().graph.normalise(
            true, kNormEpsilon, ConstMatrixView(before, layer.out, batch, cache.stride),
            base + layer.scale, base + layer.shift, tape.At(cache.moments),
            MatrixView{h, layer.out, batch, cache.stride});
        ActiveKernels().activate(spec_.activation, h, h, size);
      } else if (!fused) {
        ActiveKernels().activate(spec_.activation, before, h, size);
      }
      in = h;
      in_stride = cache.stride;
    }
  }
  ActiveKernels().activate(spec_.output_activation, y, y,
                           static_cast<std::size_t>(output_rows) * batch);
  return {y, output_rows, batch};
}

ConstStridedMap MlpFunction::LastHidden(const MlpTape& tape) const {
  MSRL_CHECK(spec_.members == 1 && !spec_.hidden.empty(), "no one last hidden layer");
  MSRL_CHECK(tape.spec_ == spec_ && tape.batch_ > 0, "no forward pass with this tape");
  const MlpTape::Layer& cache = tape.layers_.back();
  return {tape.buffer_.data() + cache.active, spec_.hidden.back(), tape.batch_,
          Eigen::OuterStride<>(cache.stride)};
}

void MlpFunction::Backward(std::span<const float> parameters, const ConstMatrixRef& d_output,
                           MlpTape& tape, const Gradients& to) const {
  const internal::FlushDenormals flush;
  const MemberRange members = tape.members_;
  const int output_rows = spec_.output * members.count;
  MSRL_CHECK(d_output.rows() == output_rows && d_output.cols() == tape.batch_, "d_output is ",
             d_output.rows(), " x ", d_output.cols(), ", the output was ", output_rows, " x ",
             tape.batch_);
  MSRL_CHECK_EQ(parameters.size(), parameter_count());
  MSRL_CHECK(to.parameters.empty() || to.parameters.size() == parameters.size(), "gradients are ",
             to.parameters.size(), ", parameters ", parameters.size());
  if (to.d_input != nullptr) {
    const MatrixRef& d_input = *to.d_input;
    const Eigen::Index blocks = tape.own_inputs_ ? members.count : 1;
    MSRL_CHECK(d_input.cols() == tape.batch_ && d_input.rows() % blocks == 0 && to.first_row >= 0 &&
                   to.first_row + d_input.rows() / blocks <= spec_.input,
               "d_input is ", d_input.rows(), " x ", d_input.cols(), " from row ", to.first_row);
  }
  if (to.d_hidden != nullptr) {
    MSRL_CHECK(spec_.members == 1 && !spec_.hidden.empty(), "no one last hidden layer");
    MSRL_CHECK(to.d_hidden->rows() == spec_.hidden.back() && to.d_hidden->cols() == tape.batch_,
               "d_hidden is ", to.d_hidden->rows(), " x ", to.d_hidden->cols());
  }
  const float* d = d_output.data();
  Eigen::Index d_stride = d_output.outerStride();
  if (spec_.output_activation != Activation::kIdentity) {
    float* const copy = tape.At(tape.d_output_);
    Eigen::Map<Eigen::MatrixXf>(copy, output_rows, tape.batch_) = d_output;
    ActiveKernels().activate_backward(spec_.output_activation, tape.At(tape.output_), copy,
                                      static_cast<std::size_t>(output_rows) * tape.batch_);
    d = copy;
    d_stride = output_rows;
  }
  if (!to.add_parameters && members.count < spec_.members) {
    std::fill(to.parameters.begin(), to.parameters.end(), 0.0F);
  }
  for (int i = 0; i < members.count; ++i) {
    const int member = members.first + i;
    float* const part =
        to.parameters.empty() ? nullptr : to.parameters.data() + member * member_size_;
    BackwardMember(parameters.data() + member * member_size_, member,
                   d + static_cast<std::ptrdiff_t>(i) * spec_.output, d_stride, tape, part, to);
  }
}

void MlpFunction::BackwardMember(const float* base, int member, const float* d_output,
                                 Eigen::Index d_stride, MlpTape& tape, float* gradients,
                                 const Gradients& to) const {
  const int batch = tape.batch_;
  const int position = member - tape.members_.first;  // among those of the forward pass
  const MlpTape::Layer* const caches = tape.layers_.data() + member * spec_.hidden.size();
  const float* x = tape.At(tape.input_);
  Eigen::Index x_stride = spec_.input;
  if (tape.own_inputs_) {
    x += static_cast<std::ptrdiff_t>(position) * spec_.input;
    x_stride *= tape.members_.count;
  }
  const float* delta = d_output;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    if (gradients != nullptr) {
      GemmArgs d_weight;
      d_weight.m = layer.out;
      d_weight.n = layer.in;
      d_weight.k = batch;
      d_weight.a = delta;
      d_weight.a_col = d_stride;
      d_weight.b = l == 0 ? x : tape.At(caches[l - 1].active);
      d_weight.b_row = l == 0 ? x_stride : caches[l - 1].stride;
      d_weight.b_col = 1;
      d_weight.c = gradients + layer.weight;
      d_weight.c_col = layer.out;
      d_weight.accumulate = to.add_parameters;
      d_weight.row_sum = to.add_parameters ? tape.At(tape.row_sum_) : gradients + layer.bias;
      const bool some = l == 0 && !tape.live_.empty();
      if (some) {
        d_weight.n = static_cast<int>(tape.live_.size());
        d_weight.b_row = d_weight.n;
        d_weight.c = tape.live_weight_.data();
        d_weight.accumulate = false;
      }
      ActiveKernels().gemm(d_weight);
      if (some) {
        Spread(tape.live_, layer.out, layer.in, d_weight.c, to.add_parameters,
               gradients + layer.weight);
      }
      if (to.add_parameters) {
        Eigen::Map<Eigen::ArrayXf>(gradients + layer.bias, layer.out) +=
            Eigen::Map<const Eigen::ArrayXf>(d_weight.row_sum, layer.out);
      }
    }
    // W^T delta, of the wanted input rows only
    GemmArgs down;
    down.n = batch;
    down.k = layer.out;
    down.a_row = layer.out;
    down.a_col = 1;
    down.b = delta;
    down.b_col = d_stride;
    if (l == 0) {
      if (to.d_input == nullptr) return;
      const bool own = tape.own_inputs_;
      down.m = static_cast<int>(to.d_input->rows()) / (own ? tape.members_.count : 1);
      down.a = base + layer.weight + static_cast<std::ptrdiff_t>(to.first_row) * layer.out;
      down.c = to.d_input->data() + (own ? static_cast<std::ptrdiff_t>(position) * down.m : 0);
      down.c_col = to.d_input->outerStride();
      down.accumulate = to.add_input || (!own && position > 0);
      ActiveKernels().gemm(down);
      return;
    }
    const MlpTape::Layer& cache = caches[l - 1];
    const Layer& below = layers_[l - 1];
    float* const d = tape.At(tape.delta_[l % 2]);
    const bool fused = spec_.activation == Activation::kRelu && !spec_.layer_norm;
    down.m = layer.in;
    down.a = base + layer.weight;
    down.c = d;
    down.c_col = cache.stride;
    down.epilogue = fused ? Epilogue::kReluGate : Epilogue::kNone;
    down.gate = tape.At(cache.active);
    if (to.d_hidden != nullptr && l + 1 == layers_.size()) {
      Eigen::Map<Eigen::MatrixXf, 0, Eigen::OuterStride<>>(
          d, below.out, batch, Eigen::OuterStride<>(cache.stride)) = *to.d_hidden;
      down.accumulate = true;
    }
    ActiveKernels().gemm(down);
    if (!fused) {
      const std::size_t size = static_cast<std::size_t>(batch) * cache.stride;
      const float* from = tape.At(cache.active);
      const ConstMatrixView before(tape.At(cache.before), below.out, batch, cache.stride);
      if (NeedsInput(spec_.activation)) {
        from = before.data;
        if (spec_.layer_norm) {
          // what went into the activation was not kept; the gradient above is no longer needed
          float* const u = tape.At(tape.delta_[(l + 1) % 2]);
          ActiveKernels().graph.normalise(true, kNormEpsilon, before, base + below.scale,
                                          base + below.shift, tape.At(cache.moments),
                                          MatrixView{u, below.out, batch, cache.stride});
          from = u;
        }
      }
      ActiveKernels().activate_backward(spec_.activation, from, d, size);
      if (spec_.layer_norm) {
        float* const d_scale = gradients == nullptr ? nullptr : gradients + below.scale;
        float* const d_shift = gradients == nullptr ? nullptr : gradients + below.shift;
        if (gradients != nullptr && !to.add_parameters) {
          std::fill_n(d_scale, below.out, 0.0F);
          std::fill_n(d_shift, below.out, 0.0F);
        }
        const MatrixView d_z{d, below.out, batch, cache.stride};
        ActiveKernels().graph.normalise_backward(true, before, base + below.scale,
                                                 tape.At(cache.moments), d_z, d_scale, d_shift, d_z,
                                                 false);
      }
    }
    delta = d;
    d_stride = cache.stride;
  }
}

Mlp::Mlp(MlpSpec spec) : function_(std::move(spec)) {
  internal::RequireWeights("a network", function_.parameter_count(), 1);
  parameters_.resize(function_.parameter_count());
  function_.Clear(parameters_);
}

ConstMatrixMap Mlp::Forward(const ConstMatrixRef& input, MlpTape& tape) const {
  return Forward(input, tape, {0, spec().members});
}

ConstMatrixMap Mlp::Forward(const ConstMatrixRef& input, MlpTape& tape, MemberRange members) const {
  return function_.Forward(parameters_, input, tape, members);
}

void Mlp::Backward(const ConstMatrixRef& d_output, MlpTape& tape,
                   std::span<float> gradients) const {
  MSRL_CHECK_EQ(gradients.size(), parameters_.size());
  function_.Backward(parameters_, d_output, tape, {.parameters = gradients});
}

void Mlp::Backward(const ConstMatrixRef& d_output, MlpTape& tape, std::span<float> gradients,
                   int first_row, MatrixRef d_input) const {
  MSRL_CHECK_EQ(gradients.size(), parameters_.size());
  function_.Backward(parameters_, d_output, tape,
                     {.parameters = gradients, .first_row = first_row, .d_input = &d_input});
}

void Mlp::InputGradient(const ConstMatrixRef& d_output, MlpTape& tape, int first_row,
                        MatrixRef d_input) const {
  function_.Backward(parameters_, d_output, tape, {.first_row = first_row, .d_input = &d_input});
}

void Mlp::BackwardWithHidden(const ConstMatrixRef& d_output, const ConstMatrixRef& d_hidden,
                             MlpTape& tape, std::span<float> gradients) const {
  MSRL_CHECK_EQ(gradients.size(), parameters_.size());
  function_.Backward(parameters_, d_output, tape, {.parameters = gradients, .d_hidden = &d_hidden});
}

}  // namespace msrl
