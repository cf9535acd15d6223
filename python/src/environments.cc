#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/env/batch_env.h"
#include "msrl/env_list/env_list.h"
#include "msrl/mujoco/mujoco_env.h"
#include "msrl/render/rendering.h"
#include "msrl/render/sketch.h"
#include "python/src/bindings.h"

namespace msrl::python {
namespace {

using namespace nb::literals;  // NOLINT(google-build-using-namespace)

using Options = std::vector<std::string>;

// Which episode comes next: that of a given seed, then what a stream of this seed says. The same
// for an environment by itself and for one of many.
class EpisodeSeeds {
 public:
  std::uint64_t Next(std::optional<std::uint64_t> seed) {
    if (!seed) return stream_.NextU64();
    stream_ = Rng(*seed, "python/episodes");
    return *seed;
  }

 private:
  Rng stream_{0, "python/episodes"};
};

void SetIndex(const EnvSpec& spec, std::int64_t index, ActionBuffer& out) {
  if (index < 0 || index >= spec.action.size) {
    throw UserError(StrCat(spec.id, ": action ", index, " is not in 0 to ", spec.action.size - 1));
  }
  out.set_index(static_cast<int>(index));
}

void RequireKind(const EnvSpec& spec, ActionKind kind) {
  if (spec.action.kind == kind) return;
  throw UserError(StrCat(spec.id, " takes ",
                         kind == ActionKind::kDiscrete ? "continuous" : "discrete", " actions"));
}

template <typename T>
void SetValues(const EnvSpec& spec, std::span<T> values, ActionBuffer& out) {
  if (std::ssize(values) != spec.action.size) {
    throw UserError(
        StrCat(spec.id, ": an action has ", spec.action.size, " numbers, got ", values.size()));
  }
  std::copy(values.begin(), values.end(), out.values().begin());
}

class SingleEnv {
 public:
  using Result = std::tuple<NewArray<double>, double, bool, bool>;

  SingleEnv(const std::string& id, const Options& options)
      : env_(BuiltinEnvs().Make(id, options)), action_(spec().action) {}

  const EnvSpec& spec() const { return env_->spec(); }

  NewArray<double> Reset(std::optional<std::uint64_t> seed) {
    env_->Reset(seeds_.Next(seed));
    return Observation();
  }
  Result StepDiscrete(std::int64_t index) {
    RequireKind(spec(), ActionKind::kDiscrete);
    SetIndex(spec(), index, action_);
    return Step();
  }
  Result StepContinuous(const Numbers<1>& values) {
    RequireKind(spec(), ActionKind::kContinuous);
    SetValues(spec(), SpanOf(values), action_);
    return Step();
  }

  NewArray<double> Observation() const { return CopyToArray<double>(env_->observation()); }
  NewArray<double> Geometry() const { return CopyToArray<double>(env_->geometry()); }
  std::optional<bool> Success() const { return env_->Success(); }
  std::string Fault() const { return env_->fault(); }

  nb::bytes Snapshot() const {
    const std::vector<std::byte> bytes = env_->Snapshot();
    return nb::bytes(bytes.data(), bytes.size());
  }
  void Restore(const nb::bytes& bytes) {
    env_->Restore({static_cast<const std::byte*>(bytes.data()), bytes.size()});
  }

  // Rows from the top, three bytes per pixel.
  NewArray<std::uint8_t> Render(int width, int height) {
    const ImageSize size = ParseImageSize(StrCat(width, "x", height));
    if (view_ == nullptr || drawn_ != size) {
      view_ = MakeView(size);
      drawn_ = size;
    }
    const Image& image = view_->Draw();
    NewArray<std::uint8_t> pixels = MakeArray<std::uint8_t>(
        {static_cast<std::size_t>(height), static_cast<std::size_t>(width), 3});
    std::copy(image.rgb.begin(), image.rgb.end(), pixels.data());
    return pixels;
  }

 private:
  Result Step() {
    const StepResult result = env_->Step(action_.view());
    return {Observation(), result.reward, result.terminated, result.truncated};
  }

