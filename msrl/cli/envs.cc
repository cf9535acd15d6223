#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/env_registry.h"

namespace msrl::cli {
namespace {

struct EnvsOptions {
  std::string id;
  int episodes = 0;  // to measure
  std::uint64_t first_seed = 100000;
  std::vector<std::string> settings;
};

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
  const std::vector<ConfigField> fields = entry.options();
  if (!fields.empty()) fmt::print("  options (--set key=value):\n");
  for (const ConfigField& field : fields) {
    fmt::print("    {:<18} {} ({}; default {})\n", field.key, field.meaning, field.Accepts(),
               field.value);
  }
}

// Returns of episodes with seeds from first_seed on.
void PrintMeasured(Env& env, const char* name, const EnvsOptions& options,
                   const std::function<Action(std::uint64_t seed)>& begin,
                   const std::function<Action()>& act) {
  std::vector<double> totals;
  double steps = 0.0;
  double successes = 0.0;
  for (int i = 0; i < options.episodes; ++i) {
    const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(i);
    env.Reset(seed);
    double total = 0.0;
    Action action = begin(seed);
    for (bool running = true; running; action = act()) {
      const StepResult result = env.Step(action);
      total += result.reward;
      steps += 1.0;
      running = !result.terminated && !result.truncated;
    }
    totals.push_back(total);
    successes += env.Success().value_or(false) ? 1.0 : 0.0;
  }
  const double n = options.episodes;
  const double mean = std::accumulate(totals.begin(), totals.end(), 0.0) / n;
  double squares = 0.0;
  for (const double total : totals) squares += (total - mean) * (total - mean);
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0.0;
  fmt::print(
      "  measured {:<12} {:.2f} +- {:.2f} (standard deviation; standard error {:.2f}), "
      "{:.1f} steps, success {:.3f}\n",
      name, mean, deviation, deviation / std::sqrt(n), steps / n, successes / n);
}

void Measure(Env& env, const EnvsOptions& options) {
  fmt::print("  {} episodes, seeds from {}\n", options.episodes, options.first_seed);
  std::optional<Behaviour> random;
  PrintMeasured(
      env, "random", options,  // a word
      [&](std::uint64_t seed) {
        random.emplace(env, BehaviourConfig{}, Rng(seed, "random"));
        return random->Act();
      },
      [&] { return random->Act(); });
  const ActionBuffer still(env.spec().action);
  PrintMeasured(
      env, "stand-still", options, [&](std::uint64_t) { return still.view(); },
      [&] { return still.view(); });
}

}  // namespace

void AddEnvs(CLI::App& app, const Program& program) {
  CLI::App* command = app.add_subcommand("envs", "List the environments, or show one");
  const auto options = std::make_shared<EnvsOptions>();
  command->add_option("ID", options->id, "Environment");
  AddSettings(*command, options->settings, "key=value: check an option");
  command
      ->add_option("--measure", options->episodes, "Play N episodes at random and standing still")
      ->check(CLI::PositiveNumber)
      ->needs("ID");
  command->add_option("--first-seed", options->first_seed, "Seed of the first measured episode");
  command->callback([options, &program] {
    if (options->id.empty()) {
      PrintList(program);
      return;
    }
    const EnvEntry& entry = program.registries.envs.Find(options->id);
    const std::unique_ptr<Env> env = MakeEnv(entry, options->settings);
    PrintOne(entry, *env);
    if (options->episodes > 0) Measure(*env, *options);
  });
}

}  // namespace msrl::cli
