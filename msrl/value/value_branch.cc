#include "msrl/value/value_branch.h"

#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/files/safetensors.h"

namespace msrl {
namespace {

constexpr int kMaxFeatures = 100'000;

MlpSpec NetworkSpec(int feature_count, const BranchShape& shape) {
  if (feature_count < 1 || feature_count > kMaxFeatures || shape.layers < 1 ||
      shape.layers > BranchShape::kMaxLayers || shape.width < 1 ||
      shape.width > BranchShape::kMaxWidth) {
    throw UserError(StrCat("a branch has 1 to 8 layers of width 1 to 4096 on 1 to ", kMaxFeatures,
                           " features, got ", shape.layers, ", ", shape.width, " and ",
                           feature_count));
  }
  MlpSpec spec;
  spec.input = feature_count;
  spec.hidden.assign(static_cast<std::size_t>(shape.layers), shape.width);
  spec.output = 1;
  spec.layer_norm = shape.layer_norm;
  return spec;
}

Shape FileShape(const NamedTensor& tensor) {
  if (tensor.columns == 1) return {tensor.rows};
  return {tensor.columns, tensor.rows};
}

}  // namespace

ValueBranch::ValueBranch(int feature_count, const BranchShape& shape, BranchInfo info)
    : info_(std::move(info)),
      shape_(shape),
      network_(NetworkSpec(feature_count, shape)),
      active_(static_cast<std::size_t>(feature_count), 1) {}

void ValueBranch::Init(Rng& rng) { network_.Init(rng); }

void ValueBranch::Rescale(double factor, double offset) {
  const std::vector<NamedTensor>& tensors = network_.tensors();
  const NamedTensor& weight = tensors[tensors.size() - 2];
  const NamedTensor& bias = tensors.back();
  for (float& w : network_.parameters().subspan(weight.offset, weight.size())) {
    w = static_cast<float>(factor * w);
  }
  float& b = network_.parameters()[bias.offset];
  b = static_cast<float>(factor * b + offset);
}

void ValueBranch::Silence(std::vector<std::uint8_t> active) {
  MSRL_CHECK_EQ(active.size(), active_.size());
  active_ = std::move(active);
  const NamedTensor& weight = network_.tensors().front();
  for (std::size_t j = 0; j < active_.size(); ++j) {
    if (active_[j] != 0) continue;
    const std::size_t start = weight.offset + j * static_cast<std::size_t>(weight.rows);
    const auto column = network_.parameters().subspan(start, static_cast<std::size_t>(weight.rows));
    std::fill(column.begin(), column.end(), 0.0F);
  }
}

ValueBranch ValueBranch::WithRestFixed(std::span<const float> rest) const {
  const auto kept = static_cast<std::size_t>(feature_count()) - rest.size();
  ValueBranch result(static_cast<int>(kept), shape_, info_);
  result.active_.assign(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(kept));
  const std::span<const float> old = network_.parameters();
  const std::span<float> parameters = result.network_.parameters();
  // columns of the first weight are inputs; all other tensors have the same size in both
  for (std::size_t k = 0; k < network_.tensors().size(); ++k) {
    const NamedTensor& from = network_.tensors()[k];
    const NamedTensor& to = result.network_.tensors()[k];
    std::copy_n(old.begin() + static_cast<std::ptrdiff_t>(from.offset), to.size(),
                parameters.begin() + static_cast<std::ptrdiff_t>(to.offset));
  }
  const NamedTensor& weight = network_.tensors()[0];
  const NamedTensor& bias = result.network_.tensors()[1];
  const auto units = static_cast<std::size_t>(weight.rows);
  for (std::size_t j = 0; j < rest.size(); ++j) {
    const float* const column = old.data() + weight.offset + (kept + j) * units;
    for (std::size_t i = 0; i < units; ++i) parameters[bias.offset + i] += rest[j] * column[i];
  }
  return result;
}

ArtefactHeader ValueBranch::HeaderOf(int feature_count, const BranchShape& shape,
                                     const BranchInfo& info) {
  return {.kind = kKind,
          .lift = info.lift,
          .lift_kind = info.lift_kind,
          .shape = {{"features", info.features.Name()},
                    {"feature_count", std::to_string(feature_count)},
                    {"width", std::to_string(shape.width)},
                    {"layers", std::to_string(shape.layers)},
                    {"layer_norm", shape.layer_norm ? "1" : "0"}},
          .made = info.made};
}

std::string ValueBranch::Encode() const {
  TensorFileBuilder file;
  for (const NamedTensor& tensor : network_.tensors()) {
    file.Add(tensor.name, network_.parameters().subspan(tensor.offset, tensor.size()),
             FileShape(tensor));
  }
  file.Add("active", std::span<const std::uint8_t>(active_), {std::ssize(active_)});
  return EncodeArtefact(HeaderOf(feature_count(), shape_, info_), std::move(file));
}

ValueBranch ValueBranch::From(const Artefact& artefact, LiftId expected, Alignment alignment) {
  artefact.Require(kKind, expected, alignment == Alignment::kUnaligned);
  const ArtefactHeader& header = artefact.header();
  const TensorFile& file = artefact.tensors();
  TextReader texts(header.shape, artefact.source());
  BranchInfo info{.lift = header.lift,
                  .lift_kind = header.lift_kind,
                  .features = MatrixFeatureOptions::FromName(texts.Text("features")),
                  .made = header.made};
  const auto number = [&texts](const char* key, int high) {
    return static_cast<int>(texts.Int(key, 1, high));
  };
  const int feature_count = number("feature_count", kMaxFeatures);
  const BranchShape shape{.width = number("width", BranchShape::kMaxWidth),
                          .layers = number("layers", BranchShape::kMaxLayers),
                          .layer_norm = texts.Flag("layer_norm")};
  texts.RequireEnd();

  // before anything of that size is allocated
  const TensorInfo* const first = file.Find("layers.0.weight");
  if (first == nullptr || first->shape != Shape{feature_count, shape.width}) {
    texts.Fail("tensor 'layers.0.weight' has not the shape that the entries say");
  }
  if (static_cast<std::int64_t>(file.tensors().size()) !=
      2 * (shape.layers + 1) + (shape.layer_norm ? 2 * shape.layers : 0) + 1) {
    texts.Fail("it has too many or too few tensors");
  }
  ValueBranch branch(feature_count, shape, std::move(info));
  for (const NamedTensor& tensor : branch.network_.tensors()) {
    const std::span<const float> values = file.F32(tensor.name, FileShape(tensor));
    std::copy(values.begin(), values.end(),
              branch.network_.parameters().begin() + static_cast<std::ptrdiff_t>(tensor.offset));
  }
  const std::span<const std::uint8_t> active = file.U8("active", {feature_count});
  if (std::any_of(active.begin(), active.end(), [](std::uint8_t a) { return a > 1; })) {
    texts.Fail("tensor 'active' holds something else than 0 and 1");
  }
  branch.Silence({active.begin(), active.end()});
  return branch;
}

}  // namespace msrl
