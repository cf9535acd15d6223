// An agent whose critic can be asked, so that a planner can be put on top of it.
#ifndef MSRL_AGENTS_COMMON_CRITIC_AGENT_H_
#define MSRL_AGENTS_COMMON_CRITIC_AGENT_H_

#include <array>
#include <span>

#include "msrl/agents/common/critic.h"
#include "msrl/agents/common/off_policy.h"

namespace msrl {

// Values of states and actions, of at most Critic::kMaxCandidates, one column each. A discrete
// action is its index.
class ActionValuer {
 public:
  virtual ~ActionValuer() = default;
  // Q(o, Z, a), of twins the first.
  virtual void ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                            const ConstMatrixRef& action, std::span<float> q) = 0;
  // V(o, Z): the best action's, or that of the policy without its noise.
  virtual void StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                           std::span<float> v) = 0;
};

class CriticAgent : public Agent, public ActionValuer {
 public:
  // As Act, of at most kMaxTurns; says of each whether the choice is the policy's (true) or was
  // drawn to explore at random (false).
  virtual void Choose(std::span<const Turn> turns, ActMode mode, std::span<bool> by_policy) = 0;
  void Observe(const Experience& experience, Carry&) override { memory().Observe(experience); }
  KeptExperience Kept() const override { return {&memory().replay()}; }
  LiftKind lift_kind() const override {
    const auto& branch = critic().branch_settings();
    return branch ? branch->lift->kind() : LiftKind::kCompact;
  }

  virtual Critic& critic() = 0;
  virtual const Critic& critic() const = 0;
  virtual OffPolicyMemory& memory() = 0;
  virtual const OffPolicyMemory& memory() const = 0;

 protected:
  static_assert(kMaxTurns <= Critic::kMaxCandidates);
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override {
    std::array<bool, kMaxTurns> by_policy{};
    Choose(turns, mode, std::span(by_policy).first(turns.size()));
  }
};

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_CRITIC_AGENT_H_
