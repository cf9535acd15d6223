#include "msrl/sweep/variants.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "msrl/builtin/builtin.h"
#include "msrl/core/check.h"
#include "msrl/sweep/plan.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;
using Texts = std::vector<std::string>;

constexpr const char* kHead = R"([sweep]
name = "try"
seeds = [0, 1]
steps = 1000

)";
constexpr const char* kReacher = R"([[env]]
id = "reacher"

)";
constexpr const char* kSac = R"([[method]]
name = "sac"
title = "SAC"
agent = "sac"
)";
constexpr const char* kRandom = R"([[method]]
name = "random"
agent = "random"
)";

SweepSpec Expanded(const std::string& text) {
  return WithVariants(ParseSweepSpec(kHead + text, "my.toml"), BuiltinAgents());
}
std::string ErrorOf(const std::string& text) {
  return UserErrorText([&] { Expanded(text); });
}
template <typename Items>
Texts Names(const Items& items) {
  Texts names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}
Texts Written(const SweepMethod& method) {
  Texts written;
  for (const SweepSetting& setting : method.written) written.push_back(setting.Assignment());
  return written;
}
double Number(const SweepSetting& setting) {
  double value = std::nan("");
  std::from_chars(setting.value.data(), setting.value.data() + setting.value.size(), value);
  return value;
}

TEST(VariantsTest, AMethodWithListsIsThereOncePerCombination) {
  const std::string text = std::string(kReacher) + kSac +
                           "settings = { hidden_width = [64, 128], gamma = 0.9, "
                           "actor_learning_rate = [1e-3, 3e-4] }\n" +
                           kRandom;
  const SweepSpec spec = Expanded(text);
  EXPECT_EQ(Names(spec.methods),
            (Texts{"sac-actor_learning_rate-0.001-hidden_width-64",
                   "sac-actor_learning_rate-0.001-hidden_width-128",
                   "sac-actor_learning_rate-3e-04-hidden_width-64",
                   "sac-actor_learning_rate-3e-04-hidden_width-128", "random"}));
  const SweepMethod& third = spec.methods[2];
  EXPECT_EQ(third.title, "SAC, actor_learning_rate 3e-04, hidden_width 64");
  EXPECT_EQ(third.variant_of, "sac");
  EXPECT_EQ(third.varied, (Texts{"actor_learning_rate=3e-04", "hidden_width=64"}));
  EXPECT_EQ(Written(third), (Texts{"actor_learning_rate=3e-04", "gamma=0.9", "hidden_width=64"}));
  EXPECT_EQ(spec.methods[4].variant_of, "");
  EXPECT_TRUE(spec.methods[4].varied.empty());
}

TEST(VariantsTest, SharedListsMultiplyThoseThatKnowThemAndDoNotSayOtherwise) {
  const std::string text = R"([settings]
hidden_width = [16, 32]
critic_layer_norm = true
)" + std::string(kReacher) +
                           kSac + kRandom + R"([[method]]
name = "own"
agent = "sac"
settings = { hidden_width = 8 }
[[method]]
name = "alone"
agent = "sac"
shared = false
)";
  const SweepPlan plan = MakePlan(ParseSweepSpec(kHead + text, "my.toml"), BuiltinRegistries());
  EXPECT_EQ(Names(plan.methods),
            (Texts{"sac-hidden_width-16", "sac-hidden_width-32", "random", "own", "alone"}));
  EXPECT_EQ(plan.methods[1].settings, (Texts{"critic_layer_norm=true", "hidden_width=32"}));
  EXPECT_EQ(plan.methods[3].settings, (Texts{"critic_layer_norm=true", "hidden_width=8"}));
  EXPECT_TRUE(plan.methods[4].settings.empty());
  // what makes a variant is on disk
  const SweepPlan read = PlanFromJson(ToJson(plan), "sweep.json");
  EXPECT_EQ(read.methods[1].variant_of, "sac");
  EXPECT_EQ(read.methods[1].varied, (Texts{"hidden_width=32"}));
  EXPECT_EQ(read.runs[1].path, "reacher/sac-hidden_width-32/0");
}

TEST(VariantsTest, EnvironmentsToo) {
  const std::string text = std::string(R"([[env]]
id = "reacher"
settings = { hidden = ["nothing", "goal"] }
[[env]]
id = "hopper"
)") + kSac + "envs = [\"reacher\"]\n" +
                           kRandom;
  const SweepPlan plan = MakePlan(ParseSweepSpec(kHead + text, "my.toml"), BuiltinRegistries());
  EXPECT_EQ(Names(plan.envs), (Texts{"reacher-hidden-nothing", "reacher-hidden-goal", "hopper"}));
  EXPECT_EQ(plan.envs[1].settings, (Texts{"hidden=goal"}));
  EXPECT_EQ(plan.envs[1].id, "reacher");
  // a method that names the environment runs in all of its variants
  Texts paths;
  for (const PlannedRun& run : plan.runs) {
    if (run.seed == 0) paths.push_back(run.path);
  }
  EXPECT_EQ(paths, (Texts{"reacher-hidden-nothing/sac/0", "reacher-hidden-nothing/random/0",
                          "reacher-hidden-goal/sac/0", "reacher-hidden-goal/random/0",
                          "hopper/random/0"}));
}

constexpr const char* kSearch = R"([search]
trials = 200
seed = 3
[search.settings]
actor_learning_rate = { log = [1e-4, 1e-2] }
gamma = { range = [0.9, 0.999] }
batch_size = { range = [32, 34] }
hidden_width = { log = [8, 512] }
critic_layer_norm = [true, false]
)";

