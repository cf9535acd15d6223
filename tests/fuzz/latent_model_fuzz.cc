// A damaged latent model whose checksum does not give it away is refused, or can be used: an agent
// starts from it, and it goes through a file unchanged.
#include <cstdint>
#include <string>

#include "msrl/agents/tdmpc/pretrained_model.h"
#include "tests/fuzz/damaged_artefact.h"

namespace {

std::string GoodFile() {
  const msrl::LatentSizes sizes{.encoder_width = 2,
                                .latent_groups = 1,
                                .model_width = 2,
                                .q_count = 2,
                                .bins = 3,
                                .termination = true,
                                .task_size = 2};
  msrl::LatentModel model(msrl::SlotModel(sizes, /*tasks=*/2), msrl::Rng(1, "init"));
  return EncodeModel(model, HeaderOf(sizes, {{"sources", "a,b"}}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = msrl::WithoutChecksum(GoodFile());
  msrl::CheckDamaged(good, {data, size}, [](const msrl::Artefact& artefact) {
    return EncodeModel(*ReadModel(artefact), artefact.header());
  });
  return 0;
}
