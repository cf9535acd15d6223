#include "msrl/files/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace msrl {
namespace {

std::uint64_t Hash(std::string_view text) {
  Xxh64 hash;
  hash.Add(std::as_bytes(std::span(text)));
  return hash.Digest();
}

// RFC 3720, appendix B.4, and the usual check value
TEST(Checksum, Crc32cMatchesPublishedValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

// the values of the reference implementation
TEST(Checksum, Xxh64MatchesPublishedValues) {
  EXPECT_EQ(Hash(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(Hash("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(Hash("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(Hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(Checksum, Xxh64DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37);
  for (std::size_t piece = 1; piece < 70; ++piece) {
    Xxh64 hash;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      hash.Add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
    }
    EXPECT_EQ(hash.Digest(), Hash(text)) << piece;
  }
}

}  // namespace
}  // namespace msrl
