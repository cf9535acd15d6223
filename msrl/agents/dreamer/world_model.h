// DreamerV3's world model: what a state is (encoder, recurrent model), what it looks like
// (decoder), what it earns (reward) and whether the episode goes on (continue), with the losses
// that teach it. Of an agent that plays, and of one that is taught by source episodes.
// docs/agents/dreamer.md
//
// A model over aligned slots is one that can be carried from task to task: it sees the geometry and
// the action code that all tasks share (aligned_channels.h), each with the bits of what there is.
// In a target it has one more input and output, which change nothing at first: the task's own
// observation o.
//
//   tokens = encoder(symlog x) + native(symlog o),  u = [slots(a); bits]
//   L_rec  = sum over slots that are alive (x^ - symlog x)^2 + sum (o^ - symlog o)^2
#ifndef MSRL_AGENTS_DREAMER_WORLD_MODEL_H_
#define MSRL_AGENTS_DREAMER_WORLD_MODEL_H_

#include <optional>

#include "msrl/agents/dreamer/rssm.h"

namespace msrl {

inline constexpr int kDreamerBins = 255;
inline constexpr double kDreamerBinLimit = 20.0;

// The weights of its losses.
struct WorldWeights {
  double free_nats = 1.0;
  double dynamics_weight = 1.0;
  double representation_weight = 0.1;

  template <typename V>
  void Fields(V&& visit) {
    visit("free_nats", free_nats, "KL divergence that costs nothing", NotNegative());
    visit("dynamics_weight", dynamics_weight, "weight of the KL that trains the prior",
          NotNegative());
    visit("representation_weight", representation_weight,
          "weight of the KL that trains the posterior", NotNegative());
  }
};

struct WorldModelSpec {
  RssmSizes sizes;  // observation and action: what encoder and core are given

  // ---- of a model over aligned slots ----
  bool aligned = false;  // the observation is slots above their bits, the action codes above theirs
  int native = 0;        // size of o; 0: there is none
  // Slots that actuators share as a mean, code x actuators; empty: actions are codes and bits.
  Eigen::MatrixXf slots;

  // What states and actions have as inputs of graphs: x above o, and what the actor chooses.
  int seen() const { return sizes.observation + native; }
  int actuators() const { return slots.size() > 0 ? static_cast<int>(slots.cols()) : sizes.action; }
};

// A pass over stretches of records, columns time by time.
struct WorldPass {
  // inputs; the action is that which led here, keep is 0 where an episode begins, h and z are those
  // before the first record
  Node observation, action, keep, h, z, reward, terminal, z_noise;
  // results
  Node next_h, next_z, features;
  Node reconstruction_loss, reward_loss, continue_loss, dynamics_loss, representation_loss, kl;
};

class WorldModel {
 public:
  // What a pretrained model hands over is in `world`, the reward and a target's own parts in
  // `heads`: they can be the same, and must outlive it.
  WorldModel(const WorldModelSpec& spec, Parameters& world, Parameters& heads, Rng& rng);

  const WorldModelSpec& spec() const { return spec_; }
  const RssmSizes& sizes() const { return spec_.sizes; }
  const Rssm& rssm() const { return rssm_; }

  // Rssm's of what is seen, and of what was chosen.
  Node Tokens(StaticGraph& g, Node observation, ParameterUse use) const;
  Node ActionInput(StaticGraph& g, Node action, ParameterUse use) const;
  // Of features: symlog slots (or all of the observation), logits of rewards, the logit of going
  // on.
  Node Decode(StaticGraph& g, Node features, ParameterUse use) const;
  Node Reward(StaticGraph& g, Node features, ParameterUse use) const;
  Node Continue(StaticGraph& g, Node features, ParameterUse use) const;

  // All of a pass of `length` records of `sequences` stretches.
  void AddPass(StaticGraph& g, int sequences, int length, double gamma, double free_nats,
               WorldPass& pass) const;
  static Node Loss(StaticGraph& g, const WorldPass& pass, const WorldWeights& weights,
                   double reconstruction_weight = 1.0);

  const TwoHotBins& bins() const { return bins_; }

 private:
  Node ReconstructionLoss(StaticGraph& g, Node observation, Node features, ParameterUse use) const;

  WorldModelSpec spec_;
  TwoHotBins bins_;
  Rssm rssm_;
  DenseNet decoder_, reward_, continues_;
  std::optional<DenseNet> encode_native_, decode_native_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DREAMER_WORLD_MODEL_H_
