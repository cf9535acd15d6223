// Episodes that are watched: one step after the other, with a picture now and then.
#ifndef MSRL_CLI_FILM_H_
#define MSRL_CLI_FILM_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "msrl/agents/play.h"
#include "msrl/cli/commands.h"
#include "msrl/env/batch_env.h"
#include "msrl/render/image.h"
#include "msrl/render/video.h"
#include "msrl/render/view.h"

namespace msrl::cli {

// How often frames are drawn and shown.
struct Pace {
  int steps_per_frame = 1;
  double frames_per_second = 10.0;
};
// Simulations are shown in real time, with about as many frames per second as wanted (0: 30); tasks
// whose steps are no time step by step (0: 10).
Pace MakePace(Env& env, double fps);

// MuJoCo's renderer, or a sketch if there is none here; then the user is told why.
std::unique_ptr<View> MakeView(Env& env, ImageSize size, bool sketch, const Program& program);

// Begins an episode of the only environment, in which the agent acts as in evaluations, and takes a
// step at every call.
std::function<StepResult()> BeginEpisode(BatchEnv& envs, Agent& agent, std::uint64_t seed);

// Where frames go, if any are wanted.
struct Film {
  View* view = nullptr;
  VideoWriter* video = nullptr;
  int steps_per_frame = 1;
};
struct PlayedEpisode {
  int steps = 0;
  double total = 0.0;  // return
  StepResult last;
};
// Plays an episode that has begun to its end, at most `limit` steps of it; `progress` is called
// with the steps so far, with `limit` at the end.
PlayedEpisode PlayToEnd(Env& env, const std::function<StepResult()>& step, int limit,
                        const Film& film, const std::function<void(int)>& progress);

}  // namespace msrl::cli

#endif  // MSRL_CLI_FILM_H_
