// Damage to a good file, as an input of a fuzzer says it.
#ifndef MSRL_TESTS_FUZZ_DAMAGE_H_
#define MSRL_TESTS_FUZZ_DAMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace msrl::fuzz {

// Fours of bytes: overwrite one byte, or cut the end.
inline std::string Damaged(std::string bytes, const std::uint8_t* data, std::size_t size) {
  for (std::size_t k = 0; k + 3 < size; k += 4) {
    const std::size_t place = data[k] + 256u * data[k + 1];
    if (data[k + 3] == 0xff) bytes.resize(place % (bytes.size() + 1));
    if (!bytes.empty()) bytes[place % bytes.size()] = static_cast<char>(data[k + 2]);
  }
  return bytes;
}

}  // namespace msrl::fuzz

#endif  // MSRL_TESTS_FUZZ_DAMAGE_H_
