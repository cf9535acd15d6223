#include "msrl/agents/simulator.h"

#include <gtest/gtest.h>

#include "msrl/core/rng.h"
#include "msrl/env_list/env_list.h"

namespace msrl {
namespace {

TEST(Simulator, TriesEndWhereStepsEndAndMoveNothing) {
  for (const char* id : {"four-rooms-sparse", "micro-grid", "hopper"}) {
    SCOPED_TRACE(id);
    const std::unique_ptr<Env> env = BuiltinEnvs().Make(id);
    Simulator simulator(BuiltinEnvs().Make(id));
    ActionBuffer tried(env->spec().action), played(env->spec().action);
    Rng rng(3, "simulator");
    env->Reset(11);
    std::int64_t tries = 0;
    for (int t = 0; t < 30; ++t) {
      simulator.Follow(*env);
      const std::vector<std::byte> before = env->Snapshot();
      DrawUniformAction(env->spec().action, rng, tried);
      DrawUniformAction(env->spec().action, rng, played);
      for (const ActionBuffer* action : {&tried, &played}) {
        simulator.Try(action->view());
        ++tries;
      }
      EXPECT_EQ(env->Snapshot(), before);
      const StepResult result = env->Step(played.view());
      EXPECT_EQ(env->geometry(), simulator.geometry());
      if (result.terminated || result.truncated) env->Reset(12 + static_cast<std::uint64_t>(t));
    }
    EXPECT_EQ(simulator.steps(), tries);
  }
}

}  // namespace
}  // namespace msrl
