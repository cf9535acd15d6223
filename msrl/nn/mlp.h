// Multilayer perceptrons with hand-written forward and backward passes: one flat parameter buffer,
// fused bias, activation and gating, ensembles, and no allocation once the tape exists.
//
//   MlpSpec spec{.input = 4, .hidden = {64, 64}, .output = 1, .members = 2};   // twin critics
//   Mlp critic(spec);
//   critic.Init(rng);
//   MlpTape tape(spec, /*max_batch=*/100);
//   const auto q = critic.Forward(x, tape);                 // 2 x 100
//   critic.Backward(d_q, tape, gradients);                  // d loss / d parameters
//   adam.Step(critic.parameters(), gradients, 3e-4);
//
// Matrices are Eigen::MatrixXf with one column per sample.
#ifndef MSRL_NN_MLP_H_
#define MSRL_NN_MLP_H_

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/nn/float_buffer.h"
#include "msrl/nn/kernels.h"

namespace msrl {

// Blocks of matrices are passed without a copy; expressions are evaluated first (that allocates).
using ConstMatrixRef = Eigen::Ref<const Eigen::MatrixXf>;
using MatrixRef = Eigen::Ref<Eigen::MatrixXf>;
using ConstMatrixMap = Eigen::Map<const Eigen::MatrixXf>;
using ConstStridedMap = Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>>;

// "identity", "relu", "tanh", "elu", "silu", "mish"; UserError on anything else.
Activation ParseActivation(std::string_view name);
std::string_view ActivationName(Activation activation);

struct MlpSpec {
  int input = 0;
  std::vector<int> hidden;
  int output = 0;
  Activation activation = Activation::kRelu;
  Activation output_activation = Activation::kIdentity;
  bool layer_norm = false;  // hidden layers: activation(norm(W x + b)), learned scale and shift
  int members = 1;          // independent networks of this shape in one buffer

  bool operator==(const MlpSpec&) const = default;
};

// UserError if a size is not positive, or SiLU or Mish is the output activation.
void RequireValid(const MlpSpec& spec);

// A part of the flat buffer. Weights are out x in, stored column by column like every matrix here;
// vectors have one column.
struct NamedTensor {
  std::string name;  // "layers.0.weight"; of ensembles "members.1.layers.0.weight"
  int rows = 0;
  int columns = 0;
  std::size_t offset = 0;

  std::size_t size() const { return static_cast<std::size_t>(rows) * columns; }
  bool operator==(const NamedTensor&) const = default;
};

enum class InitKind { kUniform, kOrthogonal, kTruncatedNormal };

struct MlpInit {
  // kUniform: weights and biases from U(-1/sqrt(in), 1/sqrt(in)), the default of PyTorch's Linear.
  // kOrthogonal: orthonormal rows or columns times the gain, biases zero.
  // kTruncatedNormal: normal with the deviation `gain`, redrawn beyond two of them, biases zero.
  InitKind kind = InitKind::kUniform;
  double gain = 1.4142135623730951;  // of orthogonal hidden layers and truncated normal weights
  double last_scale = 1.0;           // multiplies the last layer (orthogonal: is its gain)
  double last_bias = 0.0;            // added to the last layer's biases
};

// {first, ..., first + count - 1} of an ensemble.
struct MemberRange {
  int first = 0;
  int count = 1;
};

// The workspace of forward and backward passes: activations, their gradients, the outputs. Belongs
// to a shape, not to a network: networks of one spec may share it one after the other.
class MlpTape {
 public:
  MlpTape(const MlpSpec& spec, int max_batch);

  int max_batch() const { return max_batch_; }

 private:
  friend class MlpFunction;

  struct Layer {
    int stride = 0;           // floats from one column to the next
    std::size_t active = 0;   // activation(...)
    std::size_t before = 0;   // W x + b, if the backward pass needs it
    std::size_t moments = 0;  // of layer norm: mean and 1 / std of every sample
  };

  float* At(std::size_t offset) { return buffer_.data() + offset; }
  // Many features of a matrix are zero in all states of a task. Products with inputs that are zero
  // in the whole batch are left out, which changes no sum.
  void FindLiveInputs(const ConstMatrixRef& input);

  MlpSpec spec_;
  int max_batch_;
  int batch_ = 0;  // of the last forward pass
  MemberRange members_{0, 0};
  bool own_inputs_ = false;
  std::vector<Layer> layers_;  // hidden layers, member by member
  std::vector<int> live_;      // input rows of the last forward pass that were kept; empty: all
  std::vector<std::uint32_t> seen_;
  FloatBuffer live_weight_;  // their columns of the first layer's weight or of its gradient
  std::size_t input_ = 0, output_ = 0, d_output_ = 0, row_sum_ = 0, delta_[2] = {0, 0};
  FloatBuffer buffer_;
};

// The passes of a network whose parameters lie elsewhere, in one buffer of parameter_count()
// values; Mlp below owns its buffer, StaticGraph keeps it among others.
class MlpFunction {
 public:
  static constexpr float kNormEpsilon = 1e-5F;  // added to the variance in layer norm

