#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/film.h"
#include "msrl/cli/progress.h"
#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/tabular_env.h"
#include "msrl/render/video.h"
#include "msrl/run/runner.h"

namespace msrl::cli {
namespace {

struct PlayOptions : OptionList {
  std::string& what = Required("WHAT", "Environment, or the directory of a run: its agent plays");
  std::string& video =
      Text("--video", "Where to: a name that ends in .mp4 or .gif, or a folder for PNG frames");
  std::string& agent =
      Text("--agent", "Directory of a run: its agent plays the environment WHAT, with --set");
  std::uint64_t& seed = Option<std::uint64_t>("--seed", "Seed of the episode", 0);
  int& steps =
      Option("--steps", "At most so many steps (default: whole episode)", 0, CLI::PositiveNumber);
  std::string& policy = Option<std::string>(
      "--policy", "Without a run: random, still or expert (random)", "",  // a word
      CLI::IsMember({"random", "still", "expert"}));                      // a word
  std::vector<std::string>& settings = Repeated("--set", "key=value: an option of the environment");
  double& fps = Option("--fps",
                       "Frames per second, at most one per step (default: 30 of simulated time; 10 "
                       "where steps are no time)",
                       0.0, CLI::Range(0.1, 1000.0));
  std::string& size = Text("--size", "Width and height in pixels", "640x480");
  bool& sketch = Flag("--sketch", "Draw a sketch, without OpenGL");
  Replace replace = ReplaceFlag();
};

// As BeginEpisode, of a policy that needs no learning.
std::function<StepResult()> BeginUntaught(BatchEnv& envs, const PlayOptions& options) {
  const Rng rng(options.seed, "play");
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

// An agent can play another task if that looks and acts the same.
void RequireSameSizes(const RunSpec& trained, const std::string& id,
                      const std::vector<std::string>& settings, const EnvRegistry& envs) {
  const EnvSpec theirs = envs.Make(trained.env, trained.env_settings)->spec();
  const EnvSpec ours = envs.Make(id, settings)->spec();
  const auto text = [](const EnvSpec& spec) {
    return StrCat(spec.observation_size, " numbers and chooses ",
                  spec.action.kind == ActionKind::kDiscrete ? "one of " : "", spec.action.size,
                  spec.action.kind == ActionKind::kDiscrete ? " actions" : " numbers");
  };
  if (text(theirs) == text(ours)) return;
  throw UserError(StrCat("the agent was trained in ", trained.env, ", where it sees ", text(theirs),
                         "; in ", id, " one sees ", text(ours)));
}

void RunPlay(const PlayOptions& options, const Program& program) {
  const ImageSize size = ParseImageSize(options.size);
  std::string id = options.what;
  std::string who = "policy " + (options.policy.empty() ? "random" : options.policy);  // a word
  std::vector<std::string> settings = options.settings;
  std::unique_ptr<Agent> agent;
  const bool is_run = std::filesystem::exists(std::filesystem::path(options.what) / "run.json");
  if (is_run && !options.agent.empty()) {
    throw UserError("--agent says whose agent plays an environment; here is a run with its own");
  }
  if (is_run || !options.agent.empty()) {
    if (!options.policy.empty()) throw UserError("--policy is without a run: here its agent plays");
    const RunDirectory run = RunDirectory::OpenForReading(is_run ? options.what : options.agent);
    who = "agent " + run.spec().agent;
    if (is_run) {
      id = run.spec().env;
      settings.insert(settings.begin(), run.spec().env_settings.begin(),
                      run.spec().env_settings.end());
    }
    agent = LoadAgent(run, program.registries, program.warn);
    if (!is_run) RequireSameSizes(run.spec(), id, settings, program.registries.envs);
  }
  BatchEnv envs(program.registries.envs.Make(id, settings));
  Env* const env = &envs.env(0);
  const std::function<StepResult()> step =
      agent ? BeginEpisode(envs, *agent, options.seed) : BeginUntaught(envs, options);
  const Pace pace = MakePace(*env, options.fps);
  std::unique_ptr<VideoWriter> video;
  std::unique_ptr<View> view;
  if (!options.video.empty()) {
    video = MakeVideoWriter(options.video, size, pace.frames_per_second, options.replace());
    view = MakeView(*env, size, options.sketch, program);
  }

  const int limit = options.steps > 0 ? std::min(options.steps, env->horizon()) : env->horizon();
  ProgressLine progress(id);
  const auto [steps, total, result] =
      PlayToEnd(*env, step, limit, {view.get(), video.get(), pace.steps_per_frame},
                [&](int done) { progress.Show(done, limit); });
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
  for (const char* name : {"--seed", "--size"}) {
    command->get_option(name)->capture_default_str();
  }
}

}  // namespace msrl::cli
