#include "msrl/files/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/files/state.h"
#include "msrl/testing/cheap_refusal.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::CheapRefusal;
using ::msrl::testing::UserErrorText;

TensorFile Parse(std::string_view bytes) {
  return TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
}

// A file with this header and data, without a checksum: as other writers make it.
std::string Foreign(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

std::string Example() {
  static const std::vector<float> floats{1.5f, -0.0f, std::nanf(""), 4, 5, 6};
  static const std::vector<double> doubles{1e300, -1e-300};
  static const std::vector<std::int64_t> ints{INT64_MIN, 0, INT64_MAX};
  static const std::vector<std::uint8_t> bytes{1, 2, 255};
  TensorFileBuilder builder;
  builder.Add("bytes", bytes, {3});
  builder.Add("floats", floats, {2, 3});
  builder.Add("doubles", doubles, {2, 1});
  builder.Add("nothing", std::span<const float>(), {0, 7});
  builder.Add("ints", ints, {3});
  builder.SetMetadata("kind", "test \"quoted\" ü");
  return builder.Encode();
}

TEST(Safetensors, RoundTripKeepsAllBits) {
  const std::string bytes = Example();
  const TensorFile file = Parse(bytes);
  EXPECT_TRUE(file.has_checksum());
  EXPECT_EQ(file.metadata().at("kind"), "test \"quoted\" ü");
  EXPECT_EQ(file.metadata().size(), 1u);
  const auto floats = file.F32("floats", {2, 3});
  EXPECT_EQ(floats[0], 1.5f);
  EXPECT_TRUE(std::signbit(floats[1]));
  EXPECT_TRUE(std::isnan(floats[2]));
  EXPECT_EQ(floats[5], 6.0f);
  EXPECT_EQ(file.F64("doubles", {2, 1})[1], -1e-300);
  EXPECT_EQ(file.I64("ints", {3})[2], INT64_MAX);
  EXPECT_EQ(file.U8("bytes", {3})[2], 255);
  EXPECT_TRUE(file.F32("nothing", {0, 7}).empty());
  EXPECT_EQ(file.tensors().size(), 5u);
  // what other readers need: an aligned data part
  std::uint64_t header = 0;
  std::copy_n(bytes.data(), 8, reinterpret_cast<char*>(&header));
  EXPECT_EQ(header % 8, 0u);
}

TEST(Safetensors, WrongNameTypeOrShapeIsNamed) {
  const TensorFile file = Parse(Example());
  EXPECT_EQ(UserErrorText([&] { file.F32("float", {1}); }), "test: has no tensor 'float'");
  EXPECT_EQ(UserErrorText([&] {
              file.F32("floats", {3, 2});
            }),
            "test: tensor 'floats' is F32 [2, 3], expected F32 [3, 2]");
  EXPECT_NE(UserErrorText([&] {
              file.F64("floats", {2, 3});
            }).find("expected F64"),
            std::string::npos);
}

TEST(Safetensors, ReadsOtherWriters) {
  const TensorFile file = Parse(Foreign(
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"shape":[1],"data_offsets":[1,5],"dtype":"F32"}}  )",
      std::string("\x07\0\0\x80\x3f", 5)));
  EXPECT_FALSE(file.has_checksum());
  EXPECT_EQ(file.F32("a", {1})[0], 1.0f);  // not aligned in the file
  EXPECT_EQ(file.U8("b", {1})[0], 7);
  EXPECT_TRUE(Parse(Foreign("{}", "")).tensors().empty());
}

