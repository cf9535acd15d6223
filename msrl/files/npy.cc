#include "msrl/files/npy.h"

#include <bit>
#include <cstring>

#include "msrl/core/check.h"

namespace msrl {

static_assert(std::endian::native == std::endian::little, "the header below says '<f8'");

std::string EncodeNpy(std::span<const std::int64_t> shape, std::span<const double> values) {
  std::int64_t count = 1;
  std::string dimensions;
  for (const std::int64_t size : shape) {
    count *= size;
    dimensions += StrCat(size, ", ");
  }
  MSRL_CHECK_EQ(count, static_cast<std::int64_t>(values.size()));

  std::string header =
      StrCat("{'descr': '<f8', 'fortran_order': False, 'shape': (", dimensions, "), }");
  // magic, version and length take 10 bytes; data starts at a multiple of 64
  constexpr std::size_t kPreamble = 10;
  header.append(63 - (kPreamble + header.size()) % 64, ' ');
  header += '\n';
  MSRL_CHECK_LT(header.size(), std::size_t{65536});

  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const std::size_t offset = bytes.size();
  bytes.resize(offset + values.size_bytes());
  if (!values.empty()) std::memcpy(bytes.data() + offset, values.data(), values.size_bytes());
  return bytes;
}

void WriteNpy(const std::filesystem::path& path, std::span<const std::int64_t> shape,
              std::span<const double> values, Existing existing) {
  WriteFileAtomically(path, EncodeNpy(shape, values), existing);
}

}  // namespace msrl
