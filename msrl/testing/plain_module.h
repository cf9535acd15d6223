// Networks of named tensors in double, written as plainly as possible: the independent second
// computation of what modules say and learn.
#ifndef MSRL_TESTING_PLAIN_MODULE_H_
#define MSRL_TESTING_PLAIN_MODULE_H_

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "msrl/agents/host/value_module.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/gradients.h"

namespace msrl::testing {

// The tensors of a module with other values.
struct PlainTensors {
  const std::vector<NamedTensor>& tensors;
  const Doubles& values;

  Eigen::MatrixXd operator()(const std::string& name) const {
    const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
    if (found == tensors.end()) throw std::runtime_error("no tensor " + name);
    return Eigen::Map<const Eigen::MatrixXd>(values.data() + found->offset, found->rows,
                                             found->columns);
  }
  Eigen::VectorXd Linear(const std::string& name, const Eigen::VectorXd& x) const {
    return (*this)(name + ".weight") * x + (*this)(name + ".bias");
  }
  // With a learned scale and shift, by the names that they have there.
  Eigen::VectorXd Norm(const Eigen::VectorXd& x, const std::string& scale,
                       const std::string& shift) const {
    const Eigen::VectorXd centred = x.array() - x.mean();
    const double variance = centred.squaredNorm() / static_cast<double>(x.size());
    return (centred / std::sqrt(variance + 1e-5)).cwiseProduct((*this)(scale)) + (*this)(shift);
  }
  Eigen::VectorXd Norm(const Eigen::VectorXd& x, const std::string& name) const {
    return Norm(x, name + ".weight", name + ".bias");
  }
};

// Hidden layers with layer norm or without, ReLU, and a linear one.
inline Eigen::VectorXd PlainMlp(const PlainTensors& w, const std::string& name, int hidden,
                                bool norm, Eigen::VectorXd x) {
  for (int l = 0; l < hidden; ++l) {
    const std::string layer = name + ".layers." + std::to_string(l);
    x = w.Linear(layer, x);
    if (norm) x = w.Norm(x, layer + ".norm");
    x = x.cwiseMax(0.0);
  }
  return w.Linear(name + ".layers." + std::to_string(hidden), x);
}

inline Eigen::VectorXd PlainSigmoid(const Eigen::VectorXd& x) {
  return 1.0 / (1.0 + (-x.array()).exp());
}
inline Eigen::VectorXd PlainSilu(const Eigen::VectorXd& x) {
  return x.cwiseProduct(PlainSigmoid(x));
}
inline double PlainHuber(double e) { return std::abs(e) <= 1.0 ? 0.5 * e * e : std::abs(e) - 0.5; }

// Random windows in a teaching graph; window w has `states(w)` of them, labels are large enough for
// both sides of Huber's loss.
inline void FillRandomWindows(TeachingGraph& teaching, Rng& rng,
                              const std::function<int(int)>& states) {
  const int count = teaching.windows.count;
  const int length = teaching.windows.length;
  teaching.graph.input(teaching.windows.channels) =
      0.5F * RandomMatrix(kChannels, length * count, rng);
  teaching.graph.input(teaching.windows.channels).row(kRewardAt) *= 0.01F;
  teaching.graph.input(teaching.label) = 2.0F * RandomMatrix(1, length * count, rng);
  int total = 0;
  for (int w = 0; w < count; ++w) total += states(w);
  for (int w = 0; w < count; ++w) {
    for (int t = 0; t < length; ++t) {
      teaching.graph.input(teaching.weight)(0, t * count + w) =
          t < states(w) ? 1.0F / static_cast<float>(total) : 0.0F;
    }
    teaching.graph.input(teaching.windows.end)(0, w) =
        static_cast<float>((states(w) - 1) * count + w);
  }
}

// Compares the loss and all of its gradients with a function of the parameters that it teaches.
inline void ExpectLossAndGradients(ValueModule& module, TeachingGraph& teaching,
                                   const std::function<double(const Doubles&)>& loss) {
  const Doubles at = AsDoubles(module.taught().values());
  module.FillInputs(teaching.graph, teaching.windows);
  teaching.graph.Forward();
  EXPECT_NEAR(teaching.graph.value(teaching.loss)(0, 0), loss(at), Tol(1e-5));
  module.taught().ClearGradients();
  teaching.graph.Backward(teaching.loss);
  ExpectNear(AsDoubles(module.taught().gradients()), NumericGradient(at, loss), "gradient", 2e-5);
}

// `value` says V of every state of a window from its channels (kChannels x states). Compares the
// loss and all of its gradients.
inline void ExpectLossOfFormula(
    ValueModule& module, TeachingGraph& teaching, const std::function<int(int)>& states,
    const std::function<Eigen::VectorXd(const PlainTensors&, const Eigen::MatrixXd&)>& value) {
  const int count = teaching.windows.count;
  const auto channels = teaching.graph.input(teaching.windows.channels);
  const auto label = teaching.graph.input(teaching.label);
  const auto weight = teaching.graph.input(teaching.weight);
  int small = 0;
  int large = 0;
  const auto loss = [&](const Doubles& parameters) {
    const PlainTensors tensors{module.parameters().tensors(), parameters};
    double sum = 0.0;
    for (int w = 0; w < count; ++w) {
      Eigen::MatrixXd window(kChannels, states(w));
      for (int t = 0; t < states(w); ++t) {
        window.col(t) = channels.col(t * count + w).template cast<double>();
      }
      const Eigen::VectorXd v = value(tensors, window);
      for (int t = 0; t < states(w); ++t) {
        const double e = v[t] - static_cast<double>(label(0, t * count + w));
        ++(std::abs(e) < 1.0 ? small : large);
        sum += static_cast<double>(weight(0, t * count + w)) * PlainHuber(e);
      }
    }
    return sum;
  };
  ExpectLossAndGradients(module, teaching, loss);
  EXPECT_GT(small, 0);
  EXPECT_GT(large, 0);
}

// Random values everywhere: what starts at zero or one is no proof.
inline void Randomise(Parameters& parameters, Rng& rng, double size = 0.4) {
  for (float& value : parameters.values()) value = static_cast<float>(size * rng.Normal());
}

// The same for networks that are compared with each other: what they say differs by more from input
// to input than from network to network.
inline void RandomiseEvenly(const std::vector<NamedTensor>& tensors, std::span<float> values,
                            Rng& rng) {
  for (const NamedTensor& tensor : tensors) {
    const bool bias = tensor.name.ends_with("bias");
    const float middle = tensor.name.ends_with("norm.weight") ? 1.0F : 0.0F;
    for (float& value : values.subspan(tensor.offset, tensor.size())) {
      value = middle + static_cast<float>((bias ? 0.05 : 0.4) * rng.Normal());
    }
  }
}

// V := -2 V + 1/2.
inline void ExpectRescales(ValueModule& module) {
  Rng rng(4, "windows");
  ReadingGraph reading(module, 1);
  reading.graph.input(reading.windows.channels) =
      RandomMatrix(kChannels, reading.windows.channels.columns, rng);
  reading.graph.input(reading.windows.end)(0, 0) = static_cast<float>(module.context() - 1);
  reading.Forward();
  const float before = reading.graph.value(reading.slots.value)(0, 0);
  module.RescaleValue(-2.0, 0.5);
  reading.Forward();
  EXPECT_NEAR(reading.graph.value(reading.slots.value)(0, 0), -2.0F * before + 0.5F, Tol(1e-5));
}

// V and z of a window's state do not depend on what comes after it, and depend on what came before
// if the module looks back.
inline void ExpectCausal(ValueModule& module, bool looks_back) {
  ReadingGraph reading(module, 1);
  const int context = module.context();
  Rng rng(3, "causal");
  auto channels = reading.graph.input(reading.windows.channels);
  channels = 0.5F * RandomMatrix(kChannels, context, rng);
  const auto read = [&](int end) {
    reading.graph.input(reading.windows.end)(0, 0) = static_cast<float>(end);
    reading.Forward();
    Eigen::VectorXf slots(module.z_size() + 1);
    slots << reading.graph.value(reading.slots.z).col(0),
        reading.graph.value(reading.slots.value)(0, 0);
    return slots;
  };
  for (int end = 0; end < context; ++end) {
    SCOPED_TRACE(end);
    const Eigen::VectorXf before = read(end);
    const Eigen::MatrixXf kept = channels;
    for (int t = end + 1; t < context; ++t) channels.col(t).setConstant(3.0F);
    EXPECT_EQ(read(end), before);
    channels = kept;
    if (end == 0 || !looks_back) continue;
    channels.col(0).setConstant(0.25F);
    EXPECT_NE(read(end)[module.z_size()], before[module.z_size()]);
    channels = kept;
  }
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_PLAIN_MODULE_H_
