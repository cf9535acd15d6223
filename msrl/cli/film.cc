#include "msrl/cli/film.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/mujoco/mujoco_env.h"
#include "msrl/render/rendering.h"
#include "msrl/render/sketch.h"

namespace msrl::cli {
namespace {

constexpr double kUsualRate = 30.0;  // frames per second of a simulation in real time

}  // namespace

Pace MakePace(Env& env, double fps) {
  if (UnwrapAs<MujocoEnv>(env) == nullptr) {
    return {1, fps > 0.0 ? fps : Pace().frames_per_second};
  }
  const double dt = env.spec().dt;
  const double per_frame = 1.0 / (dt * (fps > 0.0 ? fps : kUsualRate));
  const int steps = std::max(1, static_cast<int>(std::lround(std::min(per_frame, 1e6))));
  return {steps, 1.0 / (dt * steps)};
}

std::unique_ptr<View> MakeView(Env& env, ImageSize size, bool sketch, const Program& program) {
  if (const auto* mujoco = UnwrapAs<MujocoEnv>(env); mujoco != nullptr && !sketch) {
    std::string why_not;
    if (auto view = MakeRendering(*mujoco, size, why_not)) return view;
    program.warn(StrCat("no off-screen rendering here (", why_not, "): drawing a sketch instead"));
  }
  return MakeSketch(env, size);
}

std::function<StepResult()> BeginEpisode(BatchEnv& envs, Agent& agent, std::uint64_t seed) {
  const auto episode = std::make_shared<Lockstep>(agent, envs, std::vector<Rng>{Rng(seed, "play")});
  episode->Begin(0, seed);
  return [episode] {
    StepResult result;
    episode->Step(ActMode::kEvaluate, [&result](const PlayedStep& step) {
      const Experience& seen = step.experience;
      result = {seen.reward, seen.terminated, seen.truncated};
    });
    return result;
  };
}

PlayedEpisode PlayToEnd(Env& env, const std::function<StepResult()>& step, int limit,
                        const Film& film, const std::function<void(int)>& progress) {
  if (film.video != nullptr) film.video->Add(film.view->Draw());
  PlayedEpisode played;
  bool over = false;
  while (!over) {
    played.last = step();
    played.total += played.last.reward;
    ++played.steps;
    over = played.steps == limit || played.last.terminated || played.last.truncated;
    // there is no picture of a simulation that failed
    if (film.video != nullptr && env.fault().empty() &&
        (over || played.steps % film.steps_per_frame == 0)) {
      film.video->Add(film.view->Draw());
    }
    progress(over ? limit : played.steps);
  }
  return played;
}

}  // namespace msrl::cli
