#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"
#include "msrl/core/check.h"
#include "msrl/run/run_directory.h"

namespace msrl::cli {
namespace {

constexpr int kOtherNumbers = 1;

struct ReplayOptions : OptionList {
  std::string& run = Required("DIR", "Directory of the run");
  int& last = Option("--last", "Steps that are shown (default 5)", 5, CLI::Range(1, 1'000'000));
  bool& json = Flag("--json", "As JSON, with all numbers of these steps");
};

struct ShownStep {
  std::int64_t step = 0;  // of the episode, or since it was taken up
  std::vector<double> action;
  double reward = 0.0;
  std::vector<double> observation, geometry;
};

std::vector<double> ToVector(const EnvView& view) { return {view.begin(), view.end()}; }

// Bit for bit: no number is equal to one that is none.
bool Same(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

// "observation[3] is nan", "" if all are finite.
std::string BadEntry(const char* what, std::span<const double> values) {
  const auto bad = std::ranges::find_if_not(values, [](double v) { return std::isfinite(v); });
  return bad == values.end() ? "" : StrCat(what, "[", bad - values.begin(), "] is ", *bad);
}

struct Replayed {
  std::deque<ShownStep> steps;  // the last ones
  std::int64_t played = 0;
  std::string raised;  // what ended it, if anything did
  bool same = false;
};

Replayed Replay(const RunFailure& failure, Env& env, int last) {
  Replayed replayed;
  try {
    PlayAgain(failure.episode, env, [&](const Action& action, const StepResult& result) {
      ShownStep step{.step = replayed.played++,
                     .action = {action.values().begin(), action.values().end()},
                     .reward = result.reward,
                     .observation = ToVector(env.observation()),
                     .geometry = ToVector(env.geometry())};
      if (action.kind() == ActionKind::kDiscrete)
        step.action = {static_cast<double>(action.index())};
      replayed.steps.push_back(std::move(step));
      if (std::ssize(replayed.steps) > last) replayed.steps.pop_front();
    });
  } catch (const std::exception& error) {
    replayed.raised = error.what();
  }
  const bool returned = failure.episode.reward.has_value() || failure.episode.actions.empty();
  if (!returned || !replayed.raised.empty()) {
    replayed.same = !returned && !replayed.raised.empty();
    return replayed;
  }
  const auto reward = std::bit_cast<std::uint64_t>(failure.episode.reward.value_or(0.0));
  replayed.same = Same(ToVector(env.observation()), failure.observation) &&
                  Same(ToVector(env.geometry()), failure.geometry) &&
                  (replayed.steps.empty() ||
                   std::bit_cast<std::uint64_t>(replayed.steps.back().reward) == reward);
  return replayed;
}

// What is not finite in the last step, "" if the environment has done nothing wrong.
std::string BadNumber(const Replayed& replayed) {
  if (replayed.steps.empty()) return {};
  const ShownStep& step = replayed.steps.back();
  std::string bad = BadEntry("observation", step.observation);
  if (bad.empty()) bad = BadEntry("geometry", step.geometry);
  if (bad.empty() && !std::isfinite(step.reward)) bad = StrCat("reward is ", step.reward);
  return bad;
}

void Print(const RunFailure& failure, const Replayed& replayed, const std::string& env,
           const std::string& run) {
  fmt::print("{}{}\n", failure.message, failure.evaluating ? " (in an evaluation)" : "");
  fmt::print("{}: {} steps of the episode {}, played again\n\n", env, replayed.played,
             failure.episode.snapshot.empty() ? fmt::format("of seed {}", failure.episode.seed)
                                              : "from where the run was taken up");
  fmt::print("{:>6} {:>12}  {:<24} {}\n", "step", "reward", "action", "observation");
  const auto list = [](std::span<const double> values, std::size_t most) {
    std::string text =
        fmt::format("{:.4g}", fmt::join(values.first(std::min(most, values.size())), " "));
    return text + (values.size() > most ? " ..." : "");
  };
  for (const ShownStep& step : replayed.steps) {
    fmt::print("{:>6} {:>12.6g}  {:<24} {}\n", step.step, step.reward, list(step.action, 3),
               list(step.observation, 6));
  }
  fmt::print("\n");
  const std::string bad = BadNumber(replayed);
  if (!replayed.raised.empty()) {
    fmt::print("the environment ends here: {}\n", replayed.raised);
  } else if (!bad.empty()) {
    fmt::print("the environment's {}\n", bad);
  } else {
    fmt::print(
        "the environment's numbers are finite: the agent's went bad. The steps since the "
        "last\ncheckpoint are trained again, with the same end, by: resume {}\n",
        Quoted(run));
  }
  fmt::print("{}\n", replayed.same ? "as in the run, bit for bit" : "the run had other numbers");
}

void RunReplay(const ReplayOptions& options, const Program& program) {
  const RunDirectory directory = RunDirectory::OpenForReading(options.run);
  const RunSpec& spec = directory.spec();
  const RunFailure failure = directory.ReadFailure();
  const std::unique_ptr<Env> env = program.registries.envs.Make(spec.env, spec.env_settings);
  const Replayed replayed = Replay(failure, *env, options.last);
  if (options.json) {
    Json steps = Json::array();
    // JSON has no such numbers: they are null
    for (const ShownStep& step : replayed.steps) {
      steps.push_back({{"step", step.step},
                       {"action", step.action},
                       {"reward", step.reward},
                       {"observation", step.observation},
                       {"geometry", step.geometry}});
    }
    PrintJson({{"env", spec.env},
               {"step", failure.step},
               {"evaluating", failure.evaluating},
               {"message", failure.message},
               {"raised", replayed.raised},
               {"bad", BadNumber(replayed)},
               {"same", replayed.same},
               {"steps", std::move(steps)}});
  } else {
    Print(failure, replayed, spec.env, options.run);
  }
  if (!replayed.same) throw ExitRequest{kOtherNumbers};
}

}  // namespace

void AddReplay(CLI::App& app, const Program& program) {
  CLI::App* command =
      AddCommand(app, program, "replay", "Play the episode again in which a bad number ended a run",
                 RunReplay);
  command->footer(
      "The episode is in the run's failure.safetensors (docs/file-formats.md). Exit code 1 if it\n"
      "ends with other numbers than in the run.");
}

}  // namespace msrl::cli
