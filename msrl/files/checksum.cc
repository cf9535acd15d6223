#include "msrl/files/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace msrl {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5;

template <typename Word>
Word Load(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint64_t Round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = MakeCrcTable();
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint8_t>(c)) & 0xFF];
  }
  return crc ^ 0xFFFFFFFF;
}

Xxh64::Xxh64() : lanes_{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1} {}

void Xxh64::Stripe(const std::byte* stripe) {
  for (std::size_t i = 0; i < 4; ++i) {
    lanes_[i] = Round(lanes_[i], Load<std::uint64_t>(stripe + 8 * i));
  }
}

void Xxh64::Add(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (pending_size_ > 0) {
    const std::size_t taken = std::min(bytes.size(), pending_.size() - pending_size_);
    std::copy_n(bytes.begin(), taken, pending_.begin() + pending_size_);
    pending_size_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_size_ < pending_.size()) return;
    Stripe(pending_.data());
    pending_size_ = 0;
  }
  for (; bytes.size() >= pending_.size(); bytes = bytes.subspan(pending_.size())) {
    Stripe(bytes.data());
  }
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_size_ = bytes.size();
}

std::uint64_t Xxh64::Digest() const {
  std::uint64_t hash = kPrime5;
  if (total_ >= pending_.size()) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += total_;
  const std::byte* at = pending_.data();
  std::size_t left = pending_size_;
  for (; left >= 8; at += 8, left -= 8) {
    hash = std::rotl(hash ^ Round(0, Load<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ (Load<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) {
    hash = std::rotl(hash ^ (static_cast<std::uint64_t>(*at) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace msrl
