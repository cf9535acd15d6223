#include "msrl/core/config.h"

#include <gtest/gtest.h>

#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

enum class Objective { kPaper, kShape, kNeither };
constexpr auto EnumNames(Objective) { return Names("paper", "shape", "neither"); }
constexpr Objective kUseful[] = {Objective::kPaper, Objective::kShape};

struct ExampleConfig {
  double learning_rate = 3e-4;
  int batch_size = 128;
  std::int64_t steps = 2'000'000;
  std::uint64_t seed = 0;
  bool anchored = false;
  Objective objective = Objective::kShape;
  std::optional<Objective> control;
  std::string file;
  std::vector<Objective> all;
  double gamma = 0.99;
  int size = 0;

  template <typename V>
  void Fields(V&& visit) {
    visit("learning_rate", learning_rate, "step size", Positive());
    visit("batch_size", batch_size, "transitions per update", Between(2, 512).Even());
    visit("steps", steps, "environment steps", AtLeast(1));
    visit("seed", seed, "of all draws", NotNegative());
    visit("anchored", anchored, "pull the branch to its source");
    visit("objective", objective, "pretraining objective", kUseful);
    visit("control", control, "what is broken");
    visit("file", file, "where from");
    visit("all", all, "several");
    visit("gamma", gamma, "discount", Between(0, 1).OpenAbove());
    visit("size", size, "nodes; 0: sampled", Between(4, 32).Or(0));
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
  SetField(config, "seed=18446744073709551615");
  SetField(config, "control=neither");
  SetField(config, "file=a=b");
  SetField(config, "all=shape,paper");
  EXPECT_EQ(config.learning_rate, 1e-3);
  EXPECT_EQ(config.batch_size, 256);
  EXPECT_EQ(config.steps, 5'000'000'000);
  EXPECT_TRUE(config.anchored);
  EXPECT_EQ(config.objective, Objective::kPaper);
  EXPECT_EQ(config.seed, ~std::uint64_t{0});
  EXPECT_EQ(config.control, Objective::kNeither);
  EXPECT_EQ(config.file, "a=b");
  EXPECT_EQ(config.all, (std::vector{Objective::kShape, Objective::kPaper}));
  SetField(config, "control=sampled");
  EXPECT_EQ(config.control, std::nullopt);
  SetField(config, "all=");
  EXPECT_TRUE(config.all.empty());
}

TEST(Config, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(MessageOf("lerning_rate=1"),
            "unknown setting 'lerning_rate'; did you mean 'learning_rate'?");
}

TEST(Config, ReadsWhatPeopleWrite) {
  ExampleConfig config;
  SetField(config, "steps=1e5");
  SetField(config, "batch_size=2.56e2");
  SetField(config, "anchored=True");
  EXPECT_EQ(config.steps, 100'000);
  EXPECT_EQ(config.batch_size, 256);
  EXPECT_TRUE(config.anchored);
  SetField(config, "anchored=False");
  SetField(config, "steps=9007199254740992.0");
  EXPECT_FALSE(config.anchored);
  EXPECT_EQ(config.steps, 9'007'199'254'740'992);
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
  EXPECT_EQ(MessageOf("batch_size=1.5e0"),
            "setting 'batch_size' needs a whole number, got '1.5e0'");
  EXPECT_EQ(MessageOf("batch_size=1e10"), "setting 'batch_size' needs a whole number, got '1e10'");
  EXPECT_EQ(MessageOf("steps=1e18"), "setting 'steps' needs a whole number, got '1e18'");
  EXPECT_EQ(MessageOf("steps=inf"), "setting 'steps' needs a whole number, got 'inf'");
  EXPECT_EQ(MessageOf("seed=-1e0"), "setting 'seed' needs a whole number, got '-1e0'");
  EXPECT_EQ(MessageOf("anchored=yes"), "setting 'anchored' needs true or false, got 'yes'");
  EXPECT_EQ(MessageOf("objective=papr"),
            "setting 'objective' needs one of paper shape, got 'papr'");
  EXPECT_EQ(MessageOf("objective=neither"),
            "setting 'objective' needs one of paper shape, got 'neither'");
  EXPECT_EQ(MessageOf("control=all"),
            "setting 'control' needs one of sampled paper shape neither, got 'all'");
  EXPECT_EQ(MessageOf("all=paper,all"),
            "setting 'all' needs one of paper shape neither, got 'all'");
  EXPECT_EQ(MessageOf("seed=-1"), "setting 'seed' needs a whole number, got '-1'");
  EXPECT_EQ(MessageOf("steps="), "setting 'steps' needs a whole number, got ''");
}

TEST(Config, RefusesValuesOutOfRange) {
  EXPECT_EQ(MessageOf("learning_rate=0"), "setting 'learning_rate' must be positive, got 0");
  EXPECT_EQ(MessageOf("learning_rate=-1e-3"),
            "setting 'learning_rate' must be positive, got -0.001");
  EXPECT_EQ(MessageOf("steps=0"), "setting 'steps' must be at least 1, got 0");
  EXPECT_EQ(MessageOf("gamma=1"), "setting 'gamma' must be in [0, 1), got 1");
  EXPECT_EQ(MessageOf("size=3"), "setting 'size' must be 4 to 32 or 0, got 3");
  EXPECT_EQ(MessageOf("batch_size=7"), "setting 'batch_size' must be 2 to 512 and even, got 7");
  for (const char* good : {"gamma=0", "size=0", "size=4", "size=32", "batch_size=2", "steps=1"}) {
    EXPECT_EQ(MessageOf(good), "no error") << good;
  }
}

TEST(Config, ARefusedValueChangesNothing) {
  ExampleConfig config;
  EXPECT_THROW(SetField(config, "size=3"), UserError);
  EXPECT_THROW(SetField(config, "all=paper,all"), UserError);
  EXPECT_EQ(ToToml(ListFields(config)), ToToml(ListFields(ExampleConfig{})));
}

TEST(Config, ChecksAWholeStruct) {
  ExampleConfig config;
  EXPECT_EQ(&RequireInRange(config), &config);
  config.gamma = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(testing::UserErrorText([&] { RequireInRange(config); }),
            "setting 'gamma' must be in [0, 1), got nan");
  config.gamma = 0.0;
  config.objective = Objective::kNeither;
  EXPECT_EQ(testing::UserErrorText([&] { RequireInRange(config); }),
            "setting 'objective' needs one of paper shape, got 'neither'");
}

TEST(Config, RangesContainTheirBordersUnlessOpen) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Range& range : {AnyNumber(), Positive(), AtLeast(2), Between(0, 1).Or(-1)}) {
    EXPECT_FALSE(range.Contains(infinity)) << range.Text();
    EXPECT_FALSE(range.Contains(-infinity)) << range.Text();
    EXPECT_FALSE(range.Contains(std::numeric_limits<double>::quiet_NaN())) << range.Text();
  }
  EXPECT_TRUE(AnyNumber().Contains(-1e300));
  EXPECT_FALSE(Positive().Contains(0.0));
  EXPECT_TRUE(NotNegative().Contains(0.0));
  EXPECT_TRUE(Between(0, 1).OpenBelow().Contains(1.0));
  EXPECT_FALSE(Between(0, 1).OpenBelow().Contains(0.0));
  EXPECT_TRUE(Between(0, 1).Or(-1).Contains(-1.0));
  EXPECT_FALSE(Between(0, 1).Or(-1).Contains(-0.5));
}

TEST(Config, RangesSayWhatTheyAre) {
  EXPECT_EQ(AnyNumber().Text(), "");
  EXPECT_EQ(Positive().Text(), "positive");
  EXPECT_EQ(NotNegative().Text(), "at least 0");
  EXPECT_EQ(Between(0.1, 3).Or(0).Text(), "0.1 to 3 or 0");
  EXPECT_EQ(Between(1, 1e12).Text(), "1 to 1000000000000");
  EXPECT_EQ(Between(0, 1).OpenBelow().Text(), "in (0, 1]");
  EXPECT_EQ((Range{.high = 2}).Text(), "at most 2");
}

TEST(Config, ListsFieldsWithValuesAndMeaning) {
  const std::vector<ConfigField> fields = ListFields(ExampleConfig{});
  ASSERT_EQ(fields.size(), 11u);
  EXPECT_EQ(fields[0].value, "3e-04");
  EXPECT_EQ(fields[0].Accepts(), "number, positive");
  EXPECT_EQ(fields[5].type, "paper | shape");
  EXPECT_EQ(fields[5].value, "\"shape\"");
  EXPECT_EQ(fields[6].value, "\"sampled\"");
  EXPECT_EQ(fields[8].type, "list of paper | shape | neither");
  EXPECT_EQ(fields[8].value, "[]");
}

TEST(Config, WritesWhatItReads) {
  ExampleConfig changed;
  changed.learning_rate = 0.1;
  changed.objective = Objective::kPaper;
  changed.control = Objective::kShape;
  changed.file = "a \"b\", [c]\\d";
  changed.all = {Objective::kShape, Objective::kNeither};
  ExampleConfig restored;
  for (const ConfigField& field : ListFields(changed)) SetField(restored, field.key, field.Text());
  EXPECT_EQ(restored.file, changed.file);
  EXPECT_EQ(restored.all, changed.all);
  EXPECT_EQ(ToToml(ListFields(restored)), ToToml(ListFields(changed)));
  EXPECT_NE(ToToml(ListFields(restored)), ToToml(ListFields(ExampleConfig{})));
}

TEST(Config, TomlMarksWholeDoublesAsFloats) {
  ExampleConfig config;
  config.learning_rate = 2.0;
  EXPECT_EQ(ListFields(config)[0].value, "2.0");
}

TEST(Config, TomlShowsRangesAndIdentityDoesNot) {
  const std::vector<ConfigField> fields = ListFields(ExampleConfig{});
  EXPECT_TRUE(ToToml(fields).starts_with("# step size (number, positive)\nlearning_rate = 3e-04"));
  EXPECT_TRUE(IdentityText(fields).starts_with("# step size (number)\nlearning_rate = 3e-04"));
}

TEST(EnumNames, GoBothWays) {
  EXPECT_EQ(EnumName(Objective::kShape), "shape");
  EXPECT_EQ(EnumFromName<Objective>("neither"), Objective::kNeither);
  EXPECT_EQ(EnumFromName<Objective>("all"), std::nullopt);
  EXPECT_EQ(testing::UserErrorText([] { ParseEnum<Objective>("objective", "papr"); }),
            "unknown objective 'papr'; did you mean 'paper'? (paper, shape, neither)");
  EXPECT_THROW(EnumName(static_cast<Objective>(3)), InvariantError);
}

}  // namespace
}  // namespace msrl