TEST(VariantsTest, SearchDrawsEvenlyWithinItsRanges) {
  const SweepSpec spec = Expanded(std::string(kReacher) + kSac + kRandom + kSearch);
  ASSERT_EQ(spec.methods.size(), 201U);
  EXPECT_EQ(spec.methods[0].name, "sac-trial-1");
  EXPECT_EQ(spec.methods[199].name, "sac-trial-200");
  EXPECT_EQ(spec.methods[200].name, "random");
  EXPECT_TRUE(spec.methods[0].title.starts_with("SAC, trial 1, actor_learning_rate 0.00"));
  EXPECT_EQ(spec.methods[0].variant_of, "sac");
  EXPECT_EQ(spec.methods[0].varied, Written(spec.methods[0]));
  int low_rates = 0, low_gammas = 0, low_widths = 0;
  std::map<std::string, int> sizes, norms;
  for (int m = 0; m < 200; ++m) {
    const std::vector<SweepSetting>& drawn = spec.methods[static_cast<std::size_t>(m)].written;
    ASSERT_EQ(drawn.size(), 5U);
    const double rate = Number(drawn[0]), gamma = Number(drawn[1]), width = Number(drawn[3]);
    EXPECT_TRUE(rate >= 1e-4 && rate <= 1e-2) << drawn[0].value;
    EXPECT_TRUE(gamma >= 0.9 && gamma <= 0.999) << drawn[1].value;
    EXPECT_TRUE(width >= 8 && width <= 512 && width == std::round(width)) << drawn[3].value;
    low_rates += rate < 1e-3 ? 1 : 0;
    low_gammas += gamma < 0.9495 ? 1 : 0;
    low_widths += width < 64 ? 1 : 0;
    ++sizes[drawn[2].value];
    ++norms[drawn[4].value];
  }
  // half of 200, four deviations to each side
  for (const int count : {low_rates, low_gammas, low_widths, norms["true"], norms["false"]}) {
    EXPECT_TRUE(count > 71 && count < 129) << count;
  }
  EXPECT_EQ(sizes.size(), 3U);
  for (const char* size : {"32", "33", "34"}) EXPECT_GT(sizes[size], 40) << size;
}

TEST(VariantsTest, TrialsStayWhatTheyAre) {
  const std::string rest = std::string(kReacher) + kSac;
  const SweepSpec spec = Expanded(rest + kSearch);
  EXPECT_EQ(Written(Expanded(rest + kSearch).methods[7]), Written(spec.methods[7]));
  // fewer trials, one setting less: the others as before
  const SweepSpec less = Expanded(rest + R"([search]
trials = 8
seed = 3
[search.settings]
gamma = { range = [0.9, 0.999] }
)");
  ASSERT_EQ(less.methods.size(), 8U);
  EXPECT_EQ(Written(less.methods[7]), Texts{Written(spec.methods[7])[1]});
  // another seed draws otherwise; two methods draw the same
  std::string other = kSearch;
  other.replace(other.find("seed = 3"), 8, "seed = 4");
  const SweepSpec two =
      Expanded(rest +
               "[[method]]\nname = \"td3\"\nagent = \"td3\"\n[search]\ntrials = 2\nseed = 3\n"
               "[search.settings]\ngamma = { range = [0.9, 0.999] }\n");
  EXPECT_EQ(Written(two.methods[1]), Written(two.methods[3]));
  EXPECT_NE(Written(Expanded(rest + other).methods[7]), Written(spec.methods[7]));
}

TEST(VariantsTest, SearchOverAGridAndOnlySomeMethods) {
  const std::string text = std::string(kReacher) + kSac +
                           "settings = { hidden_width = [16, 32] }\n"
                           "[[method]]\nname = \"td3\"\nagent = \"td3\"\n"
                           "[search]\ntrials = 2\nmethods = [\"sac\"]\n"
                           "[search.settings]\nbatch_size = [32, 64]\n";
  const SweepSpec spec = Expanded(text);
  EXPECT_EQ(Names(spec.methods),
            (Texts{"sac-hidden_width-16-trial-1", "sac-hidden_width-16-trial-2",
                   "sac-hidden_width-32-trial-1", "sac-hidden_width-32-trial-2", "td3"}));
  EXPECT_EQ(spec.methods[3].variant_of, "sac");
  EXPECT_EQ(spec.methods[3].varied.size(), 2U);
}

