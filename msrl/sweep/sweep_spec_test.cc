#include "msrl/sweep/sweep_spec.h"

#include <gtest/gtest.h>

#include "msrl/core/check.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;

constexpr const char* kGood = R"([sweep]
name = "try"
seeds = "3-5"
steps = 1000

[settings]
hidden_width = 16
actor_learning_rate = 1e-3

[source]
episodes = 100
seed = 7

[[branch]]
name = "shape"
updates = 50
seeds = [1, 2]
settings = { width = 16 }

[[env]]
id = "reacher"

[[env]]
id = "four-rooms-sparse"
name = "rooms"
family = "Rooms"
steps = 500
eval_every = 100
eval_episodes = 3

[[method]]
name = "sac"
agent = "sac"
envs = ["rooms"]

[[method]]
name = "msrl"
title = "MSRL"
agent = "msrl"
init = "shape"
paper = "msrl-init"
[method.settings]
library = false
lift = "compact"
)";

// kGood with one text replaced by another.
std::string With(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  try {
    ParseSweepSpec(text, "my.toml");
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

TEST(SweepSpecTest, ReadsWhatIsThereAndFillsInTheRest) {
  const SweepSpec spec = ParseSweepSpec(kGood, "my.toml");
  EXPECT_EQ(spec.name, "try");
  EXPECT_EQ(spec.seeds, (std::vector<std::uint64_t>{3, 4, 5}));
  ASSERT_EQ(spec.settings.size(), 2U);
  EXPECT_EQ(spec.settings[0].Assignment(), "hidden_width=16");
  EXPECT_EQ(spec.settings[1].Assignment(), "actor_learning_rate=0.001");
  EXPECT_EQ(spec.settings[1].line, 8);
  ASSERT_TRUE(spec.source);
  EXPECT_EQ(spec.source->held_out_episodes, 25);
  ASSERT_EQ(spec.branches.size(), 1U);
  EXPECT_EQ(spec.branches[0].objective, "shape");
  EXPECT_EQ(spec.branches[0].seeds, (std::vector<std::uint64_t>{1, 2}));
  ASSERT_EQ(spec.envs.size(), 2U);
  EXPECT_EQ(spec.envs[0].name, "reacher");
  EXPECT_EQ(spec.envs[0].steps, 1000);
  EXPECT_EQ(spec.envs[0].eval_episodes, 0);
  EXPECT_EQ(spec.envs[1].steps, 500);
  ASSERT_EQ(spec.methods.size(), 2U);
  EXPECT_EQ(spec.methods[0].title, "sac");
  EXPECT_EQ(spec.methods[0].component, "none");
  EXPECT_EQ(spec.methods[1].component, "matrix-value branch");
  ASSERT_EQ(spec.methods[1].written.size(), 2U);
  EXPECT_EQ(spec.methods[1].written[0].Assignment(), "library=false");
}

struct Mistake {
  const char* from;
  const char* to;
  const char* error;
};

TEST(SweepSpecTest, EveryMistakeIsNamedWithItsLine) {
  const Mistake mistakes[] = {
      {"seeds = \"3-5\"", "sedes = \"3-5\"",
       "my.toml:3: unknown key 'sedes' in [sweep]; did you mean 'seeds'?"},
      {"[settings]", "[setings]", "unknown key 'setings' in the file; did you mean 'settings'?"},
      {"steps = 500", "stpes = 500",
       "my.toml:27: unknown key 'stpes' in [[env]]; did you mean 'steps'?"},
      {"agent = \"sac\"", "agnet = \"sac\"",
       "my.toml:33: unknown key 'agnet' in [[method]]; did you mean 'agent'?"},
      {"updates = 50", "update = 50", "my.toml:16: unknown key 'update' in [[branch]]"},
      {"episodes = 100", "epsiodes = 100", "my.toml:11: unknown key 'epsiodes' in [source]"},
      {"name = \"try\"", "name = 3", "my.toml:2: name must be a text in quotes"},
      {"name = \"try\"", "name = \"../up\"", "my.toml:2: name '../up' must be of letters"},
      {"name = \"try\"\n", "", "my.toml:1: [sweep] needs name"},
      {"seeds = \"3-5\"\n", "", "my.toml:1: [sweep] needs seeds"},
      {"seeds = \"3-5\"", "seeds = \"5-3\"", "my.toml:3: seeds '5-3': a range goes from"},
      {"seeds = \"3-5\"", "seeds = \"\"", "my.toml:3: seeds '': write them as"},
      {"seeds = \"3-5\"", "seeds = [1, 1]", "my.toml:3: seeds '1,1': 1 is named twice"},
      {"seeds = \"3-5\"", "seeds = [-1]", "my.toml:3: seeds must be a list of numbers from 0"},
      {"seeds = \"3-5\"", "seeds = \"0-9999999\"", "more than 10000 seeds"},
      {"seeds = \"3-5\"", "seeds = 1.5", "my.toml:3: seeds must be a list"},
      {"steps = 1000\n", "", "my.toml:19: [[env]] 'reacher' needs steps"},
      {"steps = 1000", "steps = 0", "my.toml:4: steps is 0; it must be 1 to"},
      {"steps = 1000", "steps = \"many\"", "my.toml:4: steps must be a whole number"},
      {"steps = 1000", "few_shot = 2.0", "my.toml:4: few_shot is 2; it must be above 0"},
      {"hidden_width = 16", "hidden_width = {a = 1}",
       "my.toml:7: setting hidden_width must be a text"},
      {"hidden_width = 16", "hidden_width = inf", "my.toml:7: setting hidden_width must be"},
      {"hidden_width = 16", "hidden_width = 16\nhidden_width = 17", "my.toml:8: not TOML"},
      {"hidden_width = 16", "hidden_width = ", "my.toml:7: not TOML"},
      {"[settings]", "[=]", "my.toml:6: not TOML"},
      {"[settings]", "[s\u00e9ttings]", "my.toml:6: letters beyond ASCII can't be read here"},
      {"title = \"MSRL\"", "title = \"M\\nL\"", "my.toml:38: title must be one line of text"},
      {"id = \"reacher\"", "", "my.toml:20: [[env]] needs id"},
      {"name = \"rooms\"", "name = \"reacher\"",
       "my.toml:23: two environments are called 'reacher'"},
      {"name = \"rooms\"", "name = \"logs\"", "my.toml:25: name 'logs' is taken by the sweep"},
      {"name = \"msrl\"", "name = \"sac\"", "my.toml:36: two methods are called 'sac'"},
      {"envs = [\"rooms\"]", "envs = [\"romms\"]",
       "my.toml:31: method 'sac' names 'romms', which is no [[env]]; did you mean 'rooms'?"},
      {"envs = [\"rooms\"]", "envs = \"rooms\"", "my.toml:34: envs must be a list of texts"},
      {"init = \"shape\"", "init = \"shap\"",
       "which nothing here pretrains; did you mean 'shape'?"},
      {"init = \"shape\"", "", "my.toml:14: no method starts from branch 'shape'"},
      {"init = \"shape\"", "unaligned = true", "my.toml:40: unaligned says how to take init"},
      {"init = \"shape\"", "init = \"shape\"\nunaligned = 1",
       "my.toml:41: unaligned must be true or false"},
      {"paper = \"msrl-init\"", "paper = \"msrl-int\"",
       "my.toml:41: unknown paper 'msrl-int'; did you mean 'msrl-init'?"},
      {"paper = \"msrl-init\"", "role = \"controll\"",
       "my.toml:41: unknown role 'controll'; did you mean 'control'?"},
      {"[source]\nepisodes = 100\nseed = 7\n", "", "what is pretrained needs a section [source]"},
      {"seed = 7", "targets = [\"expart\"]", "unknown target 'expart'; did you mean 'expert'?"},
      {"updates = 50", "kind = \"value-branch\"", "my.toml:16: unknown key 'kind' in [[branch]]"},
      {"[[env]]\nid = \"reacher\"\n", "[env]\nid = \"reacher\"\n", "not TOML"},
      {"[source]", "[[source]]", "source must be a section [source]"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string error = ErrorOf(With(mistake.from, mistake.to));
    EXPECT_NE(error.find(mistake.error), std::string::npos)
        << mistake.from << " -> " << mistake.to << "\n  wanted " << mistake.error << "\n  got    "
        << error;
  }
}

TEST(SweepSpecTest, WhatIsMissingAltogether) {
  EXPECT_EQ(ErrorOf(""), "my.toml:1: there is no section [sweep]");
  const std::string head = "[sweep]\nname = \"a\"\nseeds = [0]\nsteps = 5\n";
  EXPECT_EQ(ErrorOf(head), "my.toml:1: there is no [[env]]");
  EXPECT_EQ(ErrorOf(head + "[[env]]\nid = \"reacher\"\n"), "my.toml:1: there is no [[method]]");
  EXPECT_NE(ErrorOf("\xff\xfe").find("my.toml:1: "), std::string::npos);
}

TEST(SweepSpecTest, LettersBeyondAscii) {
  const std::string text =
      With("title = \"MSRL\"", "title = \"\\u0394 \\\" # '\"  # \xc3\xbc \" \xff");
  EXPECT_EQ(ErrorOf(text), "");
  EXPECT_EQ(ParseSweepSpec("\xef\xbb\xbf" + text, "my.toml").methods[1].title, "\xce\x94 \" # '");
  EXPECT_NE(ErrorOf(With("title = \"MSRL\"", "title = \"\xc3\xbc\"")).find("my.toml:38: letters"),
            std::string::npos);
}

TEST(SweepSpecTest, SeedsAreListsAndRanges) {
  EXPECT_EQ(ParseSeeds("7"), (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(ParseSeeds("1,5,7-9"), (std::vector<std::uint64_t>{1, 5, 7, 8, 9}));
  for (const char* bad : {"", "a", "1-", "-1", "1,,2", "1-2-3", "1 ", "99999999999999999999"}) {
    EXPECT_THROW(ParseSeeds(bad), UserError) << bad;
  }
}

// Each was the end of the process: tables in tables are destroyed by recursion.
TEST(SweepSpec, DeepTablesAreRefused) {
  const auto problem = [](const std::string& text) {
    return UserErrorText([&] { ParseSweepSpec(text, "deep.toml"); });
  };
  const auto repeated = [](const std::string& part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  const std::string dots = "deep.toml:1: more than 16 dots in a line";
  for (const char* part :
       {".a", " . a", ".1", "\t.\t1", ".\"=.\"", ".'\"'", ".1 .1", ".1-1", ".1e1", ".-1 .1e+1"}) {
    EXPECT_EQ(problem("a" + repeated(part, 300'000) + " = 1"), dots) << part;
    EXPECT_EQ(problem("[a" + repeated(part, 300'000) + "]"), dots) << part;
    EXPECT_EQ(problem("a = \"\"\"\"\"\"\nb" + repeated(part, 20) + " = 1"),
              "deep.toml:2: more than 16 dots in a line");
  }
  for (const auto& [open, close] : {std::pair("[", "]"), {"{a=", "}"}, {"[\n", "]"}}) {
    const std::string text = problem("a = " + repeated(open, 20) + "1" + repeated(close, 20));
    EXPECT_NE(text.find("exceeded maximum nested value depth of 16"), std::string::npos) << text;
  }
  // a list of numbers is no depth
  const std::string list = "rates = [" + repeated("0.5, -1.25e-3, ", 100) + "1.0]";
  EXPECT_EQ(problem(list).find("dots"), std::string::npos);
}

}  // namespace
}  // namespace msrl
