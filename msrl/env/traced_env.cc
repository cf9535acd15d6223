#include "msrl/env/traced_env.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "msrl/core/check.h"

namespace msrl {

int ActionWidth(const ActionSpec& spec) {
  return spec.kind == ActionKind::kDiscrete ? 1 : spec.size;
}

void TracedEnv::Begin() {
  trace_.actions.clear();
  trace_.before.clear();
  trace_.reward.reset();
}

void TracedEnv::Reset(std::uint64_t seed) {
  trace_.seed = seed;
  trace_.snapshot.clear();
  Begin();
  inner().Reset(seed);
}

void TracedEnv::Restore(std::span<const std::byte> bytes) {
  inner().Restore(bytes);
  trace_.snapshot.assign(bytes.begin(), bytes.end());
  Begin();
}

StepResult TracedEnv::Step(const Action& action) {
  if (spec().action.kind == ActionKind::kDiscrete) {
    trace_.actions.push_back(action.index());
  } else {
    trace_.actions.insert(trace_.actions.end(), action.values().begin(), action.values().end());
  }
  const EnvView observation = inner().observation();
  trace_.before.assign(observation.begin(), observation.end());
  trace_.reward.reset();
  const StepResult result = inner().Step(action);
  trace_.reward = result.reward;
  return result;
}

void PlayAgain(const EpisodeTrace& trace, Env& env,
               const std::function<void(const Action&, const StepResult&)>& visit) {
  const ActionSpec& spec = env.spec().action;
  const auto width = static_cast<std::size_t>(ActionWidth(spec));
  if (trace.actions.size() % width != 0) {
    throw UserError(
        StrCat(env.spec().id, ": ", trace.actions.size(), " numbers are no actions of ", width));
  }
  if (trace.snapshot.empty()) {
    env.Reset(trace.seed);
  } else {
    env.Restore(trace.snapshot);
  }
  ActionBuffer action(spec);
  for (std::size_t at = 0; at < trace.actions.size(); at += width) {
    const std::span<const double> numbers = std::span(trace.actions).subspan(at, width);
    if (spec.kind == ActionKind::kDiscrete) {
      const double index = numbers[0];
      if (!(index >= 0 && index < spec.size) || index != std::floor(index)) {
        throw UserError(StrCat(env.spec().id, ": ", index, " is no action"));
      }
      action.set_index(static_cast<int>(index));
    } else {
      std::ranges::copy(numbers, action.values().begin());
    }
    const StepResult result = env.Step(action.view());
    visit(action.view(), result);
  }
}

}  // namespace msrl
