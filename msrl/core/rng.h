// Randomness is an argument: one root seed makes independent named streams.
#ifndef MSRL_CORE_RNG_H_
#define MSRL_CORE_RNG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace msrl {

// A stream of Philox-4x32-10 numbers. The seed is the key, the hash of the stream's name is the
// upper half of the counter: streams of one seed never overlap, and a stream's numbers don't depend
// on how many other streams exist. The uniform and normal transforms are our own, because those of
// the standard library differ between implementations.
class Rng {
 public:
  // Everything that later numbers depend on; plain data, to be stored in checkpoints.
  struct State {
    std::uint64_t seed = 0;
    std::uint64_t stream = 0;
    std::uint64_t position = 0;  // 32-bit words drawn so far
    double spare_normal = 0.0;
    bool has_spare_normal = false;
    bool operator==(const State&) const = default;
  };

  Rng(std::uint64_t seed, std::string_view stream);
  explicit Rng(const State& state);

  std::uint32_t NextU32() {
    const unsigned word = static_cast<unsigned>(state_.position & 3);
    if (word == 0) Refill();
    ++state_.position;
    return block_[word];
  }
  std::uint64_t NextU64() {
    const std::uint64_t high = NextU32();
    return (high << 32) | NextU32();
  }

  // In [0, 1), 53 random bits.
  double Uniform() { return static_cast<double>(NextU64() >> 11) * 0x1.0p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // In {0, ..., n-1}, without bias; n > 0.
  std::int64_t Index(std::int64_t n);
  bool Bernoulli(double p) { return Uniform() < p; }
  double Normal();

  const State& state() const { return state_; }

 private:
  void Refill();

  State state_;
  std::array<std::uint32_t, 4> block_{};
};

// Every order is equally likely. `values` is a range with an operator[].
template <typename Range>
void Shuffle(Rng& rng, Range&& values) {
  for (std::size_t i = std::size(values); i > 1; --i) {
    std::swap(values[i - 1],
              values[static_cast<std::size_t>(rng.Index(static_cast<std::int64_t>(i)))]);
  }
}

}  // namespace msrl

#endif  // MSRL_CORE_RNG_H_
