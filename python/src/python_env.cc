#include "python/src/python_env.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "msrl/builtin/builtin.h"
#include "msrl/core/check.h"

namespace msrl::python {
namespace {

// Deletes a Python object from wherever C++ drops it.
template <typename T>
std::shared_ptr<T> WithLock(T value) {
  return {new T(std::move(value)), [](T* object) {
            const nb::gil_scoped_acquire acquire;
            delete object;
          }};
}

std::string FirstLine(std::string text) {
  const std::size_t end = text.find('\n');
  if (end != std::string::npos) text.resize(end);
  return text;
}

std::string Describe(const nb::python_error& error) {
  const std::string name = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string text = FirstLine(nb::cast<std::string>(nb::str(error.value())));
  return text.empty() ? name : StrCat(name, ": ", text);
}

EnvSpec MakeSpec(const std::string& id, const PythonEnvConfig& config) {
  EnvSpec spec;
  spec.id = id;
  spec.family = "python";
  spec.description = "an environment of Python";
  spec.observation_size = config.observation_size;
  spec.observation_bound = config.observation_bound;
  spec.action = {
      config.actions == ActionsOf::kDiscrete ? ActionKind::kDiscrete : ActionKind::kContinuous,
      config.action_size};
  if (spec.action.kind == ActionKind::kContinuous && config.action_size > kActionCodeSize) {
    for (int i = 0; i < config.action_size; ++i) {
      spec.action_code.push_back(i * kActionCodeSize / config.action_size);
    }
  }
  spec.step_limit = config.step_limit;
  spec.reward_scale = config.reward_scale;
  spec.gamma = config.gamma;
  spec.has_success = !config.success.empty();
  return spec;
}

std::string OptionsText(const PythonEnvConfig& config) {
  std::string text;
  for (const ConfigField& field : ListFields(config)) text += field.Text() + "\n";
  return text;
}

// The object's own state cannot be written down, so a snapshot is how the episode came here: its
// seed and its actions. What they lead to is compared with what was seen.
class PythonEnv : public EnvBase {
 public:
  PythonEnv(const std::string& id, const PythonEnvConfig& config, SharedObject source)
      : EnvBase(MakeSpec(id, config), OptionsText(config)), source_(std::move(source)) {}

  StepResult Step(const Action& action) override {
    std::array<double, kMaxActionSize> numbers{};
    const auto size = spec_.action.kind == ActionKind::kDiscrete
                          ? std::size_t{1}
                          : static_cast<std::size_t>(spec_.action.size);
    const std::span<double> played = std::span(numbers).first(size);
    if (spec_.action.kind == ActionKind::kDiscrete) {
      played[0] = RequireIndex(spec_, action);
    } else {
      RequireClipped(spec_, action, played);
    }
    const StepResult result = Play(played);
    actions_.insert(actions_.end(), played.begin(), played.end());
    // a limit of the environment's own, which may come earlier
    if (result.truncated) horizon_ = StepsSoFar();
    return result;
  }
  std::optional<bool> Success() const override { return success_; }
  int horizon() const override { return horizon_; }

 protected:
  void Begin(std::uint64_t seed) override {
    if (!source_) {
      throw UserError(StrCat("'", spec_.id, "' is an environment of Python; give it as env="));
    }
    CallPython("the environment", [this, seed] {
      if (!object_) object_ = SharedObject((*source_)());
      const nb::object seen = (*object_).attr("reset")(seed);
      Take(seen[0], seen[1]);
    });
    success_.reset();
    actions_.clear();
    horizon_ = spec_.step_limit;
  }
  void Publish() override {}
  void WriteState(ByteWriter& writer) const override {
    writer.U64(actions_.size());
    for (const double value : actions_) writer.Double(value);
    for (const double value : observation_) writer.Double(value);
    for (const double value : geometry_) writer.Double(value);
  }
  void ReadState(ByteReader& reader, std::uint64_t seed) override {
    std::vector<double> actions(static_cast<std::size_t>(
        reader.I64In(0, static_cast<std::int64_t>(reader.remaining() / sizeof(double)))));
    for (double& value : actions) value = reader.FiniteDouble();
    Eigen::VectorXd observation(spec_.observation_size);
    for (double& value : observation) value = reader.FiniteDouble();
    std::array<double, kGeometrySize> geometry{};
    for (double& value : geometry) value = reader.FiniteDouble();
    reader.RequireEnd();
    const std::size_t width = Width();
    if (actions.size() % width != 0) throw UserError(StrCat(spec_.id, ": half an action"));
    const bool repeat = HasInstance(seed);
    EnsureInstance(seed);
    if (repeat) Begin(seed);
    bool ended = false;
    for (std::size_t i = 0; i < actions.size() && !ended; i += width) {
      const StepResult result = Play(std::span(actions).subspan(i, width));
      ended = result.terminated || (result.truncated && i + width < actions.size());
    }
    if (ended) Begin(seed);
    actions_ = std::move(actions);
    if (!ended && observation == observation_) return;
    CallPython("the environment", [this] { (*object_).attr("other_course")(); });
    // agents may want steps that follow each other; what does not fit ends with the next one
    observation_ = observation;
    geometry_ = geometry;
    horizon_ = StepsSoFar() + 1;
  }

