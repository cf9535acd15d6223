#include "msrl/env/tabular_env.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/env/painter.h"

namespace msrl {

void FinishInstance(const InstanceOptions& options, int min_horizon, int max_horizon, Rng& rng,
                    TabularInstance& instance) {
  instance.rule = SampleRewardRule(options, kTabularRewards, rng);
  // a move costs a full action: sampled prices stay below what the goal is worth
  if (options.action_cost < 0.0) instance.rule.action_cost *= 0.2;
  instance.scale = SampleScale(options, rng);
  instance.horizon = SampleHorizon(options, min_horizon, max_horizon, rng);
  // a sampled horizon leaves time to reach the goal
  if (options.horizon == 0) {
    instance.horizon = std::max(instance.horizon, instance.steps_to_goal + 10);
  }
  instance.slot_mask = SampleSlotMask(options, rng);

  const RewardRule& rule = instance.rule;
  FiniteMdp& mdp = instance.mdp;
  const auto distance = [&](int state) {
    return (instance.goal - instance.position[static_cast<std::size_t>(state)]).norm();
  };
  for (int s = 0; s < mdp.states; ++s) {
    for (int a = 0; a < mdp.actions; ++a) {
      const std::size_t edge = mdp.At(s, a);
      const int next = mdp.next[edge];
      const bool arrived = instance.at_goal[static_cast<std::size_t>(next)] != 0;
      const double progress = (distance(s) - distance(next)) / instance.step_length;
      mdp.reward[edge] = rule.Total(rule.Goal(distance(next), progress, arrived),
                                    a == instance.stay_action ? 0.0 : 1.0);
      mdp.terminated[edge] = arrived && rule.stop_at_goal ? 1 : 0;
    }
  }
}

StepResult TabularEnv::Step(const Action& action) {
  const std::size_t edge = instance_.mdp.At(state_, RequireIndex(spec_, action));
  previous_ = state_;
  state_ = instance_.mdp.next[edge];
  Publish();
  return {.reward = instance_.mdp.reward[edge],
          .terminated = instance_.mdp.terminated[edge] != 0,
          .truncated = false};
}

std::optional<bool> TabularEnv::Success() const {
  return instance_.at_goal[static_cast<std::size_t>(state_)] != 0;
}

void TabularEnv::Begin(std::uint64_t seed) {
  instance_ = Draw(seed);
  Adopt();
  solution_.reset();
  worst_.reset();
  state_ = previous_ = instance_.start;

  const FiniteMdp& mdp = instance_.mdp;
  const auto extra_size = static_cast<Eigen::Index>(instance_.extra_size);
  const Eigen::Index moves_size = 2 * static_cast<Eigen::Index>(mdp.actions);
  local_view_.resize(moves_size + extra_size, mdp.states);
  for (int s = 0; s < mdp.states; ++s) {
    const Eigen::Vector2d& here = instance_.position[static_cast<std::size_t>(s)];
    for (int a = 0; a < mdp.actions; ++a) {
      const auto to = static_cast<std::size_t>(mdp.next[mdp.At(s, a)]);
      local_view_.col(s).segment<2>(2 * static_cast<Eigen::Index>(a)) =
          (instance_.position[to] - here) / instance_.step_length;
    }
    local_view_.col(s).tail(extra_size) =
        Eigen::Map<const Eigen::VectorXd>(instance_.extra.data() + s * extra_size, extra_size);
  }
}

void TabularEnv::WriteState(ByteWriter& writer) const {
  writer.I64(state_);
  writer.I64(previous_);
}

void TabularEnv::ReadState(ByteReader& reader, std::uint64_t seed) {
  const std::int64_t state = reader.I64();
  const std::int64_t previous = reader.I64();
  reader.RequireEnd();
  // whether the states exist is known only in the instance of the seed
  const std::int64_t states = HasInstance(seed) ? instance_.mdp.states : Draw(seed).mdp.states;
  if (std::min(state, previous) < 0 || std::max(state, previous) >= states) {
    throw UserError(StrCat(spec_.id, ": snapshot holds state ", state, " after ", previous,
                           ", but the instance has ", states, " states"));
  }
  EnsureInstance(seed);
  state_ = static_cast<int>(state);
  previous_ = static_cast<int>(previous);
}

void TabularEnv::FillGeometry(int state, int previous, std::span<double, kGeometrySize> out) const {
  const Eigen::Vector2d& here = instance_.position[static_cast<std::size_t>(state)];
  const Eigen::Vector2d& before = instance_.position[static_cast<std::size_t>(previous)];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    out[i] = instance_.scale * here[k];
    out[2 + i] = instance_.scale * (instance_.goal[k] - here[k]);
    out[4 + i] = (here[k] - before[k]) / instance_.step_length;
  }
  out[6] = 0.0;
  out[7] = instance_.contact[static_cast<std::size_t>(state)];
}