  explicit MlpFunction(MlpSpec spec);

  const MlpSpec& spec() const { return spec_; }
  std::size_t parameter_count() const { return member_size_ * spec_.members; }
  // All members one after the other; in each, layer by layer: weight, bias, norm scale, norm shift.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  // Norm scales one, everything else zero.
  void Clear(std::span<float> parameters) const;
  void Init(std::span<float> parameters, Rng& rng, const MlpInit& init) const;

  // As those of Mlp.
  ConstMatrixMap Forward(std::span<const float> parameters, const ConstMatrixRef& input,
                         MlpTape& tape, MemberRange members) const;
  ConstStridedMap LastHidden(const MlpTape& tape) const;

  struct Gradients {
    std::span<float> parameters = {};  // or empty: not wanted
    bool add_parameters = false;       // to what is there, instead of overwriting it
    int first_row = 0;                 // of the input
    MatrixRef* d_input = nullptr;      // or null: not wanted
    bool add_input = false;
    const ConstMatrixRef* d_hidden = nullptr;  // of a loss that sees the last hidden layer besides
  };
  void Backward(std::span<const float> parameters, const ConstMatrixRef& d_output, MlpTape& tape,
                const Gradients& to) const;

 private:
  // Offsets in one member's parameters.
  struct Layer {
    int in = 0, out = 0;
    std::size_t weight = 0, bias = 0, scale = 0, shift = 0;
  };

  void BackwardMember(const float* base, int member, const float* d_output, Eigen::Index d_stride,
                      MlpTape& tape, float* gradients, const Gradients& to) const;

  MlpSpec spec_;
  std::vector<Layer> layers_;
  std::size_t member_size_ = 0;
  std::vector<NamedTensor> tensors_;
};

class Mlp {
 public:
  static constexpr float kNormEpsilon = MlpFunction::kNormEpsilon;

  // Parameters are zero (norm scales one) until Init() or until they are filled in.
  explicit Mlp(MlpSpec spec);

  const MlpSpec& spec() const { return function_.spec(); }
  const MlpFunction& function() const { return function_; }
  void Init(Rng& rng, const MlpInit& init = {}) { function_.Init(parameters_, rng, init); }

  // All members one after the other; in each, layer by layer: weight, bias, norm scale, norm shift.
  // Starts at a cache line; no padding.
  std::span<float> parameters() { return parameters_; }
  std::span<const float> parameters() const { return parameters_; }
  std::size_t parameter_count() const { return parameters_.size(); }
  const std::vector<NamedTensor>& tensors() const { return function_.tensors(); }

  // Outputs of all members for a batch: (members * output) x batch, member by member. The view is
  // valid until the tape's next forward pass. The input has spec.input rows for all members, or
  // members * spec.input rows if each has its own; it is copied to the tape.
  ConstMatrixMap Forward(const ConstMatrixRef& input, MlpTape& tape) const;
  // Of some members only: (count * output) x batch.
  ConstMatrixMap Forward(const ConstMatrixRef& input, MlpTape& tape, MemberRange members) const;

  // The last hidden layer of one network (members = 1), hidden.back() x batch, after Forward() with
  // this tape; valid until the tape's next forward pass.
  ConstStridedMap LastHidden(const MlpTape& tape) const { return function_.LastHidden(tape); }

  // Gradients of a loss with d loss / d output = d_output (shape of the output), after Forward()
  // with this tape and unchanged parameters. The gradients (parameter_count() values, those of
  // members that took no part zero) are overwritten. The last two get d loss / d input for the
  // input rows {first_row, ..., first_row + d_input.rows() - 1} only: of all members together if
  // they share the input, else one block of rows below the other, each of d_input.rows() / members.
  void Backward(const ConstMatrixRef& d_output, MlpTape& tape, std::span<float> gradients) const;
  void Backward(const ConstMatrixRef& d_output, MlpTape& tape, std::span<float> gradients,
                int first_row, MatrixRef d_input) const;
  void InputGradient(const ConstMatrixRef& d_output, MlpTape& tape, int first_row,
                     MatrixRef d_input) const;
  // Of a loss that sees the output and the last hidden layer (members = 1).
  void BackwardWithHidden(const ConstMatrixRef& d_output, const ConstMatrixRef& d_hidden,
                          MlpTape& tape, std::span<float> gradients) const;

 private:
  MlpFunction function_;
  FloatBuffer parameters_;
};

}  // namespace msrl

#endif  // MSRL_NN_MLP_H_
