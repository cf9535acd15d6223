// What a transfer baseline carries from the sources to a target: a network that reads the last
// aligned channels of an episode and says features z_raw and a value V, of the state or of the
// state and an action, in units of the task's return scale. Pretrained in msrl/transfer, plugged
// into the slots of a host (host.h).
#ifndef MSRL_AGENTS_HOST_VALUE_MODULE_H_
#define MSRL_AGENTS_HOST_VALUE_MODULE_H_

#include <Eigen/Core>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/agents/metrics.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/core/config.h"
#include "msrl/nn/static_graph.h"

namespace msrl {

// What followed states, for modules that value actions: a column per state.
struct Steps {
  Node action = {};       // kActionChannels x n: what was done
  Node next = {};         // kChannels x n: of the state that it led to
  Node next_action = {};  // kActionChannels x n: what the host's policy does there
  Node continues = {};    // 1 x n: 0 where the episode terminated
};

// Pieces of episodes, `length` states each, side by side: column t * count + w is state t of window
// w. A window with fewer states has filling after them. What is said of a state depends on it and
// on those before it in the window, so filling needs no mask.
struct Windows {
  int count = 0;
  int length = 0;
  Node channels = {};            // kChannels x (length * count)
  Node end = {};                 // 1 x count: the column of each window's last state
  std::vector<Node> extra = {};  // inputs of the module's own
  Steps steps = {};              // where a module that values actions is taught
};

class ValueModule {
 public:
  explicit ValueModule(const ParameterOptions& options) : parameters_(options) {}
  virtual ~ValueModule() = default;

  // Steps of a window that it is trained on, here and at the target: the same for all methods.
  static constexpr int kTrainingLength = 16;
  // Whether actions are among what it reads.
  static constexpr bool kReadsActions = true;

  // How many states it reads, at most kTrainingLength.
  virtual int context() const = 0;
  // Rows of z_raw.
  virtual int z_size() const = 0;

  struct Slots {
    Node z, value;
  };
  // Of the last state of every window: z_size() x count, 1 x count. The value of a module that
  // values actions is that of the best it would do itself.
  virtual Slots Read(StaticGraph& g, const Windows& windows, ParameterUse use) = 0;
  // What it learns by, 1 x 1: its V against labels of all states, 1 x (length * count), with
  // weights that sum to 1. One that values actions learns from the steps instead of the labels.
  virtual Node Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) = 0;

  // What is kept of a state: V and z_raw as they were read, and its channels.
  int kept_size() const { return 1 + z_size() + kChannels; }
  // Whether V depends on the action. If so, the gradient of the host's policy goes through it.
  virtual bool values_actions() const { return false; }
  // V in the value slot, 1 x n, of kept states (kept_size() x n) and actions (kActionChannels x n).
  virtual Node SlotValue(StaticGraph& g, Node kept, Node /*action*/, ParameterUse /*use*/) const {
    return g.SliceRows(kept, 0, 1);
  }

  // V := factor V + offset, by the last layer.
  virtual void RescaleValue(double factor, double offset) = 0;

  // ---- at a target ----

  // Settings that a module has there besides its shape: none.
  struct Settings {
    template <typename V>
    void Fields(V&& /*visit*/) {}
  };
  void Configure(const Settings& /*settings*/) {}
  // Before graphs are built: what the target's channels are like.
  virtual void Enter(const ChannelFacts& /*facts*/) {}
  // A step: the channels of two states, of which the second has its action and reward.
  virtual void Observe(std::span<const float> /*before*/, std::span<const float> /*after*/) {}
  // After the random steps, once: the unit of the target's returns.
  virtual void Settle(double /*scale*/) {}

  // How many actions the host compares by V when it explores by them, in which share of the steps
  // (`random_spans`: steps since the random ones, over their number), and those that the module
  // proposes itself: kActionCodeSize x any number of columns.
  virtual int candidates() const { return 0; }
  virtual double GuidedShare(double /*random_spans*/) const { return 0.0; }
  virtual void Propose(std::span<const float> /*channels*/, Rng& /*rng*/,
                       Eigen::MatrixXf& /*codes*/) {}

  // What Loss teaches, and a step of its optimiser.
  virtual Parameters& taught() { return parameters_; }
  virtual void StepTaught(double learning_rate) { parameters_.Step(learning_rate); }
  virtual void DrainMetrics(MetricSink& /*sink*/) {}
  // All of it that a host's checkpoint needs.
  virtual void Visit(const Archive& state);

  // Adds inputs of its own to the graph, and fills them in for channels that are there.
  virtual void AddInputs(StaticGraph& /*g*/, Windows& /*windows*/) const {}
  virtual void FillInputs(StaticGraph& /*g*/, const Windows& /*windows*/) const {}

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }

 protected:
  Parameter Find(std::string_view name);
  // A linear layer "<name>.weight", "<name>.bias" becomes factor times it plus offset.
  void RescaleLinear(const std::string& name, double factor, double offset);

 private:
  Parameters parameters_;
};

// One that says z and V of every state at once.
class StepwiseModule : public ValueModule {
 public:
  using ValueModule::ValueModule;
  // Of all states of all windows.
  virtual Slots ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) = 0;

  Slots Read(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  Node Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) override;
};

// Rewards are small beside what they add up to. Networks that read them are given r / (1 - 0.99): a
// reward as what it is worth if it lasts, which is about 1 like the other channels.
inline constexpr float kRewardGain = 100.0F;
// The tokens of all states with such rewards.
Node TokensOf(StaticGraph& g, const Windows& windows);

// sum of weight * h(value - label) with Huber's h(e) = e^2 / 2 up to |e| = 1, |e| - 1/2 beyond.
Node WeightedHuber(StaticGraph& g, Node value, Node label, Node weight);

// A module in a graph of its own, to be read or to be taught.
struct ReadingGraph {
  ReadingGraph(ValueModule& module, int count);
  // Windows whose channels and ends are filled in.
  void Forward();

  ValueModule& module;
  StaticGraph graph;
  Windows windows;
  ValueModule::Slots slots;
};
struct TeachingGraph {
  TeachingGraph(ValueModule& module, int count);
  // One step of the module's optimiser; returns the loss. RunError if a number goes bad.
  double Learn(double learning_rate);

  ValueModule& module;
  StaticGraph graph;
  Windows windows;
  Node label, weight, loss;
};

// The artefact of a module: its kind, the settings of its shape and its tensors.
template <typename ModuleShape>
ArtefactHeader ModuleHeader(std::string_view kind, const ModuleShape& shape, ArtefactTexts made) {
  ArtefactHeader header;
  header.kind = kind;
  header.made = std::move(made);
  for (const ConfigField& field : ListFields(shape)) header.shape[field.key] = field.value;
  return header;
}
std::string EncodeModule(const ArtefactHeader& header, ValueModule& module);
// Takes the tensors over. UserError unless kind and shape are those of `expected` and the tensors
// are the module's.
void LoadModule(const Artefact& artefact, const ArtefactHeader& expected, ValueModule& module);

}  // namespace msrl

#endif  // MSRL_AGENTS_HOST_VALUE_MODULE_H_
