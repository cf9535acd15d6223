// Means and standard deviations: the units in which networks see numbers of any size.
#ifndef MSRL_AGENTS_COMMON_UNITS_H_
#define MSRL_AGENTS_COMMON_UNITS_H_

#include <Eigen/Core>
#include <span>

#include "msrl/files/state.h"
#include "msrl/nn/mlp.h"

namespace msrl {

// Of each row; 0 and 1 at first.
struct Units {
  explicit Units(int rows) : mean(Eigen::VectorXf::Zero(rows)), spread(mean.array() + 1.0F) {}

  // x = (x - mean) / spread, column by column.
  void Apply(MatrixRef x) const {
    x.array().colwise() -= mean.array();
    x.array().colwise() /= spread.array();
  }
  void Visit(const Archive& state) {
    state.Array("mean", std::span(mean.data(), static_cast<std::size_t>(mean.size())));
    state.Array("spread", std::span(spread.data(), static_cast<std::size_t>(spread.size())));
  }

  Eigen::VectorXf mean, spread;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_UNITS_H_
