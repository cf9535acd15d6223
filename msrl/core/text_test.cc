#include "msrl/core/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace msrl {
namespace {

const std::vector<std::string> kNames{"learning_rate", "batch_size", "gamma"};

TEST(NearestName, FindsTypos) {
  EXPECT_EQ(NearestName("lerning_rate", kNames), "learning_rate");
  EXPECT_EQ(NearestName("gama", kNames), "gamma");
  EXPECT_EQ(NearestName("GAMMA", kNames), "gamma");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(NearestName("zzzzzzzzzzzz", kNames), "");
  EXPECT_EQ(DidYouMean("zzzzzzzzzzzz", kNames), "");
}

TEST(DidYouMean, ReadsAsASentence) {
  EXPECT_EQ(DidYouMean("gama", kNames), "; did you mean 'gamma'?");
}

TEST(StableHash, HasThePublishedValues) {
  // test vectors of FNV-1a, 64 bits
  EXPECT_EQ(StableHash(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(StableHash("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(StableHash("foobar"), 0x85944171f73967e8ull);
}

TEST(Hex, PadsToSixteenDigits) {
  EXPECT_EQ(Hex(0xabcull), "0000000000000abc");
  EXPECT_EQ(Hex(~0ull), "ffffffffffffffff");
}

}  // namespace
}  // namespace msrl
