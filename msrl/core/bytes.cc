#include "msrl/core/bytes.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {

void ByteWriter::U64(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) U8(static_cast<std::uint8_t>(value >> shift));
}

void ByteWriter::Blob(std::span<const std::byte> bytes) {
  U64(bytes.size());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void ByteWriter::Text(std::string_view text) { Blob(std::as_bytes(std::span(text))); }

void ByteWriter::RngState(const Rng::State& state) {
  U64(state.seed);
  U64(state.stream);
  U64(state.position);
  Double(state.spare_normal);
  Bool(state.has_spare_normal);
}

std::span<const std::byte> ByteReader::Take(std::uint64_t size) {
  if (size > bytes_.size()) {
    Fail(StrCat("ends too early (", bytes_.size(), " bytes left, ", size, " wanted)"));
  }
  const auto taken = bytes_.first(static_cast<std::size_t>(size));
  bytes_ = bytes_.subspan(taken.size());
  return taken;
}

void ByteReader::Fail(std::string_view problem) const {
  throw UserError(StrCat(what_, " ", problem));
}

std::uint8_t ByteReader::U8() { return static_cast<std::uint8_t>(Take(1)[0]); }

std::uint64_t ByteReader::U64() {
  const auto bytes = Take(8);
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = (value << 8) | static_cast<std::uint64_t>(bytes[i]);
  return value;
}

std::int64_t ByteReader::I64In(std::int64_t low, std::int64_t high) {
  const std::int64_t value = I64();
  if (value < low || value > high) {
    Fail(StrCat("holds ", value, " where ", low, " to ", high, " is possible"));
  }
  return value;
}

bool ByteReader::Bool() {
  const std::uint8_t value = U8();
  if (value > 1) Fail(StrCat("holds ", int{value}, " where true or false is stored"));
  return value == 1;
}

double ByteReader::FiniteDouble() {
  const double value = Double();
  if (!std::isfinite(value)) Fail("holds a number that is not finite");
  return value;
}

std::span<const std::byte> ByteReader::Blob() {
  const std::uint64_t size = U64();
  return Take(size);
}

std::string ByteReader::Text() {
  const auto bytes = Blob();
  std::string text(bytes.size(), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) text[i] = static_cast<char>(bytes[i]);
  return text;
}

Rng::State ByteReader::RngState() {
  Rng::State state;
  state.seed = U64();
  state.stream = U64();
  state.position = U64();
  state.spare_normal = FiniteDouble();
  state.has_spare_normal = Bool();
  return state;
}

void ByteReader::RequireEnd() const {
  if (!bytes_.empty()) Fail(StrCat("has ", bytes_.size(), " bytes too many"));
}

}  // namespace msrl
