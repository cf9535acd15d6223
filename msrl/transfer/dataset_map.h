// What the numbers of somebody else's dataset mean, as TOML (docs/datasets.md).
#ifndef MSRL_TRANSFER_DATASET_MAP_H_
#define MSRL_TRANSFER_DATASET_MAP_H_

#include <Eigen/Core>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/env/spec.h"

namespace msrl {

// The aligned slots as an affine function of the observation: what msrl.SlotMap is in Python.
struct SlotMap {
  struct Term {
    int slot = 0;
    int entry = 0;  // of the observation
    double weight = 0.0;
  };
  std::vector<Term> terms;
  std::array<double, kGeometrySize> offset{};

  // 1 + the largest entry that is named.
  int MinObservationSize() const;
  // Column by column; no slot exceeds EnvSpec's usual bound of 4. The observations must have
  // MinObservationSize() rows at least.
  Eigen::MatrixXf Apply(const Eigen::MatrixXf& observations) const;
};

struct DatasetMap {
  std::string env;
  double reward_scale = 1.0;
  double gamma = 0.99;
  // Parts of observations that are tables, in the order in which they are joined; empty: they are
  // none.
  std::vector<std::string> observations;
  // Bounds of continuous actions, which become [-1, 1]; empty: they are that already.
  std::vector<double> action_low, action_high;
  SlotMap geometry;
};

// UserError with file and line on what cannot be.
DatasetMap ParseDatasetMap(std::string_view text, std::string_view file);
DatasetMap ReadDatasetMap(const std::filesystem::path& path);

}  // namespace msrl

#endif  // MSRL_TRANSFER_DATASET_MAP_H_
