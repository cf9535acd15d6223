// NumPy's .npy format, version 1.0: float64, C order.
#ifndef MSRL_FILES_NPY_H_
#define MSRL_FILES_NPY_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "msrl/files/atomic_file.h"

namespace msrl {

// The bytes of an array; the product of `shape` is values.size().
std::string EncodeNpy(std::span<const std::int64_t> shape, std::span<const double> values);

void WriteNpy(const std::filesystem::path& path, std::span<const std::int64_t> shape,
              std::span<const double> values, Existing existing = Existing::kReplace);

}  // namespace msrl

#endif  // MSRL_FILES_NPY_H_
