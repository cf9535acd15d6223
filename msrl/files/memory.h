// What is too large for this machine is refused before it is asked for.
#ifndef MSRL_FILES_MEMORY_H_
#define MSRL_FILES_MEMORY_H_

#include <cstdint>
#include <string_view>

#include "msrl/core/check.h"

namespace msrl {

// Nothing is wrong with the input; a larger machine, or this one later, can do it.
class MemoryError : public UserError {
  using UserError::UserError;
};

// Bytes that this process can still get: the least of what the machine has, what its control group
// leaves and what its own limit leaves. The largest number where nothing is known.
std::uint64_t AvailableMemory();

// MemoryError that says what `what` needs and how much there is, if it does not fit.
void RequireMemory(std::uint64_t bytes, std::string_view what);

}  // namespace msrl

#endif  // MSRL_FILES_MEMORY_H_
