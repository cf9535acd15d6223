#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <string>
#include <variant>

#include "msrl/policy_files/policy_files.h"
#include "msrl/run/runner.h"
#include "python/src/python_env.h"

namespace msrl::python {
namespace {

// The agent of a run, asked step by step. It follows the episode itself: agents act on the prefix
// matrix besides the observation.
class Policy {
 public:
  Policy(const std::string& run, std::uint64_t seed)
      : directory_(RunDirectory::OpenForReading(run)),
        registries_(RegistriesFor(directory_.spec())),
        spec_(registries_.envs.Make(directory_.spec().env, directory_.spec().env_settings)->spec()),
        agent_(LoadAgent(directory_, registries_,
                         [this](const std::string& text) { warnings_.push_back(text); })),
        lift_(CompactLift(agent_->lift_kind())),
        carry_(agent_->MakeCarry()),
        rng_(seed, "play"),
        action_(spec_.action),
        matrix_(lift_),
        psi_(lift_->m()) {}

  const EnvSpec& spec() const { return spec_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // The action in the present state; `reward` is that of the step that led here, none at the
  // beginning of an episode.
  std::variant<std::int64_t, NewArray<double>> Act(const Numbers<1>& observation,
                                                   const Numbers<1>& geometry,
                                                   std::optional<double> reward) {
    const EnvView seen = Require("observation", spec_.observation_size, observation);
    const EnvView place = Require("geometry", kGeometrySize, geometry);
    if (!reward) {
      Begin();
    } else if (!playing_) {
      throw UserError("the first call of an episode has no reward: nothing led here");
    } else {
      Advance(*reward, place);
    }
    std::copy(place.begin(), place.end(), geometry_.begin());
    playing_ = true;
    agent_->Act(Turn{{seen, place, matrix_, step_}, *carry_, rng_, action_}, ActMode::kEvaluate);
    if (spec_.action.kind == ActionKind::kDiscrete) return std::int64_t{action_.index()};
    return CopyToArray<double>(action_.values());
  }

 private:
  static EnvView Require(const char* what, int size, const Numbers<1>& values) {
    if (std::ssize(SpanOf(values)) != size) {
      throw UserError(StrCat(what, " must have ", size, " numbers, got ", values.size()));
    }
    const EnvView view(values.data(), size);
    if (!view.allFinite()) throw UserError(StrCat(what, " is not finite"));
    return view;
  }

  void Begin() {
    matrix_.SetZero();
    step_ = 0;
    carry_->Begin();
  }
  // What EpisodeTracker does with an environment's own numbers.
  void Advance(double reward, const EnvView& geometry) {
    std::array<double, kActionCodeSize> code{};
    EmbedAction(spec_, action_.view(), code);
    lift_->Apply(EnvView(geometry_.data(), kGeometrySize), EnvView(code.data(), kActionCodeSize),
                 reward / spec_.reward_scale, geometry, psi_);
    matrix_.AddStep(psi_);
    ++step_;
  }

  std::vector<std::string> warnings_;
  RunDirectory directory_;
  Registries registries_;
  EnvSpec spec_;
  std::unique_ptr<Agent> agent_;
  Lift::Ptr lift_;
  std::unique_ptr<Carry> carry_;
  Rng rng_;
  ActionBuffer action_;  // the last one
  std::array<double, kGeometrySize> geometry_{};
  SegmentMatrix matrix_;
  Eigen::VectorXd psi_;
  int step_ = 0;
  bool playing_ = false;
};

// The warnings of loading its agent.
std::vector<std::string> ExportRun(const std::string& run, const PolicyFiles& files, bool force) {
  const RunDirectory directory = RunDirectory::OpenForReading(run);
  std::vector<std::string> warnings;
  const ExportedPolicy exported =
      ExportPolicy(directory, RegistriesFor(directory.spec()),
                   [&warnings](const std::string& text) { warnings.push_back(text); });
  WritePolicy(exported, files, force ? Existing::kReplace : Existing::kRefuse);
  return warnings;
}

}  // namespace

void BindPolicy(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace)
  nb::class_<Policy>(module, "Policy", "The agent of a run, without learning.")
      .def(nb::init<const std::string&, std::uint64_t>(), "run"_a, "seed"_a = 0)
      .def_prop_ro("spec", &Policy::spec, nb::rv_policy::copy)
      .def_prop_ro("warnings", &Policy::warnings, nb::rv_policy::copy)
      .def("act", &Policy::Act, "observation"_a, "geometry"_a, "reward"_a = nb::none());
  module.def(
      "export_policy",
      [](const std::string& run, const std::string& onnx, const std::string& header,
         const std::string& name, bool force) {
        return ExportRun(run, {.onnx = onnx, .header = header, .name = name}, force);
      },
      "run"_a, "onnx"_a, "header"_a, "name"_a, "force"_a);
}

}  // namespace msrl::python
