#include "msrl/env/behaviour.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {

BehaviourConfig DrawBehaviour(Rng& rng, BehaviourMix mix) {
  BehaviourConfig config;
  if (mix == BehaviourMix::kSwitching) {
    constexpr double kRandomShare = 0.4;
    const bool still_random = rng.Bernoulli(kRandomShare);
    config.persistence = rng.Uniform(1.0, 16.0);
    if (still_random) return config;
    config.skill = rng.Uniform(-1.0, 1.0);
    config.switching = 15.0;
    return config;
  }
  const double kind = rng.Uniform();
  const double level = rng.Uniform();
  // a sixth each: worse than random, random, expert; the rest in between
  config.skill = kind < 1.0 / 6 ? -level : kind < 2.0 / 6 ? 0.0 : kind < 3.0 / 6 ? 1.0 : level;
  config.persistence = rng.Uniform(1.0, 8.0);
  return config;
}

Behaviour::Behaviour(Env& env, const BehaviourConfig& config, const Rng& rng)
    : env_(env), rng_(rng), random_(env.spec().action), scripted_(env.spec().action) {
  set_config(config);
}

void Behaviour::set_config(const BehaviourConfig& config) {
  if (!(std::abs(config.skill) <= 1.0) || !(config.persistence >= 1.0) ||
      !(config.switching == 0.0 || config.switching >= 1.0)) {
    throw UserError(
        StrCat("behaviour: skill must be -1 to 1, persistence at least 1 and switching 0 or at "
               "least 1, got ",
               config.skill, ", ", config.persistence, " and ", config.switching));
  }
  if ((config.skill != 0.0 || config.switching != 0.0) && env_.expert() == nullptr) {
    throw UserError(StrCat(env_.spec().id, " has no expert: only skill 0 is possible"));
  }
  config_ = config;
  keep_random_ = false;
}

Action Behaviour::Act() {
  if (config_.switching > 0.0 && rng_.Bernoulli(1.0 / config_.switching)) {
    config_.skill = rng_.Uniform(-1.0, 1.0);
  }
  const bool scripted = rng_.Bernoulli(std::abs(config_.skill));
  const bool redraw = rng_.Bernoulli(1.0 / config_.persistence);
  if (!keep_random_ || redraw) DrawUniformAction(env_.spec().action, rng_, random_);
  keep_random_ = true;
  if (!scripted) return random_.view();
  if (config_.skill > 0.0) {
    env_.expert()->Best(scripted_);
  } else {
    env_.expert()->Worst(scripted_);
  }
  return scripted_.view();
}

Behaviour MakeBehaviour(Env& env, Rng& rng, BehaviourMix mix) {
  BehaviourConfig config = DrawBehaviour(rng, mix);
  if (env.expert() == nullptr) config.skill = config.switching = 0.0;
  return {env, config, Rng(rng.NextU64(), "behaviour")};
}

double ExpertValue(Env& env) {
  Expert* expert = env.expert();
  if (expert == nullptr) throw UserError(StrCat(env.spec().id, " has no expert"));
  return expert->Value();
}

EpisodeResult PlayEpisode(Env& env, Behaviour& behaviour, std::uint64_t seed) {
  env.Reset(seed);
  EpisodeResult episode;
  for (bool running = true; running;) {
    const StepResult step = env.Step(behaviour.Act());
    episode.total_reward += step.reward;
    ++episode.steps;
    episode.terminated = step.terminated;
    running = !step.terminated && !step.truncated;
  }
  episode.success = env.Success().value_or(false);
  return episode;
}

}  // namespace msrl
