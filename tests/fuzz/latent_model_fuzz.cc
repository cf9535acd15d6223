// A damaged latent model whose checksum does not give it away is refused, or can be used: an agent
// starts from it, and it goes through a file unchanged.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "msrl/agents/tdmpc/pretrained_model.h"
#include "msrl/core/check.h"

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
  std::string file = EncodeModel(model, HeaderOf(sizes, {{"sources", "a,b"}}));
  // without the checksum, or nothing would get past it
  const std::size_t entry = file.find("\"msrl_xxh64\":\"");
  for (std::size_t i = entry; i < entry + 32; ++i) file[i] = ' ';
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = GoodFile();
  std::string bytes = good;
  // fours: overwrite one byte, or cut the end
  for (std::size_t k = 0; k + 3 < size; k += 4) {
    const std::size_t place = data[k] + 256u * data[k + 1];
    if (data[k + 3] == 0xff) bytes.resize(place % (bytes.size() + 1));
    if (!bytes.empty()) bytes[place % bytes.size()] = static_cast<char>(data[k + 2]);
  }
  try {
    const msrl::Artefact artefact = msrl::Artefact::Parse(bytes, "input");
    const auto model = ReadModel(artefact);
    const std::string again = EncodeModel(*model, artefact.header());
    const msrl::Artefact same = msrl::Artefact::Parse(again, "again");
    if (!(same.header() == artefact.header())) std::abort();
    if (EncodeModel(*ReadModel(same), same.header()) != again) std::abort();
  } catch (const msrl::UserError&) {
    if (size <= 1) std::abort();  // the good one
  }
  return 0;
}
