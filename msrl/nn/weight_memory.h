// Networks that are too large for this machine are refused before they are made.
#ifndef MSRL_NN_WEIGHT_MEMORY_H_
#define MSRL_NN_WEIGHT_MEMORY_H_

#include <cstddef>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/files/memory.h"

namespace msrl::internal {

// MemoryError that says what is needed, if `arrays` of as many floats as there are weights do not
// fit.
inline void RequireWeights(std::string_view what, std::size_t weights, std::size_t arrays) {
  RequireMemory(arrays * weights * sizeof(float), StrCat(what, " of ", weights, " weights"));
}

}  // namespace msrl::internal

#endif  // MSRL_NN_WEIGHT_MEMORY_H_
