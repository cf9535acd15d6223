// Learning rules in double, written as plainly as possible: the independent second computation of
// what agents do. Uses nothing of msrl::nn.
#ifndef MSRL_TESTING_PLAIN_LEARNING_H_
#define MSRL_TESTING_PLAIN_LEARNING_H_

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

namespace msrl::testing {

using Doubles = std::vector<double>;

inline double Identity(double x) { return x; }
inline double Relu(double x) { return x > 0.0 ? x : 0.0; }
inline double Tanh(double x) { return std::tanh(x); }

// A perceptron on flat parameters: layer by layer the weight (out x in, column by column), then the
// bias.
struct PlainNet {
  std::vector<int> sizes;  // input, hidden ..., output
  double (*hidden)(double) = Relu;
  double (*last)(double) = Identity;

  std::size_t parameter_count() const {
    int count = 0;
    for (std::size_t l = 0; l + 1 < sizes.size(); ++l) count += sizes[l + 1] * (sizes[l] + 1);
    return static_cast<std::size_t>(count);
  }
  // `member` counts networks that lie one after the other.
  Doubles operator()(const Doubles& parameters, Doubles x, std::size_t member = 0) const {
    const double* at = parameters.data() + member * parameter_count();
    for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
      const auto in = static_cast<std::size_t>(sizes[l]);
      const auto out = static_cast<std::size_t>(sizes[l + 1]);
      Doubles y(out);
      for (std::size_t o = 0; o < out; ++o) {
        double sum = at[in * out + o];
        for (std::size_t i = 0; i < in; ++i) sum += at[i * out + o] * x[i];
        y[o] = l + 2 == sizes.size() ? last(sum) : hidden(sum);
      }
      at += (in + 1) * out;
      x = std::move(y);
    }
    return x;
  }
};

// Central differences.
template <typename Loss>
Doubles NumericGradient(Doubles at, const Loss& loss) {
  constexpr double kStep = 1e-7;
  Doubles gradient(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double middle = at[i];
    at[i] = middle + kStep;
    const double above = loss(std::as_const(at));
    at[i] = middle - kStep;
    const double below = loss(std::as_const(at));
    at[i] = middle;
    gradient[i] = (above - below) / (2.0 * kStep);
  }
  return gradient;
}

// Kingma and Ba, Algorithm 1.
struct PlainAdam {
  double epsilon = 1e-8;
  int steps = 0;
  Doubles mean = {};
  Doubles variance = {};

  void Step(Doubles& parameters, const Doubles& gradient, double rate) {
    mean.resize(parameters.size());
    variance.resize(parameters.size());
    ++steps;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      mean[i] = 0.9 * mean[i] + 0.1 * gradient[i];
      variance[i] = 0.999 * variance[i] + 0.001 * gradient[i] * gradient[i];
      const double m = mean[i] / (1.0 - std::pow(0.9, steps));
      const double v = variance[i] / (1.0 - std::pow(0.999, steps));
      parameters[i] -= rate * m / (std::sqrt(v) + epsilon);
    }
  }
};

inline void PlainPolyak(Doubles& target, const Doubles& source, double tau) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    target[i] = (1.0 - tau) * target[i] + tau * source[i];
  }
}

inline Doubles Join(Doubles a, const Doubles& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// log of the density of N(mean, std^2).
inline double LogNormal(double x, double mean, double std) {
  const double z = (x - mean) / std;
  return -0.5 * z * z - std::log(std) - 0.5 * std::log(2.0 * std::numbers::pi);
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_PLAIN_LEARNING_H_
