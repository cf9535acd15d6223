#include "msrl/env/record.h"

#include <array>

#include "msrl/core/check.h"

namespace msrl {

Recording Record(Env& env, Behaviour& behaviour, int max_steps, bool with_expert_value) {
  MSRL_CHECK_GE(max_steps, 0);
  Recording recording;
  Segment& segment = recording.segment;
  segment.x.resize(kGeometrySize, max_steps + 1);
  segment.a.resize(kActionCodeSize, max_steps);
  segment.r.resize(max_steps);
  if (with_expert_value) recording.expert_value.setZero(max_steps + 1);

  Index t = 0;
  const auto see = [&] {
    segment.x.col(t) = env.geometry();
    if (with_expert_value && !recording.terminated) recording.expert_value[t] = ExpertValue(env);
  };
  see();
  while (t < max_steps && !recording.terminated && !recording.truncated) {
    const Action action = behaviour.Act();
    std::array<double, kActionCodeSize> code;
    EmbedAction(env.spec(), action, code);
    const StepResult result = env.Step(action);
    segment.a.col(t) = EnvView(code.data(), kActionCodeSize);
    segment.r[t] = result.reward / env.spec().reward_scale;
    recording.terminated = result.terminated;
    recording.truncated = result.truncated;
    ++t;
    see();
  }
  segment.x.conservativeResize(Eigen::NoChange, t + 1);
  segment.a.conservativeResize(Eigen::NoChange, t);
  segment.r.conservativeResize(t);
  if (with_expert_value) recording.expert_value.conservativeResize(t + 1);
  return recording;
}

Recording RecordEpisode(Env& env, Behaviour& behaviour, std::uint64_t seed,
                        bool with_expert_value) {
  env.Reset(seed);
  return Record(env, behaviour, env.horizon(), with_expert_value);
}

}  // namespace msrl
