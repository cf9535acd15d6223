#include "msrl/transfer/dbc_pretrainer.h"

#include <cmath>

#include "msrl/core/statistics.h"

namespace msrl {

PretrainFigures DbcTask::Figures(ValueModule& module, const SourceSampler& /*held_out*/,
                                 const DrawnWindows& windows) const {
  const Eigen::MatrixXf z = ReadEnds(module, windows).z;
  const Eigen::RowVectorXf label = LabelsAtEnds(windows);
  std::vector<double> apart;
  std::vector<double> values;
  // windows are drawn at random, so that neighbours are pairs at random, across tasks
  for (Index i = 0; i + 1 < z.cols(); ++i) {
    apart.push_back(static_cast<double>((z.col(i) - z.col(i + 1)).cwiseAbs().mean()));
    values.push_back(static_cast<double>(std::abs(label[i] - label[i + 1])));
  }
  return {{"distance_correlation", PearsonCorrelation(apart, values)},
          {"latent_distance", MeanAndStd(apart).mean}};
}

}  // namespace msrl