  // MuJoCo's own pictures where there is OpenGL.
  std::unique_ptr<View> MakeView(ImageSize size) {
    if (const auto* mujoco = UnwrapAs<MujocoEnv>(*env_)) {
      std::string why_not;
      if (auto view = MakeRendering(*mujoco, size, why_not)) return view;
    }
    return MakeSketch(*env_, size);
  }

  std::unique_ptr<Env> env_;
  std::unique_ptr<View> view_;  // null before the first picture
  ImageSize drawn_{0, 0};
  ActionBuffer action_;
  EpisodeSeeds seeds_;
};

// Arrays of one shape, each handed out again once nobody else holds it: making a new one takes as
// long as a step of a small environment. Who keeps an array, or a view of it, keeps what it shows.
template <typename T>
class RecycledArrays {
 public:
  struct Slot {
    nb::object array;
    T* data = nullptr;
  };

  explicit RecycledArrays(std::initializer_list<std::size_t> shape) {
    nb::list sizes;
    for (const std::size_t size : shape) sizes.append(size);
    shape_ = nb::tuple(sizes);
  }

  // Holds what was written last, or zeros. Valid until the next call.
  const Slot& Take() {
    for (const Slot& slot : slots_) {
      if (slot.array.is_valid() && Py_REFCNT(slot.array.ptr()) == 1) return slot;
    }
    Slot& slot = slots_[oldest_];
    oldest_ = (oldest_ + 1) % slots_.size();
    slot.array = nb::module_::import_("numpy").attr("zeros")(
        shape_, std::is_same_v<T, bool> ? "bool" : "float64");
    Py_buffer view;
    if (PyObject_GetBuffer(slot.array.ptr(), &view, PyBUF_CONTIG) != 0) throw nb::python_error();
    slot.data = static_cast<T*>(view.buf);
    PyBuffer_Release(&view);
    return slot;
  }

 private:
  nb::tuple shape_;
  std::array<Slot, 4> slots_;  // a loop holds those of the last step or two
  std::size_t oldest_ = 0;
};

nb::object Interned(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }

void Put(const nb::dict& dict, const nb::object& key, const nb::object& value) {
  if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
}

// Episodes that end begin again in the same step (Gymnasium's AutoresetMode.SAME_STEP). What reset
// and step return is made here: for small environments a few lines of Python would be half the
// time.
class VectorOfEnvs {
 public:
  VectorOfEnvs(const std::string& id, const Options& options, int size, int threads)
      : envs_(MakeEnvs(id, options, size), RequireAtLeastOne("threads", threads)),
        spec_(envs_.spec()),
        takes_long_(threads > 1 || UnwrapAs<MujocoEnv>(envs_.env(0)) != nullptr),
        actions_(envs(), ActionBuffer(spec_.action)),
        seeds_(envs()),
        observations_({envs(), width()}),
        geometries_({envs(), kGeometrySize}),
        successes_({envs()}),
        rewards_({envs()}),
        terminated_({envs()}),
        truncated_({envs()}),
        ended_({envs()}),
        last_observations_({envs(), width()}),
        last_geometries_({envs(), kGeometrySize}),
        last_successes_({envs()}),
        everywhere_(nb::module_::import_("numpy").attr("ones")(envs(), "bool")),
        make_rows_(nb::module_::import_("functools")
                       .attr("partial")(nb::module_::import_("numpy").attr("empty"), envs(), "O")) {
  }

  const EnvSpec& spec() const { return spec_; }

  // Observations and info.
  nb::tuple Reset(const std::vector<std::optional<std::uint64_t>>& seeds) {
    if (seeds.size() != envs()) {
      throw UserError(StrCat("there are ", envs(), " environments, got ", seeds.size(), " seeds"));
    }
    std::vector<std::uint64_t> episodes(envs());
    for (std::size_t i = 0; i < envs(); ++i) episodes[i] = seeds_[i].Next(seeds[i]);
    {
      const nb::gil_scoped_release release;
      envs_.Reset(episodes);
    }
    const Seen seen = MakeSeen();
    for (std::size_t i = 0; i < envs(); ++i) Show(i, seen);
    return nb::make_tuple(seen.observations.array, Info(seen));
  }

