#include "msrl/agents/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/progress.h"
#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/tabular_env.h"
#include "msrl/mujoco/mujoco_env.h"
#include "msrl/render/rendering.h"
#include "msrl/render/sketch.h"
#include "msrl/render/video.h"
#include "msrl/run/runner.h"

namespace msrl::cli {
namespace {

constexpr double kUsualRate = 30.0;    // frames per second of a simulation in real time
constexpr double kUntimedRate = 10.0;  // of tasks whose steps are no time

struct PlayOptions : OptionList {
  std::string& what = Required("WHAT", "Environment, or the directory of a run: its agent plays");
  std::string& video =
      Text("--video", "Where to: a name that ends in .mp4 or .gif, or a folder for PNG frames");
  std::uint64_t& seed = Option<std::uint64_t>("--seed", "Seed of the episode", 0);
  int& steps =
      Option("--steps", "At most so many steps (default: whole episode)", 0, CLI::PositiveNumber);
  std::string& policy =
      Option<std::string>("--policy", "Without a run: random, still or expert", "random",  // a word
                          CLI::IsMember({"random", "still", "expert"}));                   // a word
  std::vector<std::string>& settings = Repeated("--set", "key=value: an option of the environment");
  double& fps = Option("--fps",
                       "Frames per second, at most one per step (default: 30 of simulated time; 10 "
                       "where steps are no time)",
                       0.0, CLI::Range(0.1, 1000.0));
  std::string& size = Text("--size", "Width and height in pixels", "640x480");
  bool& sketch = Flag("--sketch", "Draw a sketch, without OpenGL");
};

// Begins the episode of the agent of a run, or without one of a policy that needs no learning;
// takes a step at every call.
std::function<StepResult()> BeginEpisode(BatchEnv& envs, Agent* agent, const PlayOptions& options) {
  const Rng rng(options.seed, "play");
  if (agent != nullptr) {
    const auto episode = std::make_shared<Lockstep>(*agent, envs, std::vector<Rng>{rng});
    episode->Begin(0, options.seed);
    return [episode] {
      StepResult result;
      episode->Step(ActMode::kEvaluate, [&result](const PlayedStep& step) {
        const Experience& seen = step.experience;
        result = {seen.reward, seen.terminated, seen.truncated};
      });
      return result;
    };
  }
  Env& env = envs.env(0);
  env.Reset(options.seed);
  if (options.policy == "still") {  // a word
    ActionBuffer still(envs.spec().action);
    if (const auto* tabular = UnwrapAs<TabularEnv>(env)) {
      still.set_index(tabular->instance().stay_action);
    }
    return [&env, still] { return env.Step(still.view()); };
  }
  const double skill = options.policy == "expert" ? 1.0 : 0.0;
  return [&env, behaviour = Behaviour(env, BehaviourConfig{.skill = skill}, rng)]() mutable {
    return env.Step(behaviour.Act());
  };
}

// How often frames are drawn and shown.
struct Pace {
  int steps_per_frame = 1;
  double frames_per_second = kUntimedRate;
};

// Simulations are shown in real time, with about as many frames per second as wanted.
Pace MakePace(Env& env, double fps) {
  if (UnwrapAs<MujocoEnv>(env) == nullptr) return {1, fps > 0.0 ? fps : kUntimedRate};
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

void RunPlay(const PlayOptions& options, const Program& program) {
  const ImageSize size = ParseImageSize(options.size);
  std::string id = options.what;
  std::string who = "policy " + options.policy;
  std::vector<std::string> settings = options.settings;
  std::unique_ptr<Agent> agent;
  if (std::filesystem::exists(std::filesystem::path(options.what) / "run.json")) {
    const RunDirectory run = RunDirectory::OpenForReading(options.what);
    id = run.spec().env;
    who = "agent " + run.spec().agent;
    settings.insert(settings.begin(), run.spec().env_settings.begin(),
                    run.spec().env_settings.end());
    agent = LoadAgent(run, program.registries, program.warn);
  }
  BatchEnv envs(program.registries.envs.Make(id, settings));
  Env* const env = &envs.env(0);
  const std::function<StepResult()> step = BeginEpisode(envs, agent.get(), options);
  const Pace pace = MakePace(*env, options.fps);
  std::unique_ptr<VideoWriter> video;
  std::unique_ptr<View> view;
  if (!options.video.empty()) {
    video = MakeVideoWriter(options.video, size, pace.frames_per_second);
    view = MakeView(*env, size, options.sketch, program);
    video->Add(view->Draw());
  }

  const int limit = options.steps > 0 ? std::min(options.steps, env->horizon()) : env->horizon();
  ProgressLine progress(id);
  int steps = 0;
  double total = 0.0;
  StepResult result;
  while (steps < limit && !result.terminated && !result.truncated) {
    result = step();
    total += result.reward;
    ++steps;
    const bool last = steps == limit || result.terminated || result.truncated;
    // there is no picture of a simulation that failed
    if (video != nullptr && env->fault().empty() && (last || steps % pace.steps_per_frame == 0)) {
      video->Add(view->Draw());
    }
    progress.Show(last ? limit : steps, limit);
  }
  if (video != nullptr) video->Finish();

  const std::optional<bool> success = env->Success();
  fmt::print("{}: seed {}, {}\n", id, options.seed, who);
  fmt::print("  steps    {}{}\n", steps,
             result.terminated  ? " (terminated)"
             : result.truncated ? " (time limit)"
                                : "");
  fmt::print("  return   {:.6g}\n", total);
  fmt::print("  success  {}\n", !success ? "not defined" : *success ? "yes" : "no");
  if (const std::string fault = env->fault(); !fault.empty()) {
    fmt::print("  fault    {}\n", fault);
  }
  if (video != nullptr) {
    fmt::print("  frames   {} ({}, {}, {:.4g} per second)\n", video->frames(), options.size,
               view->method(), pace.frames_per_second);
    fmt::print("  written  {}\n", options.video);
  }
}

}  // namespace

void AddPlay(CLI::App& app, const Program& program) {
  CLI::App* command = AddCommand(app, program, "play", "Play one episode and film it", RunPlay);
  for (const char* name : {"--seed", "--policy", "--size"}) {
    command->get_option(name)->capture_default_str();
  }
}

}  // namespace msrl::cli
