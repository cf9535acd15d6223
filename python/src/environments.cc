#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

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

using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
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

void SetValues(const EnvSpec& spec, std::span<const double> values, ActionBuffer& out) {
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

// Where a vector of environments writes what it shows: arrays of the caller's, always the same,
// since making new ones takes longer than a step of a small environment.
struct Outputs {
  template <typename T, int kDims>
  using Rows = nb::ndarray<T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;

  Rows<double, 2> observations;
  Rows<double, 2> geometries;
  Rows<bool, 1> successes;  // false where that is no question
  Rows<double, 1> rewards;
  Rows<bool, 1> terminated;
  Rows<bool, 1> truncated;
};

// Episodes that end begin again in the same step (Gymnasium's AutoresetMode.SAME_STEP).
class VectorOfEnvs {
 public:
  // Which environments ended, and what was seen there: observations, geometries, successes. The
  // rows of the others are 0.
  using Ends = std::tuple<std::vector<int>, NewArray<double>, NewArray<double>, NewArray<bool>>;

  VectorOfEnvs(const std::string& id, const Options& options, int size, int threads)
      : envs_(MakeEnvs(id, options, size), RequireAtLeastOne("threads", threads)),
        actions_(envs(), ActionBuffer(spec().action)),
        seeds_(envs()) {
    ended_.reserve(envs());
  }

  const EnvSpec& spec() const { return envs_.spec(); }

  void SetOutputs(Outputs outputs) {
    const auto width = static_cast<std::size_t>(spec().observation_size);
    const std::size_t n = envs();
    if (outputs.observations.shape(0) != n || outputs.observations.shape(1) != width ||
        outputs.geometries.shape(0) != n || outputs.geometries.shape(1) != kGeometrySize ||
        outputs.successes.size() != n || outputs.rewards.size() != n ||
        outputs.terminated.size() != n || outputs.truncated.size() != n) {
      throw UserError("the outputs have other shapes than the environments");
    }
    outputs_ = std::move(outputs);
  }
  void Reset(const std::vector<std::optional<std::uint64_t>>& seeds) {
    if (seeds.size() != envs()) {
      throw UserError(StrCat("there are ", envs(), " environments, got ", seeds.size(), " seeds"));
    }
    std::vector<std::uint64_t> episodes(envs());
    for (std::size_t i = 0; i < envs(); ++i) episodes[i] = seeds_[i].Next(seeds[i]);
    {
      const nb::gil_scoped_release release;
      envs_.Reset(episodes);
    }
    for (std::size_t i = 0; i < envs(); ++i) Show(i);
  }
  std::optional<Ends> StepDiscrete(const Indices& actions) {
    RequireKind(spec(), ActionKind::kDiscrete);
    RequireRows(actions.shape(0));
    for (std::size_t i = 0; i < envs(); ++i) SetIndex(spec(), actions.data()[i], actions_[i]);
    return Step();
  }
  std::optional<Ends> StepContinuous(const Numbers<2>& actions) {
    RequireKind(spec(), ActionKind::kContinuous);
    RequireRows(actions.shape(0));
    const std::size_t width = actions.shape(1);
    for (std::size_t i = 0; i < envs(); ++i) {
      SetValues(spec(), {actions.data() + i * width, width}, actions_[i]);
    }
    return Step();
  }

 private:
  std::size_t envs() const { return static_cast<std::size_t>(envs_.size()); }

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
  void RequireRows(std::size_t rows) const {
    if (rows == envs()) return;
    throw UserError(StrCat("there are ", envs(), " environments, got ", rows, " actions"));
  }

  static void Copy(const EnvView& values, double* to) {
    std::copy(values.begin(), values.end(), to);
  }
  void Show(std::size_t i) {
    const Env& env = envs_.env(static_cast<int>(i));
    Copy(env.observation(), outputs_.observations.data() + i * outputs_.observations.shape(1));
    Copy(env.geometry(), outputs_.geometries.data() + i * kGeometrySize);
    if (spec().has_success) outputs_.successes.data()[i] = env.Success().value_or(false);
  }
  Ends SeeEnds() {
    const auto width = static_cast<std::size_t>(spec().observation_size);
    Ends ends{ended_, MakeArray<double>({envs(), width}),
              MakeArray<double>({envs(), kGeometrySize}), MakeArray<bool>({envs()})};
    for (const int i : ended_) {
      const Env& env = envs_.env(i);
      const auto row = static_cast<std::size_t>(i);
      Copy(env.observation(), std::get<1>(ends).data() + row * width);
      Copy(env.geometry(), std::get<2>(ends).data() + row * kGeometrySize);
      std::get<3>(ends).data()[row] = env.Success().value_or(false);
    }
    return ends;
  }

  std::optional<Ends> Step() {
    std::span<const StepResult> results;
    {
      const nb::gil_scoped_release release;
      results = envs_.Step(actions_);
    }
    ended_.clear();
    for (std::size_t i = 0; i < envs(); ++i) {
      const StepResult& result = results[i];
      outputs_.rewards.data()[i] = result.reward;
      outputs_.terminated.data()[i] = result.terminated;
      outputs_.truncated.data()[i] = result.truncated;
      if (result.terminated || result.truncated) {
        ended_.push_back(static_cast<int>(i));
      } else {
        Show(i);
      }
    }
    if (ended_.empty()) return std::nullopt;
    Ends ends = SeeEnds();
    for (const int i : ended_) {
      const auto at = static_cast<std::size_t>(i);
      envs_.env(i).Reset(seeds_[at].Next(std::nullopt));
      Show(at);
    }
    return ends;
  }

  BatchEnv envs_;
  std::vector<ActionBuffer> actions_;
  std::vector<EpisodeSeeds> seeds_;
  std::vector<int> ended_;  // in the last step
  Outputs outputs_;
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
      .def(
          "set_outputs",
          [](VectorOfEnvs& self, const Outputs::Rows<double, 2>& observations,
             const Outputs::Rows<double, 2>& geometries, const Outputs::Rows<bool, 1>& successes,
             const Outputs::Rows<double, 1>& rewards, const Outputs::Rows<bool, 1>& terminated,
             const Outputs::Rows<bool, 1>& truncated) {
            self.SetOutputs({observations, geometries, successes, rewards, terminated, truncated});
          },
          "observations"_a, "geometries"_a, "successes"_a, "rewards"_a, "terminated"_a,
          "truncated"_a, "Where reset and step write; before the first of them.")
      .def("reset", &VectorOfEnvs::Reset, "seeds"_a)
      .def("step_discrete", &VectorOfEnvs::StepDiscrete, "actions"_a)
      .def("step_continuous", &VectorOfEnvs::StepContinuous, "actions"_a);

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
