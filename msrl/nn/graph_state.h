// What StaticGraph and its operations share; included by their sources only.
#ifndef MSRL_NN_GRAPH_STATE_H_
#define MSRL_NN_GRAPH_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "msrl/nn/float_buffer.h"
#include "msrl/nn/graph_kernels.h"
#include "msrl/nn/static_graph.h"

namespace msrl::internal {

class GraphState;

// One operation: makes one node from others.
class GraphOp {
 public:
  virtual ~GraphOp() = default;
  virtual void Forward(GraphState& g) = 0;
  // Adds to the gradients of the inputs, through GraphState::Into(). Called if the output has one.
  virtual void Backward(GraphState& g) = 0;

  std::vector<int> inputs;
  int output = -1;
};

class GraphState {
 public:
  enum class Kind { kInput, kParameter, kOperation, kView };

  struct Info {
    Kind kind = Kind::kInput;
    int rows = 0, columns = 0;
    std::ptrdiff_t stride = 0;
    int base = 0;              // whose storage it has; itself if it is no view
    std::ptrdiff_t start = 0;  // of a view, in the base
    bool wants_gradient = false;
    bool has_views = false;  // with gradients: they are added to a gradient that starts at zero
    // parameters only
    Parameters* owner = nullptr;
    std::size_t tensor = 0;
    ParameterUse use = ParameterUse::kTrained;
    // once finished
    float* value = nullptr;
    float* gradient = nullptr;
  };

  // ---- building ----

  const Info& info(int id) const { return nodes_[id]; }
  // Checks that it is of this graph.
  const Info& Get(Node node) const;
  Node AddNode(const Info& info);
  Node AddView(Node of, std::ptrdiff_t start, int rows, int columns, bool with_gradient);
  // The node that the operation makes; it wants a gradient if an input does and it has one.
  template <typename Op>
  Node AddOp(int rows, int columns, std::span<const Node> inputs, Op op,
             bool differentiable = true) {
    return Register(rows, columns, inputs, std::make_unique<Op>(std::move(op)), differentiable);
  }
  // Floats for an operation's own use, kept from the forward to the backward pass.
  std::size_t Reserve(std::size_t size);
  // ... or for the length of one call only, shared.
  void ReserveScratch(std::size_t size) { scratch_size_ = std::max(scratch_size_, size); }
  void AddConstant(int id, Eigen::MatrixXf value) { constants_.emplace_back(id, std::move(value)); }
  // The node of a parameter that is used already, or -1.
  int FindParameter(const Parameter& parameter, ParameterUse use) const;
  void UseParameters(Parameters* owner);
  void Finish();
  bool finished() const { return finished_; }
  void CheckBuilding() const;

  // ---- for operations ----

  MatrixView Value(int id) const {
    const Info& n = nodes_[id];
    return {n.value, n.rows, n.columns, n.stride};
  }
  bool Wants(int id) const { return nodes_[id].wants_gradient; }
  // The gradient that came from above.
  ConstMatrixView Gradient(int id) const {
    const Info& n = nodes_[id];
    return {n.gradient, n.rows, n.columns, n.stride};
  }
  // Where to put the part of a gradient: to be overwritten or added to. No data if not wanted.
  struct Target {
    MatrixView to;
    bool add = false;
  };
  Target Into(int id);
  // The same for those who can only add.
  MatrixView AddTo(int id);
  float* At(std::size_t offset) { return arena_.data() + offset; }
  float* scratch() { return arena_.data() + scratch_; }

  // ---- running ----

  void Forward();
  void Forward(std::span<const Node> outputs);
  void ForwardRest();
  void Backward(std::span<const GraphSeed> seeds);
  void BackwardFrom(Node loss);
  ConstMatrixView ReadGradient(Node node);
  std::size_t arena_size() const { return arena_.size(); }

 private:
  Node Register(int rows, int columns, std::span<const Node> inputs, std::unique_ptr<GraphOp> op,
                bool differentiable);
  void StartBackward();
  void RunBackward();
  void Clear(const Info& n);

  std::vector<Info> nodes_;
  std::vector<std::unique_ptr<GraphOp>> ops_;
  std::vector<Parameters*> owners_;
  std::vector<std::pair<int, Eigen::MatrixXf>> constants_;
  std::size_t reserved_ = 0;  // floats for values, gradients and workspaces
  std::size_t scratch_size_ = 0;
  std::size_t scratch_ = 0;
  bool finished_ = false;
  bool ran_ = false;
  std::vector<std::uint8_t> touched_;  // by base: its gradient has been started in this pass
  std::vector<std::uint8_t> needed_;   // by base: of the last forward pass
  FloatBuffer arena_;
};

}  // namespace msrl::internal

#endif  // MSRL_NN_GRAPH_STATE_H_
