#include "msrl/nn/graph_state.h"

#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/runtime.h"

namespace msrl::internal {
namespace {

// Columns that are a large power of two apart fall on the same few lines of the cache.
std::ptrdiff_t ColumnStride(int rows) { return rows % 128 == 0 ? rows + 16 : rows; }

}  // namespace

const GraphState::Info& GraphState::Get(Node node) const {
  MSRL_CHECK(node.id >= 0 && node.id < static_cast<int>(nodes_.size()), "node ", node.id, " of ",
             nodes_.size());
  const Info& n = nodes_[node.id];
  MSRL_CHECK(n.rows == node.rows && n.columns == node.columns,
             "a node of another graph: ", node.rows, " x ", node.columns, ", here it is ", n.rows,
             " x ", n.columns);
  return n;
}

void GraphState::CheckBuilding() const { MSRL_CHECK(!finished_, "the graph is finished"); }

Node GraphState::AddNode(const Info& info) {
  CheckBuilding();
  MSRL_CHECK(info.rows >= 1 && info.columns >= 1, "a node of ", info.rows, " x ", info.columns);
  const auto id = static_cast<int>(nodes_.size());
  nodes_.push_back(info);
  Info& n = nodes_.back();
  if (n.kind != Kind::kView) n.base = id;
  if (n.stride == 0) n.stride = ColumnStride(n.rows);
  return {id, n.rows, n.columns};
}

Node GraphState::AddView(Node of, std::ptrdiff_t start, int rows, int columns, bool with_gradient) {
  const Info from = Get(of);
  Info view;
  view.kind = Kind::kView;
  view.rows = rows;
  view.columns = columns;
  view.stride = from.stride;
  view.base = from.base;
  view.start = from.start + start;
  view.wants_gradient = with_gradient && from.wants_gradient;
  if (view.wants_gradient) nodes_[from.base].has_views = true;
  return AddNode(view);
}

Node GraphState::Register(int rows, int columns, std::span<const Node> inputs,
                          std::unique_ptr<GraphOp> op, bool differentiable) {
  Info info;
  info.kind = Kind::kOperation;
  info.rows = rows;
  info.columns = columns;
  for (const Node input : inputs) {
    info.wants_gradient |= differentiable && Get(input).wants_gradient;
    op->inputs.push_back(input.id);
  }
  const Node node = AddNode(info);
  op->output = node.id;
  ops_.push_back(std::move(op));
  return node;
}

std::size_t GraphState::Reserve(std::size_t size) {
  CheckBuilding();
  const std::size_t start = reserved_;
  reserved_ += (size + 15) / 16 * 16;
  return start;
}

int GraphState::FindParameter(const Parameter& parameter, ParameterUse use) const {
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    const Info& n = nodes_[id];
    if (n.kind == Kind::kParameter && n.owner == parameter.owner && n.tensor == parameter.index &&
        n.use == use) {
      return static_cast<int>(id);
    }
  }
  return -1;
}

void GraphState::UseParameters(Parameters* owner) {
  CheckBuilding();
  MSRL_CHECK(owner != nullptr, "a parameter that was never added");
  if (std::find(owners_.begin(), owners_.end(), owner) == owners_.end()) owners_.push_back(owner);
}

void GraphState::Finish() {
  CheckBuilding();
  struct Place {
    std::size_t value = 0, gradient = 0;
  };
  std::vector<Place> places(nodes_.size());
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    const Info& n = nodes_[id];
    if (n.kind == Kind::kView || n.kind == Kind::kParameter) continue;
    const std::size_t size = static_cast<std::size_t>(n.stride) * n.columns;
    places[id].value = Reserve(size);
    if (n.wants_gradient) places[id].gradient = Reserve(size);
  }
  scratch_ = Reserve(scratch_size_);
  arena_.resize(reserved_);
  for (Parameters* owner : owners_) owner->Finish();
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    Info& n = nodes_[id];
    if (n.kind == Kind::kView) {
      const Info& base = nodes_[n.base];
      n.value = base.value + n.start;
      if (n.wants_gradient) n.gradient = base.gradient + n.start;
    } else if (n.kind == Kind::kParameter) {
      const bool target = n.use == ParameterUse::kTarget;
      MSRL_CHECK(!target || !n.owner->target().empty(), "the parameters have no targets");
      const std::size_t offset = n.owner->tensors()[n.tensor].offset;
      n.value = (target ? n.owner->target() : n.owner->values()).data() + offset;
      if (n.wants_gradient) n.gradient = n.owner->gradient_data() + offset;
    } else {
      n.value = arena_.data() + places[id].value;
      if (n.wants_gradient) n.gradient = arena_.data() + places[id].gradient;
    }
  }
  for (const auto& [id, value] : constants_) {
    const Info& n = nodes_[id];
    StridedMap(n.value, n.rows, n.columns, Eigen::OuterStride<>(n.stride)) = value;
  }
  constants_.clear();
  touched_.resize(nodes_.size());
  needed_.resize(nodes_.size());
  finished_ = true;
}

