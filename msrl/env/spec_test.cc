#include "msrl/env/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msrl/env_list/env_list.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;

EnvSpec Discrete(int size) {
  EnvSpec spec;
  spec.id = "test";
  spec.action = {ActionKind::kDiscrete, size};
  return spec;
}

EnvSpec Continuous(int size) {
  EnvSpec spec = Discrete(size);
  spec.action.kind = ActionKind::kContinuous;
  return spec;
}

TEST(Spec, AllEnvironmentsShareOneLift) {
  const Lift::Ptr lift = CompactLift();
  EXPECT_EQ(lift->m(), 28);
  EXPECT_EQ(lift->id(), CompactLift()->id());
  EXPECT_EQ(AlignedSlots().size(), static_cast<std::size_t>(kGeometrySize));
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = MakeEnv(entry.id);
    env->Reset(0);
    EXPECT_EQ(env->geometry().size(), lift->d()) << entry.id;
  }
}

TEST(Spec, EmbedsActions) {
  std::array<double, kActionCodeSize> code;
  EmbedAction(Discrete(4), Action::Discrete(2), code);
  EXPECT_EQ(code, (std::array<double, kActionCodeSize>{0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  const double values[] = {0.5, -3.0};
  EmbedAction(Continuous(2), Action::Continuous(values), code);
  EXPECT_EQ(code, (std::array<double, kActionCodeSize>{0.5, -1, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Spec, EmbedsGroupsAsTheirMean) {
  EnvSpec spec = Continuous(12);
  spec.action_code = {0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9};
  std::vector<double> values(12, 0.5);
  values[1] = 1.0;
  values[2] = -0.5;
  values[11] = -7.0;
  std::array<double, kActionCodeSize> code;
  EmbedAction(spec, Action::Continuous(values), code);
  EXPECT_EQ(code, (std::array<double, kActionCodeSize>{0.5, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
                                                       -0.25}));
  EXPECT_THROW(EmbedAction(spec, Action::Continuous(std::span(values).first(11)), code), UserError);
}

TEST(Spec, RefusesBadActions) {
  const double two[] = {0.0, 0.0};
  const double bad[] = {0.0, std::numeric_limits<double>::quiet_NaN()};
  double out[2];
  EXPECT_EQ(UserErrorText([&] { RequireIndex(Discrete(4), Action::Discrete(4)); }),
            "test: action 4 is not in 0 to 3");
  EXPECT_EQ(UserErrorText([&] { RequireIndex(Discrete(4), Action::Discrete(-1)); }),
            "test: action -1 is not in 0 to 3");
  EXPECT_EQ(UserErrorText([&] { RequireIndex(Discrete(4), Action::Continuous(two)); }),
            "test: continuous action given, but the actions are 0 to 3");
  EXPECT_EQ(UserErrorText([&] { RequireClipped(Continuous(2), Action::Discrete(0), out); }),
            "test: discrete action given, but an action is 2 numbers in [-1, 1]");
  EXPECT_EQ(UserErrorText([&] { RequireClipped(Continuous(3), Action::Continuous(two), out); }),
            "test: action has 2 entries, needs 3");
  EXPECT_EQ(UserErrorText([&] { RequireClipped(Continuous(2), Action::Continuous(bad), out); }),
            "test: action[1] is nan");
  std::array<double, kActionCodeSize> code;
  EXPECT_EQ(UserErrorText([&] { EmbedAction(Discrete(11), Action::Discrete(0), code); }),
            "test: 11 actions don't fit into a code of 10");
}

}  // namespace
}  // namespace msrl
