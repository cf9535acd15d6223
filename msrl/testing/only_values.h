// A base for tests of planners: it has the values that a test gives it, and nothing else.
#ifndef MSRL_TESTING_ONLY_VALUES_H_
#define MSRL_TESTING_ONLY_VALUES_H_

#include <stdexcept>

#include "msrl/agents/common/critic_agent.h"

namespace msrl::testing {

class OnlyValues : public CriticAgent {
 public:
  void ActionValues(const ConstMatrixRef&, const ConstMatrixRef&, const ConstMatrixRef&,
                    std::span<float>) override {
    NotAsked<int>();
  }
  void StateValues(const ConstMatrixRef&, const ConstMatrixRef&, std::span<float>) override {
    NotAsked<int>();
  }
  void Choose(std::span<const Turn>, ActMode, std::span<bool>) override { NotAsked<int>(); }
  std::int64_t parameter_count() const override { return 0; }
  void Update() override {}
  void DrainMetrics(MetricSink&) override {}
  void Visit(const Archive&) override {}
  Critic& critic() override { return NotAsked<Critic&>(); }
  const Critic& critic() const override { return NotAsked<const Critic&>(); }
  OffPolicyMemory& memory() override { return NotAsked<OffPolicyMemory&>(); }
  const OffPolicyMemory& memory() const override { return NotAsked<const OffPolicyMemory&>(); }

 private:
  template <typename T>
  static T NotAsked() {
    throw std::logic_error("a planner has no business here");
  }
};

}  // namespace msrl::testing

#endif  // MSRL_TESTING_ONLY_VALUES_H_