TEST(VariantsTest, EveryMistakeIsNamedWithItsLine) {
  const std::string sac = std::string(kReacher) + kSac;  // the method's settings are line 13
  const std::string search = "[search]\ntrials = 2\n[search.settings]\n";  // line 13, settings 16
  const std::pair<std::string, const char*> mistakes[] = {
      {sac + "settings = { hidden_width = [] }",
       "my.toml:13: setting hidden_width is an empty list"},
      {sac + "settings = { hidden_width = [16, 16] }",
       "my.toml:13: setting hidden_width has 16 twice"},
      {sac + "settings = { hidden_width = [[16]] }", "my.toml:13: setting hidden_width must be"},
      {sac + "settings = { hidden_width = [16, nan] }", "my.toml:13: setting hidden_width must be"},
      {sac + "settings = { preset = [\"a b\", \"a_b\"] }",
       "my.toml:9: two methods are called 'sac-preset-a_b'"},
      {sac + "settings = { preset = [\"" + std::string(100, 'x') + "\"] }",
       "has a name of more than 100 letters"},
      {sac + search, "my.toml:13: [search] needs settings"},
      {sac + "[search]\n[search.settings]\ngamma = [0.9]", "my.toml:13: [search] needs trials"},
      {sac + "[search]\ntrials = 0", "my.toml:14: trials is 0; it must be 1 to 1000"},
      {sac + "[search]\ntrails = 3", "unknown key 'trails' in [search]; did you mean 'trials'?"},
      {sac + search + "gamma = 0.9", "my.toml:16: setting gamma must be a list of choices"},
      {sac + search + "gamma = { rnage = [0, 1] }", "my.toml:16: setting gamma must be a list"},
      {sac + search + "gamma = { range = [0.9] }", "my.toml:16: setting gamma must be a list"},
      {sac + search + "gamma = { range = [0.9, \"1\"] }", "my.toml:16: setting gamma must be"},
      {sac + search + "gamma = { range = [0.9, 0.9] }",
       "my.toml:16: setting gamma: a range goes from the smaller to the larger"},
      {sac + search + "gamma = { range = [0.9, inf] }", "my.toml:16: setting gamma: a range goes"},
      {sac + search + "gamma = { log = [0, 1] }",
       "my.toml:16: setting gamma: a logarithmic range begins above 0"},
      {sac + search + "batch_size = { range = [1, 2000000000000000] }", "at most 1e15"},
      {sac + search + "gama = [0.9, 0.99]",
       "my.toml:16: no agent that is searched has the setting 'gama'; did you mean 'gamma'?"},
      {sac + "settings = { gamma = 0.9 }\n" + search + "gamma = [0.9, 0.99]",
       "my.toml:17: setting gamma is searched, but method 'sac' sets it in line 13"},
      {"[settings]\ngamma = 0.9\n" + sac + search + "gamma = [0.9, 0.99]",
       "setting gamma is searched, but [settings] sets it in line 7"},
      {sac + "[search]\ntrials = 2\nmethods = [\"sack\"]\n[search.settings]\ngamma = [0.9]",
       "my.toml:13: [search] names 'sack', which is no [[method]]; did you mean 'sac'?"},
      {sac + kRandom +
           "[search]\ntrials = 2\nmethods = [\"sac\", \"random\"]\n[search.settings]\n"
           "gamma = [0.9, 0.99]",
       "the agent of 'random' has none of the searched settings"},
      {"[source]\nepisodes = 9\n[[branch]]\nname = \"b\"\nsettings = { width = [8, 16] }\n" + sac,
       "my.toml:10: setting width has one value here, no list: write a [[branch]] for each"},
  };
  for (const auto& [text, wanted] : mistakes) {
    const std::string error = ErrorOf(text);
    EXPECT_NE(error.find(wanted), std::string::npos) << text << "\n  got " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(VariantsTest, TooManyAreRefusedBeforeTheyAreMade) {
  std::string list;
  for (int i = 0; i < 400; ++i) list += std::to_string(i) + ",";
  const std::string wide = "settings = { hidden_width = [" + list + "], batch_size = [" + list +
                           "], gamma = [" + list + "] }\n";
  EXPECT_NE(ErrorOf(std::string(kReacher) + kSac + wide).find("'sac' has more than 1000 variants"),
            std::string::npos);
  std::string methods = kReacher;
  for (const char* name : {"a", "b", "c"}) {
    methods += "[[method]]\nname = \"" + std::string(name) + "\"\nagent = \"sac\"\n" +
               "settings = { hidden_width = [" + list + "] }\n";
  }
  EXPECT_NE(ErrorOf(methods).find("more than 1000 methods, variants included"), std::string::npos);
  // a value that the agent refuses is found when the plan is made, with its line
  const SweepSpec bad = ParseSweepSpec(
      std::string(kHead) + kReacher + kSac + "settings = { hidden_width = [8, -1] }\n", "my.toml");
  EXPECT_NE(UserErrorText([&] {
              MakePlan(bad, BuiltinRegistries());
            }).find("my.toml:13: method 'sac-hidden_width--1': setting 'hidden_width' must be"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
