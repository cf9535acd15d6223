// The operations of StaticGraph; included by static_graph.cc only.
#ifndef MSRL_NN_GRAPH_OPS_H_
#define MSRL_NN_GRAPH_OPS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "msrl/nn/graph_state.h"
#include "msrl/nn/two_hot.h"

namespace msrl::internal {

class UnaryOp : public GraphOp {
 public:
  explicit UnaryOp(UnaryFunction f) : f_(f) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  UnaryFunction f_;
};

class BinaryOp : public GraphOp {
 public:
  explicit BinaryOp(Binary f) : f_(f) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  Binary f_;
};

// inputs: x, weight and maybe bias.
class LinearOp : public GraphOp {
 public:
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;
};

// inputs: x, weight and maybe bias.
class BlockLinearOp : public GraphOp {
 public:
  BlockLinearOp(int blocks, int parts) : blocks_(blocks), parts_(parts) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  // Calls f(first row of the result and the weight, their number, first row of x, their number).
  template <typename F>
  void ForBlocks(GraphState& g, const F& f) const;

  int blocks_, parts_;
};

class MlpOp : public GraphOp {
 public:
  MlpOp(const MlpParameters& network, ParameterUse use, int batch);
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  std::span<const float> Values() const;

  MlpParameters network_;
  ParameterUse use_;
  std::unique_ptr<MlpTape> tape_;
};

// inputs: x, the numbers of members, a parameter.
class MlpMembersOp : public GraphOp {
 public:
  MlpMembersOp(const MlpParameters& network, ParameterUse use, int count, int batch);
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  std::span<const float> Values(int member) const;

  MlpParameters network_;
  ParameterUse use_;
  std::unique_ptr<const MlpFunction> one_;  // a member alone
  std::vector<MlpTape> tapes_;
};

// inputs: x and maybe scale, and maybe shift.
class NormOp : public GraphOp {
 public:
  NormOp(bool centre, float epsilon, std::size_t moments)
      : centre_(centre), epsilon_(epsilon), moments_(moments) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  bool centre_;
  float epsilon_;
  std::size_t moments_;
};

class ConcatOp : public GraphOp {
 public:
  explicit ConcatOp(bool rows) : rows_(rows) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  bool rows_;
};

class ReshapeOp : public GraphOp {
 public:
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;
};

// inputs: x, index.
class GatherColumnsOp : public GraphOp {
 public:
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;
};

class PickOp : public GraphOp {
 public:
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;
};

class SoftmaxOp : public GraphOp {
 public:
  SoftmaxOp(int group, bool log) : group_(group), log_(log) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  int group_;
  bool log_;
};

// inputs: probabilities and, unless it is the mode, uniform numbers.
class OneHotOp : public GraphOp {
 public:
  explicit OneHotOp(int group) : group_(group) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  int group_;
};

// inputs: gates, h, weight, bias. Steps are one after the other; what depends on no later step is
// done for all steps at once.
class GruOp : public GraphOp {
 public:
  GruOp(int width, int batch, int steps, GraphState& g);
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  int width_, batch_, steps_;
  std::size_t saved_;  // 4 width x (steps * batch), see GruArgs
  std::size_t d_u_;    // 3 width x (steps * batch)
};

// inputs: q, k, v.
class AttentionOp : public GraphOp {
 public:
  AttentionOp(const StaticGraph::AttentionOptions& options, int width, int queries, int keys,
              GraphState& g);
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  AttentionArgs Args(GraphState& g) const;

  StaticGraph::AttentionOptions options_;
  int width_, queries_, keys_;
  std::size_t weights_;
};

class ReduceOp : public GraphOp {
 public:
  explicit ReduceOp(float scale) : scale_(scale) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  float scale_;
};

class TwoHotOp : public GraphOp {
 public:
  explicit TwoHotOp(TwoHotBins bins) : bins_(std::move(bins)) {}
  void Forward(GraphState& g) override;
  void Backward(GraphState& /*g*/) override {}

 private:
  TwoHotBins bins_;
};

// inputs: logits, x. Keeps log sum exp of every group of logits.
class TwoHotCrossEntropyOp : public GraphOp {
 public:
  TwoHotCrossEntropyOp(TwoHotBins bins, int members, int columns, GraphState& g);
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  MatrixView LogSum(GraphState& g) const { return {g.At(log_sum_), members_, columns_, members_}; }

  TwoHotBins bins_;
  int members_, columns_;
  std::size_t log_sum_;
};

// inputs: logits. Keeps log sum exp of every group and sum p_i b_i.
class TwoHotMeanOp : public GraphOp {
 public:
  TwoHotMeanOp(TwoHotBins bins, int members, int columns, GraphState& g);
  void Forward(GraphState& g) override;
  void Backward(GraphState& g) override;

 private:
  // 0: log sum, 1: mean, 2: the gradient of the mean
  MatrixView Saved(GraphState& g, int which) const;

  TwoHotBins bins_;
  int members_, columns_;
  std::size_t saved_;
};

}  // namespace msrl::internal

#endif  // MSRL_NN_GRAPH_OPS_H_
