// Snapshots as plain bytes: what is written must be read back in the same order, to the last byte.
#ifndef MSRL_CORE_BYTES_H_
#define MSRL_CORE_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/core/rng.h"

namespace msrl {

// Little-endian on every host; doubles by their bits, so that NaNs and signed zeros survive.
class ByteWriter {
 public:
  void U8(std::uint8_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void U64(std::uint64_t value);
  void I64(std::int64_t value) { U64(std::bit_cast<std::uint64_t>(value)); }
  void Bool(bool value) { U8(value ? 1 : 0); }
  void Double(double value) { U64(std::bit_cast<std::uint64_t>(value)); }
  // A length, then the bytes.
  void Blob(std::span<const std::byte> bytes);
  void Text(std::string_view text);
  void RngState(const Rng::State& state);

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what a ByteWriter wrote. Every method is a UserError that names `what` if the bytes end too
// early or can't be such a value. The bytes must outlive the reader and its blobs.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view what)
      : bytes_(bytes), what_(what) {}

  std::uint8_t U8();
  std::uint64_t U64();
  std::int64_t I64() { return std::bit_cast<std::int64_t>(U64()); }
  // An integer in {low, ..., high}.
  std::int64_t I64In(std::int64_t low, std::int64_t high);
  bool Bool();
  double Double() { return std::bit_cast<double>(U64()); }
  double FiniteDouble();
  std::span<const std::byte> Blob();
  std::string Text();
  Rng::State RngState();

  std::size_t remaining() const { return bytes_.size(); }
  // UserError if bytes are left over.
  void RequireEnd() const;

 private:
  std::span<const std::byte> Take(std::uint64_t size);
  [[noreturn]] void Fail(std::string_view problem) const;

  std::span<const std::byte> bytes_;
  std::string what_;
};

}  // namespace msrl

#endif  // MSRL_CORE_BYTES_H_
