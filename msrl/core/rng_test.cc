#include "msrl/core/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

TEST(Rng, IsPhilox) {
  // Published known-answer vector of Philox-4x32-10: counter and key all zero.
  Rng zero(Rng::State{});
  const std::array<std::uint32_t, 4> expected_zero{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (const std::uint32_t word : expected_zero) EXPECT_EQ(zero.NextU32(), word);
}

TEST(Rng, SameSeedAndNameGiveTheSameStream) {
  Rng a(7, "env");
  Rng b(7, "env");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.NextU64(), b.NextU64());
}

TEST(Rng, SeedsAndNamesSeparateStreams) {
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const char* name : {"env", "policy", "replay", "planner", "init"}) {
      first.insert(Rng(seed, name).NextU64());
    }
  }
  EXPECT_EQ(first.size(), 500u);
}

TEST(Rng, ContinuesFromASavedState) {
  Rng rng(3, "policy");
  for (int skip = 0; skip < 9; ++skip) {
    rng.NextU32();
    rng.Normal();
    Rng copy(rng.state());
    Rng original = rng;
    for (int i = 0; i < 11; ++i) {
      EXPECT_EQ(copy.Normal(), original.Normal());
      EXPECT_EQ(copy.NextU32(), original.NextU32());
    }
    EXPECT_EQ(copy.state(), original.state());
  }
}

TEST(Rng, UniformStaysInRangeAndHasItsMoments) {
  Rng rng(1, "uniform");
  double sum = 0.0;
  double squares = 0.0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  // five standard errors
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / kDraws));
}

TEST(Rng, NormalHasItsMoments) {
  Rng rng(1, "normal");
  double sum = 0.0;
  double squares = 0.0;
  double fourth = 0.0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.Normal();
    sum += value;
    squares += value * value;
    fourth += std::pow(value, 4);
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3.0, 5 * std::sqrt(96.0 / kDraws));
}

TEST(Rng, IndexIsUniform) {
  Rng rng(5, "index");
  std::vector<int> counts(7, 0);
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(rng.Index(7))];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * std::sqrt(10'000.0 * 6 / 7));
  EXPECT_THROW(rng.Index(0), InvariantError);
}

}  // namespace
}  // namespace msrl
