#include "msrl/env/record.h"

#include <gtest/gtest.h>

#include "msrl/core/sanitizers.h"
#include "msrl/env_list/env_list.h"

namespace msrl {
namespace {

TEST(Record, EpisodesAreValidSegmentsOfTheSharedLift) {
#if defined(MSRL_ADDRESS_SANITIZER)
  constexpr std::uint64_t kEpisodes = 2;  // an expert's value of every state takes its time
#else
  constexpr std::uint64_t kEpisodes = 20;
#endif
  const Lift::Ptr lift = CompactLift();
  for (const EnvEntry& entry : BuiltinEnvs()) {
    const auto env = MakeEnv(entry.id);
    const bool has_expert = env->expert() != nullptr;
    Rng rng(1, "mix");
    for (std::uint64_t seed = 0; seed < (has_expert ? kEpisodes : 2); ++seed) {
      Behaviour behaviour = MakeBehaviour(*env, rng);
      const Recording recording = RecordEpisode(*env, behaviour, seed, has_expert);
      EXPECT_TRUE(recording.terminated || recording.truncated) << entry.id;
      EXPECT_LE(recording.segment.horizon(), env->horizon());
      EXPECT_EQ(recording.expert_value.size(), has_expert ? recording.segment.horizon() + 1 : 0);
      EXPECT_TRUE(recording.expert_value.allFinite());
      EXPECT_NO_THROW(RequireValid(*lift, recording.segment)) << entry.id;
      EXPECT_EQ(Describe(lift, recording.segment).Horizon(), recording.segment.horizon());
    }
  }
}

// Two stretches of an episode meet in a state, so their matrices compose.
TEST(Record, StretchesCompose) {
  const Lift::Ptr lift = CompactLift();
  const auto env = MakeEnv("point-rooms");
  env->Reset(2);
  Behaviour behaviour(*env, {.skill = 0.5, .persistence = 2.0}, Rng(3, "a"));
  const Recording first = Record(*env, behaviour, 7);
  const Recording second = Record(*env, behaviour, 5);
  EXPECT_EQ(first.segment.horizon(), 7);
  EXPECT_EQ(second.segment.horizon(), 5);
  EXPECT_NO_THROW(Compose(Anchor(lift, first.segment), Anchor(lift, second.segment), 0.0));
}

}  // namespace
}  // namespace msrl
