#include "msrl/value/value_branch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/safetensors.h"

namespace msrl {
namespace {

constexpr const char* kFormat = "msrl-branch";
constexpr int kMaxFeatures = 100'000;

MlpSpec NetworkSpec(int feature_count, const BranchShape& shape) {
  if (feature_count < 1 || feature_count > kMaxFeatures || shape.layers < 1 || shape.layers > 8 ||
      shape.width < 1 || shape.width > 4096) {
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

template <typename T>
std::string NumberText(T value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  MSRL_CHECK(error == std::errc{}, "number does not fit");
  return {text, end};
}

// The entries of a file, each asked for once.
class Entries {
 public:
  explicit Entries(const TensorFile& file) : source_(file.source()), left_(file.metadata()) {
    left_.erase("msrl_xxh64");
  }

  std::string Text(const std::string& key) {
    const auto entry = left_.find(key);
    if (entry == left_.end()) Fail(StrCat("no entry '", key, "'"));
    std::string value = entry->second;
    left_.erase(entry);
    return value;
  }
  template <typename T>
  T Number(const std::string& key, T low, T high) {
    const std::string text = Text(key);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() ||
        !(value >= low && value <= high)) {
      Fail(StrCat("entry '", key, "' is '", text, "'"));
    }
    return value;
  }
  std::uint64_t HexNumber(const std::string& key) {
    const std::string text = Text(key);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size() || Hex(value) != text) {
      Fail(StrCat("entry '", key, "' is '", text, "'"));
    }
    return value;
  }
  bool Flag(const std::string& key) { return Number<int>(key, 0, 1) == 1; }
  void RequireEnd() const {
    if (!left_.empty()) Fail(StrCat("unknown entry '", left_.begin()->first, "'"));
  }
  [[noreturn]] void Fail(const std::string& problem) const {
    throw UserError(StrCat(source_, ": not a branch of this version: ", problem));
  }

 private:
  std::string source_;
  std::map<std::string, std::string> left_;
};

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::vector<std::string> SplitNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    names.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return names;
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

std::string ValueBranch::Encode() const {
  TensorFileBuilder file;
  for (const NamedTensor& tensor : network_.tensors()) {
    file.Add(tensor.name, network_.parameters().subspan(tensor.offset, tensor.size()),
             FileShape(tensor));
  }
  file.Add("active", std::span<const std::uint8_t>(active_), {std::ssize(active_)});
  file.SetMetadata("format", kFormat);
  file.SetMetadata("version", "1");
  file.SetMetadata("lift_id", Hex(info_.lift.value));
  file.SetMetadata("lift_kind", info_.lift_kind);
  file.SetMetadata("features", info_.features.Name());
  file.SetMetadata("feature_count", NumberText(feature_count()));
  file.SetMetadata("sources", Join(info_.sources));
  file.SetMetadata("dataset", info_.dataset);
  file.SetMetadata("objective", info_.objective);
  file.SetMetadata("control", info_.control);
  file.SetMetadata("target", info_.target);
  file.SetMetadata("updates", NumberText(info_.updates));
  file.SetMetadata("seed", NumberText(info_.seed));
  file.SetMetadata("gamma", NumberText(info_.gamma));
  file.SetMetadata("reward_unit", NumberText(info_.reward_unit));
  file.SetMetadata("width", NumberText(shape_.width));
  file.SetMetadata("layers", NumberText(shape_.layers));
  file.SetMetadata("layer_norm", shape_.layer_norm ? "1" : "0");
  return file.Encode();
}

void ValueBranch::Save(const std::filesystem::path& path) const {
  WriteFileAtomically(path, Encode());
}

ValueBranch ValueBranch::Load(const std::filesystem::path& path, LiftId expected,
                              Alignment alignment) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 30;
  const std::string bytes = ReadWholeFile(path, kMaxBytes);
  return Parse(std::as_bytes(std::span(bytes)), path.string(), expected, alignment);
}

ValueBranch ValueBranch::Parse(std::span<const std::byte> bytes, std::string_view source,
                               LiftId expected, Alignment alignment) {
  const TensorFile file = TensorFile::Parse(bytes, source);
  Entries entries(file);
  if (entries.Text("format") != kFormat) entries.Fail("it has another format");
  entries.Number<int>("version", 1, 1);
  BranchInfo info;
  info.lift.value = entries.HexNumber("lift_id");
  info.lift_kind = LiftKindName(LiftKindFromName(entries.Text("lift_kind")));
  if (alignment == Alignment::kAligned && !(info.lift == expected)) {
    throw UserError(StrCat(source, ": the branch was trained with lift ", info.lift.ToString(),
                           " (", info.lift_kind, "), this is lift ", expected.ToString(),
                           "; only the unaligned control may load it"));
  }
  info.features = MatrixFeatureOptions::FromName(entries.Text("features"));
  const int feature_count = entries.Number<int>("feature_count", 1, kMaxFeatures);
  info.sources = SplitNames(entries.Text("sources"));
  info.dataset = entries.Text("dataset");
  info.objective = entries.Text("objective");
  info.control = entries.Text("control");
  info.target = entries.Text("target");
  info.updates = entries.Number<std::int64_t>("updates", 0, INT64_MAX);
  info.seed = entries.Number<std::uint64_t>("seed", 0, UINT64_MAX);
  info.gamma = entries.Number<double>("gamma", 0.0, 1.0);
  info.reward_unit = entries.Number<double>("reward_unit", 1e-12, 1e12);
  BranchShape shape;
  shape.width = entries.Number<int>("width", 1, 4096);
  shape.layers = entries.Number<int>("layers", 1, 8);
  shape.layer_norm = entries.Flag("layer_norm");
  entries.RequireEnd();

  // before anything of that size is allocated
  const TensorInfo* const first = file.Find("layers.0.weight");
  if (first == nullptr || first->shape != Shape{feature_count, shape.width}) {
    entries.Fail("tensor 'layers.0.weight' has not the shape that the entries say");
  }
  if (static_cast<std::int64_t>(file.tensors().size()) !=
      2 * (shape.layers + 1) + (shape.layer_norm ? 2 * shape.layers : 0) + 1) {
    entries.Fail("it has too many or too few tensors");
  }
  ValueBranch branch(feature_count, shape, std::move(info));
  for (const NamedTensor& tensor : branch.network_.tensors()) {
    const std::span<const float> values = file.F32(tensor.name, FileShape(tensor));
    for (const float value : values) {
      if (!std::isfinite(value)) {
        entries.Fail(StrCat("tensor '", tensor.name, "' holds a number that is not finite"));
      }
    }
    std::copy(values.begin(), values.end(),
              branch.network_.parameters().begin() + static_cast<std::ptrdiff_t>(tensor.offset));
  }
  const std::span<const std::uint8_t> active = file.U8("active", {feature_count});
  if (std::any_of(active.begin(), active.end(), [](std::uint8_t a) { return a > 1; })) {
    entries.Fail("tensor 'active' holds something else than 0 and 1");
  }
  branch.Silence({active.begin(), active.end()});
  return branch;
}

}  // namespace msrl
