// TD-MPC2's networks: what a state is (h), where an action leads (d), what it earns (R), what is to
// come (Q), what to do (pi) and whether the episode ends (T), all over a latent state z.
//
//   z = h(o),  z' = d(z, a),  r = R(z, a),  q = Q_k(z, a),  a ~ pi(z),  p(terminated) = T(z')
//
// A latent state is groups of numbers that are positive and have the sum one (SimNorm).
//
// A model over aligned slots is one that can be carried from task to task (docs/agents/tdmpc.md):
// its observation and its actions are those that all tasks share, and a vector e tells it which
// task it is in. In a target it has two more inputs and outputs, which change nothing at first: the
// task's own observation o, and, where several actuators share a slot, a head of their own.
//
//   z = SimNorm(h(x, e) + native(o)),  z' = d(z, u, e),  R(z, u, e), ...,  u = slots(a)
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

  // ---- of a model over aligned slots ----
  int tasks = 0;      // that there are vectors of; 0: nothing tells the task
  int task_size = 0;  // of such a vector, which has a norm of at most one
  int native = 0;     // size of o; 0: there is none
  // Slots that actuators share as a mean, action x actuators; empty: actions are slots.
  Eigen::MatrixXf slots;

  int actuators() const { return slots.size() > 0 ? static_cast<int>(slots.cols()) : action; }
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

  // What is known of a state besides observation and action; nodes that there are not have no id.
  struct Context {
    Node task;  // e, a column per state
    Node mask;  // of action slots, 1 where a task has them; without: it has all
  };

  const LatentModelSpec& spec() const { return spec_; }
  int latent_size() const { return spec_.latent_groups * kGroup; }
  std::size_t parameter_count() const;

  // ---- parts of a graph; one column per state ----

  // index: 1 x n, the number of the task.
  Node Task(StaticGraph& graph, Node index, ParameterUse use);
  // observation: what all tasks share above the task's own.
  Node Encode(StaticGraph& graph, Node observation, const Context& context, ParameterUse use);
  // x: latent state above action above task.
  Node Input(StaticGraph& graph, Node z, Node action, const Context& context);
  Node Next(StaticGraph& graph, Node x, ParameterUse use);
  // What R and Q_k predict before it is decoded: `bins` rows (or one) for each.
  Node Reward(StaticGraph& graph, Node x, ParameterUse use);
  Node Values(StaticGraph& graph, Node x, ParameterUse use);
  Node ValuesOf(StaticGraph& graph, Node x, Node members, ParameterUse use);
  // log(p / (1 - p)) of a termination.
  Node Termination(StaticGraph& graph, Node z, const Context& context, ParameterUse use);

  // The numbers that heads predict, and the loss of each head against `target` (one row).
  Node Decode(StaticGraph& graph, Node heads) const;
  Node HeadLoss(StaticGraph& graph, Node heads, Node target) const;

  struct Choice {
    Node action;   // tanh(u), u = mu + sigma * noise
    Node entropy;  // - log N(u; mu, sigma), one row
    Node mode;     // tanh(mu)
    Node mu, log_std;
  };
  // noise: standard normal, actuators x n. What the mask leaves out is zero: mean, deviation's
  // logarithm, noise and action, and it has no entropy.
  Choice Act(StaticGraph& graph, Node z, Node noise, const Context& context, ParameterUse use);

  // tanh(mu) of pi(h(o)).
  FeedForwardPolicy ExportPolicy() const;

  // ---- learning ----

  Parameters& encoder() { return encoder_; }
  Parameters& dynamics() { return dynamics_; }  // d, R and T
  // Whether a tensor of these is d's.
  static bool IsTransition(const NamedTensor& tensor) {
    return tensor.name.starts_with(kTransition);
  }
  Parameters& values() { return values_; }  // all Q_k, with targets
  Parameters& policy() { return policy_; }
  Parameters& native() { return native_; }  // empty unless there is such an observation
  Parameters& task() { return task_; }      // empty unless something tells the task
  Eigen::Map<Eigen::MatrixXf> task_vectors() { return task_vectors_->value(); }
  // Scales the vectors of tasks that are longer than one down to it: after every step.
  void BoundTasks();

  void Visit(const Archive& state);

 private:
  struct Latent {
    MlpParameters network;
    NormParameters norm;
  };
  Latent AddLatent(Parameters& owner, const std::string& name, int input, std::vector<int> hidden,
                   Rng& rng);
  // norm(network(x)), which SimNorm makes a latent state of
  Node BeforeSimNorm(StaticGraph& graph, Node x, const Latent& part, ParameterUse use);

  static constexpr const char* kTransition = "dynamics";

  LatentModelSpec spec_;
  std::optional<TwoHotBins> bins_;
  Parameters encoder_, dynamics_, values_, policy_, native_, task_;
  Latent encode_, next_;
  MlpParameters reward_, termination_, q_, pi_;
  std::optional<MlpParameters> encode_native_, pi_native_;
  std::optional<Parameter> task_vectors_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TDMPC_LATENT_MODEL_H_
