// Successor features and generalised policy improvement (Barreto et al. 2017): what a step shows is
// told apart from what it is worth, so that the value of every known policy under new rewards is a
// product with one new vector. docs/agents/sf-gpi.md
//
//   phi(x, u, x')  what a step shows; its last number is 1;       r / (s (1 - gamma)) ~ phi . w
//   psi(x, u, e)   what will be shown, (1 - gamma) E sum_k gamma^k phi_k, if the policy of code e
//                  goes on after action u; two networks
//   mu(x, e)       what the policy of code e does, N(mean, sigma^2)
#ifndef MSRL_AGENTS_SF_SF_GPI_H_
#define MSRL_AGENTS_SF_SF_GPI_H_

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <span>

#include "msrl/agents/host/value_module.h"

namespace msrl {

struct SfGpiShape {
  int features = 16;
  int feature_width = 128;
  int successor_width = 244;
  int code_size = 16;
  int policies = 4;
  int policy_width = 128;
  double successor_gamma = 0.99;

  template <typename V>
  void Fields(V&& visit) {
    visit("features", features, "numbers of phi and psi, the last of phi is 1", Between(2, 1024));
    visit("feature_width", feature_width, "two hidden layers of phi", Between(1, 4096));
    visit("successor_width", successor_width, "two hidden layers of both psi", Between(1, 4096));
    visit("code_size", code_size, "numbers that tell a policy", Between(1, 1024));
    visit("policies", policies, "policies that are told, at least as many as sources",
          Between(1, 64));
    visit("policy_width", policy_width, "two hidden layers of mu", Between(1, 4096));
    visit("successor_gamma", successor_gamma, "discount of psi, that of the source values",
          Between(0, 1).OpenAbove());
  }
};

struct SfGpiSettings {
  int gpi_candidates = 16;
  double gpi_spans = 5.0;
  int refit_every = 250;
  double ridge = 1e-2;
  double successor_tau = 0.005;

  template <typename V>
  void Fields(V&& visit) {
    visit("gpi_candidates", gpi_candidates,
          "actions that are compared by V when it leads, half of the sources' policies",
          Between(2, 4096));
    visit(
        "gpi_spans", gpi_spans,
        "V leads always after the random steps, never once so many times their number have passed",
        NotNegative());
    visit("refit_every", refit_every, "steps between regressions of rewards on phi", Positive());
    visit("ridge", ridge, "weight of |w|^2 in them, beside mean squares", Positive());
    visit("successor_tau", successor_tau, "share of the target's psi in its slow copy at an update",
          Between(0, 1).OpenBelow());
  }
};

// At a target the sources' networks stay as they are. w is a regression of its rewards, and one
// more psi begins as that of the source policy that is best under w and learns what the host does:
//   V(x, u) = max_e min_k psi_k(x, u, e) . w,      over the sources' codes and its own
//   z_raw   = psi_1(x, mu(x, e*), e*)              of that source policy
class SfGpi : public ValueModule {
 public:
  static constexpr const char* kKind = "sf-gpi";
  using Shape = SfGpiShape;
  using Settings = SfGpiSettings;
  static constexpr int kTwins = 2;

  SfGpi(const SfGpiShape& shape, const ParameterOptions& options, Rng& rng);

  int context() const override { return 1; }
  int z_size() const override { return shape_.features; }
  bool values_actions() const override { return true; }
  Slots Read(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  Node SlotValue(StaticGraph& g, Node kept, Node action, ParameterUse use) const override;
  // psi of the target's own policy by one step of its rewards' features and what follows:
  //   y = (1 - gamma) phi + gamma (1 - terminated) psi'(x', u'), of the twin with the smaller value
  Node Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) override;
  void RescaleValue(double factor, double offset) override;

  void Configure(const SfGpiSettings& settings) { settings_ = settings; }
  void Enter(const ChannelFacts& facts) override;
  void Observe(std::span<const float> before, std::span<const float> after) override;
  void Settle(double scale) override;
  int candidates() const override { return settings_.gpi_candidates; }
  double GuidedShare(double random_spans) const override;
  void Propose(std::span<const float> channels, Rng& rng, Eigen::MatrixXf& codes) override;
  Parameters& taught() override { return own_; }
  void StepTaught(double learning_rate) override {
    own_.Step(learning_rate, settings_.successor_tau);
  }
  void DrainMetrics(MetricSink& sink) override { metrics_.Drain(sink); }
  void Visit(const Archive& state) override;

