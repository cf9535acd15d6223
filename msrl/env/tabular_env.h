// Environments that are finite deterministic decision processes with states in the plane: what
// GraphMotif and MicroGrid share.
#ifndef MSRL_ENV_TABULAR_ENV_H_
#define MSRL_ENV_TABULAR_ENV_H_

#include <Eigen/Core>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/graph.h"
#include "msrl/env/env.h"
#include "msrl/env/finite_mdp.h"
#include "msrl/env/instance.h"

namespace msrl {

// One sampled instance. Positions are in units of the arena's half width.
struct TabularInstance {
  std::string layout;
  FiniteMdp mdp;                          // rewards are filled by FinishInstance
  std::vector<Eigen::Vector2d> position;  // of each state
  std::vector<char> at_goal;              // of each state
  std::vector<double> contact;            // slot 7 of each state
  std::vector<double> extra;              // observation entries of each state, extra_size each
  int extra_size = 0;
  Eigen::Vector2d goal{0, 0};
  int start = 0;
  int steps_to_goal = 0;  // the fewest from the start
  int stay_action = 0;
  double step_length = 1.0;  // typical displacement of a move
  // drawn by FinishInstance
  RewardRule rule;
  double scale = 1.0;
  int horizon = 1;
  std::uint8_t slot_mask = 0xff;
};

// The reward styles of tabular families.
inline constexpr RewardStyle kTabularRewards[] = {RewardStyle::kDistance, RewardStyle::kSparse,
                                                  RewardStyle::kTime, RewardStyle::kProgress};

// Draws rule, scale, horizon and mask, and fills the rewards and ends of mdp.
void FinishInstance(const InstanceOptions& options, int min_horizon, int max_horizon, Rng& rng,
                    TabularInstance& instance);

// An instance as a multigraph that realizes exactly the segments of the environment. A node is a
// state together with the displacement that led to it, because the geometry shows both; its
// embedding equals geometry() there, bit for bit. Transitions that end the episode lead to nodes
// without edges. Rewards are reward / reward_scale, actions are the codes of EmbedAction.
struct StateGraph {
  Multigraph graph;             // nodes: kGeometrySize x |V|, all reachable from the start
  std::vector<int> node_state;  // the state of each node
  std::vector<int> starts;      // the episode's start: node 0
  int current = 0;              // the node where the environment is now
};

class TabularEnv : public EnvBase, private Expert {
 public:
  StepResult Step(const Action& action) override;
  std::optional<bool> Success() const override;
  int horizon() const override { return instance_.horizon; }
  std::string InstanceText() const override { return instance_.layout; }
  Expert* expert() override { return this; }
  std::map<std::string, double> HiddenFacts() const override { return HiddenFactsOf(instance_); }
  bool has_sketch() const override { return true; }
  void Sketch(Painter& painter) const override;

  const TabularInstance& instance() const { return instance_; }
  int state() const { return state_; }
  StateGraph Graph() const;
  // V* and the best policy of the instance, in units of reward_scale; computed once per episode.
  const FiniteSolution& Solution();

  // Entries of the observation: geometry without dead slots, displacement of each action, extras.
  static int ObservationSize(int actions, int extra_size) {
    return kGeometrySize + 2 * actions + extra_size;
  }

 protected:
  using EnvBase::EnvBase;
  // Makes an instance. What the family keeps of it besides is taken over by Adopt only, which
  // follows if the instance becomes the present one.
  virtual TabularInstance Draw(std::uint64_t seed) = 0;
  virtual void Adopt() = 0;

 private:
  void Begin(std::uint64_t seed) override;
  void WriteState(ByteWriter& writer) const override;
  void ReadState(ByteReader& reader, std::uint64_t seed) override;
  void Publish() override;
  void Best(ActionBuffer& action) override;
  void Worst(ActionBuffer& action) override;
  double Value() override;

  // Solve with all rewards multiplied by the factor.
  FiniteSolution SolveScaled(double factor) const;
  // The geometry in `state` after a move from `previous`, before the mask.
  void FillGeometry(int state, int previous, std::span<double, kGeometrySize> out) const;

  TabularInstance instance_;
  // Observation entries that depend on the state alone.
  Eigen::MatrixXd local_view_;
  std::optional<FiniteSolution> solution_;
  std::optional<FiniteSolution> worst_;  // of the negated reward
  int state_ = 0;
  int previous_ = 0;  // the state before the last step: the displacement is part of what is seen
};

}  // namespace msrl

#endif  // MSRL_ENV_TABULAR_ENV_H_
