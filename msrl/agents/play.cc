#include "msrl/agents/play.h"

#include <algorithm>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {

Lockstep::Lockstep(Agent& agent, BatchEnv& envs, std::vector<Rng> policies)
    : agent_(agent), envs_(envs), policies_(std::move(policies)) {
  const auto size = static_cast<std::size_t>(envs.size());
  MSRL_CHECK_EQ(policies_.size(), size);
  trackers_.reserve(size);
  for (std::size_t i = 0; i < size; ++i) trackers_.emplace_back(envs.spec(), agent);
  actions_.assign(size, ActionBuffer(envs.spec().action));
  running_.assign(size, 0);
  turns_.reserve(size);
  simulators_.assign(size, nullptr);
}

void Lockstep::Begin(int i, std::uint64_t seed) {
  envs_.env(i).Reset(seed);
  trackers_[static_cast<std::size_t>(i)].Begin(envs_.env(i));
  running_[static_cast<std::size_t>(i)] = 1;
}

bool Lockstep::playing() const { return std::ranges::find(running_, 1) != running_.end(); }

void Lockstep::Step(ActMode mode, const std::function<void(const PlayedStep&)>& visit) {
  turns_.clear();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i] == 0) continue;
    turns_.push_back(trackers_[i].turn(policies_[i], actions_[i]));
    if (simulators_[i] == nullptr || mode != ActMode::kExplore) continue;
    simulators_[i]->Follow(envs_.env(static_cast<int>(i)));
    turns_.back().simulator = simulators_[i];
  }
  agent_.Act(turns_, mode);
  const std::span<const StepResult> results = envs_.Step(actions_, running_);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i] == 0) continue;
    const auto env = static_cast<int>(i);
    running_[i] = results[i].terminated || results[i].truncated ? 0 : 1;
    const Experience experience =
        trackers_[i].Advance(actions_[i].view(), results[i], envs_.env(env));
    visit({env, experience, trackers_[i]});
  }
}

void Lockstep::Visit(int i, const Archive& state) {
  const auto at = static_cast<std::size_t>(i);
  Env& env = envs_.env(i);
  state.Random("policy", policies_[at]);
  std::vector<std::byte> snapshot;
  if (!state.loading()) snapshot = env.Snapshot();
  state.Bytes("env", snapshot);
  if (state.loading()) env.Restore(snapshot);
  trackers_[at].Visit(state.Child("tracker"), env);
  if (state.loading()) running_[at] = 1;
}

bool PlayEpisodes(Agent& agent, BatchEnv& envs, const EpisodePlan& plan,
                  const std::function<void(int episode, const PlayedStep&)>& visit) {
  Rng resets(plan.seed, plan.name + "/env");
  Lockstep lockstep(agent, envs, std::vector(static_cast<std::size_t>(envs.size()), resets));
  std::vector<int> episode_of(static_cast<std::size_t>(envs.size()));
  int next = 0;
  const auto begin_next = [&](int env) {
    if (next == plan.episodes) return;
    lockstep.set_policy(env, Rng(plan.seed, StrCat(plan.name, "/policy/", next)));
    lockstep.Begin(env, resets.NextU64());
    episode_of[static_cast<std::size_t>(env)] = next++;
  };
  for (int env = 0; env < envs.size(); ++env) begin_next(env);
  const auto on_step = [&](const PlayedStep& step) {
    visit(episode_of[static_cast<std::size_t>(step.env)], step);
    if (step.ended()) begin_next(step.env);
  };
  while (lockstep.playing()) {
    if (plan.stop && plan.stop()) return false;
    lockstep.Step(plan.mode, on_step);
  }
  return true;
}

}  // namespace msrl