void TabularEnv::Publish() {
  FillGeometry(state_, previous_, geometry_);
  std::copy(geometry_.begin(), geometry_.end(), observation_.data());
  observation_.tail(local_view_.rows()) = local_view_.col(state_);
  ApplySlotMask(instance_.slot_mask, geometry_);
}

const FiniteSolution& TabularEnv::Solution() {
  if (!solution_) solution_ = SolveScaled(1.0 / spec_.reward_scale);
  return *solution_;
}

FiniteSolution TabularEnv::SolveScaled(double factor) const {
  FiniteMdp scaled = instance_.mdp;
  for (double& reward : scaled.reward) reward *= factor;
  return Solve(scaled, spec_.gamma);
}

void TabularEnv::Best(ActionBuffer& action) {
  action.set_index(Solution().action[static_cast<std::size_t>(state_)]);
}

void TabularEnv::Worst(ActionBuffer& action) {
  // who earns most of the negated reward earns least of the reward
  if (!worst_) worst_ = SolveScaled(-1.0 / spec_.reward_scale);
  action.set_index(worst_->action[static_cast<std::size_t>(state_)]);
}

double TabularEnv::Value() { return Solution().value[static_cast<std::size_t>(state_)]; }

StateGraph TabularEnv::Graph() const {
  const FiniteMdp& mdp = instance_.mdp;
  StateGraph result;
  // a node is told by what is seen there: state and displacement
  using Key = std::tuple<int, double, double, bool>;
  std::map<Key, int> known;
  std::vector<std::pair<int, int>> arrivals;  // state and a state before it, per node
  std::vector<char> is_end;
  const auto node_of = [&](int state, int previous, bool ended) {
    const Eigen::Vector2d moved = instance_.position[static_cast<std::size_t>(state)] -
                                  instance_.position[static_cast<std::size_t>(previous)];
    const auto [entry, is_new] = known.try_emplace(Key{state, moved.x(), moved.y(), ended},
                                                   static_cast<int>(arrivals.size()));
    if (is_new) {
      arrivals.emplace_back(state, previous);
      is_end.push_back(ended ? 1 : 0);
    }
    return entry->second;
  };

  result.starts = {node_of(instance_.start, instance_.start, false)};
  for (std::size_t node = 0; node < arrivals.size(); ++node) {
    if (is_end[node] != 0) continue;
    const int state = arrivals[node].first;
    for (int a = 0; a < mdp.actions; ++a) {
      const std::size_t edge = mdp.At(state, a);
      std::array<double, kActionCodeSize> code{};
      EmbedAction(spec_, Action::Discrete(a), code);
      const int head = node_of(mdp.next[edge], state, mdp.terminated[edge] != 0);
      result.graph.edges.push_back({static_cast<int>(node), head,
                                    Eigen::Map<const Eigen::VectorXd>(code.data(), kActionCodeSize),
                                    mdp.reward[edge] / spec_.reward_scale});
    }
  }
  result.graph.nodes.resize(kGeometrySize, static_cast<Eigen::Index>(arrivals.size()));
  for (std::size_t node = 0; node < arrivals.size(); ++node) {
    std::array<double, kGeometrySize> geometry{};
    FillGeometry(arrivals[node].first, arrivals[node].second, geometry);
    ApplySlotMask(instance_.slot_mask, geometry);
    result.graph.nodes.col(static_cast<Eigen::Index>(node)) =
        Eigen::Map<const Eigen::VectorXd>(geometry.data(), kGeometrySize);
    result.node_state.push_back(arrivals[node].first);
  }
  const bool ended =
      instance_.rule.stop_at_goal && instance_.at_goal[static_cast<std::size_t>(state_)] != 0;
  result.current = node_of(state_, previous_, ended);
  MSRL_CHECK_LT(result.current, static_cast<int>(result.node_state.size()));
  return result;
}

void TabularEnv::Sketch(Painter& painter) const {
  double half = 0.1;
  for (const Vec2& p : instance_.position) half = std::max(half, p.cwiseAbs().maxCoeff());
  painter.Look({0, 0}, 2.4 * half);
  const double node = 0.06 * half;
  const auto position = [&](int state) -> const Vec2& {
    return instance_.position[static_cast<std::size_t>(state)];
  };
  for (int state = 0; state < instance_.mdp.states; ++state) {
    for (int action = 0; action < instance_.mdp.actions; ++action) {
      // thick where an edge begins, so that one-way edges can be told
      const Vec2& to = position(instance_.mdp.next[instance_.mdp.At(state, action)]);
      const Vec2 middle = 0.5 * (position(state) + to);
      painter.Capsule(position(state), to, 0.1 * node, kLineColour);
      painter.Capsule(position(state), middle, 0.22 * node, kLineColour);
    }
  }
  for (int state = 0; state < instance_.mdp.states; ++state) {
    painter.Disc(position(state), 0.7 * node, kFaintColour);
  }
  painter.Disc(instance_.goal, 1.5 * node, kGoalColour);
  painter.Disc(position(state_), node, kBodyColour);
}

}  // namespace msrl