  // ---- its parts; columns are steps ----

  // All but the last number of phi, and with it.
  Node ShownOf(StaticGraph& g, Node x, Node action, Node next_x, ParameterUse use) const;
  static Node WithOne(StaticGraph& g, Node shown);
  // kTwins * features rows.
  Node Psi(StaticGraph& g, Node x, Node action, Node code, ParameterUse use) const;
  // The same of the target's own policy.
  Node OwnPsi(StaticGraph& g, Node x, Node action, ParameterUse use) const;
  // Its products with w, of one column or as many: 1 x n each.
  struct TwinValues {
    Node first, second;
  };
  TwinValues ValuesOf(StaticGraph& g, Node psi, Node w) const;
  // The smaller of both.
  Node SmallerValue(StaticGraph& g, Node psi, Node w) const;
  // The psi that it is of: features x n.
  Node SmallerPsi(StaticGraph& g, Node psi, Node w) const;
  struct Proposal {
    Node mean, sigma;  // kActionCodeSize x n
  };
  Proposal Mu(StaticGraph& g, Node x, Node code, ParameterUse use) const;
  // Columns of "codes" and "weights" by number, 1 x n.
  Node CodeOf(StaticGraph& g, Node policy, ParameterUse use) const;
  Node WeightOf(StaticGraph& g, Node policy, ParameterUse use) const;

  // What is added to every value, 1 x 1: of controls.
  Node Bias(StaticGraph& g) const { return g.Param(bias_, ParameterUse::kFrozen); }

  // phi := (phi - mean) / deviation, for all but the last number.
  void Whiten(const Eigen::VectorXf& mean, const Eigen::VectorXf& deviation);
  // The code and weights of a policy become those of another.
  void CopyPolicy(int from, int to);

  const SfGpiShape& shape() const { return shape_; }
  Eigen::VectorXf weights() const { return target_w_.value(); }  // w of the target
  void set_weights(const Eigen::VectorXf& w) { target_w_.value() = w; }
  int best_policy() const { return static_cast<int>(best_.value()(0, 0)); }
  double reward_fit() const { return reward_fit_; }

 private:
  // What a step shows and, in the state before it, psi_1 of every source policy.
  struct StepGraph {
    StaticGraph graph;
    Node before, after, phi, psi;
  };
  struct ProposalGraph {
    StaticGraph graph;
    Node channels, mean, sigma;  // one column per source policy
  };
  // n states, asked what every source policy does in them and what comes of it; columns i n, ...
  // are of policy i.
  struct Asked {
    Node psi, values;
  };
  Asked AskPolicies(StaticGraph& g, Node x, ParameterUse use) const;
  Node CodesOfAll(StaticGraph& g, int columns, ParameterUse use) const;
  // The largest of the values that a column has in blocks of `columns`.
  static Node Best(StaticGraph& g, Node values, int columns);
  Node MaskedAction(StaticGraph& g, Node code) const;
  std::unique_ptr<StepGraph> BuildStep() const;
  std::unique_ptr<ProposalGraph> BuildProposals() const;
  // w by ridge regression of r / (scale (1 - gamma)) on phi.
  void Refit();

  SfGpiShape shape_;
  SfGpiSettings settings_;
  MlpParameters phi_, psi_, mu_;
  Parameter codes_, weights_, bias_;

  // of the target
  Parameters fixed_;  // w, and the number of the source policy that z is of
  Parameter target_w_, best_;
  Parameters own_;  // psi and code of its own policy
  MlpParameters own_psi_;
  Parameter own_code_;
  Eigen::VectorXf used_;  // 1 for entries of the action code that are used
  double scale_ = 0.0;    // of returns; 0: not known yet
  std::int64_t steps_ = 0;
  // sums over steps, of phi phi', phi r, r, r^2, and, until the scale is known, psi_1 by policy
  Eigen::MatrixXd moments_, successors_;
  Eigen::VectorXd products_;
  double reward_sum_ = 0.0;
  double reward_squares_ = 0.0;
  double reward_fit_ = 0.0;

  // workspace
  std::unique_ptr<StepGraph> step_;
  std::unique_ptr<ProposalGraph> proposals_;
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::MatrixXd system_;
  Eigen::VectorXd phi_now_, w_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_SF_SF_GPI_H_