void GraphState::Clear(const Info& n) {
  std::fill_n(n.gradient, static_cast<std::size_t>(n.stride) * n.columns, 0.0F);
}

GraphState::Target GraphState::Into(int id) {
  const Info& n = nodes_[id];
  if (!n.wants_gradient) return {};
  const Info& base = nodes_[n.base];
  Target target{{n.gradient, n.rows, n.columns, n.stride}, true};
  if (base.kind == Kind::kParameter) {
    if (base.owner->StartGradients(base.tensor, 1)) return target;
  } else {
    if (touched_[n.base] != 0) return target;
    touched_[n.base] = 1;
  }
  if (base.has_views) {
    Clear(base);
  } else {
    target.add = false;
  }
  return target;
}

MatrixView GraphState::AddTo(int id) {
  const Target target = Into(id);
  if (!target.add && target.to.data != nullptr) Clear(nodes_[nodes_[id].base]);
  return target.to;
}

void GraphState::Forward() {
  MSRL_CHECK(finished_, "Forward() before Finish()");
  const FlushDenormals flush;
  std::fill(needed_.begin(), needed_.end(), 1);
  for (const auto& op : ops_) op->Forward(*this);
  ran_ = true;
}

void GraphState::Forward(std::span<const Node> outputs) {
  MSRL_CHECK(finished_, "Forward() before Finish()");
  const FlushDenormals flush;
  std::fill(needed_.begin(), needed_.end(), 0);
  for (const Node output : outputs) needed_[Get(output).base] = 1;
  for (std::size_t i = ops_.size(); i-- > 0;) {
    if (needed_[ops_[i]->output] == 0) continue;
    for (const int input : ops_[i]->inputs) needed_[nodes_[input].base] = 1;
  }
  for (const auto& op : ops_) {
    if (needed_[op->output] != 0) op->Forward(*this);
  }
  ran_ = true;
}

void GraphState::ForwardRest() {
  MSRL_CHECK(ran_, "ForwardRest() before Forward()");
  const FlushDenormals flush;
  for (const auto& op : ops_) {
    if (needed_[op->output] == 0) op->Forward(*this);
  }
  std::fill(needed_.begin(), needed_.end(), 1);
}

void GraphState::StartBackward() {
  MSRL_CHECK(ran_, "Backward() before Forward()");
  std::fill(touched_.begin(), touched_.end(), 0);
}

void GraphState::BackwardFrom(Node loss) {
  const FlushDenormals flush;
  StartBackward();
  const Info& n = Get(loss);
  MSRL_CHECK(n.rows == 1 && n.columns == 1, "the loss is ", n.rows, " x ", n.columns);
  MSRL_CHECK(n.wants_gradient, "the loss depends on nothing that wants gradients");
  *AddTo(loss.id).data = 1.0F;
  RunBackward();
}

void GraphState::Backward(std::span<const GraphSeed> seeds) {
  const FlushDenormals flush;
  StartBackward();
  for (const GraphSeed& seed : seeds) {
    const Info& n = Get(seed.node);
    const ConstMatrixRef& d = seed.gradient;
    MSRL_CHECK(d.rows() == n.rows && d.cols() == n.columns, "the gradient is ", d.rows(), " x ",
               d.cols(), ", the node ", n.rows, " x ", n.columns);
    MSRL_CHECK(n.wants_gradient, "node ", seed.node.id, " depends on nothing that wants gradients");
    const ConstMatrixView from(d.data(), n.rows, n.columns, d.outerStride());
    const Target target = Into(seed.node.id);
    ActiveKernels().graph.expand(from, 1.0F, target.to, target.add);
  }
  RunBackward();
}

void GraphState::RunBackward() {
  for (std::size_t i = ops_.size(); i-- > 0;) {
    if (touched_[ops_[i]->output] != 0) ops_[i]->Backward(*this);
  }
}

ConstMatrixView GraphState::ReadGradient(Node node) {
  MSRL_CHECK(finished_, "a gradient before Finish()");
  const Info& n = Get(node);
  MSRL_CHECK(n.wants_gradient, "node ", node.id, " depends on nothing that wants gradients");
  const Info& base = nodes_[n.base];
  if (base.kind == Kind::kParameter) {
    base.owner->gradients();  // fills in zeros
  } else if (touched_[n.base] == 0) {
    touched_[n.base] = 1;
    Clear(base);
  }
  return Gradient(node.id);
}

}  // namespace msrl::internal
