// A damaged library whose checksum does not give it away is refused, or is a library that works.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/memory/segment_library.h"
#include "tests/fuzz/damage.h"

namespace {

// The last eight segments go through the index and have replaced others.
std::string GoodLibrary() {
  msrl::SegmentLibraryConfig config;
  config.capacity = 24;
  config.lift = msrl::Lift::Make({msrl::LiftKind::kCompact, 1, 1, {{"x", 1.0}}});
  config.max_length = 2;
  config.context_size = 2;
  config.action_size = 1;
  config.observation_size = 1;
  config.family = "test";
  config.exact_limit = 4;
  msrl::SegmentLibrary library(config);
  msrl::Rng rng(1, "library");
  msrl::SegmentMatrix matrix(config.lift);
  const Eigen::VectorXd psi = Eigen::VectorXd::Ones(config.lift->m());
  matrix.AddStep(psi);
  matrix.AddStep(psi);
  for (int i = 0; i < 32; ++i) {
    const std::array<float, 2> context{static_cast<float>(i % 5), static_cast<float>(i)};
    const std::array<float, 1> one{1.0F};
    msrl::SegmentView view;
    view.length = 1 + i % 2;
    view.psi = {psi.data(), static_cast<std::size_t>(psi.size())};
    view.matrix = &matrix;
    view.head_action = one;
    view.context = context;
    view.tail_observation = one;
    view.tail_geometry = one;
    view.env = i % 3 == 0 ? "a" : "b";
    library.Add(view, rng);
  }
  std::string file = library.Encode();
  // without the checksum, or nothing would get past it
  file[file.find("msrl_xxh64")] = 'x';
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = GoodLibrary();
  const std::string bytes = msrl::fuzz::Damaged(good, data, size);
  try {
    msrl::LibraryLoadOptions options;
    options.max_bytes = 1 << 24;
    msrl::SegmentLibrary library =
        msrl::SegmentLibrary::Parse(std::as_bytes(std::span(bytes)), "input", options);
    const std::vector<float> context(static_cast<std::size_t>(library.config().context_size), 1.0F);
    std::array<msrl::Neighbour, 4> out;
    msrl::QueryOptions query;
    query.k = 4;
    const int found = library.Query(context, query, out);
    msrl::SegmentMatrix z(library.config().lift);
    msrl::Rng rng(2, "library");
    for (int i = 0; i < found; ++i) {
      const std::int64_t slot = out[static_cast<std::size_t>(i)].slot;
      library.AddMatrixTo(slot, z);
      library.NoteUse(slot);
    }
    const std::string again = library.Encode();
    if (msrl::SegmentLibrary::Parse(std::as_bytes(std::span(again)), "again", options).Encode() !=
        again) {
      std::abort();
    }
  } catch (const msrl::UserError&) {
    if (size == 0) std::abort();  // the good one
  }
  return 0;
}
