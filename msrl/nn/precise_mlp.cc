#include "msrl/nn/precise_mlp.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return x > 0.0 ? x : 0.0;
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kElu:
      return x > 0.0 ? x : std::expm1(x);
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
  }
  MSRL_CHECK(false, "no such activation");
  return 0.0;
}

double Derivative(Activation activation, double x) {
  switch (activation) {
    case Activation::kIdentity:
      return 1.0;
    case Activation::kRelu:
      return x > 0.0 ? 1.0 : 0.0;
    case Activation::kTanh:
      return 1.0 - std::tanh(x) * std::tanh(x);
    case Activation::kElu:
      return x > 0.0 ? 1.0 : std::exp(x);
    case Activation::kSilu: {
      const double s = 1.0 / (1.0 + std::exp(-x));
      return s * (1.0 + x * (1.0 - s));
    }
    case Activation::kMish: {
      const double t = std::tanh(std::log1p(std::exp(x)));
      return t + x * (1.0 - t * t) / (1.0 + std::exp(-x));
    }
  }
  MSRL_CHECK(false, "no such activation");
  return 0.0;
}

}  // namespace

PreciseMlp::PreciseMlp(const Mlp& network, int member) {
  const MlpSpec& spec = network.spec();
  MSRL_CHECK(member >= 0 && member < spec.members, "member ", member, " of ", spec.members);
  const std::vector<NamedTensor>& tensors = network.tensors();
  std::size_t next =
      tensors.size() / static_cast<std::size_t>(spec.members) * static_cast<std::size_t>(member);
  const auto take = [&]() -> Eigen::MatrixXd {
    const NamedTensor& tensor = tensors[next++];
    return Eigen::Map<const Eigen::MatrixXf>(network.parameters().data() + tensor.offset,
                                             tensor.rows, tensor.columns)
        .cast<double>();
  };
  for (std::size_t l = 0; l <= spec.hidden.size(); ++l) {
    const bool last = l == spec.hidden.size();
    Layer layer;
    layer.weight = take();
    layer.bias = take();
    if (spec.layer_norm && !last) {
      layer.scale = take();
      layer.shift = take();
    }
    layer.activation = last ? spec.output_activation : spec.activation;
    layers_.push_back(std::move(layer));
  }
}

Eigen::VectorXd PreciseMlp::Run(const Layer& layer, const Eigen::VectorXd& input,
                                Trace& trace) const {
  MSRL_CHECK_EQ(input.size(), layer.weight.cols());
  trace.before = layer.weight * input + layer.bias;
  if (layer.scale.size() > 0) {
    const double mean = trace.before.mean();
    trace.normalised = trace.before.array() - mean;
    trace.inv_std = 1.0 / std::sqrt(trace.normalised.squaredNorm() /
                                        static_cast<double>(trace.normalised.size()) +
                                    static_cast<double>(Mlp::kNormEpsilon));
    trace.normalised *= trace.inv_std;
    trace.before = trace.normalised.cwiseProduct(layer.scale) + layer.shift;
  }
  return trace.before.unaryExpr([&](double x) { return Apply(layer.activation, x); });
}

PreciseMlp::Result PreciseMlp::Forward(const Eigen::VectorXd& input) const {
  Result result;
  Trace trace;
  Eigen::VectorXd x = input;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    x = Run(layers_[l], x, trace);
    if (l + 2 == layers_.size()) result.hidden = x;
  }
  result.output = std::move(x);
  return result;
}

Eigen::VectorXd PreciseMlp::InputGradient(const Eigen::VectorXd& input,
                                          const Eigen::VectorXd& d_output,
                                          const Eigen::VectorXd& d_hidden) const {
  std::vector<Trace> traces(layers_.size());
  Eigen::VectorXd x = input;
  for (std::size_t l = 0; l < layers_.size(); ++l) x = Run(layers_[l], x, traces[l]);
  MSRL_CHECK_EQ(d_output.size(), x.size());
  Eigen::VectorXd d = d_output;
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const Trace& trace = traces[l];
    if (l + 2 == layers_.size() && d_hidden.size() > 0) {
      MSRL_CHECK_EQ(d_hidden.size(), d.size());
      d += d_hidden;
    }
    for (Eigen::Index i = 0; i < d.size(); ++i) {
      d[i] *= Derivative(layer.activation, trace.before[i]);
    }
    if (layer.scale.size() > 0) {
      d = d.cwiseProduct(layer.scale).eval();
      const double mean = d.mean();
      const double along = d.dot(trace.normalised) / static_cast<double>(d.size());
      d = (trace.inv_std * (d.array() - mean - along * trace.normalised.array())).matrix().eval();
    }
    d = (layer.weight.transpose() * d).eval();
  }
  return d;
}

}  // namespace msrl
