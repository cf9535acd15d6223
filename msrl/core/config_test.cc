#include "msrl/core/config.h"

#include <gtest/gtest.h>

#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

struct ExampleConfig {
  double learning_rate = 3e-4;
  int batch_size = 128;
  std::int64_t steps = 2'000'000;
  bool anchored = false;
  std::string objective = "shape";

  template <typename V>
  void Fields(V&& visit) {
    visit("learning_rate", learning_rate, "step size");
    visit("batch_size", batch_size, "transitions per update");
    visit("steps", steps, "environment steps");
    visit("anchored", anchored, "pull the branch to its source");
    visit("objective", objective, "pretraining objective", {"paper", "shape"});
  }
};

std::string MessageOf(const std::string& assignment) {
  ExampleConfig config;
  return testing::UserErrorText([&] { SetField(config, assignment); });
}

TEST(Config, SetsEveryKindOfField) {
  ExampleConfig config;
  SetField(config, "learning_rate=1e-3");
  SetField(config, "batch_size=256");
  SetField(config, "steps=5000000000");
  SetField(config, "anchored=true");
  SetField(config, "objective=paper");
  EXPECT_EQ(config.learning_rate, 1e-3);
  EXPECT_EQ(config.batch_size, 256);
  EXPECT_EQ(config.steps, 5'000'000'000);
  EXPECT_TRUE(config.anchored);
  EXPECT_EQ(config.objective, "paper");
}

TEST(Config, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(MessageOf("lerning_rate=1"),
            "unknown setting 'lerning_rate'; did you mean 'learning_rate'?");
}

TEST(Config, RefusesAKeyWithoutAValue) {
  EXPECT_EQ(MessageOf("objective"), "'objective' is not a setting; write key=value");
}

TEST(Config, RefusesValuesOfTheWrongKind) {
  EXPECT_EQ(MessageOf("batch_size=12.5"), "setting 'batch_size' needs a whole number, got '12.5'");
  EXPECT_EQ(MessageOf("batch_size=99999999999"),
            "setting 'batch_size' needs a whole number, got '99999999999'");
  EXPECT_EQ(MessageOf("learning_rate=fast"), "setting 'learning_rate' needs a number, got 'fast'");
  EXPECT_EQ(MessageOf("learning_rate=nan"),
            "setting 'learning_rate' needs a finite number, got 'nan'");
  EXPECT_EQ(MessageOf("anchored=yes"), "setting 'anchored' needs true or false, got 'yes'");
  EXPECT_EQ(MessageOf("objective=papr"),
            "setting 'objective' needs one of paper shape, got 'papr'");
  EXPECT_EQ(MessageOf("steps="), "setting 'steps' needs a whole number, got ''");
}

TEST(Config, ListsFieldsWithValuesAndMeaning) {
  const std::vector<ConfigField> fields = ListFields(ExampleConfig{});
  ASSERT_EQ(fields.size(), 5u);
  EXPECT_EQ(fields[0].value, "3e-04");
  EXPECT_EQ(fields[4].type, "paper | shape");
  EXPECT_EQ(fields[4].value, "\"shape\"");
}

TEST(Config, WritesWhatItReads) {
  ExampleConfig changed;
  changed.learning_rate = 0.1;
  changed.objective = "paper";
  ExampleConfig restored;
  for (const ConfigField& field : ListFields(changed)) {
    std::string value = field.value;
    if (value.front() == '"') value = value.substr(1, value.size() - 2);
    SetField(restored, field.key, value);
  }
  EXPECT_EQ(ToToml(ListFields(restored)), ToToml(ListFields(changed)));
  EXPECT_NE(ToToml(ListFields(restored)), ToToml(ListFields(ExampleConfig{})));
}

TEST(Config, TomlMarksWholeDoublesAsFloats) {
  ExampleConfig config;
  config.learning_rate = 2.0;
  EXPECT_EQ(ListFields(config)[0].value, "2.0");
}

}  // namespace
}  // namespace msrl
