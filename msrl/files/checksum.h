// Checksums of files: against damage, not against malice.
#ifndef MSRL_FILES_CHECKSUM_H_
#define MSRL_FILES_CHECKSUM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace msrl {

// CRC-32C (Castagnoli), as in TFRecord files.
std::uint32_t Crc32c(std::string_view bytes);

// XXH64 with seed 0 of all that was added, in any pieces.
class Xxh64 {
 public:
  Xxh64();
  void Add(std::span<const std::byte> bytes);
  std::uint64_t Digest() const;

 private:
  void Stripe(const std::byte* stripe);

  std::array<std::uint64_t, 4> lanes_;
  std::array<std::byte, 32> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace msrl

#endif  // MSRL_FILES_CHECKSUM_H_
