// A damaged module of a transfer baseline whose checksum does not give it away is refused, or can
// be used: it is read by a host's graph, and goes through a file unchanged. Inputs take turns with
// two kinds: one that values states and one that values actions.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "msrl/agents/host/value_module.h"
#include "msrl/agents/sf/sf_gpi.h"
#include "msrl/agents/uvfa/uvfa.h"
#include "msrl/core/check.h"

namespace {

struct Kind {
  msrl::ArtefactHeader header;
  std::unique_ptr<msrl::ValueModule> (*make)();
};

const msrl::UvfaShape kUvfaShape{.stream_width = 2, .stream_features = 2};
const msrl::SfGpiShape kSfGpiShape{.features = 2,
                                   .feature_width = 2,
                                   .successor_width = 2,
                                   .code_size = 1,
                                   .policies = 2,
                                   .policy_width = 2};

template <typename Module, const auto& shape>
Kind KindOf() {
  return {msrl::ModuleHeader(Module::kKind, shape, {{"sources", "a,b"}}),
          []() -> std::unique_ptr<msrl::ValueModule> {
            msrl::Rng rng(1, "init");
            return std::make_unique<Module>(shape, msrl::ParameterOptions{}, rng);
          }};
}

std::string GoodFile(const Kind& kind) {
  std::string file = EncodeModule(kind.header, *kind.make());
  // without the checksum, or nothing would get past it
  const std::size_t entry = file.find("\"msrl_xxh64\":\"");
  for (std::size_t i = entry; i < entry + 32; ++i) file[i] = ' ';
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Kind kinds[] = {KindOf<msrl::Uvfa, kUvfaShape>(),
                               KindOf<msrl::SfGpi, kSfGpiShape>()};
  static const std::string good[] = {GoodFile(kinds[0]), GoodFile(kinds[1])};
  const Kind& kind = kinds[size % 2];
  std::string bytes = good[size % 2];
  // fours: overwrite one byte, or cut the end
  for (std::size_t k = 0; k + 3 < size; k += 4) {
    const std::size_t place = data[k] + 256u * data[k + 1];
    if (data[k + 3] == 0xff) bytes.resize(place % (bytes.size() + 1));
    if (!bytes.empty()) bytes[place % bytes.size()] = static_cast<char>(data[k + 2]);
  }
  try {
    const msrl::Artefact artefact = msrl::Artefact::Parse(bytes, "input");
    const auto module = kind.make();
    LoadModule(artefact, kind.header, *module);
    msrl::ReadingGraph reading(*module, 1);
    reading.Forward();
    const std::string again = EncodeModule(artefact.header(), *module);
    const msrl::Artefact same = msrl::Artefact::Parse(again, "again");
    if (!(same.header() == artefact.header())) std::abort();
    const auto reread = kind.make();
    LoadModule(same, kind.header, *reread);
    if (EncodeModule(same.header(), *reread) != again) std::abort();
  } catch (const msrl::UserError&) {
    if (size <= 1) std::abort();  // the good ones
  }
  return 0;
}
