#include "msrl/report/paper_figures.h"

#include <algorithm>

namespace msrl::report {
namespace {

constexpr std::array<std::string_view, kPaperFamilies> kFamilies{"AntMaze", "Reacher/Pusher",
                                                                 "Walker2d", "Hopper", "Humanoid"};

// clang-format off
constexpr PaperMethod kMethods[] = {
    {"ppo", "PPO", "",
     {{{0.36, 0.07}, {0.41, 0.06}, {0.45, 0.05}, {0.53, 0.06}, {0.34, 0.07}}}, 0.40},
    {"sac", "SAC", "",
     {{{0.43, 0.06}, {0.50, 0.05}, {0.53, 0.05}, {0.51, 0.05}, {0.42, 0.06}}}, 0.48},
    {"td3", "TD3", "",
     {{{0.41, 0.06}, {0.48, 0.06}, {0.51, 0.05}, {0.50, 0.05}, {0.40, 0.06}}}, 0.46},
    {"mbpo", "MBPO", "",
     {{{0.47, 0.05}, {0.48, 0.05}, {0.57, 0.04}, {0.55, 0.05}, {0.46, 0.06}}}, 0.52},
    {"dreamerv3", "DreamerV3", "",
     {{{0.50, 0.05}, {0.57, 0.04}, {0.60, 0.04}, {0.58, 0.04}, {0.49, 0.05}}}, 0.55},
    {"tdmpc", "TD-MPC", "",
     {{{0.49, 0.05}, {0.58, 0.04}, {0.62, 0.04}, {0.60, 0.04}, {0.51, 0.05}}}, 0.57},
    {"sf-gpi", "SF-GPI-FT", "successor features",
     {{{0.52, 0.05}, {0.55, 0.04}, {0.58, 0.04}, {0.56, 0.04}, {0.47, 0.05}}}, 0.53},
    {"uvfa", "UVFA-FT", "universal value encoder/head",
     {{{0.51, 0.05}, {0.57, 0.04}, {0.60, 0.04}, {0.58, 0.04}, {0.49, 0.05}}}, 0.55},
    {"dbc", "DBC/Bisimulation-FT", "bisimulation encoder/value head",
     {{{0.53, 0.05}, {0.58, 0.04}, {0.61, 0.04}, {0.59, 0.04}, {0.50, 0.05}}}, 0.56},
    {"traj2value-rnn", "Traj2Value-RNN-FT", "recurrent trajectory-value encoder",
     {{{0.55, 0.05}, {0.60, 0.04}, {0.63, 0.04}, {0.61, 0.04}, {0.52, 0.05}}}, 0.58},
    {"traj2value-transformer", "Traj2Value-Transformer-FT", "transformer trajectory-value encoder",
     {{{0.57, 0.05}, {0.62, 0.04}, {0.65, 0.04}, {0.63, 0.04}, {0.54, 0.05}}}, 0.60},
    {"subgraph-gnn", "Subgraph-GNN-to-Value-FT", "graph value encoder",
     {{{0.56, 0.05}, {0.61, 0.04}, {0.64, 0.04}, {0.62, 0.04}, {0.53, 0.05}}}, 0.59},
    {"dreamerv3-pt", "DreamerV3-PT+FT", "latent world model/value",
     {{{0.58, 0.04}, {0.63, 0.04}, {0.60, 0.04}, {0.64, 0.04}, {0.55, 0.05}}}, 0.61},
    {"tdmpc-pt", "TD-MPC-PT+FT", "latent dynamics/value",
     {{{0.60, 0.04}, {0.65, 0.04}, {0.68, 0.04}, {0.66, 0.04}, {0.53, 0.05}}}, 0.63},
    {"msrl-no-library", "MSRL w/o library", "target-trained matrix value",
     {{{0.54, 0.05}, {0.60, 0.05}, {0.63, 0.04}, {0.61, 0.04}, {0.52, 0.05}}}, 0.58},
    {"msrl-no-obstruction", "MSRL w/o obstruction", "target-trained matrix value",
     {{{0.57, 0.05}, {0.62, 0.04}, {0.65, 0.04}, {0.63, 0.04}, {0.54, 0.05}}}, 0.60},
    {"msrl-scratch", "MSRL from scratch", "target-trained matrix value",
     {{{0.61, 0.04}, {0.67, 0.04}, {0.70, 0.04}, {0.68, 0.04}, {0.59, 0.05}}}, 0.65},
    {"msrl-init", "MSRL + pretrained F init", "matrix-value branch",
     {{{0.70, 0.04}, {0.75, 0.03}, {0.78, 0.03}, {0.76, 0.03}, {0.67, 0.04}}}, 0.73},
    {"msrl-random", "MSRL + random F init", "none: random weights",
     {{{0.60, {}}, {0.66, {}}, {0.69, {}}, {0.67, {}}, {0.58, {}}}}, 0.64},
    {"msrl-shuffled", "MSRL + shuffled-source-value F init", "matrix-value branch of shuffled values",
     {{{0.56, {}}, {0.62, {}}, {0.64, {}}, {0.62, {}}, {0.53, {}}}}, 0.59},
    {"msrl-unaligned", "MSRL + unaligned-lift F init", "matrix-value branch of another lift",
     {{{0.55, {}}, {0.60, {}}, {0.63, {}}, {0.61, {}}, {0.52, {}}}}, 0.58},
    {"msrl-observation-only", "MSRL + observation-only pretraining", "observation-value head",
     {{{0.58, {}}, {0.64, {}}, {0.67, {}}, {0.65, {}}, {0.56, {}}}}, 0.62},
};
// clang-format on

// Table of matched gains; the average is the last.
constexpr std::array<double, kPaperFamilies + 1> kMatchedGain{0.09, 0.08, 0.08, 0.08, 0.08, 0.08};

// Place of a column, kPaperFamilies for the average, -1 for others.
int ColumnOf(std::string_view column) {
  if (column == "Average") return kPaperFamilies;
  const auto found = std::find(kFamilies.begin(), kFamilies.end(), column);
  return found == kFamilies.end() ? -1 : static_cast<int>(found - kFamilies.begin());
}

}  // namespace

const std::array<std::string_view, kPaperFamilies>& PaperFamilies() { return kFamilies; }

std::span<const PaperMethod> PaperMethods() { return kMethods; }

const PaperMethod* FindPaperMethod(std::string_view id) {
  const auto* const found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                         [id](const PaperMethod& row) { return row.id == id; });
  return found == std::end(kMethods) ? nullptr : found;
}

std::optional<PaperFigure> FindPaperFigure(std::string_view id, std::string_view column) {
  const PaperMethod* const row = FindPaperMethod(id);
  const int place = ColumnOf(column);
  if (row == nullptr || place < 0) return std::nullopt;
  if (place == kPaperFamilies) return PaperFigure{row->average, std::nullopt};
  return row->families[static_cast<std::size_t>(place)];
}

std::optional<double> PaperGain(std::string_view a, std::string_view b, std::string_view column) {
  const auto first = FindPaperFigure(a, column);
  const auto second = FindPaperFigure(b, column);
  if (!first || !second) return std::nullopt;
  if (a == "msrl-init" && b == "msrl-scratch") {
    return kMatchedGain[static_cast<std::size_t>(ColumnOf(column))];
  }
  return first->mean - second->mean;
}

}  // namespace msrl::report
