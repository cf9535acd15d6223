#include "msrl/nn/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "msrl/nn/kernels.h"
#include "msrl/nn/runtime.h"

namespace msrl {

void FillNormal(Rng& rng, std::span<float> values) {
  const internal::FlushDenormals flush;
  constexpr std::size_t kBlock = 16;
  constexpr std::size_t kChunk = 16 * kBlock;
  std::array<std::uint32_t, kChunk> words;
  std::array<float, kBlock> last;
  while (!values.empty()) {
    const std::size_t size = std::min(kChunk, values.size());
    const std::size_t blocks = size / kBlock;
    const bool rest = size % kBlock != 0;
    const std::size_t drawn = (blocks + (rest ? 1 : 0)) * kBlock;
    for (std::size_t i = 0; i < drawn; ++i) words[i] = rng.NextU32();
    internal::ActiveKernels().normals(words.data(), values.data(), blocks);
    if (rest) {
      internal::ActiveKernels().normals(words.data() + blocks * kBlock, last.data(), 1);
      std::copy_n(last.begin(), size % kBlock,
                  values.begin() + static_cast<std::ptrdiff_t>(blocks * kBlock));
    }
    values = values.subspan(size);
  }
}

double TruncatedNormal(Rng& rng) {
  double draw = rng.Normal();
  while (std::abs(draw) > 2.0) draw = rng.Normal();
  return draw;
}

void FillUniform(Rng& rng, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(rng.NextU32() >> 8) * 0x1p-24F;
}

}  // namespace msrl
