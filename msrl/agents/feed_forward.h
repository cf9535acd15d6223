// A policy that is a function of the observation alone, as the layers that it consists of: what can
// leave this program (msrl/policy_files).
#ifndef MSRL_AGENTS_FEED_FORWARD_H_
#define MSRL_AGENTS_FEED_FORWARD_H_

#include <Eigen/Core>
#include <span>
#include <vector>

#include "msrl/nn/mlp.h"

namespace msrl {

// softmax(activation(norm(W x + b)))
struct FeedForwardLayer {
  Eigen::MatrixXf weight;  // out x in
  Eigen::VectorXf bias;
  // Layer norm with MlpFunction::kNormEpsilon; empty: none.
  Eigen::VectorXf norm_scale, norm_shift;
  Activation activation = Activation::kIdentity;
  int softmax_group = 0;  // rows that sum to one; 0: no softmax

  bool has_norm() const { return norm_scale.size() > 0; }
};

struct FeedForwardPolicy {
  // (o - offset) * factor, cut to [-limit, limit]; empty: o as it is.
  Eigen::VectorXf offset, factor;
  float limit = 0.0F;
  std::vector<FeedForwardLayer> layers;  // at least one
  // The action is the index of the largest output, or else the outputs cut to [-1, 1].
  bool discrete = false;

  bool normalises() const { return offset.size() > 0; }
  int observation_size() const { return static_cast<int>(layers.front().weight.cols()); }
  int output_size() const { return static_cast<int>(layers.back().weight.rows()); }
  // Numbers of an action.
  int action_size() const { return discrete ? 1 : output_size(); }
};

// Adds the layers of a network (of an ensemble: those of its first member).
void AddLayers(const MlpFunction& network, std::span<const float> parameters,
               FeedForwardPolicy& policy);
// Those of the mode tanh(mu) of a network whose outputs are mu and, below, as many numbers about
// its spread.
void AddSquashedMode(const MlpFunction& network, std::span<const float> parameters,
                     FeedForwardPolicy& policy);

}  // namespace msrl

#endif  // MSRL_AGENTS_FEED_FORWARD_H_
