#include "msrl/value/matrix_network.h"

#include <algorithm>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/files/safetensors.h"

namespace msrl {
namespace {

constexpr int kMaxFeatures = 100'000;

MlpSpec NetworkSpec(int feature_count, const BranchShape& shape, int outputs) {
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
  spec.output = outputs;
  spec.layer_norm = shape.layer_norm;
  return spec;
}

Shape FileShape(const NamedTensor& tensor) {
  if (tensor.columns == 1) return {tensor.rows};
  return {tensor.columns, tensor.rows};
}

}  // namespace

MatrixNetwork::MatrixNetwork(int feature_count, const BranchShape& shape, int outputs,
                             BranchInfo info)
    : info_(std::move(info)),
      shape_(shape),
      network_(NetworkSpec(feature_count, shape, outputs)),
      active_(static_cast<std::size_t>(feature_count), 1) {}

void MatrixNetwork::Silence(std::vector<std::uint8_t> active) {
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

ArtefactHeader MatrixNetwork::HeaderOf(std::string_view kind, int feature_count,
                                       const BranchShape& shape, const BranchInfo& info) {
  return {.kind = std::string(kind),
          .lift = info.lift,
          .lift_kind = info.lift_kind,
          .shape = {{"features", info.features.Name()},
                    {"feature_count", std::to_string(feature_count)},
                    {"width", std::to_string(shape.width)},
                    {"layers", std::to_string(shape.layers)},
                    {"layer_norm", shape.layer_norm ? "1" : "0"}},
          .made = info.made};
}

std::string MatrixNetwork::Encode(std::string_view kind) const {
  TensorFileBuilder file;
  for (const NamedTensor& tensor : network_.tensors()) {
    file.Add(tensor.name, network_.parameters().subspan(tensor.offset, tensor.size()),
             FileShape(tensor));
  }
  file.Add("active", std::span<const std::uint8_t>(active_), {std::ssize(active_)});
  return EncodeArtefact(HeaderOf(kind, feature_count(), shape_, info_), std::move(file));
}

MatrixNetwork MatrixNetwork::From(const Artefact& artefact, std::string_view kind, int outputs,
                                  LiftId expected, Alignment alignment) {
  artefact.Require(kind, expected, alignment == Alignment::kUnaligned);
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
  MatrixNetwork loaded(feature_count, shape, outputs, std::move(info));
  for (const NamedTensor& tensor : loaded.network_.tensors()) {
    const std::span<const float> values = file.F32(tensor.name, FileShape(tensor));
    std::copy(values.begin(), values.end(),
              loaded.network_.parameters().begin() + static_cast<std::ptrdiff_t>(tensor.offset));
  }
  const std::span<const std::uint8_t> active = file.U8("active", {feature_count});
  if (std::any_of(active.begin(), active.end(), [](std::uint8_t a) { return a > 1; })) {
    texts.Fail("tensor 'active' holds something else than 0 and 1");
  }
  loaded.Silence({active.begin(), active.end()});
  return loaded;
}

}  // namespace msrl
