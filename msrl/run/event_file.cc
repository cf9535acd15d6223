#include "msrl/run/event_file.h"

#include <bit>

#include "msrl/files/checksum.h"

namespace msrl {
namespace {

// little-endian, so many bytes
std::string Fixed(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7f) | 0x80);
  return text + static_cast<char>(value);
}

// Field numbers are those of event.proto and summary.proto; the low three bits are the wire type.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

std::string Tag(int field, int wire_type) {
  return Varint(static_cast<std::uint64_t>(field << 3 | wire_type));
}
std::string BytesField(int field, std::string_view bytes) {
  return Tag(field, kBytes) + Varint(bytes.size()) + std::string(bytes);
}

std::string WallTime(double seconds) {
  return Tag(1, kFixed64) + Fixed(std::bit_cast<std::uint64_t>(seconds), 8);
}

// Masked, because a checksum over data that holds checksums is weak.
std::string MaskedCrc(std::string_view bytes) {
  const std::uint32_t crc = Crc32c(bytes);
  return Fixed(std::rotr(crc, 15) + 0xa282ead8u, 4);
}

std::string Record(const std::string& data) {
  const std::string length = Fixed(data.size(), 8);
  return length + MaskedCrc(length) + data + MaskedCrc(data);
}

}  // namespace

std::string EncodeEventHeader(double wall_time) {
  return Record(WallTime(wall_time) + BytesField(3, "brain.Event:2"));
}

std::string EncodeScalars(double wall_time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    summary += BytesField(1, BytesField(1, name) + Tag(2, kFixed32) + Fixed(bits, 4));
  }
  return Record(WallTime(wall_time) + Tag(2, kVarint) + Varint(static_cast<std::uint64_t>(step)) +
                BytesField(5, summary));
}

}  // namespace msrl
