// A damaged module of a transfer baseline whose checksum does not give it away is refused, or can
// be used: it is read by a host's graph, and goes through a file unchanged. Inputs take turns with
// two kinds: one that values states and one that values actions.
#include <cstdint>
#include <memory>
#include <string>

#include "msrl/agents/host/value_module.h"
#include "msrl/agents/sf/sf_gpi.h"
#include "msrl/agents/uvfa/uvfa.h"
#include "tests/fuzz/damaged_artefact.h"

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
  return msrl::WithoutChecksum(EncodeModule(kind.header, *kind.make()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Kind kinds[] = {KindOf<msrl::Uvfa, kUvfaShape>(),
                               KindOf<msrl::SfGpi, kSfGpiShape>()};
  static const std::string good[] = {GoodFile(kinds[0]), GoodFile(kinds[1])};
  const Kind& kind = kinds[size % 2];
  msrl::CheckDamaged(good[size % 2], {data, size}, [&](const msrl::Artefact& artefact) {
    const auto module = kind.make();
    LoadModule(artefact, kind.header, *module);
    msrl::ReadingGraph reading(*module, 1);
    reading.Forward();
    return EncodeModule(artefact.header(), *module);
  });
  return 0;
}
