// Follows an environment: lifts its transitions, accumulates the prefix matrix, keeps the carry.
#ifndef MSRL_AGENTS_EPISODE_TRACKER_H_
#define MSRL_AGENTS_EPISODE_TRACKER_H_

#include <Eigen/Core>
#include <array>
#include <memory>

#include "msrl/agents/agent.h"

namespace msrl {

// One per environment that is played.
class EpisodeTracker {
 public:
  // With the lift and the carry of the agent that plays.
  EpisodeTracker(const EnvSpec& spec, const Agent& agent);
  // Of an environment that no agent plays.
  EpisodeTracker(const EnvSpec& spec, Lift::Ptr lift);

  // After env.Reset: a new episode, with its carry begun anew.
  void Begin(const Env& env);
  // After env.Step(action). The result's views are valid until the next call; so is the situation
  // before. RunError if an observation or a reward is no number or too large for the matrix. No
  // allocation.
  Experience Advance(const Action& action, const StepResult& result, const Env& env);
  // The present one.
  Situation situation() const { return View(now_); }
  Carry& carry() { return *carry_; }
  Turn turn(Rng& rng, ActionBuffer& out) { return {situation(), *carry_, rng, out}; }

  const Lift::Ptr& lift() const { return lift_; }
  double episode_return() const { return episode_return_; }
  int steps() const { return states_[now_].step; }

  // `env` is in the state that belongs to it.
  void Visit(const Archive& state, const Env& env);

 private:
  struct State {
    Eigen::VectorXd observation;
    std::array<double, kGeometrySize> geometry{};
    SegmentMatrix matrix;
    int step = 0;
  };

  EpisodeTracker(const EnvSpec& spec, Lift::Ptr lift, std::unique_ptr<Carry> carry);

  Situation View(std::size_t which) const;
  void See(const Env& env, State& state) const;

  const EnvSpec spec_;
  Lift::Ptr lift_;
  std::array<State, 2> states_;  // before and after the last step
  std::size_t now_ = 0;
  std::array<double, kActionCodeSize> code_{};
  Eigen::VectorXd psi_;
  std::unique_ptr<Carry> carry_;
  double episode_return_ = 0.0;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_EPISODE_TRACKER_H_
