#include "msrl/core/bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msrl/core/check.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;

TEST(Bytes, ReadsBackWhatWasWritten) {
  Rng rng(7, "bytes");
  rng.Normal();
  rng.NextU32();

  ByteWriter writer;
  writer.U8(200);
  writer.U64(0x0123456789abcdefull);
  writer.I64(-5);
  writer.Bool(true);
  writer.Double(-0.0);
  writer.Double(std::numeric_limits<double>::quiet_NaN());
  writer.Text("four rooms");
  writer.Blob({});
  writer.RngState(rng.state());

  ByteReader reader(writer.bytes(), "snapshot");
  EXPECT_EQ(reader.U8(), 200);
  EXPECT_EQ(reader.U64(), 0x0123456789abcdefull);
  EXPECT_EQ(reader.I64In(-5, 5), -5);
  EXPECT_TRUE(reader.Bool());
  EXPECT_TRUE(std::signbit(reader.FiniteDouble()));
  EXPECT_TRUE(std::isnan(reader.Double()));
  EXPECT_EQ(reader.Text(), "four rooms");
  EXPECT_TRUE(reader.Blob().empty());
  EXPECT_EQ(reader.RngState(), rng.state());
  reader.RequireEnd();
}

TEST(Bytes, IsLittleEndian) {
  ByteWriter writer;
  writer.U64(0x0102);
  EXPECT_EQ(writer.bytes()[0], std::byte{2});
  EXPECT_EQ(writer.bytes()[1], std::byte{1});
  EXPECT_EQ(writer.bytes().size(), 8u);
}

TEST(Bytes, RefusesTooFewBytes) {
  const std::vector<std::byte> three(3);
  EXPECT_EQ(UserErrorText([&] { ByteReader(three, "snapshot").U64(); }),
            "snapshot ends too early (3 bytes left, 8 wanted)");
  ByteWriter writer;
  writer.U64(std::numeric_limits<std::uint64_t>::max());
  EXPECT_THROW(ByteReader(writer.bytes(), "snapshot").Blob(), UserError);
}

TEST(Bytes, RefusesLeftOverBytes) {
  const std::vector<std::byte> three(3);
  ByteReader reader(three, "snapshot");
  reader.U8();
  EXPECT_EQ(UserErrorText([&] { reader.RequireEnd(); }), "snapshot has 2 bytes too many");
}

TEST(Bytes, RefusesImpossibleValues) {
  ByteWriter writer;
  writer.U8(2);
  EXPECT_EQ(UserErrorText([&] { ByteReader(writer.bytes(), "snapshot").Bool(); }),
            "snapshot holds 2 where true or false is stored");
  ByteWriter number;
  number.I64(9);
  EXPECT_EQ(UserErrorText([&] { ByteReader(number.bytes(), "snapshot").I64In(0, 8); }),
            "snapshot holds 9 where 0 to 8 is possible");
  ByteWriter infinite;
  infinite.Double(std::numeric_limits<double>::infinity());
  EXPECT_THROW(ByteReader(infinite.bytes(), "snapshot").FiniteDouble(), UserError);
}

}  // namespace
}  // namespace msrl
