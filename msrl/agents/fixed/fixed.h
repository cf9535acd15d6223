// Agents that learn nothing: rows of every table of results.
#ifndef MSRL_AGENTS_FIXED_FIXED_H_
#define MSRL_AGENTS_FIXED_FIXED_H_

#include "msrl/agents/agent.h"

namespace msrl {

struct FixedConfig {
  template <typename V>
  void Fields(V&&) {}
};

// Nothing to learn, nothing to store.
class FixedAgent : public Agent {
 public:
  std::int64_t parameter_count() const override { return 0; }
  void Observe(const Experience&, Carry&) override {}
  void Update() override {}
  FeedForwardPolicy ExportPolicy() const override;
  void DrainMetrics(MetricSink&) override {}
  void Visit(const Archive&) override {}
};

// Uniform over the actions, or over [-1, 1]^n.
class RandomAgent : public FixedAgent {
 public:
  RandomAgent(const EnvSpec& spec, const FixedConfig&, std::uint64_t) : action_(spec.action) {}

 private:
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;

  ActionSpec action_;
};

// The zero action, or action 0.
class StillAgent : public FixedAgent {
 public:
  StillAgent(const EnvSpec&, const FixedConfig&, std::uint64_t) {}

 private:
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_FIXED_FIXED_H_
