// A differentiable computation whose shape is fixed when it is built: perceptrons, recurrence by
// unrolling, attention, categorical latents. One arena holds all values and gradients; nothing is
// allocated after Finish().
//
//   Parameters parameters;
//   const GruParameters memory = AddGru(parameters, "memory", 8, 64, rng);
//   const LinearParameters head = AddLinear(parameters, "head", 64, 1, rng);
//
//   StaticGraph graph;
//   const Node x = graph.Input(8, steps * batch);                 // column t * batch + b
//   const Node target = graph.Input(1, steps * batch);
//   const Node start = graph.Input(64, batch);                    // inputs are zero at first
//   const Node h = graph.Gru(x, start, memory);                   // 64 x (steps * batch)
//   const Node loss = graph.MeanSquaredError(graph.Linear(h, head), target);
//   graph.Finish();
//
//   graph.input(x) = ...;
//   graph.Forward();                                              // graph.value(loss)(0, 0)
//   parameters.ClearGradients();
//   graph.Backward(loss);
//   parameters.Step(3e-4);
//
// Nodes are matrices with one column per sample. Wrong shapes are InvariantErrors that name them.
//
// Gradients. Backward() follows every path from the given roots to parameters and to inputs that
// want gradients; where a node has several consumers their parts are added up. Gradients of nodes
// are those of the last backward pass. Gradients of parameters are added to what is there until
// Parameters::ClearGradients(). A parameter may be used any number of times.
//
// For one kind of processor the order of all sums depends on the shapes only. Denormal numbers
// count as zero. A graph is used by one thread at a time and must not outlive its parameters.
#ifndef MSRL_NN_STATIC_GRAPH_H_
#define MSRL_NN_STATIC_GRAPH_H_

#include <Eigen/Core>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/nn/graph_kernels.h"
#include "msrl/nn/mlp.h"
#include "msrl/nn/parameters.h"
#include "msrl/nn/two_hot.h"

namespace msrl {

namespace internal {
class GraphState;
}

using StridedMap = Eigen::Map<Eigen::MatrixXf, 0, Eigen::OuterStride<>>;

// A value of a graph; a handle.
struct Node {
  int id = -1;
  int rows = 0;
  int columns = 0;
};

// How a part of a graph uses parameters.
enum class ParameterUse {
  kTrained,
  kFrozen,  // gradients go through to what is below, not into the parameter
  kTarget,  // the target's values, frozen
};

// d loss / d node, where a backward pass starts.
struct GraphSeed {
  Node node;
  ConstMatrixRef gradient;
};

class StaticGraph {
 public:
  StaticGraph();
  ~StaticGraph();
  StaticGraph(StaticGraph&&) noexcept;
  StaticGraph& operator=(StaticGraph&&) noexcept;

  // ---- building ----

  // Filled in by the caller between passes, zero at first, kept between passes.
  Node Input(int rows, int columns);
  Node InputWithGradient(int rows, int columns);
  Node Constant(const ConstMatrixRef& value);
  Node Param(const Parameter& parameter, ParameterUse use = ParameterUse::kTrained);

  // weight * x + bias.
  Node Linear(Node x, Node weight);
  Node Linear(Node x, Node weight, Node bias);
  Node Linear(Node x, const LinearParameters& layer, ParameterUse use = ParameterUse::kTrained);
  // The same with a weight that is block-diagonal: part i of `parts` and block j of `blocks` of the
  // result are weight rows (i * blocks + j) * n, ... times block j of x. The weight has
  // x.rows / blocks columns and parts * blocks * n rows.
  Node BlockLinear(Node x, Node weight, int blocks, int parts = 1);
  Node BlockLinear(Node x, Node weight, Node bias, int blocks, int parts = 1);
  // The fused perceptron; of ensembles the input has spec.input rows for all members or
  // members * spec.input rows, the output has members * spec.output.
  Node Mlp(Node x, const MlpParameters& network, ParameterUse use = ParameterUse::kTrained);
  // Of the members of an ensemble whose numbers `members` (k x 1) holds, different ones if they are
  // trained: (k * spec.output) x n. The others cost nothing.
  Node MlpMembers(Node x, const MlpParameters& network, Node members,
                  ParameterUse use = ParameterUse::kTrained);

  // Over each column; layer norm with mean and variance, RMS norm with the mean square.
  Node LayerNorm(Node x, float epsilon = MlpFunction::kNormEpsilon);
  Node LayerNorm(Node x, const NormParameters& layer, ParameterUse use = ParameterUse::kTrained,
                 float epsilon = MlpFunction::kNormEpsilon);
  Node RmsNorm(Node x, float epsilon = MlpFunction::kNormEpsilon);
  Node RmsNorm(Node x, const NormParameters& layer, ParameterUse use = ParameterUse::kTrained,
               float epsilon = MlpFunction::kNormEpsilon);

  Node Activate(Node x, Activation activation);
  Node Relu(Node x);
  Node Tanh(Node x);
  Node Sigmoid(Node x);
  Node Silu(Node x);
  Node Elu(Node x);
  Node Mish(Node x);
  Node Softplus(Node x);
  Node Exp(Node x);  // saturates beyond +-87
  Node Log(Node x);  // of positive normal numbers
  Node Square(Node x);
  Node Sqrt(Node x);
  Node Abs(Node x);
  Node Symlog(Node x);  // sign(x) log(1 + |x|)
  Node Symexp(Node x);
  Node Scale(Node x, float factor) { return Affine(x, factor, 0.0F); }
  Node Affine(Node x, float factor, float offset);
  Node Clamp(Node x, float low, float high);  // no gradient outside

