#include "msrl/agents/tdmpc/mppi.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {

void RequireConsistent(const MppiSettings& settings) {
  const auto require = [](bool holds, auto... text) {
    if (!holds) throw UserError(StrCat(text...));
  };
  require(settings.elites <= settings.samples,
          "setting 'plan_elites' must be at most 'plan_samples', got ", settings.elites, " and ",
          settings.samples);
  require(settings.policy_samples < settings.samples,
          "setting 'plan_policy_samples' must be less than 'plan_samples', got ",
          settings.policy_samples, " and ", settings.samples);
  require(settings.min_std <= settings.max_std,
          "setting 'plan_min_std' must be at most 'plan_max_std', got ", settings.min_std, " and ",
          settings.max_std);
}

void MppiWeights(std::span<const float> values, double temperature, std::span<float> weights) {
  const float most = *std::ranges::max_element(values);
  double sum = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    weights[i] = std::exp(static_cast<float>(temperature) * (values[i] - most));
    sum += static_cast<double>(weights[i]);
  }
  for (float& weight : weights) weight /= static_cast<float>(sum);
}

Mppi::Mppi(const MppiSettings& settings, int action_size)
    : settings_(settings),
      mean_(Eigen::MatrixXf::Zero(action_size, settings.horizon)),
      std_(action_size, settings.horizon),
      order_(static_cast<std::size_t>(settings.samples)),
      elite_values_(static_cast<std::size_t>(settings.elites)),
      weights_(elite_values_.size()),
      noise_(static_cast<std::size_t>(action_size) * settings.horizon *
             (settings.samples - settings.policy_samples)) {
  RequireConsistent(settings);
}

void Mppi::Begin(const Eigen::MatrixXf& mean) {
  MSRL_CHECK(mean.rows() == mean_.rows() && mean.cols() == mean_.cols(), "mean is ", mean.rows(),
             " x ", mean.cols());
  mean_ = mean;
  std_.setConstant(static_cast<float>(settings_.max_std));
}

void Mppi::Sample(Rng& rng, MatrixRef actions) {
  const Eigen::Index m = mean_.rows();
  const Eigen::Index drawn = settings_.samples - settings_.policy_samples;
  FillNormal(rng, noise_);
  for (Eigen::Index t = 0; t < settings_.horizon; ++t) {
    const Eigen::Map<const Eigen::ArrayXXf> noise(noise_.data() + t * m * drawn, m, drawn);
    auto part = actions.middleCols(t * settings_.samples + settings_.policy_samples, drawn).array();
    part = ((noise.colwise() * std_.col(t).array()).colwise() + mean_.col(t).array())
               .max(-1.0F)
               .min(1.0F);
  }
}

void Mppi::Fit(const ConstMatrixRef& actions, std::span<const float> values) {
  const std::size_t elites = elite_values_.size();
  std::iota(order_.begin(), order_.end(), 0);
  std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(elites),
                    order_.end(), [values](int i, int j) {
                      const float a = values[static_cast<std::size_t>(i)];
                      const float b = values[static_cast<std::size_t>(j)];
                      return a != b ? a > b : i < j;
                    });
  for (std::size_t e = 0; e < elites; ++e) {
    elite_values_[e] = values[static_cast<std::size_t>(order_[e])];
  }
  MppiWeights(elite_values_, settings_.temperature, weights_);
  mean_.setZero();
  std_.setZero();
  for (Eigen::Index t = 0; t < settings_.horizon; ++t) {
    const auto action = [&](std::size_t e) {
      return actions.col(t * settings_.samples + order_[e]).array();
    };
    auto mean = mean_.col(t).array();
    auto variance = std_.col(t).array();
    for (std::size_t e = 0; e < elites; ++e) mean += weights_[e] * action(e);
    for (std::size_t e = 0; e < elites; ++e) variance += weights_[e] * (action(e) - mean).square();
  }
  std_ = std_.array()
             .sqrt()
             .max(static_cast<float>(settings_.min_std))
             .min(static_cast<float>(settings_.max_std));
}

int Mppi::Choose(Rng& rng) const {
  double left = rng.Uniform();
  for (std::size_t e = 0; e < weights_.size(); ++e) {
    left -= static_cast<double>(weights_[e]);
    if (left < 0.0) return order_[e];
  }
  return order_[0];  // the sum may round to less than one
}

}  // namespace msrl
