#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "msrl/builtin/builtin.h"
#include "msrl/run/runner.h"
#include "msrl/run/start_from.h"
#include "python/src/python_env.h"

namespace msrl::python {
namespace {

using namespace nb::literals;  // NOLINT(google-build-using-namespace)

// How a run is carried out, with functions of Python's.
struct Conduct {
  std::int64_t checkpoint_steps = 0;
  double checkpoint_seconds = 300.0;
  nb::object on_progress;
  nb::object on_warning;
  nb::object on_notice;
  nb::object stop;
};

RunOptions OptionsFor(const Conduct& conduct) {
  RunOptions options;
  options.checkpoint_steps = conduct.checkpoint_steps;
  options.checkpoint_seconds = conduct.checkpoint_seconds;
  options.evaluation_envs = 1;
  const auto say = [](const nb::object& function) {
    return [function = SharedObject(function)](const std::string& text) {
      CallPython("a warning", [&] { (*function)(text); });
    };
  };
  options.on_warning = say(conduct.on_warning);
  options.on_notice = say(conduct.on_notice);
  options.on_progress = [function = SharedObject(conduct.on_progress)](const RunProgress& now) {
    CallPython("a callback", [&] { (*function)(now); });
  };
  options.stop = [function = SharedObject(conduct.stop)] {
    return CallPython("a signal", [&] { return nb::cast<bool>((*function)()); });
  };
  return options;
}

Registries RegistriesWith(const PythonEnvRow* row) {
  Registries registries = BuiltinRegistries();
  if (row != nullptr) registries.envs.Add(row->Entry());
  return registries;
}

// Trying out actions in a second environment would mean to play the episode again for each of them.
void RequireNoSimulator(const RunSpec& spec, const Registries& registries) {
  const EnvSpec env = registries.envs.Make(spec.env, spec.env_settings)->spec();
  if (!registries.agents.Make(spec.agent, env, spec.agent_settings, spec.seed)->wants_simulator()) {
    return;
  }
  throw UserError(StrCat("with these settings '", spec.agent, "' tries its plans in a simulator, ",
                         "which an environment of Python is not; set simulation_check=0"));
}

bool Carry(RunDirectory& directory, const Registries& registries, const Conduct& conduct) {
  RunOptions options = OptionsFor(conduct);
  try {
    const nb::gil_scoped_release release;
    std::optional<Runner> runner;
    try {
      runner.emplace(directory, registries, std::move(options));
    } catch (const PythonFailure& error) {
      directory.WriteStatus("failed", 0, error.what());
      throw;
    }
    return runner->Run() != RunOutcome::kInterrupted;
  } catch (const PythonFailure& error) {
    error.Rethrow();
  }
}

struct TrainRequest {
  RunSpec spec;
  std::string run;
  std::string init;
  std::string library;
};

bool Train(TrainRequest request, const PythonEnvRow* row, const Conduct& conduct) {
  const Registries registries = RegistriesWith(row);
  RunSpec& spec = request.spec;
  if (row != nullptr) spec.env = row->id();
  RunStart start;
  if (!request.init.empty()) {
    const Artefact artefact = Artefact::Read(request.init);
    StartFrom(artefact, /*unaligned=*/false, registries, spec);
    start.init = artefact.contents();
  }
  if (!request.library.empty()) {
    const auto warn = OptionsFor(conduct).on_warning;
    start.library = SegmentsFile(request.library, warn);
    StartWithSegments(start.library, request.library, registries, spec);
  }
  const RunSpec resolved = Resolve(spec, registries);
  if (row != nullptr) RequireNoSimulator(resolved, registries);
  RunDirectory directory = RunDirectory::Create(request.run, resolved, registries, start);
  return Carry(directory, registries, conduct);
}

bool Resume(const std::string& run, const PythonEnvRow* row, std::optional<std::int64_t> steps,
            const Conduct& conduct) {
  const Registries registries = RegistriesWith(row);
  RunDirectory directory = RunDirectory::OpenForWriting(run);
  if (steps && *steps != directory.spec().steps) directory.SetSteps(*steps, registries);
  return Carry(directory, registries, conduct);
}

void BindProgress(nb::module_& module) {
  nb::class_<RunProgress>(module, "Progress", "How far a run is; what callbacks get.")
      .def_ro("step", &RunProgress::step)
      .def_ro("steps", &RunProgress::steps, "The budget.")
      .def_ro("evaluating", &RunProgress::evaluating)
      .def_ro("seconds", &RunProgress::seconds, "Since this process took up the run.")
      .def_ro("evaluation_seconds", &RunProgress::evaluation_seconds, "Of these.")
      .def_ro("steps_per_second", &RunProgress::steps_per_second, "Of training, lately.")
      .def_ro("seconds_left", &RunProgress::seconds_left)
      .def_ro("episodes", &RunProgress::episodes)
      .def_ro("last_return", &RunProgress::last_return, "Of the last episode of training.")
      .def_ro("last_eval_return", &RunProgress::last_eval_return,
              "Mean of the last evaluation in this process.")
      .def("__repr__", [](const RunProgress& now) {
        std::string text = StrCat("step ", now.step, " of ", now.steps);
        if (now.last_return) text += StrCat(", return ", *now.last_return);
        if (now.last_eval_return) text += StrCat(", evaluation ", *now.last_eval_return);
        return text;
      });
}

}  // namespace

void BindTraining(nb::module_& module) {
  BindProgress(module);
  nb::class_<PythonEnvRow>(module, "PythonEnvRow", "An environment of Python's for C++.")
      .def(nb::init<std::string, const std::vector<std::string>&, nb::object>(), "id"_a,
           "settings"_a, "source"_a);
  nb::class_<Conduct>(module, "Conduct", "How a run is carried out.")
      .def(
          "__init__",
          [](Conduct* self, std::int64_t checkpoint_steps, double checkpoint_seconds,
             nb::object on_progress, nb::object on_warning, nb::object on_notice, nb::object stop) {
            new (self) Conduct{checkpoint_steps,      checkpoint_seconds,   std::move(on_progress),
                               std::move(on_warning), std::move(on_notice), std::move(stop)};
          },
          nb::kw_only(), "checkpoint_steps"_a, "checkpoint_seconds"_a, "on_progress"_a,
          "on_warning"_a, "on_notice"_a, "stop"_a);
  module.def(
      "train",
      [](const std::string& run, const std::string& env, const PythonEnvRow* row,
         const std::vector<std::string>& env_settings, const std::string& agent,
         const std::vector<std::string>& settings, std::uint64_t seed, std::int64_t steps,
         std::int64_t eval_every, int eval_episodes, std::int64_t log_every,
         const std::string& init, const std::string& library, const Conduct& conduct) {
        TrainRequest request{.spec = {}, .run = run, .init = init, .library = library};
        RunSpec& spec = request.spec;
        spec.env = env;
        spec.env_settings = env_settings;
        spec.agent = agent;
        spec.agent_settings = settings;
        spec.seed = seed;
        spec.steps = steps;
        spec.eval_every = eval_every;
        spec.eval_episodes = eval_episodes;
        spec.log_every = log_every;
        return Train(std::move(request), row, conduct);
      },
      nb::kw_only(), "run"_a, "env"_a, "row"_a.none(), "env_settings"_a, "agent"_a, "settings"_a,
      "seed"_a, "steps"_a, "eval_every"_a, "eval_episodes"_a, "log_every"_a, "init"_a, "library"_a,
      "conduct"_a, "False if it was stopped. `env` is that of the row, if there is one.");
  module.def(
      "agents_over",
      [] {
        std::map<std::string, std::string> bases;
        for (const AgentEntry& entry : BuiltinAgents()) bases[entry.id] = entry.over;
        return bases;
      },
      "Every agent's id with that of the agent that it puts matrices on top of; empty: none.");
  module.def("resume", &Resume, nb::kw_only(), "run"_a, "row"_a.none(), "steps"_a.none(),
             "conduct"_a, "False if it was stopped.");
}

}  // namespace msrl::python
