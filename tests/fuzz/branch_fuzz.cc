// A damaged branch whose checksum does not give it away is refused, or is a branch that works.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "msrl/core/check.h"
#include "msrl/value/value_branch.h"

namespace {

constexpr msrl::LiftId kLift{0x1234};

std::string GoodBranch() {
  msrl::BranchInfo info;
  info.lift = kLift;
  info.sources = {"graph-motif"};
  info.dataset = "0";
  msrl::ValueBranch branch(3, {.width = 4, .layers = 1, .layer_norm = true}, info);
  msrl::Rng rng(1, "init");
  branch.Init(rng);
  std::string file = branch.Encode();
  // without the checksum, or nothing would get past it
  file[file.find("msrl_xxh64")] = 'x';
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = GoodBranch();
  std::string bytes = good;
  // fours: overwrite one byte, or cut the end
  for (std::size_t k = 0; k + 3 < size; k += 4) {
    const std::size_t place = data[k] + 256u * data[k + 1];
    if (data[k + 3] == 0xff) bytes.resize(place % (bytes.size() + 1));
    if (!bytes.empty()) bytes[place % bytes.size()] = static_cast<char>(data[k + 2]);
  }
  // the entry that the damaged name of the checksum makes must not be what is refused
  const std::size_t entry = bytes.find("\"xsrl_xxh64\":\"");
  if (entry != std::string::npos && entry + 31 < bytes.size()) {
    for (std::size_t i = entry; i < entry + 32; ++i) bytes[i] = ' ';
  }
  try {
    const msrl::ValueBranch branch = msrl::ValueBranch::Parse(
        std::as_bytes(std::span(bytes)), "input", kLift, msrl::Alignment::kUnaligned);
    const Eigen::MatrixXf x = Eigen::MatrixXf::Constant(branch.feature_count(), 1, 0.5F);
    msrl::MlpTape tape(branch.spec(), 1);
    branch.Forward(x, tape);
    const std::string again = branch.Encode();
    const msrl::ValueBranch same =
        msrl::ValueBranch::Parse(std::as_bytes(std::span(again)), "again", branch.info().lift);
    if (!(same.info() == branch.info())) std::abort();
  } catch (const msrl::UserError&) {
    if (size == 0) std::abort();  // the good one
  }
  return 0;
}