  // Observations, rewards, terminated, truncated, info.
  nb::tuple Step(const nb::object& actions) {
    ReadActions(actions);
    const std::span<const StepResult> results = StepAll();
    const Seen seen = MakeSeen();
    const auto& [rewards, rewards_data] = rewards_.Take();
    const auto& [terminated, terminated_data] = terminated_.Take();
    const auto& [truncated, truncated_data] = truncated_.Take();
    bool any_end = false;
    for (std::size_t i = 0; i < envs(); ++i) {
      const StepResult& result = results[i];
      rewards_data[i] = result.reward;
      terminated_data[i] = result.terminated;
      truncated_data[i] = result.truncated;
      if (result.terminated || result.truncated) {
        any_end = true;
      } else {
        Show(i, seen);
      }
    }
    nb::dict info = Info(seen);
    if (any_end) BeginAgain(results, seen, info);
    return nb::make_tuple(seen.observations.array, rewards, terminated, truncated, info);
  }

 private:
  using Doubles = RecycledArrays<double>;
  using Bools = RecycledArrays<bool>;
  // What environments show, as arrays over all of them.
  struct Seen {
    Doubles::Slot observations;
    Doubles::Slot geometries;
    Bools::Slot successes;  // of tasks that have any
  };

  std::span<const StepResult> StepAll() {
    if (!takes_long_) return envs_.Step(actions_);
    const nb::gil_scoped_release release;
    return envs_.Step(actions_);
  }

  std::size_t envs() const { return static_cast<std::size_t>(envs_.size()); }
  std::size_t width() const { return static_cast<std::size_t>(spec_.observation_size); }

  static int RequireAtLeastOne(const char* what, int value) {
    if (value < 1) throw UserError(StrCat(what, " must be at least 1, got ", value));
    return value;
  }
  static std::vector<std::unique_ptr<Env>> MakeEnvs(const std::string& id, const Options& options,
                                                    int size) {
    std::vector<std::unique_ptr<Env>> envs;
    for (int i = 0; i < RequireAtLeastOne("num_envs", size); ++i) {
      envs.push_back(BuiltinEnvs().Make(id, options));
    }
    return envs;
  }

