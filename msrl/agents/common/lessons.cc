#include "msrl/agents/common/lessons.h"

#include <algorithm>

namespace msrl {

void Lessons::Observe(const Replay& replay, bool taught) {
  const std::int64_t newest = replay.end_row() - 1;
  taught_.data[(newest - 1) % taught_.rows] = taught ? 1 : 0;
  // of the newest state there is nothing to say yet: checkpoints hold all of it
  taught_.data[newest % taught_.rows] = 0;
}

void Lessons::Weigh(ReplayBatch& batch) const {
  for (Eigen::Index i = 0; i < batch.size(); ++i) {
    const std::int64_t row = batch.row[static_cast<std::size_t>(i)];
    batch.lesson[i] = taught_.data[row % taught_.rows] != 0 ? weight_ : 0.0F;
  }
}

void Lessons::Visit(const Archive& state, const Replay& replay) {
  taught_.Visit(state, "taught", std::min(replay.end_row(), taught_.rows));
}

double AddLessonGradient(const ReplayBatch& batch, const Eigen::RowVectorXf& q_of_lesson,
                         const Eigen::RowVectorXf& q_of_policy, const ConstMatrixRef& policy,
                         Eigen::MatrixXf& gradient) {
  double loss = 0.0;
  for (Eigen::Index i = 0; i < batch.size(); ++i) {
    if (batch.lesson[i] == 0.0F || q_of_lesson[i] <= q_of_policy[i]) continue;
    const float weight = batch.lesson[i] / static_cast<float>(batch.size());
    const auto miss = policy.col(i) - batch.action.col(i);
    loss += static_cast<double>(weight * miss.squaredNorm());
    gradient.col(i) += 2.0F * weight * miss;
  }
  return loss;
}

}  // namespace msrl
