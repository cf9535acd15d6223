#include "msrl/agents/host/value_module.h"

#include <algorithm>

#include "msrl/agents/common/networks.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

Windows AddWindows(StaticGraph& g, const ValueModule& module, int count, int length) {
  Windows windows{.count = count, .length = length};
  windows.channels = g.Input(kChannels, length * count);
  windows.end = g.Input(1, count);
  module.AddInputs(g, windows);
  return windows;
}

}  // namespace

Parameter ValueModule::Find(std::string_view name) {
  const auto& tensors = parameters_.tensors();
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  MSRL_CHECK(found != tensors.end(), "no tensor ", name);
  return {&parameters_, static_cast<std::size_t>(found - tensors.begin())};
}

void ValueModule::RescaleLinear(const std::string& name, double factor, double offset) {
  Find(name + ".weight").value() *= static_cast<float>(factor);
  auto bias = Find(name + ".bias").value();
  bias = (static_cast<float>(factor) * bias).array() + static_cast<float>(offset);
}

void ValueModule::Visit(const Archive& state) { VisitParameters(state, parameters_); }

ValueModule::Slots StepwiseModule::Read(StaticGraph& g, const Windows& windows, ParameterUse use) {
  const Slots all = ReadAll(g, windows, use);
  return {g.GatherColumns(all.z, windows.end), g.GatherColumns(all.value, windows.end)};
}

Node StepwiseModule::Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) {
  const Slots all = ReadAll(g, windows, ParameterUse::kTrained);
  return WeightedHuber(g, all.value, label, weight);
}

Node TokensOf(StaticGraph& g, const Windows& windows) {
  Eigen::MatrixXf gain = Eigen::MatrixXf::Ones(kTokenChannels, 1);
  gain(kRewardAt, 0) = kRewardGain;
  return g.Multiply(g.SliceRows(windows.channels, 0, kTokenChannels), g.Constant(gain));
}

Node WeightedHuber(StaticGraph& g, Node value, Node label, Node weight) {
  const Node size = g.Abs(g.Subtract(value, label));
  const Node inner = g.Clamp(size, 0.0F, 1.0F);
  // with q = min(|e|, 1): q (|e| - q / 2)
  const Node huber = g.Multiply(inner, g.Subtract(size, g.Scale(inner, 0.5F)));
  return g.Sum(g.Multiply(weight, huber));
}

ReadingGraph::ReadingGraph(ValueModule& of, int count) : module(of) {
  windows = AddWindows(graph, module, count, module.context());
  slots = module.Read(graph, windows, ParameterUse::kFrozen);
  graph.Finish();
}

void ReadingGraph::Forward() {
  module.FillInputs(graph, windows);
  graph.Forward();
}

TeachingGraph::TeachingGraph(ValueModule& of, int count) : module(of) {
  windows = AddWindows(graph, module, count, ValueModule::kTrainingLength);
  if (module.values_actions()) {
    const int columns = windows.length * count;
    windows.steps = {.action = graph.Input(kActionChannels, columns),
                     .next = graph.Input(kChannels, columns),
                     .next_action = graph.Input(kActionChannels, columns),
                     .continues = graph.Input(1, columns)};
  }
  label = graph.Input(1, windows.length * count);
  weight = graph.Input(1, windows.length * count);
  loss = module.Loss(graph, windows, label, weight);
  graph.Finish();
}

double TeachingGraph::Learn(double learning_rate) {
  module.FillInputs(graph, windows);
  graph.Forward();
  const double value = graph.value(loss)(0, 0);
  RequireFinite("loss of the transferred module", std::span(&value, 1));
  module.taught().ClearGradients();
  graph.Backward(loss);
  RequireFiniteGradients("transferred module", module.taught().gradients());
  module.StepTaught(learning_rate);
  return value;
}

std::string EncodeModule(const ArtefactHeader& header, ValueModule& module) {
  TensorFileBuilder file;
  VisitValues(Archive(file), module.parameters());
  return EncodeArtefact(header, std::move(file));
}

void LoadModule(const Artefact& artefact, const ArtefactHeader& expected, ValueModule& module) {
  artefact.Require(expected.kind, expected.lift, /*any_lift=*/true);
  for (const auto& [key, value] : expected.shape) {
    if (artefact.header().Shape(key) == value) continue;
    throw UserError(StrCat(artefact.source(), " has ", key, " = ", artefact.header().Shape(key),
                           ", the agent ", key, " = ", value));
  }
  if (artefact.header().shape.size() != expected.shape.size()) {
    throw UserError(StrCat(artefact.source(), " has entries that say nothing about its kind"));
  }
  const Archive tensors(artefact.tensors());
  VisitValues(tensors, module.parameters());
  tensors.RequireAllUsed();
}

}  // namespace msrl
