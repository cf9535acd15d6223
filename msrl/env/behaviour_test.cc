#include "msrl/env/behaviour.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"

namespace msrl {
namespace {

double MeanReturn(Env& env, double skill, int episodes) {
  double sum = 0.0;
  for (int i = 0; i < episodes; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    Behaviour behaviour(env, {.skill = skill, .persistence = 1.0}, Rng(seed, "behaviour"));
    sum += PlayEpisode(env, behaviour, seed).total_reward;
  }
  return sum / episodes;
}

struct Case {
  const char* id;
  std::vector<std::string> options;
  double expert_gain;  // least mean return above random
  double anti_loss;    // least mean return below random
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.id;
  for (const std::string& option : test.options) *out << " " << option;
}

class Dial : public ::testing::TestWithParam<Case> {};

TEST_P(Dial, ExpertBeatsRandomBeatsAntiExpert) {
  const auto env = MakeEnv(GetParam().id, GetParam().options);
  const double expert = MeanReturn(*env, 1.0, 200);
  const double half = MeanReturn(*env, 0.5, 200);
  const double random = MeanReturn(*env, 0.0, 200);
  const double anti = MeanReturn(*env, -1.0, 200);
  SCOPED_TRACE(StrCat("expert ", expert, ", half ", half, ", random ", random, ", anti ", anti));
  EXPECT_GE(expert - random, GetParam().expert_gain);
  EXPECT_GE(random - anti, GetParam().anti_loss);
  EXPECT_GE(half, random);
}

INSTANTIATE_TEST_SUITE_P(
    All, Dial,
    ::testing::Values(
        Case{"graph-motif", {}, 5, 3}, Case{"micro-grid", {}, 5, 3}, Case{"point-rooms", {}, 5, 3},
        Case{"point-rooms", {"reward=sparse"}, 5, 0},
        Case{"point-rooms", {"reward=velocity"}, 5, 3}, Case{"dubins-reacher", {}, 5, 3},
        Case{"dubins-reacher", {"task=dubins"}, 5, 3}, Case{"dubins-reacher", {"task=arm"}, 5, 3},
        Case{"dubins-reacher", {"task=balance"}, 5, 3}, Case{"four-rooms-sparse", {}, 20, 0},
        Case{"four-rooms-dense", {}, 5, 3}, Case{"pointmaze-umaze", {"continuing=true"}, 150, 5}),
    [](const auto& test) {
      std::string name = test.param.id;
      if (!test.param.options.empty()) name += "_" + test.param.options[0];
      for (char& c : name) {
        if (c == '-' || c == '=') c = '_';
      }
      return name;
    });

struct SuccessCase {
  const char* id;
  std::vector<std::string> options;
};

// Where moving is free and there is a goal, the expert gets there within the horizon.
TEST(Expert, ReachesGoals) {
  const std::vector<SuccessCase> cases = {
      {"graph-motif", {"action_cost=0"}},
      {"micro-grid", {"action_cost=0"}},
      {"point-rooms", {"action_cost=0", "reward=sparse"}},
      {"dubins-reacher", {"action_cost=0", "reward=sparse", "task=dubins"}},
      {"dubins-reacher", {"action_cost=0", "reward=sparse", "task=arm"}},
      {"four-rooms-sparse", {}},
      {"pointmaze-large", {}},
  };
  for (const SuccessCase& test : cases) {
    const auto env = MakeEnv(test.id, test.options);
    int successes = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      Behaviour expert(*env, {.skill = 1.0, .persistence = 1.0}, Rng(seed, "a"));
      successes += PlayEpisode(*env, expert, seed).success ? 1 : 0;
    }
    EXPECT_GE(successes, 294) << test.id;
  }
}

// The returns in the specs are those of random actions and of the expert.
TEST(Expert, MeasuredReturnsStandInTheSpecs) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = MakeEnv(entry.id);
    const EnvSpec& spec = env->spec();
    if (!spec.random_return || env->expert() == nullptr) continue;
    ASSERT_TRUE(spec.reference_return);
    const double range = spec.reference_return->value - spec.random_return->value;
    EXPECT_NEAR(MeanReturn(*env, 0.0, 2000), spec.random_return->value, 0.02 * range) << entry.id;
    EXPECT_NEAR(MeanReturn(*env, 1.0, 2000), spec.reference_return->value, 0.02 * range)
        << entry.id;
  }
}

