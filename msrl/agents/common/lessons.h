// A planner as the policy's teacher: steps that it chose, which the policy should come to choose.
#ifndef MSRL_AGENTS_COMMON_LESSONS_H_
#define MSRL_AGENTS_COMMON_LESSONS_H_

#include <cstdint>

#include "msrl/memory/lazy_table.h"
#include "msrl/memory/replay.h"
#include "msrl/nn/mlp.h"

namespace msrl {

// Stands beside a replay and remembers which of its steps are lessons.
class Lessons {
 public:
  // `weight` of a lesson in the policy's loss.
  Lessons(double weight, std::int64_t capacity) : weight_(static_cast<float>(weight)) {
    taught_.Allocate(capacity, 1);
  }

  // After the replay has taken in the step. No allocation.
  void Observe(const Replay& replay, bool taught);
  // Sets batch.lesson of a batch that was sampled from the replay. No allocation.
  void Weigh(ReplayBatch& batch) const;
  // `replay` has been read already.
  void Visit(const Archive& state, const Replay& replay);

 private:
  float weight_;
  LazyTable<std::uint8_t> taught_;
};

// L = mean_i w_i [Q(o_i, a_i) > Q(o_i, pi(o_i))] |pi(o_i) - a_i|^2: a lesson counts as long as the
// critic prefers its action. Adds dL/dpi to `gradient`, and returns L.
double AddLessonGradient(const ReplayBatch& batch, const Eigen::RowVectorXf& q_of_lesson,
                         const Eigen::RowVectorXf& q_of_policy, const ConstMatrixRef& policy,
                         Eigen::MatrixXf& gradient);

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_LESSONS_H_