TEST(Safetensors, HostileHeadersAreRefused) {
  const std::string huge(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}");
  EXPECT_NE(UserErrorText([&] { Parse(huge); }).find("does not fit"), std::string::npos);
  EXPECT_NE(UserErrorText([&] { Parse("123"); }).find("only 3 bytes"), std::string::npos);
  const auto refuses = [](const std::string& header, const std::string& data,
                          const std::string& why) {
    const std::string text = UserErrorText([&] { Parse(Foreign(header, data)); });
    EXPECT_NE(text.find(why), std::string::npos) << header << " -> " << text;
  };
  const std::string four(4, '\0');
  refuses(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", four, "has 4 bytes");
  refuses(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", four, "is at [0, 8)");
  refuses(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", four, "is at [1, 4)");
  refuses(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", four, "its tensors 3");
  refuses(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", four, "is at [4, 0)");
  refuses(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
          R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          four, "is at [2, 4)");
  refuses(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
          R"("a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          four, "two tensors");
  // 2^32 * 2^30 * 4 bytes is 0 modulo 2^64
  refuses(R"({"a":{"dtype":"F32","shape":[4294967296,1073741824],"data_offsets":[0,0]}})", "",
          "has 0 bytes");
  refuses(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four, "negative");
  refuses(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", four, "dtype 'F16'");
  refuses(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}})", four, "unknown key");
  refuses(R"({"a":{"dtype":"U8","shape":[4]}})", four, "lacks");
  refuses(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[],"data_offsets":[0,4]}})", four,
          "twice");
  refuses(R"({"__metadata__":{"k":"1","k":"2"}})", "", "twice");
  refuses(R"({"__metadata__":{"k":{"deep":"1"}}})", "", "deep");
  refuses(R"({"a":)" + std::string(1'000'000, '['), "", "array");
  refuses("{\"a\"", "", "not JSON");
  refuses("{} x", "", "not JSON");
  refuses("[]", "", "begin with {");
}

TEST(Safetensors, EveryBitFlipAndEveryCutIsNoticed) {
  const std::string good = Example();
  int noticed = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    try {
      // a flip in the checksum's own name makes it a file without one
      if (!Parse(bad).has_checksum()) ++noticed;
    } catch (const UserError&) {
      ++noticed;
    }
  }
  EXPECT_EQ(noticed, static_cast<int>(8 * good.size()));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(Parse(good.substr(0, size)), UserError) << size;
  }
  EXPECT_THROW(Parse(good + "x"), UserError);
}

TEST(Safetensors, FileRoundTrip) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("msrl_tensors_" + std::to_string(getpid()) + ".safetensors");
  const std::vector<float> values{1, 2, 3};
  TensorFileBuilder builder;
  builder.Add("v", values, {3});
  builder.Write(path);
  EXPECT_EQ(TensorFile::Read(path).F32("v", {3})[2], 3.0f);
  std::filesystem::remove(path);
}

class HostileTensorFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  // The error of reading the file, which must come without its data being read.
  std::string Refused() const {
    return CheapRefusal([this] { TensorFile::Read(path_); });
  }
  void Write(const std::string& contents, off_t size = 0) const {
    std::ofstream(path_, std::ios::binary) << contents;
    if (size > 0) {
      ASSERT_EQ(truncate(path_.c_str(), size), 0);
    }
  }
  const std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                      ("msrl_hostile_" + std::to_string(getpid()) + ".safetensors");
};

