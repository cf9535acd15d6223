// A damaged artefact whose checksum does not give it away is refused, or can be used: its header
// goes through a file unchanged, and a branch in it works. Every other input is of the format from
// before there were artefacts.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "msrl/core/check.h"
#include "msrl/value/value_branch.h"
#include "tests/fuzz/damaged_artefact.h"

namespace {

constexpr msrl::LiftId kLift{0x1234};

msrl::ValueBranch GoodBranch() {
  msrl::BranchInfo info;
  info.lift = kLift;
  info.made = {{"sources", "graph-motif"}, {"dataset", "0"}};
  msrl::ValueBranch branch(3, {.width = 4, .layers = 1, .layer_norm = true}, info);
  msrl::Rng rng(1, "init");
  branch.Init(rng);
  return branch;
}

msrl::TensorFileBuilder TensorsOf(const msrl::Artefact& artefact) {
  msrl::TensorFileBuilder builder;
  for (const msrl::TensorInfo& info : artefact.tensors().tensors()) {
    if (info.type == msrl::TensorType::kF32) {
      builder.AddCopy(info.name, artefact.tensors().F32(info.name, info.shape), info.shape);
    } else if (info.type == msrl::TensorType::kU8) {
      builder.AddCopy(info.name, artefact.tensors().U8(info.name, info.shape), info.shape);
    }
  }
  return builder;
}

std::string OldFile() {
  const msrl::Artefact artefact = msrl::Artefact::Parse(GoodBranch().Encode(), "good");
  msrl::TensorFileBuilder file = TensorsOf(artefact);
  file.SetMetadata("format", "msrl-branch");
  file.SetMetadata("version", "1");
  file.SetMetadata("lift_id", msrl::Hex(kLift.value));
  file.SetMetadata("lift_kind", "compact");
  for (const auto& [key, text] : artefact.header().shape) file.SetMetadata(key, text);
  for (const char* key :
       {"sources", "dataset", "objective", "control", "target", "updates", "seed", "gamma"}) {
    file.SetMetadata(key, "1");
  }
  file.SetMetadata("reward_unit", "1");
  return file.Encode();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good[] = {msrl::WithoutChecksum(GoodBranch().Encode()),
                                     msrl::WithoutChecksum(OldFile())};
  const std::string bytes = msrl::fuzz::Damaged(good[size % 4 == 1 ? 1 : 0], data, size);
  try {
    const msrl::Artefact artefact = msrl::Artefact::Parse(bytes, "input");
    const std::string again = EncodeArtefact(artefact.header(), TensorsOf(artefact));
    if (!(msrl::Artefact::Parse(again, "again").header() == artefact.header())) std::abort();
    const msrl::ValueBranch branch =
        msrl::ValueBranch::From(artefact, kLift, msrl::Alignment::kUnaligned);
    const Eigen::MatrixXf x = Eigen::MatrixXf::Constant(branch.feature_count(), 1, 0.5F);
    msrl::MlpTape tape(branch.spec(), 1);
    branch.Forward(x, tape);
    const msrl::ValueBranch same = msrl::ValueBranch::From(
        msrl::Artefact::Parse(branch.Encode(), "encoded"), branch.info().lift);
    if (!(same.info() == branch.info())) std::abort();
  } catch (const msrl::UserError&) {
    if (size <= 1) std::abort();  // the good ones
  }
  return 0;
}
