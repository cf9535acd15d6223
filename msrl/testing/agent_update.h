// For tests of single updates: random batches, and what an agent would save.
#ifndef MSRL_TESTING_AGENT_UPDATE_H_
#define MSRL_TESTING_AGENT_UPDATE_H_

#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/files/state.h"
#include "msrl/memory/replay.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/plain_learning.h"
#include "msrl/testing/tolerance.h"

namespace msrl::testing {

inline EnvSpec SmallSpec(ActionKind kind, int actions, int observations = 3) {
  EnvSpec spec;
  spec.id = "small";
  spec.observation_size = observations;
  spec.action = {kind, actions};
  spec.step_limit = 100;
  return spec;
}

// Every third transition is the end of its episode.
inline ReplayBatch RandomBatch(const EnvSpec& spec, int size, Rng& rng, double reward_size = 1.0) {
  const bool discrete = spec.action.kind == ActionKind::kDiscrete;
  ReplayBatch batch;
  batch.observation.resize(spec.observation_size, size);
  batch.next_observation.resize(spec.observation_size, size);
  batch.action.resize(discrete ? 1 : spec.action.size, size);
  batch.reward.resize(size);
  batch.continues.resize(size);
  const auto fill = [&rng](Eigen::MatrixXf& matrix) {
    for (Eigen::Index i = 0; i < matrix.size(); ++i) {
      matrix.data()[i] = static_cast<float>(rng.Normal());
    }
  };
  fill(batch.observation);
  fill(batch.next_observation);
  for (Eigen::Index i = 0; i < batch.action.size(); ++i) {
    batch.action.data()[i] = static_cast<float>(
        discrete ? static_cast<double>(rng.Index(spec.action.size)) : rng.Uniform(-1.0, 1.0));
  }
  for (Eigen::Index b = 0; b < size; ++b) {
    batch.reward[b] = static_cast<float>(reward_size * rng.Normal());
    batch.continues[b] = b % 3 == 2 ? 0.0F : 1.0F;
  }
  return batch;
}

// Every second transition becomes a lesson, of one weight or another.
inline void AddLessons(ReplayBatch& batch) {
  batch.lesson.setZero(batch.size());
  for (Eigen::Index b = 0; b < batch.size(); b += 2) batch.lesson[b] = b % 4 == 0 ? 0.5F : 1.5F;
}

inline Doubles Column(const Eigen::MatrixXf& matrix, Eigen::Index b) {
  return {matrix.col(b).data(), matrix.col(b).data() + matrix.rows()};
}
inline Doubles AsDoubles(std::span<const float> values) { return {values.begin(), values.end()}; }

// What an agent or a part of it has measured.
class MetricMap : public MetricSink {
 public:
  template <typename Source>
  explicit MetricMap(Source& source) {
    source.DrainMetrics(*this);
  }
  bool contains(const std::string& name) const { return values_.contains(name); }
  void Add(std::string_view name, double value) override { values_[std::string(name)] = value; }
  double operator[](const std::string& name) const { return values_.at(name); }

 private:
  std::map<std::string, double> values_;
};

// A tensor of floats as a checkpoint of an agent or a part of it has it, e.g. "critic_adam/mean".
template <typename Saveable>
Doubles Saved(const Saveable& saveable, const std::string& name, std::size_t size,
              const Shape& shape = {}) {
  const std::string bytes = Archived(saveable);
  const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
  std::vector<float> values(size);
  Archive(file).Array(name, values, shape);
  return AsDoubles(values);
}

inline void ExpectNear(const Doubles& got, const Doubles& expected, const std::string& what,
                       double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], Tol(tolerance)) << what << "[" << i << "]";
  }
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_AGENT_UPDATE_H_
