// Recorded trajectories: any bytes are read or refused, and whatever is read can be compared.
#include <cstdint>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/mujoco/golden.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const msrl::GoldenFile file = msrl::ParseGolden(text, "fuzz");
    msrl::CheckAgainst("reacher", file);
  } catch (const msrl::UserError&) {
    return 0;
  }
  return 0;
}
