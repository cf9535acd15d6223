#include "msrl/run/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

namespace msrl {
namespace {

// A decoder that shares no code with the writer: bit by bit CRC, protobuf by the wire format.
std::uint32_t SlowCrc32c(const std::string& bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((crc ^ (static_cast<unsigned char>(c) >> bit)) & 1) != 0;
      crc = (crc >> 1) ^ (carry ? 0x82F63B78u : 0u);
    }
  }
  return ~crc;
}

template <typename T>
T Take(std::string& bytes) {
  T value;
  EXPECT_GE(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.erase(0, sizeof value);
  return value;
}

std::string TakeRecord(std::string& file) {
  const auto unmask = [](std::uint32_t masked) {
    const std::uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
  };
  const std::string length_bytes = file.substr(0, 8);
  const auto length = Take<std::uint64_t>(file);
  EXPECT_EQ(unmask(Take<std::uint32_t>(file)), SlowCrc32c(length_bytes));
  const std::string data = file.substr(0, length);
  EXPECT_EQ(data.size(), length);
  file.erase(0, length);
  EXPECT_EQ(unmask(Take<std::uint32_t>(file)), SlowCrc32c(data));
  return data;
}

std::uint64_t TakeVarint(std::string& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = Take<std::uint8_t>(bytes);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

// Field number -> raw values.
std::multimap<std::uint64_t, std::string> Fields(std::string message) {
  std::multimap<std::uint64_t, std::string> fields;
  while (!message.empty()) {
    const std::uint64_t tag = TakeVarint(message);
    std::size_t size = 0;
    switch (tag & 7) {
      case 0: {
        const std::uint64_t value = TakeVarint(message);
        fields.emplace(tag >> 3, std::string(reinterpret_cast<const char*>(&value), 8));
        continue;
      }
      case 1:
        size = 8;
        break;
      case 2:
        size = TakeVarint(message);
        break;
      case 5:
        size = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return fields;
    }
    fields.emplace(tag >> 3, message.substr(0, size));
    message.erase(0, size);
  }
  return fields;
}

TEST(EventFile, AnIndependentDecoderReadsIt) {
  const std::vector<std::pair<std::string, double>> scalars{{"train/return", -1.25},
                                                            {"loss/critic", 3.0e10}};
  std::string file = EncodeEventHeader(1.5e9) + EncodeScalars(1.5e9 + 0.5, 3'000'000'000, scalars);
  auto header = Fields(TakeRecord(file));
  EXPECT_EQ(header.find(3)->second, "brain.Event:2");
  std::string time = header.find(1)->second;
  EXPECT_EQ(Take<double>(time), 1.5e9);

  auto event = Fields(TakeRecord(file));
  EXPECT_TRUE(file.empty());
  std::string step = event.find(2)->second;
  EXPECT_EQ(Take<std::int64_t>(step), 3'000'000'000);
  auto values = Fields(event.find(5)->second);
  ASSERT_EQ(values.size(), 2u);
  std::size_t i = 0;
  for (const auto& [number, value] : values) {
    EXPECT_EQ(number, 1u);
    auto parts = Fields(value);
    EXPECT_EQ(parts.find(1)->second, scalars[i].first);
    std::string number_bytes = parts.find(2)->second;
    EXPECT_EQ(Take<float>(number_bytes), static_cast<float>(scalars[i].second));
    ++i;
  }
}

TEST(EventFile, LengthDoesNotDependOnTheTime) {
  const std::vector<std::pair<std::string, double>> scalars{{"a", 1.0}};
  EXPECT_EQ(EncodeScalars(0.0, 5, scalars).size(), EncodeScalars(1.7e9, 5, scalars).size());
}

}  // namespace
}  // namespace msrl
