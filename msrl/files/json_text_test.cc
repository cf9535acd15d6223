#include "msrl/files/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "msrl/testing/cheap_refusal.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::CheapRefusal;
using ::msrl::testing::UserErrorText;

using Json = nlohmann::json;

std::string Nested(std::size_t depth, char open = '[', char close = ']') {
  return std::string(depth, open) + std::string(depth, close);
}

std::string Problem(const std::string& text, const JsonLimits& limits = {}) {
  return UserErrorText([&] { ParseJson<Json>(text, "it", limits); });
}

TEST(JsonText, WhatPeopleWriteIsRead) {
  EXPECT_EQ(ParseJson<Json>(R"({"a": [1, {"b": "]]]\"[[["}]})", "it").at("a").at(1).at("b"),
            "]]]\"[[[");
  EXPECT_TRUE(ParseJson<Json>(Nested(64), "it").is_array());
  EXPECT_TRUE(TryParseJson<Json>("[]"));
}

TEST(JsonText, DepthIsLimitedBeforeParsing) {
  EXPECT_EQ(Problem(Nested(65)), "it is damaged: values nested deeper than 64");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  for (const std::string& hostile :
       {Nested(10'000'000), std::string(10'000'000, '['), objects,
        "{\"a\":" + Nested(100'000) + "}", "[\"\\\"\"," + Nested(100'000) + "]"}) {
    EXPECT_EQ(CheapRefusal([&] { ParseJson<Json>(hostile, "it"); }),
              "it is damaged: values nested deeper than 64");
    EXPECT_FALSE(TryParseJson<Json>(hostile));
  }
}

TEST(JsonText, SizeAndCountAreLimitedBeforeParsing) {
  EXPECT_EQ(Problem("[1, 2]", {.bytes = 5}), "it is damaged: more bytes than 5");
  EXPECT_EQ(Problem("[1,2,3]", {.values = 3}), "it is damaged: more values than 3");
  EXPECT_TRUE(ParseJson<Json>("[1,2]", "it", {.values = 3}).is_array());
  EXPECT_TRUE(ParseJson<Json>(R"(["a,b,c,d"])", "it", {.values = 2}).is_array());
  std::string many = "[";
  while (many.size() < 20'000'000) many += "{},";
  EXPECT_EQ(Problem(many), "it is damaged: more values than 5000000");
}

// The text itself may be long, hostile to terminals, or secret.
TEST(JsonText, AnErrorSaysWhereAndNotWhat) {
  const std::string secret(1'000'000, 's');
  EXPECT_EQ(Problem("[\"" + secret), "it is damaged: not JSON at byte 1000003");
  EXPECT_EQ(Problem("[1, \x1b]"), "it is damaged: not JSON at byte 5");
  EXPECT_EQ(Problem(""), "it is damaged: not JSON at byte 1");
  EXPECT_EQ(Problem("[1e999]"), "it is damaged: a number is too large");
}

}  // namespace
}  // namespace msrl
