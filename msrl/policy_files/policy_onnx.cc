#include "msrl/policy_files/policy_onnx.h"

#include "msrl/core/check.h"

#ifdef MSRL_HAS_ONNX

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace msrl {
namespace {

// The newest that Debian's onnx 1.12 knows, and the first with LayerNormalization.
constexpr int kOperatorSet = 17;
constexpr int kFileVersion = 8;

// Adds nodes one after the other; every call returns the name of what it makes.
class GraphWriter {
 public:
  explicit GraphWriter(onnx::GraphProto& graph) : graph_(graph) {}

  // Row by row, as ONNX has it.
  std::string Constant(const std::string& name, const ConstMatrixRef& values,
                       const std::vector<std::int64_t>& shape) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t size : shape) tensor.add_dims(size);
    for (Eigen::Index i = 0; i < values.rows(); ++i) {
      for (Eigen::Index j = 0; j < values.cols(); ++j) tensor.add_float_data(values(i, j));
    }
    return name;
  }
  std::string Vector(const std::string& name, const Eigen::VectorXf& values) {
    return Constant(name, values, {values.size()});
  }
  std::string Scalar(const std::string& name, float value) {
    return Constant(name, Eigen::MatrixXf::Constant(1, 1, value), {});
  }
  std::string Shape(const std::string& name, std::initializer_list<std::int64_t> sizes) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(sizes.size()));
    for (const std::int64_t size : sizes) tensor.add_int64_data(size);
    return name;
  }

  onnx::NodeProto& Node(const char* operation, const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(operation);
    node.set_name(StrCat(operation, "_", graph_.node_size()));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  // The same with a name of its own for the output.
  std::string Call(const char* operation, const std::vector<std::string>& inputs) {
    const std::string output = StrCat("x", graph_.node_size());
    Node(operation, inputs, output);
    return output;
  }
  void Attribute(const char* name, std::int64_t value) {
    onnx::AttributeProto& attribute = *Last().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void Attribute(const char* name, float value) {
    onnx::AttributeProto& attribute = *Last().add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }

 private:
  onnx::NodeProto& Last() { return *graph_.mutable_node(graph_.node_size() - 1); }

  onnx::GraphProto& graph_;
};

// Sizes below 0 are N.
void Describe(onnx::ValueInfoProto& info, const char* name, onnx::TensorProto::DataType type,
              std::initializer_list<int> shape) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const int size : shape) {
    auto& dimension = *tensor.mutable_shape()->add_dim();
    size < 0 ? dimension.set_dim_param("N") : dimension.set_dim_value(size);
  }
}

std::string AddActivation(GraphWriter& graph, Activation activation, const std::string& x) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return graph.Call("Relu", {x});
    case Activation::kTanh:
      return graph.Call("Tanh", {x});
    case Activation::kElu:
      return graph.Call("Elu", {x});
    case Activation::kSilu:
      return graph.Call("Mul", {x, graph.Call("Sigmoid", {x})});
    case Activation::kMish:
      return graph.Call("Mul", {x, graph.Call("Tanh", {graph.Call("Softplus", {x})})});
  }
  return x;
}

std::string AddLayer(GraphWriter& graph, const FeedForwardLayer& layer, std::size_t index,
                     std::string x) {
  const std::string prefix = StrCat("layers.", index, ".");
  const std::string weight =
      graph.Constant(prefix + "weight", layer.weight, {layer.weight.rows(), layer.weight.cols()});
  x = graph.Call("Gemm", {x, weight, graph.Vector(prefix + "bias", layer.bias)});
  graph.Attribute("transB", std::int64_t{1});
  if (layer.has_norm()) {
    const std::string scale = graph.Vector(prefix + "norm.weight", layer.norm_scale);
    const std::string shift = graph.Vector(prefix + "norm.bias", layer.norm_shift);
    x = graph.Call("LayerNormalization", {x, scale, shift});
    graph.Attribute("epsilon", MlpFunction::kNormEpsilon);
  }
  x = AddActivation(graph, layer.activation, x);
  if (layer.softmax_group > 0) {
    const std::int64_t group = layer.softmax_group;
    const std::int64_t groups = layer.weight.rows() / group;
    x = graph.Call("Reshape", {x, graph.Shape(prefix + "groups", {-1, groups, group})});
    x = graph.Call("Softmax", {x});
    x = graph.Call("Reshape", {x, graph.Shape(prefix + "rows", {-1, layer.weight.rows()})});
  }
  return x;
}

}  // namespace

std::string PolicyOnnx(const ExportedPolicy& exported) {
  const FeedForwardPolicy& policy = exported.policy;
  onnx::ModelProto model;
  model.set_ir_version(kFileVersion);
  model.add_opset_import()->set_version(kOperatorSet);
  model.set_producer_name("msrl");  // a word
  model.set_producer_version(exported.version);
  for (const auto& [key, value] : {std::pair{"agent", exported.agent}, {"env", exported.env}}) {
    onnx::StringStringEntryProto& fact = *model.add_metadata_props();
    fact.set_key(key);
    fact.set_value(value);
  }
  onnx::GraphProto& proto = *model.mutable_graph();
  proto.set_name("policy");
  Describe(*proto.add_input(), "observation", onnx::TensorProto::FLOAT,
           {-1, policy.observation_size()});

  GraphWriter graph(proto);
  std::string x = "observation";
  if (policy.normalises()) {
    x = graph.Call("Sub", {x, graph.Vector("offset", policy.offset)});
    x = graph.Call("Mul", {x, graph.Vector("factor", policy.factor)});
    x = graph.Call(
        "Clip", {x, graph.Scalar("lowest", -policy.limit), graph.Scalar("highest", policy.limit)});
  }
  for (std::size_t l = 0; l < policy.layers.size(); ++l) {
    x = AddLayer(graph, policy.layers[l], l, x);
  }
  if (policy.discrete) {
    graph.Node("ArgMax", {x}, "action");
    graph.Attribute("axis", std::int64_t{1});
    graph.Attribute("keepdims", std::int64_t{0});
    graph.Node("Identity", {x}, "outputs");
    Describe(*proto.add_output(), "action", onnx::TensorProto::INT64, {-1});
    Describe(*proto.add_output(), "outputs", onnx::TensorProto::FLOAT, {-1, policy.output_size()});
  } else {
    graph.Node("Clip", {x, graph.Scalar("least", -1.0F), graph.Scalar("most", 1.0F)}, "action");
    Describe(*proto.add_output(), "action", onnx::TensorProto::FLOAT, {-1, policy.output_size()});
  }
  onnx::checker::check_model(model);
  return model.SerializeAsString();
}

}  // namespace msrl

#else

namespace msrl {

std::string PolicyOnnx(const ExportedPolicy& /*exported*/) {
  throw UserError(
      "this msrl was built without the onnx library: install libonnx-dev and build it again");
}

}  // namespace msrl

#endif
