#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/fields_json.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/env_registry.h"
#include "msrl/run/evaluate.h"

namespace msrl::cli {
namespace {

struct EnvsOptions : OptionList {
  std::string& id = Text("ID", "Environment");
  std::vector<std::string>& settings = Repeated("--set", "key=value: check an option");
  int& episodes =
      Option("--measure",
             "Play N episodes at random, standing still and, if there is one, with the expert", 0,
             CLI::PositiveNumber);
  std::uint64_t& first_seed =
      Option<std::uint64_t>("--first-seed", "Seed of the first measured episode", 100000);
  bool& json = Flag("--json", "As JSON");
};

Json EnvJson(const EnvEntry& entry, const EnvSpec& spec) {
  Json returns = Json::object();
  const auto add = [&returns](const char* name, const std::optional<MeasuredReturn>& measured) {
    if (measured) returns[name] = {{"value", measured->value}, {"origin", measured->origin}};
  };
  add("random", spec.random_return);  // a word
  add("stand-still", spec.still_return);
  add("reference", spec.reference_return);
  return {{"id", entry.id},
          {"description", spec.description},
          {"source", entry.is_source},
          {"observation_size", spec.observation_size},
          {"discrete", spec.action.kind == ActionKind::kDiscrete},
          {"action_size", spec.action.size},
          {"step_limit", spec.step_limit},
          {"reward_scale", spec.reward_scale},
          {"has_success", spec.has_success},
          {"returns", std::move(returns)},
          {"options", FieldsJson(entry.options())}};
}

void PrintList(const Program& program) {
  for (const EnvEntry& entry : program.registries.envs) {
    fmt::print("{:<20} {}\n", entry.id, entry.make({})->spec().description);
  }
  fmt::print("\n{} envs ID shows one with its options.\n", program.name);
}

void PrintOne(const EnvEntry& entry, const Env& env) {
  const EnvSpec& spec = env.spec();
  const bool discrete = spec.action.kind == ActionKind::kDiscrete;
  fmt::print("{}: {}\n", entry.id, spec.description);
  fmt::print("  observation {} numbers, {} {} {}, at most {} steps, reward scale {}\n",
             spec.observation_size, spec.action.size, discrete ? "discrete" : "continuous",
             discrete ? "actions" : "action dimensions", spec.step_limit, spec.reward_scale);
  const auto print_return = [](const char* name, const std::optional<MeasuredReturn>& measured) {
    if (measured) fmt::print("  {} return {} ({})\n", name, measured->value, measured->origin);
  };
  print_return("random", spec.random_return);  // a word
  print_return("stand-still", spec.still_return);
  print_return("reference", spec.reference_return);
  if (spec.goal_task != nullptr) fmt::print("  steps can be read with another goal (her)\n");
  const std::vector<ConfigField> fields = entry.options();
  if (!fields.empty()) fmt::print("  options (--set key=value):\n");
  for (const ConfigField& field : fields) {
    fmt::print("    {:<18} {} ({}; default {})\n", field.key, field.meaning, field.Accepts(),
               field.value);
  }
}

// Returns of episodes with seeds from first_seed on.
void PrintMeasured(Env& env, const char* name, const EnvsOptions& options,
                   const std::function<void(std::uint64_t seed)>& begin,
                   const std::function<Action()>& act) {
  EvalResult result{.returns = {}, .lengths = {}, .successes = 0};
  for (int i = 0; i < options.episodes; ++i) {
    const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(i);
    env.Reset(seed);
    begin(seed);
    double& total = result.returns.emplace_back(0.0);
    int& steps = result.lengths.emplace_back(0);
    for (bool running = true; running; ++steps) {
      const StepResult step = env.Step(act());
      total += step.reward;
      running = !step.terminated && !step.truncated;
    }
    *result.successes += env.Success().value_or(false) ? 1 : 0;
  }
  const std::string success =
      env.spec().has_success ? fmt::format(", success {:.3f}", result.SuccessRate()) : "";
  fmt::print(
      "  measured {:<12} {:.2f} +- {:.2f} (standard deviation; standard error {:.2f}), "
      "{:.1f} steps{}\n",
      name, result.MeanReturn(), result.StdReturn(),
      result.StdReturn() / std::sqrt(options.episodes), result.MeanLength(), success);
}

void Measure(Env& env, const EnvsOptions& options) {
  fmt::print("  {} episodes, seeds from {}\n", options.episodes, options.first_seed);
  std::optional<Behaviour> behaviour;
  const auto measure = [&](const char* name, double skill) {
    const auto begin = [&](std::uint64_t seed) {
      behaviour.emplace(env, BehaviourConfig{.skill = skill}, Rng(seed, name));
    };
    PrintMeasured(env, name, options, begin, [&] { return behaviour->Act(); });
  };
  measure("random", 0.0);  // a word
  const ActionBuffer still(env.spec().action);
  PrintMeasured(
      env, "stand-still", options, [](std::uint64_t) {}, [&] { return still.view(); });
  if (env.expert() != nullptr) measure("expert", 1.0);
}

void RunEnvs(const EnvsOptions& options, const Program& program) {
  if (options.id.empty() && options.json) {
    Json json = Json::array();
    for (const EnvEntry& entry : program.registries.envs) {
      json.push_back(EnvJson(entry, entry.make({})->spec()));
    }
    return PrintJson(json);
  }
  if (options.id.empty()) return PrintList(program);
  const EnvEntry& entry = program.registries.envs.Find(options.id);
  const std::unique_ptr<Env> env = MakeEnv(entry, options.settings);
  if (options.json) return PrintJson(EnvJson(entry, env->spec()));
  PrintOne(entry, *env);
  if (options.episodes > 0) Measure(*env, options);
}

}  // namespace

void AddEnvs(CLI::App& app, const Program& program) {
  AddCommand(app, program, "envs", "List the environments, or show one", RunEnvs)
      ->get_option("--measure")
      ->needs("ID")
      ->excludes("--json");
}

}  // namespace msrl::cli
