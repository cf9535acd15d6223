#include "msrl/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/nn/random.h"
#include "msrl/nn/weight_memory.h"

namespace msrl {

const NamedTensor& Parameter::tensor() const {
  MSRL_CHECK(owner != nullptr, "a parameter that was never added");
  return owner->tensors()[index];
}

Eigen::Map<Eigen::MatrixXf> Parameter::value() const {
  const NamedTensor& t = tensor();
  return {owner->values().data() + t.offset, t.rows, t.columns};
}

Eigen::Map<Eigen::MatrixXf> Parameter::gradient() const {
  const NamedTensor& t = tensor();
  return {owner->gradients().data() + t.offset, t.rows, t.columns};
}

Parameter Parameters::Add(std::string name, int rows, int columns) {
  MSRL_CHECK(!finished(), "parameter ", name, " comes after the first finished graph");
  MSRL_CHECK(rows >= 1 && columns >= 1, "parameter ", name, " is ", rows, " x ", columns);
  for (const NamedTensor& tensor : tensors_) {
    MSRL_CHECK(tensor.name != name, "two parameters are called ", name);
  }
  tensors_.push_back({std::move(name), rows, columns, values_.size()});
  const std::size_t size = values_.size() + tensors_.back().size();
  internal::RequireWeights("a network", size, 1);
  values_.resize(size);
  return {this, tensors_.size() - 1};
}

void Parameters::Finish() {
  if (finished()) return;
  internal::RequireWeights("training", values_.size(), options_.target ? 4 : 3);
  gradients_.resize(values_.size());
  cleared_.resize(tensors_.size());
  if (options_.target) target_ = values_;
  if (options_.laprop) {
    laprop_.emplace(tensors_, *options_.laprop);
  } else {
    adam_.emplace(values_.size(), options_.adam);
  }
}

std::span<float> Parameters::gradients() {
  MSRL_CHECK(finished(), "gradients before Finish()");
  FillCleared(0, tensors_.size());
  return gradients_;
}

void Parameters::FillCleared(std::size_t first_tensor, std::size_t count) {
  for (std::size_t i = first_tensor; i < first_tensor + count; ++i) {
    if (!cleared_[i]) continue;
    std::fill_n(gradients_.data() + tensors_[i].offset, tensors_[i].size(), 0.0F);
    cleared_[i] = false;
  }
}

bool Parameters::StartGradients(std::size_t first_tensor, std::size_t count) {
  const auto begin = cleared_.begin() + static_cast<std::ptrdiff_t>(first_tensor);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  if (std::find(begin, end, false) != end) {
    FillCleared(first_tensor, count);
    return true;
  }
  std::fill(begin, end, false);
  return false;
}

std::span<float> Parameters::target() {
  MSRL_CHECK(finished(), "targets before Finish()");
  return target_;
}

Adam& Parameters::adam() {
  MSRL_CHECK(adam_.has_value(), "Adam before Finish(), or there is LaProp instead");
  return *adam_;
}

LaProp& Parameters::laprop() {
  MSRL_CHECK(laprop_.has_value(), "LaProp before Finish(), or there is Adam instead");
  return *laprop_;
}

void Parameters::ClearGradients() {
  MSRL_CHECK(finished(), "gradients before Finish()");
  std::fill(cleared_.begin(), cleared_.end(), true);
}

void Parameters::CopyToTarget() {
  MSRL_CHECK(finished() && options_.target, "no targets");
  std::copy(values_.begin(), values_.end(), target_.begin());
}

double Parameters::Step(double learning_rate) {
  if (laprop_) {
    laprop_->Step(values_, gradients(), learning_rate);
    return 0.0;
  }
  return adam().Step(values_, gradients(), learning_rate);
}

double Parameters::Step(double learning_rate, double tau) {
  MSRL_CHECK(options_.target, "no targets");
  if (laprop_) {
    Step(learning_rate);
    PolyakUpdate(target_, values_, tau);
    return 0.0;
  }
  return adam().Step(values_, gradients(), learning_rate, target_, tau);
}

void InitUniform(const Parameter& parameter, double bound, Rng& rng) {
  for (float& v : parameter.value().reshaped()) v = static_cast<float>(rng.Uniform(-bound, bound));
}

void InitTruncatedNormal(const Parameter& parameter, double deviation, Rng& rng) {
  for (float& v : parameter.value().reshaped()) {
    v = static_cast<float>(deviation * TruncatedNormal(rng));
  }
}

void InitConstant(const Parameter& parameter, double value) {
  parameter.value().setConstant(static_cast<float>(value));
}

namespace {

LinearParameters AddUniform(Parameters& parameters, const std::string& name, int in, int out,
                            bool bias, double bound, Rng& rng) {
  LinearParameters layer;
  layer.weight = parameters.Add(name + ".weight", out, in);
  InitUniform(layer.weight, bound, rng);
  if (bias) {
    layer.bias = parameters.Add(name + ".bias", out, 1);
    InitUniform(*layer.bias, bound, rng);
  }
  return layer;
}

}  // namespace

LinearParameters AddLinear(Parameters& parameters, const std::string& name, int in, int out,
                           Rng& rng, bool bias) {
  return AddUniform(parameters, name, in, out, bias, 1.0 / std::sqrt(in), rng);
}

NormParameters AddNorm(Parameters& parameters, const std::string& name, int width, bool shift) {
  NormParameters layer{.scale = parameters.Add(name + ".weight", width, 1), .shift = {}};
  InitConstant(layer.scale, 1.0);
  if (shift) layer.shift = parameters.Add(name + ".bias", width, 1);
  return layer;
}

GruParameters AddGru(Parameters& parameters, const std::string& name, int in, int width, Rng& rng) {
  const double bound = 1.0 / std::sqrt(width);
  GruParameters layer;
  layer.input = AddUniform(parameters, name + ".input", in, 3 * width, true, bound, rng);
  layer.hidden = AddUniform(parameters, name + ".hidden", width, 3 * width, true, bound, rng);
  return layer;
}

Parameter AddEmbedding(Parameters& parameters, const std::string& name, int width, int symbols,
                       Rng& rng, double deviation) {
  const Parameter table = parameters.Add(name, width, symbols);
  for (float& v : table.value().reshaped()) v = static_cast<float>(deviation * rng.Normal());
  return table;
}

MlpParameters AddMlp(Parameters& parameters, const std::string& name, const MlpSpec& spec, Rng& rng,
                     const MlpInit& init) {
  MlpParameters network;
  network.owner = &parameters;
  network.index = parameters.tensors().size();
  network.offset = parameters.size();
  network.function = std::make_shared<const MlpFunction>(spec);
  for (const NamedTensor& tensor : network.function->tensors()) {
    parameters.Add(name + "." + tensor.name, tensor.rows, tensor.columns);
  }
  network.function->Init(
      parameters.values().subspan(network.offset, network.function->parameter_count()), rng, init);
  return network;
}

}  // namespace msrl
