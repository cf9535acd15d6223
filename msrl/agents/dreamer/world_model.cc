#include "msrl/agents/dreamer/world_model.h"

#include <string>
#include <vector>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/core/check.h"

namespace msrl {

WorldModel::WorldModel(const WorldModelSpec& spec, Parameters& world, Parameters& heads, Rng& rng)
    : spec_(spec),
      bins_(TwoHotBins::Symexp(kDreamerBins, kDreamerBinLimit)),
      rssm_(world, spec.sizes, rng) {
  const RssmSizes& sizes = spec_.sizes;
  MSRL_CHECK(!spec_.aligned ||
             (sizes.observation == kStateChannels && sizes.action == kActionChannels));
  const auto add = [&](Parameters& parameters, const std::string& name, int input, int layers,
                       int output, double output_scale) {
    return AddDenseNet(parameters, name,
                       {.input = input,
                        .layers = layers,
                        .width = sizes.units,
                        .output = output,
                        .output_scale = output_scale},
                       rng);
  };
  const int features = sizes.features();
  decoder_ = add(world, "decoder", features, sizes.layers,
                 spec_.aligned ? kGeometrySize : sizes.observation, 1.0);
  // zero: nothing is expected before anything is known
  reward_ = add(heads, "reward", features, 1, kDreamerBins, 0.0);
  continues_ = add(world, "continue", features, 1, 1, 1.0);
  if (spec_.native == 0) return;
  encode_native_ = add(heads, "native", spec_.native, 1, sizes.units, 0.0);
  decode_native_ = add(heads, "native_decoder", sizes.units, 0, spec_.native, 1.0);
}

Node WorldModel::Tokens(StaticGraph& g, Node observation, ParameterUse use) const {
  if (!encode_native_) return rssm_.Tokens(g, g.Symlog(observation), use);
  const Node own = g.SliceRows(observation, sizes().observation, spec_.native);
  return rssm_.Tokens(g, g.Symlog(g.SliceRows(observation, 0, sizes().observation)), use,
                      Apply(g, g.Symlog(own), *encode_native_, use));
}

Node WorldModel::ActionInput(StaticGraph& g, Node action, ParameterUse use) const {
  if (spec_.slots.size() > 0) {
    const Eigen::Index size = spec_.slots.rows();
    Eigen::MatrixXf code = Eigen::MatrixXf::Zero(2 * size, spec_.slots.cols());
    code.topRows(size) = spec_.slots;
    Eigen::MatrixXf bits = Eigen::MatrixXf::Zero(2 * size, 1);
    bits.bottomRows(size) = (spec_.slots.array() != 0.0F).rowwise().any().cast<float>().matrix();
    action = g.Linear(action, g.Constant(code), g.Constant(bits));
  }
  return rssm_.ActionInput(g, action, use);
}

Node WorldModel::Decode(StaticGraph& g, Node features, ParameterUse use) const {
  return Apply(g, features, decoder_, use);
}

Node WorldModel::Reward(StaticGraph& g, Node features, ParameterUse use) const {
  return Apply(g, features, reward_, use);
}

Node WorldModel::Continue(StaticGraph& g, Node features, ParameterUse use) const {
  return Apply(g, features, continues_, use);
}

// sum_d (o^_d - symlog o_d)^2
Node WorldModel::ReconstructionLoss(StaticGraph& g, Node observation, Node features,
                                    ParameterUse use) const {
  if (!spec_.aligned) {
    return g.Mean(g.SumRows(g.Square(g.Subtract(Decode(g, features, use), g.Symlog(observation)))));
  }
  const Node hidden = ApplyHidden(g, features, decoder_, use);
  const Node slots = g.Symlog(g.SliceRows(observation, 0, kGeometrySize));
  const Node alive = g.SliceRows(observation, kGeometrySize, kGeometrySize);
  const Node error = g.Subtract(g.Linear(hidden, decoder_.output, use), slots);
  Node loss = g.SumRows(g.Square(g.Multiply(error, alive)));
  if (decode_native_) {
    const Node own = g.Symlog(g.SliceRows(observation, sizes().observation, spec_.native));
    const Node own_error = g.Subtract(Apply(g, hidden, *decode_native_, use), own);
    loss = g.Add(loss, g.SumRows(g.Square(own_error)));
  }
  return g.Mean(loss);
}

void WorldModel::AddPass(StaticGraph& g, int sequences, int length, double gamma, double free_nats,
                         WorldPass& pass) const {
  constexpr auto kUse = ParameterUse::kTrained;
  const RssmSizes& size = sizes();
  const int columns = sequences * length;
  pass.observation = g.Input(spec_.seen(), columns);
  pass.action = g.Input(spec_.actuators(), columns);
  pass.keep = g.Input(1, columns);
  pass.h = g.Input(size.deter, sequences);
  pass.z = g.Input(size.latent(), sequences);
  pass.z_noise = g.Input(size.stoch, columns);
  pass.reward = g.Input(1, columns);
  pass.terminal = g.Input(1, columns);

  // h_t = f(h_{t-1}, z_{t-1}, a_{t-1}),  z_t ~ q(. | h_t, o_t)
  const Node tokens = Tokens(g, pass.observation, kUse);
  const Node action_input = ActionInput(g, pass.action, kUse);
  std::vector<Node> h{pass.h};
  std::vector<Node> z{pass.z};
  std::vector<Node> posteriors;
  for (int t = 0; t < length; ++t) {
    const auto now = [&](Node x) { return g.SliceColumns(x, t * sequences, sequences); };
    const Node keep = now(pass.keep);
    h.push_back(rssm_.Core(g, g.Multiply(h.back(), keep), g.Multiply(z.back(), keep),
                           now(action_input), kUse));
    posteriors.push_back(rssm_.Posterior(g, h.back(), now(tokens), kUse));
    z.push_back(g.SampleOneHot(posteriors.back(), now(pass.z_noise), size.classes));
  }
  pass.next_h = g.ConcatColumns(std::span(h).subspan(1));
  pass.next_z = g.ConcatColumns(std::span(z).subspan(1));
  pass.features = g.ConcatRows({pass.next_h, pass.next_z});

  // L_rew = CE(two-hot r),  L_con = BCE((1 - terminal) gamma)
  pass.reconstruction_loss = ReconstructionLoss(g, pass.observation, pass.features, kUse);
  pass.reward_loss =
      g.Mean(g.TwoHotCrossEntropy(Reward(g, pass.features, kUse), pass.reward, bins_));
  const Node logit = Continue(g, pass.features, kUse);
  const auto discount = static_cast<float>(gamma);
  const Node label = g.Affine(pass.terminal, -discount, discount);
  pass.continue_loss = g.Mean(g.Subtract(g.Softplus(logit), g.Multiply(label, logit)));

  // L_dyn = max(free, KL[sg q || p]),  L_rep = max(free, KL[q || sg p])
  const Node q = g.ConcatColumns(posteriors);
  const Node p = rssm_.Prior(g, pass.next_h, kUse);
  const auto loss = [&](Node kl) {
    return g.Mean(g.Clamp(kl, static_cast<float>(free_nats), 1e30F));
  };
  const Node kl = Divergence(g, g.StopGradient(q), p);
  pass.kl = g.Mean(kl);
  pass.dynamics_loss = loss(kl);
  pass.representation_loss = loss(Divergence(g, q, g.StopGradient(p)));
}

Node WorldModel::Loss(StaticGraph& g, const WorldPass& pass, const WorldWeights& weights,
                      double reconstruction_weight) {
  const auto part = [&](Node loss, double weight) {
    return g.Scale(loss, static_cast<float>(weight));
  };
  const Node seen =
      g.Add(g.Add(part(pass.reconstruction_loss, reconstruction_weight), pass.reward_loss),
            pass.continue_loss);
  return g.Add(g.Add(seen, part(pass.dynamics_loss, weights.dynamics_weight)),
               part(pass.representation_loss, weights.representation_weight));
}

}  // namespace msrl