TEST_F(HostileTensorFile, ASparseGiantIsRefusedByItsHeader) {
  Write("", off_t{30} << 30);
  EXPECT_NE(Refused().find("does not begin with {"), std::string::npos);
  Write(Foreign(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", ""), off_t{30} << 30);
  EXPECT_NE(Refused().find("its tensors 4"), std::string::npos);
  Write("", off_t{1} << 40);
  EXPECT_NE(Refused().find("more than"), std::string::npos);
}

TEST_F(HostileTensorFile, OneThatFitsItsHeaderNeedsTheMemory) {
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[60000000000],"data_offsets":[0,60000000000]}})";
  Write(Foreign(header, ""), static_cast<off_t>(8 + header.size()) + 60'000'000'000);
  EXPECT_NE(Refused().find("needs 60.0 GB of memory"), std::string::npos);
  const TensorFile read = TensorFile::ReadHeader(path_);
  EXPECT_EQ(read.tensors().at(0).shape, Shape{60'000'000'000});
}

TEST_F(HostileTensorFile, TooManyTensorsAreRefusedWhileTheyAreCounted) {
  const auto header = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) {
      text += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    }
    return text + "}";
  };
  Write(Foreign(header(1'500'000), ""));
  EXPECT_NE(Refused().find("does not fit"), std::string::npos);
  Write(Foreign(header(100'000), ""));
  EXPECT_NE(Refused().find("more than 50000 entries"), std::string::npos);
  Write(Foreign(header(50'000), ""));
  EXPECT_EQ(TensorFile::Read(path_).tensors().size(), 50'000U);
  std::string metadata = R"({"__metadata__":{)";
  for (int i = 0; i < 100'000; ++i) {
    metadata += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":"")";
  }
  Write(Foreign(metadata + "}}", ""));
  EXPECT_NE(Refused().find("more than 50000 entries"), std::string::npos);
}

TEST_F(HostileTensorFile, WhatEndsTooEarlyOrIsNoFileIsRefused) {
  Write(Foreign(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abc"));
  EXPECT_NE(Refused().find("is at [0, 4)"), std::string::npos);
  Write("1234567");
  EXPECT_NE(Refused().find("only 7 bytes"), std::string::npos);
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(Refused().find("it is a pipe"), std::string::npos);
}

// One of each.
struct Everything {
  std::int64_t count = 0;
  std::uint64_t word = 0;
  bool yes = false;
  double number = 0.0;
  float small = 0.0F;
  std::string text = "unread";
  std::vector<std::byte> bytes;
  Rng rng{1, "unread"};
  std::vector<float> floats = std::vector<float>(6);
  std::array<std::int64_t, 2> ints{};
  std::vector<std::uint8_t> parts = std::vector<std::uint8_t>(3);

  void Visit(const Archive& state) {
    const Archive inner = state.Child("part").Child("inner");
    inner.Int("count", count, -7, 0);
    inner.SameWord("word", word, "is another word");
    inner.Bool("yes", yes);
    inner.Double("number", number);
    inner.Double("small", small);
    inner.Text("text", text);
    inner.Bytes("bytes", bytes);
    inner.Random("rng", rng);
    state.Array("floats", floats, {2, 3});
    state.Array("ints", ints);
    std::vector<std::uint8_t> copy = parts;
    state.Temporary("parts", copy, {1, 3});
    if (state.loading()) parts = copy;
  }
};

Everything Filled() {
  Everything example;
  example.count = -7;
  example.word = UINT64_MAX;
  example.yes = true;
  example.number = -0.0;
  example.small = 0.1F;
  example.text = "";
  example.bytes = {std::byte{0}, std::byte{255}};
  example.rng = Rng(5, "test");
  example.rng.Normal();
  example.floats = {1, 2, 3, 4, 5, 6};
  example.ints = {INT64_MIN, INT64_MAX};
  example.parts = {7, 8, 9};
  return example;
}

TEST(Archive, RoundTrip) {
  Everything original = Filled();
  TensorFileBuilder builder;
  Archive(builder).Save(original);
  const std::string bytes = builder.Encode();
  const TensorFile file = Parse(bytes);
  EXPECT_EQ(file.F32("floats", {2, 3})[5], 6.0F);
  EXPECT_EQ(file.I64("ints", {2})[1], INT64_MAX);
  const Archive root(file);
  Everything read;
  read.word = original.word;  // fixed when it is made
  EXPECT_NE(UserErrorText([&] { root.RequireAllUsed(); }).find("floats"), std::string::npos);
  read.Visit(root);
  root.RequireAllUsed();
  EXPECT_TRUE(std::signbit(read.number));
  EXPECT_EQ(read.rng.state(), original.rng.state());
  EXPECT_EQ(read.rng.Normal(), original.rng.Normal());
  read.rng = original.rng = Filled().rng;
  TensorFileBuilder again;
  Archive(again).Save(read);
  EXPECT_EQ(again.Encode(), bytes);
}

TEST(Archive, WhatDoesNotFitIsRefused) {
  const Everything original = Filled();
  TensorFileBuilder builder;
  Archive(builder).Save(original);
  const std::string bytes = builder.Encode();
  const TensorFile file = Parse(bytes);
  const Archive root(file);
  const Archive inner = root.Child("part").Child("inner");
  const auto error = [](const auto& read) { return UserErrorText(read); };
  int count = 3;
  EXPECT_NE(error([&] { inner.Int("count", count, 0, 9); }).find("part/inner/count is -7"),
            std::string::npos);
  EXPECT_EQ(count, 3);
  EXPECT_NE(error([&] { inner.Int("none", count); }).find("no tensor"), std::string::npos);
  EXPECT_NE(error([&] { inner.SameWord("word", 1, "is other"); }).find("word is other"),
            std::string::npos);
  EXPECT_NE(error([&] { inner.Same("count", -6); }).find("count is -7"), std::string::npos);
  std::vector<float> floats(6);
  std::vector<double> doubles(6);
  EXPECT_THROW(root.Array("floats", floats), UserError);
  EXPECT_THROW(root.Array("floats", floats, {3, 2}), UserError);
  EXPECT_THROW(root.Array("floats", doubles, {2, 3}), UserError);
  EXPECT_THROW(inner.Double("count", doubles[0]), UserError);
  EXPECT_TRUE(root.Has("floats"));
  EXPECT_FALSE(inner.Has("floats"));
  // what could not be read must not be written
  TensorFileBuilder other;
  EXPECT_THROW(Archive(other).Int("count", count, 0, 2), InvariantError);
  EXPECT_THROW(Archive(file).Save(original), InvariantError);
}

}  // namespace
}  // namespace msrl
