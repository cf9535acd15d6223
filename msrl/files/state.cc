#include "msrl/files/state.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace msrl {
namespace {

template <typename T>
std::span<const T> Find(const TensorFile& file, const std::string& name, const Shape& shape) {
  if constexpr (std::same_as<T, float>) return file.F32(name, shape);
  if constexpr (std::same_as<T, double>) return file.F64(name, shape);
  if constexpr (std::same_as<T, std::int64_t>) return file.I64(name, shape);
  if constexpr (std::same_as<T, std::uint8_t>) return file.U8(name, shape);
}

}  // namespace

Archive Archive::Child(std::string_view name) const {
  Archive child = *this;
  child.prefix_ = Name(name) + "/";
  return child;
}

std::string Archive::Use(std::string_view name) const {
  std::string full = Name(name);
  used_->insert(full);
  return full;
}

template <typename T>
void Archive::AnyArray(std::string_view name, std::span<T> values, Shape shape) const {
  if (shape.empty()) shape = {std::ssize(values)};
  if (!loading()) {
    to_->Add(Name(name), std::span<const T>(values), std::move(shape));
    return;
  }
  const std::span<const T> found = Find<T>(*from_, Use(name), shape);
  MSRL_CHECK_EQ(found.size(), values.size());
  std::ranges::copy(found, values.begin());
}

void Archive::Array(std::string_view name, std::span<float> values, Shape shape) const {
  AnyArray(name, values, std::move(shape));
}
void Archive::Array(std::string_view name, std::span<double> values, Shape shape) const {
  AnyArray(name, values, std::move(shape));
}
void Archive::Array(std::string_view name, std::span<std::int64_t> values, Shape shape) const {
  AnyArray(name, values, std::move(shape));
}
void Archive::Array(std::string_view name, std::span<std::uint8_t> values, Shape shape) const {
  AnyArray(name, values, std::move(shape));
}

void Archive::WideInt(std::string_view name, std::int64_t& value, std::int64_t low,
                      std::int64_t high) const {
  if (!loading()) {
    MSRL_CHECK(value >= low && value <= high, Name(name), " ", value);
    to_->AddCopy(Name(name), std::span<const std::int64_t>(&value, 1), {});
    return;
  }
  value = from_->I64(Use(name), {})[0];
  if (value < low || value > high) {
    Fail(name, StrCat("is ", value, " where ", low, " to ", high, " is possible"));
  }
}

void Archive::WideDouble(std::string_view name, double& value) const {
  if (loading()) {
    value = from_->F64(Use(name), {})[0];
  } else {
    to_->AddCopy(Name(name), std::span<const double>(&value, 1), {});
  }
}

void Archive::SameWord(std::string_view name, std::uint64_t value, std::string_view problem) const {
  auto word = std::bit_cast<std::int64_t>(value);
  Int(name, word, std::numeric_limits<std::int64_t>::min());
  if (std::bit_cast<std::uint64_t>(word) != value) Fail(name, problem);
}

void Archive::Bytes(std::string_view name, std::vector<std::byte>& bytes) const {
  if (!loading()) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    to_->AddCopy(Name(name), std::span(first, bytes.size()), {std::ssize(bytes)});
    return;
  }
  const std::string full = Use(name);
  const TensorInfo* info = from_->Find(full);
  const Shape shape = info != nullptr && info->shape.size() == 1 ? info->shape : Shape{0};
  const auto found = std::as_bytes(from_->U8(full, shape));
  bytes.assign(found.begin(), found.end());
}

void Archive::Text(std::string_view name, std::string& text) const {
  const auto old = std::as_bytes(std::span(text));
  std::vector<std::byte> bytes(old.begin(), old.end());
  Bytes(name, bytes);
  if (loading()) text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Archive::Random(std::string_view name, Rng& rng) const {
  const Rng::State& old = rng.state();
  std::vector<std::int64_t> words{
      std::bit_cast<std::int64_t>(old.seed), std::bit_cast<std::int64_t>(old.stream),
      std::bit_cast<std::int64_t>(old.position), std::bit_cast<std::int64_t>(old.spare_normal),
      old.has_spare_normal ? 1 : 0};
  Temporary(name, words, {5});
  if (!loading()) return;
  if (words[4] != 0 && words[4] != 1) Fail(name, "is not the state of a random stream");
  Rng::State state;
  state.seed = std::bit_cast<std::uint64_t>(words[0]);
  state.stream = std::bit_cast<std::uint64_t>(words[1]);
  state.position = std::bit_cast<std::uint64_t>(words[2]);
  state.spare_normal = std::bit_cast<double>(words[3]);
  state.has_spare_normal = words[4] == 1;
  rng = Rng(state);
}

void Archive::RequireAllUsed() const {
  MSRL_CHECK(loading());
  for (const TensorInfo& info : from_->tensors()) {
    if (info.name.starts_with(prefix_) && !used_->contains(info.name)) {
      throw UserError(
          StrCat(from_->source(), ": holds '", info.name, "', which this version does not know"));
    }
  }
}

void Archive::Fail(std::string_view name, std::string_view problem) const {
  MSRL_CHECK(loading());
  throw UserError(StrCat(from_->source(), ": ", Name(name), " ", problem));
}

}  // namespace msrl
