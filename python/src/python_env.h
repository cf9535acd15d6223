// An environment that is a Python object.
#ifndef MSRL_PYTHON_SRC_PYTHON_ENV_H_
#define MSRL_PYTHON_SRC_PYTHON_ENV_H_

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/env/env_registry.h"
#include "msrl/run/run_spec.h"
#include "python/src/bindings.h"

namespace msrl::python {

// A Python object that C++ may copy and drop without the interpreter's lock.
class SharedObject {
 public:
  SharedObject() = default;
  // With the lock held.
  explicit SharedObject(nb::object object);

  explicit operator bool() const { return object_ != nullptr; }
  const nb::object& operator*() const { return *object_; }

 private:
  std::shared_ptr<nb::object> object_;
};

// What Python code raised, on its way through C++; the text is one line.
class PythonFailure : public std::runtime_error {
 public:
  // With the lock held; `where` is what raised it.
  PythonFailure(const std::string& where, nb::python_error error);
  // Gives the error back to Python.
  [[noreturn]] void Rethrow() const;

 private:
  std::shared_ptr<nb::python_error> error_;
};

// Calls with the lock, whoever has it now; what Python raises is a PythonFailure.
template <typename Function>
auto CallPython(const char* where, const Function& function) {
  const nb::gil_scoped_acquire acquire;
  try {
    return function();
  } catch (nb::python_error& error) {
    throw PythonFailure(where, std::move(error));
  }
}

enum class ActionsOf { kDiscrete, kContinuous };
constexpr auto EnumNames(ActionsOf /*unused*/) { return Names("discrete", "continuous"); }

// All that C++ knows of such an environment: the options in a run's records.
struct PythonEnvConfig {
  std::string gymnasium;
  int observation_size = 1;
  double observation_bound = 1e6;
  ActionsOf actions = ActionsOf::kContinuous;
  int action_size = 1;
  int step_limit = 1;
  double reward_scale = 1.0;
  double gamma = 0.99;
  std::string success;
  std::string geometry;

  template <typename V>
  void Fields(V&& visit) {
    visit("gymnasium", gymnasium, "Gymnasium's id; empty: made by the user's own code");
    visit("observation_size", observation_size, "numbers in an observation", AtLeast(1));
    visit("observation_bound", observation_bound, "no number exceeds it", Positive());
    visit("actions", actions, "kind of actions");
    visit("action_size", action_size, "how many actions, or numbers in one",
          Between(1, kMaxActionSize));
    visit("step_limit", step_limit, "the most steps of an episode", AtLeast(1));
    visit("reward_scale", reward_scale, "values and matrices use reward / reward_scale",
          Positive());
    visit("gamma", gamma, "discount", Between(0.0, 1.0).OpenAbove());
    visit("success", success, "entry of info that says whether the task is solved; empty: none");
    visit("geometry", geometry, "slot map as JSON, or the name of a function");
  }
};

// An environment of the user's: what it is, and where it comes from.
class PythonEnvRow {
 public:
  // `source()` gives an object with
  //   reset(seed) -> (observation, geometry)
  //   step(action) -> (observation, geometry, reward, terminated, truncated, success)
  // It is called when an episode begins that needs a new one: first for training, then for
  // evaluation. Settings are "key=value".
  PythonEnvRow(std::string id, const std::vector<std::string>& settings, nb::object source);
  // For those who want to know what it is, not to play in it.
  PythonEnvRow(std::string id, const std::vector<std::string>& settings);

  const std::string& id() const { return id_; }
  EnvEntry Entry() const;

 private:
  std::string id_;
  PythonEnvConfig config_;
  SharedObject source_;
};

// What comes with msrl, and the environment of this run if it is one of Python's.
Registries RegistriesFor(const RunSpec& spec);

}  // namespace msrl::python

#endif  // MSRL_PYTHON_SRC_PYTHON_ENV_H_