// The value of the present state is at least what the expert then earns, and about that.
TEST(ExpertValue, IsWhatTheExpertEarns) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = entry.make(entry.id == "dubins-reacher" ? std::vector<std::string>{"noise=0"}
                                                             : std::vector<std::string>{});
    if (env->expert() == nullptr) continue;
    double error = 0.0;
    double spread = 0.0;
    constexpr int kSeeds = 50;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      env->Reset(seed);
      const double value = ExpertValue(*env);
      ActionBuffer action(env->spec().action);
      double sum = 0.0;
      double discount = 1.0;
      for (int t = 0; t < 1500; ++t) {
        env->expert()->Best(action);
        const StepResult result = env->Step(action.view());
        sum += discount * result.reward / env->spec().reward_scale;
        discount *= env->spec().gamma;
        if (result.terminated) break;
      }
      error += std::abs(sum - value) / kSeeds;
      spread += std::abs(value) / kSeeds;
    }
    EXPECT_LE(error, 0.02 * spread + 0.01) << entry.id;
  }
}

// Values rise along the expert's way to a goal that pays.
TEST(ExpertValue, RisesTowardsTheGoal) {
  for (const char* id : {"graph-motif", "micro-grid", "point-rooms", "dubins-reacher"}) {
    const std::string options[] = {"reward=sparse", "action_cost=0"};
    const auto env = MakeEnv(id, options);
    int rises = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      env->Reset(seed);
      const double before = ExpertValue(*env);
      Behaviour expert(*env, {.skill = 1.0, .persistence = 1.0}, Rng(seed, "a"));
      for (int t = 0; t < 15; ++t) {
        const StepResult result = env->Step(expert.Act());
        if (result.terminated || result.truncated) break;
      }
      rises += ExpertValue(*env) >= before ? 1 : 0;
    }
    EXPECT_GE(rises, 47) << id;
  }
}

TEST(ExpertValue, DoesNotDisturbTheEnvironment) {
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = MakeEnv(entry.id);
    if (env->expert() == nullptr) continue;
    env->Reset(3);
    const auto bytes = env->Snapshot();
    ExpertValue(*env);
    EXPECT_EQ(env->Snapshot(), bytes) << entry.id;
  }
}

TEST(Behaviour, IsReproducible) {
  const auto env = MakeEnv("point-rooms");
  const auto total = [&] {
    Rng rng(4, "mix");
    double sum = 0.0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Behaviour behaviour = MakeBehaviour(*env, rng);
      sum += PlayEpisode(*env, behaviour, seed).total_reward;
    }
    return sum;
  };
  EXPECT_EQ(total(), total());
}

TEST(Behaviour, MixesAllSkills) {
  Rng rng(1, "mix");
  int below = 0;
  int random = 0;
  int expert = 0;
  for (int i = 0; i < 600; ++i) {
    const double skill = DrawBehaviour(rng).skill;
    below += skill < 0.0 ? 1 : 0;
    random += skill == 0.0 ? 1 : 0;
    expert += skill == 1.0 ? 1 : 0;
  }
  for (const int count : {below, random, expert}) EXPECT_NEAR(count, 100, 40);
}

TEST(Behaviour, RefusesImpossibleSettings) {
  const auto env = MakeEnv("micro-grid");
  const Rng rng(0, "a");
  EXPECT_THROW(Behaviour(*env, {.skill = 1.5, .persistence = 1.0}, rng), UserError);
  EXPECT_THROW(Behaviour(*env, {.skill = 0.0, .persistence = 0.5}, rng), UserError);
}

}  // namespace
}  // namespace msrl
