// Deep bisimulation for control (Zhang et al. 2021): states are as far from each other as their
// rewards and their futures are. docs/agents/dbc.md
#ifndef MSRL_AGENTS_DBC_DBC_H_
#define MSRL_AGENTS_DBC_DBC_H_

#include "msrl/agents/host/value_module.h"

namespace msrl {

struct DbcShape {
  int encoder_width = 288;
  int latent_size = 50;
  int model_width = 288;
  int head_width = 128;
  double bisimulation_gamma = 0.99;

  template <typename V>
  void Fields(V&& visit) {
    visit("encoder_width", encoder_width, "two hidden layers of the encoder", Between(1, 4096));
    visit("latent_size", latent_size, "numbers of a latent state", Between(1, 4096));
    visit("model_width", model_width, "hidden layer of transition and reward", Between(1, 4096));
    visit("head_width", head_width, "hidden layer of the value head", Between(1, 4096));
    visit("bisimulation_gamma", bisimulation_gamma, "how much later differences count",
          Between(0, 1).OpenAbove());
  }
};

// z_raw = z = norm(phi(x)), V = V(z). With a model of the next latent state, N(mu, sigma^2) of
// (z, u), and of the reward, R(mu), it learns by
//   Huber(V - G) + 1/2 mean (|z_i - z_j| - |r_i - r_j| - gamma W_ij)^2
//   + mean (1/2 ((mu - z') / sigma)^2 + log sigma) + mean (R(mu) - r)^2,
//   W_ij = sqrt((mu_i - mu_j)^2 + (sigma_i - sigma_j)^2),
// element by element; W, z' and the z that the model is given are constants.
class Dbc : public StepwiseModule {
 public:
  static constexpr const char* kKind = "dbc";
  using Shape = DbcShape;

  Dbc(const DbcShape& shape, const ParameterOptions& options, Rng& rng);

  int context() const override { return 1; }
  int z_size() const override { return shape_.latent_size; }
  Slots ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  Node Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) override;
  void RescaleValue(double factor, double offset) override;

  // Which column of steps each one is compared with: of another window and another time. Windows
  // are drawn at random, so pairs are.
  static int Partner(int column, int columns, int windows) {
    return (column + 5 * windows + 1) % columns;
  }

 private:
  DbcShape shape_;
  MlpParameters encoder_, transition_, reward_, value_;
  NormParameters norm_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DBC_DBC_H_
