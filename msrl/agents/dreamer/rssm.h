// The networks of DreamerV3's world model, as parts of a graph: dense layers, and the recurrent
// state-space model (RSSM) with categorical latents. docs/agents/dreamer.md
//
// A state of the world is a deterministic part h and a stochastic part z, `stoch` one-hot groups of
// `classes`. Every function adds operations for all columns of its inputs.
#ifndef MSRL_AGENTS_DREAMER_RSSM_H_
#define MSRL_AGENTS_DREAMER_RSSM_H_

#include <string>
#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/core/config.h"
#include "msrl/nn/static_graph.h"

namespace msrl {

// silu(norm(W x + b)), norm by the root mean square with a learned scale. W from a truncated normal
// with variance 1 / inputs, b zero.
struct DenseLayer {
  LinearParameters linear;
  NormParameters norm;
};
DenseLayer AddDense(Parameters& parameters, const std::string& name, int in, int out, Rng& rng);
Node Dense(StaticGraph& g, Node x, const DenseLayer& layer, ParameterUse use);

// `layers` dense layers of one width and a linear one, whose W is scaled by `output_scale`.
struct DenseNet {
  std::vector<DenseLayer> layers;
  LinearParameters output;
};
struct DenseNetShape {
  int input = 0;
  int layers = 1;
  int width = 0;
  int output = 0;
  double output_scale = 1.0;
};
DenseNet AddDenseNet(Parameters& parameters, const std::string& name, const DenseNetShape& shape,
                     Rng& rng);
Node Apply(StaticGraph& g, Node x, const DenseNet& net, ParameterUse use);
// What the linear one is given.
Node ApplyHidden(StaticGraph& g, Node x, const DenseNet& net, ParameterUse use);

// 1 % uniform: no category is impossible. Of logits in groups.
Node MixedSoftmax(StaticGraph& g, Node logits, int classes);
// sum over rows of p log(p / q): 1 x columns.
Node Divergence(StaticGraph& g, Node p, Node q);

// The sizes that a world model is free to choose.
struct WorldShape {
  int deter = 128;  // of h
  int blocks = 4;   // of the recurrent weights; divides deter
  int stoch = 8;
  int classes = 8;
  int hidden = 96;  // width between h, z, a and tokens
  int units = 128;  // width of encoder, decoder and heads
  int layers = 2;   // of encoder and decoder

  int latent() const { return stoch * classes; }
  int features() const { return deter + latent(); }

  template <typename V>
  void Fields(V&& visit) {
    visit("deter", deter, "size of the deterministic state h; a multiple of blocks",
          Between(1, kMaxHiddenWidth));
    visit("blocks", blocks, "blocks of the recurrent weights", Between(1, 64));
    visit("stoch", stoch, "categorical variables of the stochastic state z", Between(1, 256));
    visit("classes", classes, "categories of each", Between(2, 256));
    visit("hidden", hidden, "width inside the recurrent model", Between(1, kMaxHiddenWidth));
    visit("units", units, "width of encoder, decoder, heads, actor and critic",
          Between(1, kMaxHiddenWidth));
    visit("layers", layers, "layers of encoder, decoder, actor and critic",
          Between(1, kMaxHiddenLayers));
  }
};
// UserError if blocks don't divide deter.
void RequireConsistent(const WorldShape& shape);

struct RssmSizes : WorldShape {
  int observation = 0;
  int action = 0;
};

class Rssm {
 public:
  // Adds its tensors to `parameters`, which must outlive it.
  Rssm(Parameters& parameters, const RssmSizes& sizes, Rng& rng);

  const RssmSizes& sizes() const { return sizes_; }

  // What does not depend on the state before, so that it can be done for all times at once: of
  // symlog observations, what the posterior adds to its first layer; of actions in [-1, 1] or
  // one-hot, the core's input. What else is seen can be added to the encoder's output, of `units`.
  Node Tokens(StaticGraph& g, Node symlog_observation, ParameterUse use, Node added = {}) const;
  Node ActionInput(StaticGraph& g, Node action, ParameterUse use) const;

  // h_t = f(h_{t-1}, z_{t-1}, a_{t-1}): a gated recurrent unit with block-diagonal weights,
  //   r, c, u of g = silu(norm(W [x_h, x_z, x_a] + blocks W h + b)),
  //   h_t = u tanh(r c) + (1 - u) h_{t-1},  u = sigmoid(... - 1): in doubt it remembers.
  Node Core(StaticGraph& g, Node h, Node z, Node action_input, ParameterUse use) const;
  // Probabilities of z_t, latent() rows: q(z_t | h_t, o_t) and p(z_t | h_t).
  Node Posterior(StaticGraph& g, Node h, Node tokens, ParameterUse use) const;
  Node Prior(StaticGraph& g, Node h, ParameterUse use) const;

 private:
  RssmSizes sizes_;
  std::vector<DenseLayer> encoder_;
  DenseLayer core_h_, core_z_, core_a_;
  DenseLayer mix_;          // deter x (3 hidden + deter / blocks): the last part block by block
  LinearParameters gates_;  // 3 deter x deter / blocks: r, c, u
  DenseLayer posterior_;    // hidden x (deter + units)
  LinearParameters posterior_output_;
  DenseNet prior_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DREAMER_RSSM_H_
