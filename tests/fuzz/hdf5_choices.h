// HDF5 files that are nearly as they should be.
#ifndef MSRL_TESTS_FUZZ_HDF5_CHOICES_H_
#define MSRL_TESTS_FUZZ_HDF5_CHOICES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "msrl/datasets/hdf5.h"

namespace msrl::fuzz {

using internal::H5Shape;
using internal::H5Writer;

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::uint8_t Next() { return next_ < size_ ? data_[next_++] : 0; }
  // Mostly 0: most of the file stays as it should be.
  int Fault() {
    const int choice = Next();
    return choice < 200 ? 0 : 1 + choice % 5;
  }
  double Number() {
    switch (Next() % 8) {
      case 0:
        return std::bit_cast<double>(0x7ff8000000000000u);
      case 1:
        return 1e308;
      case 2:
        return -1.0;
      default:
        return Next() / 16.0;
    }
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t next_ = 0;
};

inline std::uint64_t Count(const H5Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t size : shape) count *= size;
  return count;
}

inline void Dataset(H5Writer& writer, Choices& choices, const std::string& path, H5Shape shape,
                    char type) {
  switch (choices.Fault()) {
    case 1:
      return;  // missing
    case 2:
      shape.back() = choices.Next() % 5;
      break;
    case 3:
      shape.push_back(1);
      break;
    case 4:
      type = "fdib"[choices.Next() % 4];
      break;
    case 5:
      writer.Group(path);
      return;
    default:
      break;
  }
  std::vector<double> values(Count(shape));
  for (double& v : values) v = choices.Next() < 250 ? 0.0 : choices.Number();
  const std::vector<float> floats(values.begin(), values.end());
  std::vector<std::int64_t> ints;
  std::vector<std::uint8_t> bools;
  for (const double v : values) {
    ints.push_back(v >= -2.0 && v < 1e6 ? static_cast<std::int64_t>(v) : 7);
    bools.push_back(static_cast<std::uint8_t>(ints.back()));
  }
  if (type == 'f') writer.Floats(path, floats, shape);
  if (type == 'd') writer.Doubles(path, values, shape);
  if (type == 'i') writer.Ints(path, ints, shape);
  if (type == 'b') writer.Bools(path, bools, shape);
}

}  // namespace msrl::fuzz

#endif  // MSRL_TESTS_FUZZ_HDF5_CHOICES_H_
