#include "msrl/files/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "msrl/core/check.h"

namespace msrl {
namespace {

TEST(Npy, LayoutByHand) {
  const std::vector<std::int64_t> shape{2, 3};
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  const std::string bytes = EncodeNpy(shape, values);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header =
      static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ((10 + header) % 64, 0u);
  EXPECT_EQ(bytes[9 + header], '\n');
  EXPECT_EQ(bytes.substr(10, 60).find("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, )"),
            0u);
  ASSERT_EQ(bytes.size(), 10 + header + 48);
  double last = 0.0;
  std::memcpy(&last, bytes.data() + bytes.size() - 8, 8);
  EXPECT_EQ(last, 6.0);
}

TEST(Npy, ShapeMustMatch) {
  const std::vector<std::int64_t> shape{2, 2};
  const std::vector<double> values{1, 2, 3};
  EXPECT_THROW(EncodeNpy(shape, values), InvariantError);
}

}  // namespace
}  // namespace msrl
