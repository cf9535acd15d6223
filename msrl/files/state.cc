#include "msrl/files/state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {

StateWriter StateWriter::Child(std::string_view name) const {
  return StateWriter(*file_, Name(name) + "/");
}

void StateWriter::View(std::string_view name, std::span<const float> values, Shape shape) const {
  file_->Add(Name(name), values, std::move(shape));
}
void StateWriter::View(std::string_view name, std::span<const double> values, Shape shape) const {
  file_->Add(Name(name), values, std::move(shape));
}
void StateWriter::View(std::string_view name, std::span<const std::int64_t> values,
                       Shape shape) const {
  file_->Add(Name(name), values, std::move(shape));
}
void StateWriter::View(std::string_view name, std::span<const std::uint8_t> values,
                       Shape shape) const {
  file_->Add(Name(name), values, std::move(shape));
}

void StateWriter::Int(std::string_view name, std::int64_t value) const {
  file_->AddCopy(Name(name), std::span<const std::int64_t>(&value, 1), {});
}
void StateWriter::Word(std::string_view name, std::uint64_t value) const {
  Int(name, std::bit_cast<std::int64_t>(value));
}
void StateWriter::Double(std::string_view name, double value) const {
  file_->AddCopy(Name(name), std::span<const double>(&value, 1), {});
}
void StateWriter::Text(std::string_view name, std::string_view text) const {
  Bytes(name, std::as_bytes(std::span(text)));
}
void StateWriter::Bytes(std::string_view name, std::span<const std::byte> bytes) const {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  file_->AddCopy(Name(name), std::span(first, bytes.size()),
                 {static_cast<std::int64_t>(bytes.size())});
}
void StateWriter::Random(std::string_view name, const Rng& rng) const {
  const Rng::State& state = rng.state();
  const std::array<std::int64_t, 5> words{
      std::bit_cast<std::int64_t>(state.seed), std::bit_cast<std::int64_t>(state.stream),
      std::bit_cast<std::int64_t>(state.position), std::bit_cast<std::int64_t>(state.spare_normal),
      state.has_spare_normal ? 1 : 0};
  file_->AddCopy(Name(name), std::span<const std::int64_t>(words), {5});
}

StateReader StateReader::Child(std::string_view name) const {
  return StateReader(*file_, *used_, Name(name) + "/");
}

std::string StateReader::Use(std::string_view name) const {
  std::string full = Name(name);
  used_->insert(full);
  return full;
}

namespace {
template <typename T>
void CopyInto(std::span<const T> values, std::span<T> out) {
  MSRL_CHECK_EQ(values.size(), out.size());
  std::copy(values.begin(), values.end(), out.begin());
}
}  // namespace

void StateReader::Into(std::string_view name, std::span<float> out, const Shape& shape) const {
  CopyInto(file_->F32(Use(name), shape), out);
}
void StateReader::Into(std::string_view name, std::span<double> out, const Shape& shape) const {
  CopyInto(file_->F64(Use(name), shape), out);
}
void StateReader::Into(std::string_view name, std::span<std::int64_t> out,
                       const Shape& shape) const {
  CopyInto(file_->I64(Use(name), shape), out);
}
void StateReader::Into(std::string_view name, std::span<std::uint8_t> out,
                       const Shape& shape) const {
  CopyInto(file_->U8(Use(name), shape), out);
}

std::int64_t StateReader::Int(std::string_view name, std::int64_t low, std::int64_t high) const {
  const std::int64_t value = file_->I64(Use(name), {})[0];
  if (value < low || value > high) {
    Fail(name, StrCat("is ", value, " where ", low, " to ", high, " is possible"));
  }
  return value;
}
std::uint64_t StateReader::Word(std::string_view name) const {
  return std::bit_cast<std::uint64_t>(file_->I64(Use(name), {})[0]);
}
double StateReader::Double(std::string_view name) const { return file_->F64(Use(name), {})[0]; }

std::vector<std::byte> StateReader::Bytes(std::string_view name) const {
  const std::string full = Use(name);
  const TensorInfo* info = file_->Find(full);
  const Shape shape = info != nullptr && info->shape.size() == 1 ? info->shape : Shape{0};
  const auto bytes = std::as_bytes(file_->U8(full, shape));
  return {bytes.begin(), bytes.end()};
}
std::string StateReader::Text(std::string_view name) const {
  const std::vector<std::byte> bytes = Bytes(name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Rng StateReader::Random(std::string_view name) const {
  const auto words = file_->I64(Use(name), {5});
  if (words[4] != 0 && words[4] != 1) Fail(name, "is not the state of a random stream");
  Rng::State state;
  state.seed = std::bit_cast<std::uint64_t>(words[0]);
  state.stream = std::bit_cast<std::uint64_t>(words[1]);
  state.position = std::bit_cast<std::uint64_t>(words[2]);
  state.spare_normal = std::bit_cast<double>(words[3]);
  state.has_spare_normal = words[4] == 1;
  return Rng(state);
}

void StateReader::RequireAllUsed() const {
  for (const TensorInfo& info : file_->tensors()) {
    if (info.name.starts_with(prefix_) && !used_->contains(info.name)) {
      throw UserError(
          StrCat(file_->source(), ": holds '", info.name, "', which this version does not know"));
    }
  }
}

void StateReader::Fail(std::string_view name, std::string_view problem) const {
  throw UserError(StrCat(file_->source(), ": ", Name(name), " ", problem));
}

}  // namespace msrl
