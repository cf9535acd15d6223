#include "msrl/agents/episode_tracker.h"

#include <utility>
#include <vector>

#include "msrl/core/check.h"

namespace msrl {

EpisodeTracker::EpisodeTracker(const EnvSpec& spec, const Agent& agent)
    : EpisodeTracker(spec, CompactLift(agent.lift_kind()), agent.MakeCarry()) {}

EpisodeTracker::EpisodeTracker(const EnvSpec& spec, Lift::Ptr lift)
    : EpisodeTracker(spec, std::move(lift), std::make_unique<Carry>()) {}

EpisodeTracker::EpisodeTracker(const EnvSpec& spec, Lift::Ptr lift, std::unique_ptr<Carry> carry)
    : spec_(spec),
      lift_(std::move(lift)),
      states_{State{Eigen::VectorXd::Zero(spec.observation_size), {}, SegmentMatrix(lift_), 0},
              State{Eigen::VectorXd::Zero(spec.observation_size), {}, SegmentMatrix(lift_), 0}},
      psi_(lift_->m()),
      carry_(std::move(carry)) {}

Situation EpisodeTracker::View(std::size_t which) const {
  const State& state = states_[which];
  return {EnvView(state.observation.data(), state.observation.size()),
          EnvView(state.geometry.data(), kGeometrySize), state.matrix, state.step};
}

void EpisodeTracker::See(const Env& env, State& state) const {
  const EnvView observation = env.observation();
  MSRL_CHECK_EQ(observation.size(), state.observation.size());
  if (!observation.allFinite()) {
    RequireFinite(spec_.id + ": observation",
                  std::span(observation.data(), static_cast<std::size_t>(observation.size())));
  }
  state.observation = observation;
  Eigen::Map<Eigen::VectorXd>(state.geometry.data(), kGeometrySize) = env.geometry();
}

void EpisodeTracker::Begin(const Env& env) {
  See(env, states_[now_]);
  states_[now_].matrix.SetZero();
  states_[now_].step = 0;
  episode_return_ = 0.0;
  carry_->Begin();
}

Experience EpisodeTracker::Advance(const Action& action, const StepResult& result, const Env& env) {
  const std::size_t before = now_;
  now_ = 1 - now_;
  State& after = states_[now_];
  See(env, after);
  EmbedAction(spec_, action, code_);
  const double scaled_reward = result.reward / spec_.reward_scale;
  try {
    lift_->Apply(View(before).geometry, EnvView(code_.data(), kActionCodeSize), scaled_reward,
                 View(now_).geometry, psi_);
  } catch (const UserError& error) {
    // these numbers are the environment's, not the user's
    throw RunError(StrCat(spec_.id, ": ", error.what()));
  }
  after.matrix = states_[before].matrix;
  after.matrix.AddStep(psi_);
  after.step = states_[before].step + 1;
  episode_return_ += result.reward;
  return {View(before),    action,
          code_,           result.reward,
          scaled_reward,   std::span(psi_.data(), static_cast<std::size_t>(psi_.size())),
          View(now_),      result.terminated,
          result.truncated};
}

void EpisodeTracker::Visit(const Archive& state, const Env& env) {
  if (state.loading()) Begin(env);
  State& now = states_[now_];
  state.SameWord("lift", lift_->id().value, "is of another lift");
  const std::span<const double> known = now.matrix.packed();
  std::vector<double> packed(known.begin(), known.end());
  state.Temporary("matrix", packed, {std::ssize(packed)});
  if (state.loading()) now.matrix = SegmentMatrix::FromPacked(lift_, std::move(packed));
  state.Int("steps", now.step, 0, spec_.step_limit);
  state.Double("return", episode_return_);
  carry_->Visit(state.Child("carry"));
}

}  // namespace msrl
