// What a StaticGraph learns: named tensors in one flat buffer, with their gradients, the state of
// the optimiser and, if wanted, slowly following targets.
//
//   Parameters parameters({.target = true});
//   const LinearParameters layer = AddLinear(parameters, "encoder", 8, 64, rng);
//   ... graphs that use them: static_graph.h ...
//   parameters.ClearGradients();
//   graph.Backward(loss);                          // adds to the gradients
//   parameters.Step(3e-4, /*tau=*/0.005);          // Adam, then the targets
//
// One object per optimiser: what is stepped together, with one learning rate, is together.
#ifndef MSRL_NN_PARAMETERS_H_
#define MSRL_NN_PARAMETERS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/float_buffer.h"
#include "msrl/nn/laprop.h"
#include "msrl/nn/mlp.h"

namespace msrl {

class Parameters;

// One tensor of a Parameters object; a handle, valid as long as that object.
struct Parameter {
  Parameters* owner = nullptr;
  std::size_t index = 0;  // in owner->tensors()

  const NamedTensor& tensor() const;
  Eigen::Map<Eigen::MatrixXf> value() const;
  Eigen::Map<Eigen::MatrixXf> gradient() const;  // once a graph is finished
};

struct ParameterOptions {
  AdamOptions adam = {};
  std::optional<LaPropOptions> laprop = {};  // instead of Adam
  bool target = false;
};

class Parameters {
 public:
  explicit Parameters(const ParameterOptions& options = {}) : options_(options) {}
  // handles and graphs point to it
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // A tensor of zeros. Names are unique; none can be added once a graph with them is finished.
  Parameter Add(std::string name, int rows, int columns);

  // Allocates gradients, the optimiser's state and targets; targets start as copies.
  // StaticGraph::Finish() calls it; again is nothing.
  void Finish();
  bool finished() const { return adam_.has_value() || laprop_.has_value(); }

  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  std::size_t size() const { return values_.size(); }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

  // After Finish().
  std::span<float> gradients();  // zero where nothing was added since they were cleared
  std::span<float> target();     // empty without targets
  Adam& adam();                  // the one of both that is used
  LaProp& laprop();
  bool uses_laprop() const { return options_.laprop.has_value(); }
  void ClearGradients();
  void CopyToTarget();
  // A step of the optimiser with these gradients; returns their norm if Adam clips it, else 0. The
  // second moves the targets, too. Gradients stay as they are.
  double Step(double learning_rate);
  double Step(double learning_rate, double tau);

  // For graphs, who add gradients of some tensors: true if there is something to add to, false if
  // they are cleared and have to be overwritten. Clearing writes nothing.
  bool StartGradients(std::size_t first_tensor, std::size_t count);
  float* gradient_data() { return gradients_.data(); }

 private:
  void FillCleared(std::size_t first_tensor, std::size_t count);

  ParameterOptions options_;
  std::vector<NamedTensor> tensors_;
  FloatBuffer values_;
  FloatBuffer gradients_;
  std::vector<bool> cleared_;  // by tensor: counts as zero, whatever is in gradients_
  FloatBuffer target_;
  std::optional<Adam> adam_;
  std::optional<LaProp> laprop_;
};

// ---- starting values ----

void InitUniform(const Parameter& parameter, double bound, Rng& rng);
// Normal with this deviation, redrawn beyond two of them.
void InitTruncatedNormal(const Parameter& parameter, double deviation, Rng& rng);
void InitConstant(const Parameter& parameter, double value);

// ---- layers: the tensors of some operations ----

// W x + b; weight and bias from U(-1/sqrt(in), 1/sqrt(in)) like PyTorch's Linear.
struct LinearParameters {
  Parameter weight;               // out x in
  std::optional<Parameter> bias;  // out x 1
};
// "<name>.weight", "<name>.bias"
LinearParameters AddLinear(Parameters& parameters, const std::string& name, int in, int out,
                           Rng& rng, bool bias = true);

struct NormParameters {
  Parameter scale;                 // ones
  std::optional<Parameter> shift;  // zeros
};
// "<name>.weight", "<name>.bias"
NormParameters AddNorm(Parameters& parameters, const std::string& name, int width,
                       bool shift = true);

// Gates in the order reset, update, new, like PyTorch's GRU; all from U(-1/sqrt(width), ...).
struct GruParameters {
  LinearParameters input;   // 3 width x in
  LinearParameters hidden;  // 3 width x width

  int width() const { return hidden.weight.tensor().columns; }
};
// "<name>.input.weight", ...
GruParameters AddGru(Parameters& parameters, const std::string& name, int in, int width, Rng& rng);

// A column per symbol, from a standard normal times `deviation`.
Parameter AddEmbedding(Parameters& parameters, const std::string& name, int width, int symbols,
                       Rng& rng, double deviation = 1.0);

// The fused perceptron of mlp.h; its tensors are consecutive, "<name>.layers.0.weight", ....
struct MlpParameters {
  Parameters* owner = nullptr;
  std::size_t index = 0;   // of the first tensor
  std::size_t offset = 0;  // ... and its offset in owner->values()
  std::shared_ptr<const MlpFunction> function;
};
MlpParameters AddMlp(Parameters& parameters, const std::string& name, const MlpSpec& spec, Rng& rng,
                     const MlpInit& init = {});

}  // namespace msrl

#endif  // MSRL_NN_PARAMETERS_H_
