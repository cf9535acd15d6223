// What fuzz targets do to a good artefact, and what must hold then.
#ifndef MSRL_TESTS_FUZZ_DAMAGED_ARTEFACT_H_
#define MSRL_TESTS_FUZZ_DAMAGED_ARTEFACT_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>

#include "msrl/artefacts/artefact.h"
#include "msrl/core/check.h"
#include "tests/fuzz/damage.h"

namespace msrl {

// Or nothing would get past it.
inline std::string WithoutChecksum(std::string file) {
  const std::size_t entry = file.find("\"msrl_xxh64\":\"");
  for (std::size_t i = entry; i < entry + 32; ++i) file[i] = ' ';
  return file;
}

// Damages the file; then it is refused, or what was read of it is written and read again unchanged.
inline void CheckDamaged(const std::string& good, std::span<const std::uint8_t> damage,
                         const std::function<std::string(const Artefact&)>& read_and_write) {
  const std::string bytes = fuzz::Damaged(good, damage.data(), damage.size());
  try {
    const Artefact artefact = Artefact::Parse(bytes, "input");
    const std::string again = read_and_write(artefact);
    const Artefact same = Artefact::Parse(again, "again");
    if (!(same.header() == artefact.header())) std::abort();
    if (read_and_write(same) != again) std::abort();
  } catch (const UserError&) {
    if (damage.size() <= 1) std::abort();  // the good one
  }
}

}  // namespace msrl

#endif  // MSRL_TESTS_FUZZ_DAMAGED_ARTEFACT_H_