  // Element by element; an operand with one row or one column is repeated to the other's shape.
  Node Add(Node a, Node b);
  Node Subtract(Node a, Node b);
  Node Multiply(Node a, Node b);
  Node Divide(Node a, Node b);
  Node Min(Node a, Node b);  // equal operands share the gradient, as in libtorch
  Node Max(Node a, Node b);

  // Slices are views: they cost nothing.
  Node SliceRows(Node x, int first, int count);
  Node SliceColumns(Node x, int first, int count);
  Node ConcatRows(std::span<const Node> parts);
  Node ConcatRows(std::initializer_list<Node> parts);
  Node ConcatColumns(std::span<const Node> parts);
  Node ConcatColumns(std::initializer_list<Node> parts);
  // The same numbers column by column: tokens of a sample into one column, or back.
  Node Reshape(Node x, int rows, int columns);

  // Indices are nodes with whole numbers, checked in each pass.
  // y(:, j) = x(:, index(0, j)); of a parameter: an embedding.
  Node GatherColumns(Node x, Node index);
  // y(i, j) = x(index(i, j), j): the value of an action.
  Node Pick(Node x, Node index);

  // Of every `group` consecutive rows of a column; 0 means all rows.
  Node Softmax(Node x, int group = 0);
  Node LogSoftmax(Node x, int group = 0);
  // One-hot of a draw from each group's probabilities; uniform has one number in [0, 1) for each
  // group. The gradient goes straight through to the probabilities.
  Node SampleOneHot(Node probabilities, Node uniform, int group = 0);
  Node ModeOneHot(Node probabilities, int group = 0);

  // A GRU over x.columns / h.columns steps, column t * batch + b; PyTorch's formula. Gives all
  // states, width x x.columns. With one step it is the cell.
  Node Gru(Node x, Node h, const GruParameters& layer, ParameterUse use = ParameterUse::kTrained);
  // Without the product with x: gates = W x + b, 3 width x (steps * batch).
  Node GruFromGates(Node gates, Node h, Node weight, Node bias);

  // Multi-head attention of `batch` samples: softmax(k' q / sqrt(rows / heads)) over keys, times v.
  // Column s * tokens + t is token t of sample s; the number of queries and keys may differ.
  struct AttentionOptions {
    int heads = 1;
    int batch = 1;
    bool causal = false;  // query t sees keys 0, ..., t
  };
  Node Attention(Node q, Node k, Node v, const AttentionOptions& options);

  Node StopGradient(Node x);

  Node Sum(Node x);      // 1 x 1
  Node Mean(Node x);     // 1 x 1
  Node SumRows(Node x);  // over rows: 1 x columns
  Node MeanRows(Node x);
  Node SumColumns(Node x);  // over columns: rows x 1
  Node MeanColumns(Node x);

  // Of all elements, 1 x 1.
  Node MeanSquaredError(Node x, Node target);
  // - sum over rows of target * log softmax(logits): 1 x columns.
  Node CrossEntropy(Node logits, Node target);
  // Weights of the two points next to x (1 x n): bins.count() x n. A target: no gradient.
  Node TwoHot(Node x, const TwoHotBins& bins);
  // Of the logits of `members` heads, members * bins.count() rows. Cross-entropy with the two-hot x
  // (members rows, or one for all; no gradient), and the number that each predicts: members x n.
  Node TwoHotCrossEntropy(Node logits, Node x, const TwoHotBins& bins);
  Node TwoHotMean(Node logits, const TwoHotBins& bins);

  // Allocates; nothing can be added afterwards. Finishes the parameters, too.
  void Finish();

  // ---- running ----

  StridedMap input(Node node);
  void FillNormal(Node input, Rng& rng);
  void FillUniform(Node input, Rng& rng);  // [0, 1)
  ConstStridedMap value(Node node) const;

  void Forward();
  // Only what these need, all of it again.
  void Forward(std::initializer_list<Node> outputs);
  // All that such a pass left out, so that inputs can depend on what came first: targets on the
  // values that are to be learned. Inputs of the first part must be as they were.
  void ForwardRest();

  // After Forward(), with the same parameters and inputs. The loss is 1 x 1.
  void Backward(Node loss);
  void Backward(std::initializer_list<GraphSeed> seeds);
  // Of the last backward pass; zero where it did not come. The node must depend on something that
  // wants gradients.
  ConstStridedMap gradient(Node node);

  std::size_t arena_size() const;  // floats

 private:
  Node AddBlockLinear(std::span<const Node> inputs, int blocks, int parts);
  Node Apply(Node x, internal::UnaryFunction f);
  Node Apply(Node a, Node b, internal::Binary f);
  Node Concat(std::span<const Node> parts, bool rows);
  Node Normalise(Node x, const NormParameters* layer, ParameterUse use, bool centre, float epsilon);
  Node Reduce(Node x, bool rows, bool columns, bool mean);
  Node OneHot(Node probabilities, const Node* uniform, int group);
  Node SoftmaxOf(Node x, int group, bool log);

  std::unique_ptr<internal::GraphState> state_;
};

}  // namespace msrl

#endif  // MSRL_NN_STATIC_GRAPH_H_
