// TD-MPC2's networks: what a state is (h), where an action leads (d), what it earns (R), what is to
// come (Q), what to do (pi) and whether the episode ends (T), all over a latent state z.
//
//   z = h(o),  z' = d(z, a),  r = R(z, a),  q = Q_k(z, a),  a ~ pi(z),  p(terminated) = T(z')
//
// A latent state is groups of numbers that are positive and have the sum one (SimNorm).
#ifndef MSRL_AGENTS_TDMPC_LATENT_MODEL_H_
#define MSRL_AGENTS_TDMPC_LATENT_MODEL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "msrl/agents/feed_forward.h"
#include "msrl/files/state.h"
#include "msrl/nn/parameters.h"
#include "msrl/nn/static_graph.h"

namespace msrl {

struct LatentModelSpec {
  int observation = 0;
  int action = 0;
  int encoder_width = 0;
  int latent_groups = 0;
  int width = 0;  // of the two hidden layers of all other networks
  int q_count = 0;
  // Points of the distributions that R and Q predict; 0: they predict the number itself.
  int bins = 0;
  bool termination = false;   // whether there is T
  bool slow_encoder = false;  // whether h has a slowly following copy
};

class LatentModel {
 public:
  static constexpr int kGroup = 8;           // of SimNorm
  static constexpr double kBinLimit = 10.0;  // of symlog(x)
  static constexpr double kLogStdLow = -10.0;
  static constexpr double kLogStdHigh = 2.0;
  static constexpr double kPolicyAdamEpsilon = 1e-5;

  // Weights are normal with deviation 0.02, those of the last layers of R and Q zero: nothing is
  // worth anything at first.
  LatentModel(const LatentModelSpec& spec, Rng rng);

  const LatentModelSpec& spec() const { return spec_; }
  int latent_size() const { return spec_.latent_groups * kGroup; }
  std::size_t parameter_count() const;

  // ---- parts of a graph; one column per state ----

  Node Encode(StaticGraph& graph, Node observation, ParameterUse use);
  // x: latent state above action.
  Node Next(StaticGraph& graph, Node x, ParameterUse use);
  // What R and Q_k predict before it is decoded: `bins` rows (or one) for each.
  Node Reward(StaticGraph& graph, Node x, ParameterUse use);
  Node Values(StaticGraph& graph, Node x, ParameterUse use);
  Node ValuesOf(StaticGraph& graph, Node x, Node members, ParameterUse use);
  // log(p / (1 - p)) of a termination.
  Node Termination(StaticGraph& graph, Node z, ParameterUse use);

  // The numbers that heads predict, and the loss of each head against `target` (one row).
  Node Decode(StaticGraph& graph, Node heads) const;
  Node HeadLoss(StaticGraph& graph, Node heads, Node target) const;

  struct Choice {
    Node action;   // tanh(u), u = mu + sigma * noise
    Node entropy;  // - log N(u; mu, sigma), one row
    Node mode;     // tanh(mu)
  };
  // noise: standard normal, action x n.
  Choice Act(StaticGraph& graph, Node z, Node noise, ParameterUse use);

  // tanh(mu) of pi(h(o)).
  FeedForwardPolicy ExportPolicy() const;

  // ---- learning ----

  Parameters& encoder() { return encoder_; }
  Parameters& dynamics() { return dynamics_; }  // d, R and T
  Parameters& values() { return values_; }      // all Q_k, with targets
  Parameters& policy() { return policy_; }

  void Visit(const Archive& state);

 private:
  struct Latent {
    MlpParameters network;
    NormParameters norm;
  };
  Latent AddLatent(Parameters& owner, const std::string& name, int input, std::vector<int> hidden,
                   Rng& rng);
  // SimNorm(norm(network(x)))
  Node ToLatent(StaticGraph& graph, Node x, const Latent& part, ParameterUse use);

  LatentModelSpec spec_;
  std::optional<TwoHotBins> bins_;
  Parameters encoder_, dynamics_, values_, policy_;
  Latent encode_, next_;
  MlpParameters reward_, termination_, q_, pi_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TDMPC_LATENT_MODEL_H_