  void ReadActions(const nb::object& actions) {
    if (TryReadActions(actions)) return;
    const bool discrete = spec_.action.kind == ActionKind::kDiscrete;
    const nb::object array = nb::module_::import_("numpy").attr("ascontiguousarray")(
        actions, discrete ? "int64" : "float64");
    if (!TryReadActions(array)) {
      throw UserError(StrCat(spec_.id, ": actions of many environments have ",
                             discrete ? "one dimension" : "two dimensions"));
    }
  }
  // False if they are no array of the usual types and of the right dimension, or not in order.
  bool TryReadActions(const nb::object& actions) {
    Py_buffer view;
    if (PyObject_GetBuffer(actions.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> release(&view, PyBuffer_Release);
    const std::string_view type = view.format == nullptr ? "" : view.format;
    if (spec_.action.kind == ActionKind::kDiscrete) {
      if (view.ndim != 1 || (type != "l" && type != "q")) return false;
      RequireRows(view);
      const auto* indices = static_cast<const std::int64_t*>(view.buf);
      for (std::size_t i = 0; i < envs(); ++i) SetIndex(spec_, indices[i], actions_[i]);
      return true;
    }
    if (view.ndim != 2) return false;
    if (type == "f") return SetRows<float>(view);
    return type == "d" && SetRows<double>(view);
  }
  template <typename T>
  bool SetRows(const Py_buffer& view) {
    RequireRows(view);
    const auto columns = static_cast<std::size_t>(view.shape[1]);
    for (std::size_t i = 0; i < envs(); ++i) {
      SetValues(spec_, std::span(static_cast<const T*>(view.buf) + i * columns, columns),
                actions_[i]);
    }
    return true;
  }
  void RequireRows(const Py_buffer& view) const {
    if (view.shape[0] == std::ssize(actions_)) return;
    throw UserError(StrCat("there are ", envs(), " environments, got ", view.shape[0], " actions"));
  }

  Seen MakeSeen() { return {observations_.Take(), geometries_.Take(), successes_.Take()}; }

  void Show(std::size_t i, const Seen& seen) {
    const Env& env = envs_.env(static_cast<int>(i));
    std::copy_n(env.observation().data(), width(), seen.observations.data + i * width());
    std::copy_n(env.geometry().data(), kGeometrySize, seen.geometries.data + i * kGeometrySize);
    if (spec_.has_success) seen.successes.data[i] = env.Success().value_or(false);
  }
  nb::dict Info(const Seen& seen) const { return Info(seen, everywhere_); }
  nb::dict Info(const Seen& seen, const nb::object& where) const {
    nb::dict info;
    Put(info, keys_.geometry, seen.geometries.array);
    Put(info, keys_.has_geometry, where);
    if (spec_.has_success) {
      Put(info, keys_.success, seen.successes.array);
      Put(info, keys_.has_success, where);
    }
    return info;
  }

  // The ends of episodes as Gymnasium has them, arrays over all environments with rows of 0 where
  // none ended; and the next episodes there.
  void BeginAgain(std::span<const StepResult> results, const Seen& seen, const nb::dict& info) {
    const auto& [ended, is_end] = ended_.Take();
    const Seen last{last_observations_.Take(), last_geometries_.Take(), last_successes_.Take()};
    std::fill_n(last.observations.data, envs() * width(), 0.0);
    std::fill_n(last.geometries.data, envs() * kGeometrySize, 0.0);
    std::fill_n(last.successes.data, envs(), false);
    const nb::object rows = make_rows_();
    for (std::size_t i = 0; i < envs(); ++i) {
      is_end[i] = results[i].terminated || results[i].truncated;
      if (!is_end[i]) continue;
      Show(i, last);
      const auto index = static_cast<Py_ssize_t>(i);
      const nb::object row = nb::steal(PySequence_GetItem(last.observations.array.ptr(), index));
      if (!row.is_valid() || PySequence_SetItem(rows.ptr(), index, row.ptr()) != 0) {
        throw nb::python_error();
      }
      envs_.env(static_cast<int>(i)).Reset(seeds_[i].Next(std::nullopt));
      Show(i, seen);
    }
    Put(info, keys_.final_obs, rows);
    Put(info, keys_.has_final_obs, ended);
    Put(info, keys_.final_info, Info(last, ended));
    Put(info, keys_.has_final_info, ended);
  }

  struct Keys {
    nb::object geometry = Interned("geometry"), has_geometry = Interned("_geometry");
    nb::object success = Interned("success"), has_success = Interned("_success");
    nb::object final_obs = Interned("final_obs"), has_final_obs = Interned("_final_obs");
    nb::object final_info = Interned("final_info"), has_final_info = Interned("_final_info");
  };

  BatchEnv envs_;
  const EnvSpec& spec_;  // asking for it in every step would be a tenth of the time
  bool takes_long_;      // longer than it takes to let other Python threads run meanwhile
  std::vector<ActionBuffer> actions_;
  std::vector<EpisodeSeeds> seeds_;
  Doubles observations_;
  Doubles geometries_;
  Bools successes_;
  Doubles rewards_;
  Bools terminated_;
  Bools truncated_;
  Bools ended_;
  Doubles last_observations_;
  Doubles last_geometries_;
  Bools last_successes_;
  nb::object everywhere_;
  nb::object make_rows_;  // a new array for a row, or None, of each environment
  Keys keys_;
};

NewArray<double> Embed(const EnvSpec& spec, const Action& action) {
  NewArray<double> code = MakeArray<double>({kActionCodeSize});
  EmbedAction(spec, action, std::span<double, kActionCodeSize>(code.data(), kActionCodeSize));
  return code;
}

void BindSpec(nb::module_& module) {
  const auto value_of = [](const std::optional<MeasuredReturn>& measured) {
    return measured ? std::optional(measured->value) : std::nullopt;
  };
  nb::class_<EnvSpec>(module, "EnvSpec", "The facts about an environment.")
      .def_ro("id", &EnvSpec::id)
      .def_ro("family", &EnvSpec::family)
      .def_ro("description", &EnvSpec::description)
      .def_ro("observation_size", &EnvSpec::observation_size)
      .def_ro("observation_bound", &EnvSpec::observation_bound,
              "No entry of an observation exceeds it.")
      .def_prop_ro(
          "discrete", [](const EnvSpec& spec) { return spec.action.kind == ActionKind::kDiscrete; },
          "Whether actions are indices; otherwise they are in [-1, 1]^action_size.")
      .def_prop_ro("action_size", [](const EnvSpec& spec) { return spec.action.size; })
      .def_ro("step_limit", &EnvSpec::step_limit, "The most steps that an episode can have.")
      .def_ro("dt", &EnvSpec::dt, "Time per step.")
      .def_ro("gamma", &EnvSpec::gamma)
      .def_ro("reward_scale", &EnvSpec::reward_scale,
              "Values and matrices use reward / reward_scale.")
      .def_ro("reward_low", &EnvSpec::reward_low)
      .def_ro("reward_high", &EnvSpec::reward_high)
      .def_ro("geometry_bound", &EnvSpec::geometry_bound)
      .def_ro("has_success", &EnvSpec::has_success)
      .def_prop_ro("random_return",
                   [value_of](const EnvSpec& spec) { return value_of(spec.random_return); })
      .def_prop_ro("reference_return",
                   [value_of](const EnvSpec& spec) { return value_of(spec.reference_return); })
      .def(
          "embed_action",
          [](const EnvSpec& spec, std::int64_t action) {
            ActionBuffer buffer(spec.action);
            RequireKind(spec, ActionKind::kDiscrete);
            SetIndex(spec, action, buffer);
            return Embed(spec, buffer.view());
          },
          "action"_a, "The action as the lift sees it: 10 numbers.")
      .def(
          "embed_action",
          [](const EnvSpec& spec, const Numbers<1>& action) {
            return Embed(spec, Action::Continuous(SpanOf(action)));
          },
          "action"_a);
}

}  // namespace

void BindEnvironments(nb::module_& module) {
  BindSpec(module);
  nb::class_<SingleEnv>(module, "Env", "An environment of the C++ library.")
      .def(nb::init<const std::string&, const Options&>(), "id"_a, "options"_a = Options{},
           "options: 'key=value'.")
      .def_prop_ro("spec", &SingleEnv::spec, nb::rv_policy::copy)
      .def("reset", &SingleEnv::Reset, "seed"_a = nb::none(),
           "Begins the episode of this seed, or without one the next of the last seed's stream.")
      .def("step_discrete", &SingleEnv::StepDiscrete, "action"_a)
      .def("step_continuous", &SingleEnv::StepContinuous, "action"_a)
      .def_prop_ro("observation", &SingleEnv::Observation, nb::rv_policy::automatic)
      .def_prop_ro("geometry", &SingleEnv::Geometry, nb::rv_policy::automatic)
      .def_prop_ro("success", &SingleEnv::Success)
      .def_prop_ro("fault", &SingleEnv::Fault)
      .def("snapshot", &SingleEnv::Snapshot, "All that later steps depend on.")
      .def("restore", &SingleEnv::Restore, "snapshot"_a)
      .def("render", &SingleEnv::Render, "width"_a, "height"_a);
  nb::class_<VectorOfEnvs>(module, "BatchEnv", "Several environments, stepped at once by threads.")
      .def(nb::init<const std::string&, const Options&, int, int>(), "id"_a, "options"_a,
           "num_envs"_a, "threads"_a)
      .def_prop_ro("spec", &VectorOfEnvs::spec, nb::rv_policy::copy)
      .def("reset", &VectorOfEnvs::Reset,
           nb::sig("def reset(self, seeds: collections.abc.Sequence[int | None]) -> "
                   "tuple[numpy.typing.NDArray[numpy.float64], dict[str, typing.Any]]"),
           "Gymnasium's observations and info.")
      .def("step", &VectorOfEnvs::Step,
           nb::sig("def step(self, actions: object) -> "
                   "tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64],"
                   " numpy.typing.NDArray[numpy.bool_], numpy.typing.NDArray[numpy.bool_],"
                   " dict[str, typing.Any]]"),
           "Gymnasium's observations, rewards, terminated, truncated and info.");

  module.def(
      "env_options",
      [] {
        std::map<std::string, std::map<std::string, std::string>> options;
        for (const EnvEntry& entry : BuiltinEnvs()) {
          auto& defaults = options[entry.id];
          for (const ConfigField& field : entry.options()) defaults[field.key] = field.value;
        }
        return options;
      },
      "Every environment's id with its options and their defaults.");
}

}  // namespace msrl::python
