// A damaged world model whose checksum does not give it away is refused, or can be used: it goes
// through a file unchanged.
#include <cstdint>
#include <string>

#include "msrl/agents/dreamer/pretrained_world.h"
#include "tests/fuzz/damaged_artefact.h"

namespace {

const msrl::WorldShape kShape{
    .deter = 4, .blocks = 2, .stoch = 2, .classes = 2, .hidden = 2, .units = 2, .layers = 1};

std::string GoodFile() {
  msrl::Rng rng(1, "init");
  msrl::SlotWorld world(kShape, rng);
  return EncodeWorld(world, WorldHeader(kShape, {{"sources", "a,b"}}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = msrl::WithoutChecksum(GoodFile());
  msrl::CheckDamaged(good, {data, size}, [](const msrl::Artefact& artefact) {
    return EncodeWorld(*ReadWorld(artefact), artefact.header());
  });
  return 0;
}
