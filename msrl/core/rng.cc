#include "msrl/core/rng.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "msrl/core/check.h"

namespace msrl {

Rng::Rng(std::uint64_t seed, std::string_view stream)
    : Rng(State{.seed = seed, .stream = StableHash(stream)}) {}

Rng::Rng(const State& state) : state_(state) {
  if ((state_.position & 3) != 0) Refill();
}

void Rng::Refill() {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const std::uint64_t block = state_.position / 4;
  const r123::Philox4x32::ctr_type counter{
      {low(block), high(block), low(state_.stream), high(state_.stream)}};
  const r123::Philox4x32::key_type key{{low(state_.seed), high(state_.seed)}};
  const auto words = r123::Philox4x32()(counter, key);
  for (unsigned i = 0; i < 4; ++i) block_[i] = words[i];
}

std::int64_t Rng::Index(std::int64_t n) {
  MSRL_CHECK_GT(n, 0);
  const auto range = static_cast<std::uint64_t>(n);
  // reject the incomplete last copy of {0..n-1} in 2^64
  const std::uint64_t limit = std::uint64_t{0} - (std::uint64_t{0} - range) % range;
  std::uint64_t value = NextU64();
  while (limit != 0 && value >= limit) value = NextU64();
  return static_cast<std::int64_t>(value % range);
}

double Rng::Normal() {
  if (state_.has_spare_normal) {
    state_.has_spare_normal = false;
    return state_.spare_normal;
  }
  // Box-Muller; 1 - u is in (0, 1]
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  const double angle = 2.0 * std::numbers::pi * Uniform();
  state_.spare_normal = radius * std::sin(angle);
  state_.has_spare_normal = true;
  return radius * std::cos(angle);
}

}  // namespace msrl