 private:
  std::size_t Width() const {
    return spec_.action.kind == ActionKind::kDiscrete ? 1
                                                      : static_cast<std::size_t>(spec_.action.size);
  }
  int StepsSoFar() const { return static_cast<int>(actions_.size() / Width()); }

  StepResult Play(std::span<const double> played) {
    return CallPython("the environment", [this, played] {
      const nb::object action = spec_.action.kind == ActionKind::kDiscrete
                                    ? nb::object(nb::int_(static_cast<int>(played[0])))
                                    : nb::cast(CopyToArray<double>(played));
      const nb::object seen = (*object_).attr("step")(action);
      Take(seen[0], seen[1]);
      success_ = spec_.has_success ? std::optional(nb::cast<bool>(seen[5])) : std::nullopt;
      return StepResult{.reward = nb::cast<double>(seen[2]),
                        .terminated = nb::cast<bool>(seen[3]),
                        .truncated = nb::cast<bool>(seen[4])};
    });
  }

  // The Python layer has checked sizes and values.
  void Take(const nb::object& observation, const nb::object& geometry) {
    const auto seen = nb::cast<Numbers<1>>(observation);
    const auto place = nb::cast<Numbers<1>>(geometry);
    MSRL_CHECK_EQ(seen.size(), static_cast<std::size_t>(spec_.observation_size));
    MSRL_CHECK_EQ(place.size(), static_cast<std::size_t>(kGeometrySize));
    std::copy_n(seen.data(), seen.size(), observation_.data());
    std::copy_n(place.data(), place.size(), geometry_.begin());
  }

  SharedObject source_;  // empty: nobody plays
  SharedObject object_;  // empty before the first episode
  std::vector<double> actions_;
  std::optional<bool> success_;
  int horizon_ = 1;
};

}  // namespace

SharedObject::SharedObject(nb::object object) : object_(WithLock(std::move(object))) {}

PythonFailure::PythonFailure(const std::string& where, nb::python_error error)
    : std::runtime_error(StrCat(where, " raised ", Describe(error))),
      error_(WithLock(std::move(error))) {}

void PythonFailure::Rethrow() const {
  const nb::gil_scoped_acquire acquire;
  throw nb::python_error(*error_);
}

PythonEnvRow::PythonEnvRow(std::string id, const std::vector<std::string>& settings)
    : id_(std::move(id)) {
  for (const std::string& setting : settings) SetField(config_, setting);
  RequireInRange(config_);
}

PythonEnvRow::PythonEnvRow(std::string id, const std::vector<std::string>& settings,
                           nb::object source)
    : PythonEnvRow(std::move(id), settings) {
  source_ = SharedObject(std::move(source));
}

EnvEntry PythonEnvRow::Entry() const {
  EnvEntry entry;
  entry.id = id_;
  entry.make = [*this](std::span<const std::string> options) -> std::unique_ptr<Env> {
    PythonEnvConfig config = config_;
    for (const std::string& option : options) SetField(config, option);
    return std::make_unique<PythonEnv>(id_, config, source_);
  };
  entry.options = [config = config_] { return ListFields(config); };
  return entry;
}

Registries RegistriesFor(const RunSpec& spec) {
  Registries registries = BuiltinRegistries();
  const bool of_python =
      std::any_of(spec.env_settings.begin(), spec.env_settings.end(),
                  [](const std::string& setting) { return setting.starts_with("gymnasium="); });
  if (of_python && !registries.envs.Has(spec.env)) {
    registries.envs.Add(PythonEnvRow(spec.env, spec.env_settings).Entry());
  }
  return registries;
}

}  // namespace msrl::python
