// Networks and optimisers in checkpoints.
#ifndef MSRL_AGENTS_COMMON_NETWORKS_H_
#define MSRL_AGENTS_COMMON_NETWORKS_H_

#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/files/state.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/mlp.h"
#include "msrl/nn/parameters.h"

namespace msrl {

// Tensor by tensor under their names. Weights are stored column by column, so a file shows them as
// in x out.
void VisitNetwork(const Archive& state, Mlp& network);
void VisitAdam(const Archive& state, Adam& adam);
// The values alone, tensor by tensor likewise: what an artefact holds.
void VisitValues(const Archive& state, Parameters& parameters);
// Tensor by tensor likewise, with the optimiser and the targets, if there are any.
void VisitParameters(const Archive& state, Parameters& parameters);

// Takes the values of all tensors of `from` over, whose names and shapes `to` must have. Targets
// become copies, the optimiser stays as it is.
void CopyTensors(const Parameters& from, Parameters& to,
                 const std::function<bool(const NamedTensor&)>& which);

// RunError that names the network, unless all gradients are finite: what is finite before Adam's
// step is so after it.
void RequireFiniteGradients(std::string_view network, std::span<const float> gradients);

// Scales gradients that belong together down to a common norm. Returns the norm before; RunError
// if it is not finite.
double ClipNorm(std::initializer_list<std::span<float>> parts, double most);

// What the settings of every agent's networks may be.
inline constexpr int kMaxHiddenLayers = 16;
inline constexpr int kMaxHiddenWidth = 8192;

// `layers` hidden layers of `width`.
inline std::vector<int> HiddenLayers(int layers, int width) {
  return std::vector<int>(static_cast<std::size_t>(layers), width);
}

// The entries of an observation as one column of floats.
inline void CopyObservation(const EnvView& observation, Eigen::Ref<Eigen::VectorXf> column) {
  column = observation.cast<float>();
}

// Those of all turns, one column each.
inline auto CopyObservations(std::span<const Turn> turns, Eigen::MatrixXf& columns) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    CopyObservation(turns[i].situation.observation, columns.col(static_cast<Eigen::Index>(i)));
  }
  return columns.leftCols(static_cast<Eigen::Index>(turns.size()));
}

// A column as a span.
inline std::span<float> ColumnSpan(Eigen::MatrixXf& matrix, std::size_t i) {
  return {matrix.col(static_cast<Eigen::Index>(i)).data(), static_cast<std::size_t>(matrix.rows())};
}

// All of a matrix as one span.
inline std::span<float> Flat(Eigen::MatrixXf& matrix) {
  return {matrix.data(), static_cast<std::size_t>(matrix.size())};
}

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_NETWORKS_H_
