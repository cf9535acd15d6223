#include "msrl/mujoco/mujoco_env.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// MuJoCo's own bound on positions, velocities and accelerations (mjMAXVAL).
constexpr double kLargest = 1e10;

struct Watch {
  mjtWarning warning;
  const char* text;
};
// On these MuJoCo resets the simulation in the middle of a step.
constexpr std::array<Watch, 3> kDivergence = {
    {{mjWARN_BADQPOS, "position"}, {mjWARN_BADQVEL, "velocity"}, {mjWARN_BADQACC, "acceleration"}}};

std::vector<double> ReadDoubles(ByteReader& reader, std::size_t count) {
  std::vector<double> values(count);
  for (double& value : values) {
    value = reader.FiniteDouble();
    if (std::abs(value) > kLargest) {
      throw UserError(StrCat("snapshot holds ", value, ", which no state can be"));
    }
  }
  return values;
}

void WriteDoubles(ByteWriter& writer, std::span<const double> values) {
  for (const double value : values) writer.Double(value);
}

bool IsSane(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double v) { return std::abs(v) <= kLargest; });  // false for NaN
}

}  // namespace

double SquaredNorm(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return sum;
}

ModelPtr TaskModel(const ModelConfig& config, std::string_view name, const std::string& built_in,
                   const ModelSizes& sizes) {
  ModelPtr model = config.model.empty() ? CompileModel(name, built_in) : LoadModel(config.model);
  if (model->nq != sizes.nq || model->nv != sizes.nv || model->nu != sizes.nu) {
    throw UserError(StrCat(name, ": the model has ", model->nq, " positions, ", model->nv,
                           " velocities and ", model->nu, " controls; the task needs ", sizes.nq,
                           ", ", sizes.nv, " and ", sizes.nu));
  }
  return model;
}

MujocoEnv::MujocoEnv(Setup setup)
    : EnvBase(std::move(setup.spec), setup.options),
      model_(std::move(setup.model)),
      data_(MakeData(*model_)),
      contact_forces_(setup.contact_forces),
      memory_(static_cast<std::size_t>(setup.memory_size)),
      unit_action_(static_cast<std::size_t>(model_->nu)),
      control_(static_cast<std::size_t>(model_->nu)),
      control_middle_(static_cast<std::size_t>(model_->nu)),
      control_half_width_(static_cast<std::size_t>(model_->nu)) {
  MSRL_CHECK_EQ(model_->nu, spec_.action.size);
  for (std::size_t i = 0; i < control_.size(); ++i) {
    const double low = model_->actuator_ctrlrange[2 * i];
    const double high = model_->actuator_ctrlrange[2 * i + 1];
    control_middle_[i] = (low + high) / 2;
    control_half_width_[i] = (high - low) / 2;
  }
}

StepResult MujocoEnv::Step(const Action& action) {
  RequireClipped(spec_, action, unit_action_);
  for (std::size_t i = 0; i < control_.size(); ++i) {
    control_[i] = control_middle_[i] + control_half_width_[i] * unit_action_[i];
  }
  return StepControl(control_);
}

StepResult MujocoEnv::StepControl(std::span<const double> control) {
  MSRL_CHECK_EQ(std::ssize(control), model_->nu);
  Simulate(control);
  if (Diverged()) {
    // the last sane observation stays; there is no reward for a state that does not exist
    return {.reward = 0.0, .terminated = true, .truncated = false};
  }
  if (contact_forces_) mj_rnePostConstraint(model_.get(), data_.get());
  const Outcome outcome = Judge(control);
  Show();
  return {.reward = outcome.reward, .terminated = outcome.terminated, .truncated = false};
}

void MujocoEnv::Simulate(std::span<const double> control) {
  std::copy(control.begin(), control.end(), data_->ctrl);
  for (int i = 0; i < spec_.frame_skip; ++i) mj_step(model_.get(), data_.get());
}

bool MujocoEnv::Diverged() {
  const char* what = IsSane(qpos()) ? IsSane(qvel()) ? nullptr : "velocity" : "position";
  for (const Watch& watch : kDivergence) {
    if (data_->warning[watch.warning].number > 0) what = watch.text;
  }
  if (what == nullptr) return false;
  fault_ = StrCat("the simulation diverged: a ", what, " is not finite or beyond 1e10");
  return true;
}

double MujocoEnv::InUnits(double value, double unit) const {
  return std::clamp(value / unit, -spec_.geometry_bound, spec_.geometry_bound);
}

void MujocoEnv::Begin(std::uint64_t seed) {
  mj_resetData(model_.get(), data_.get());
  Rng rng(seed, spec_.family);
  Draw(rng, {data_->qpos, static_cast<std::size_t>(model_->nq)},
       {data_->qvel, static_cast<std::size_t>(model_->nv)});
  Forward();
}

void MujocoEnv::StartAt(std::span<const double> qpos, std::span<const double> qvel) {
  MSRL_CHECK_EQ(std::ssize(qpos), model_->nq);
  MSRL_CHECK_EQ(std::ssize(qvel), model_->nv);
  // the terrain is part of the episode
  const std::vector<double> mocap(data_->mocap_pos, data_->mocap_pos + 3 * model_->nmocap);
  mj_resetData(model_.get(), data_.get());
  std::copy(mocap.begin(), mocap.end(), data_->mocap_pos);
  std::copy(qpos.begin(), qpos.end(), data_->qpos);
  std::copy(qvel.begin(), qvel.end(), data_->qvel);
  Forward();
}

void MujocoEnv::Forward() {
  ClearFault();
  mj_forward(model_.get(), data_.get());
  Begun();
  Show();
}

void MujocoEnv::Replace(std::span<const double> qpos, std::span<const double> qvel,
                        std::span<const double> qacc_warmstart) {
  std::copy(qpos.begin(), qpos.end(), data_->qpos);
  std::copy(qvel.begin(), qvel.end(), data_->qvel);
  std::copy(qacc_warmstart.begin(), qacc_warmstart.end(), data_->qacc_warmstart);
}

void MujocoEnv::ClearFault() {
  for (const Watch& watch : kDivergence) data_->warning[watch.warning].number = 0;
  fault_.clear();
}

void MujocoEnv::WriteState(ByteWriter& writer) const {
  writer.Double(data_->time);
  WriteDoubles(writer, qpos());
  WriteDoubles(writer, qvel());
  WriteDoubles(writer, {data_->qacc_warmstart, static_cast<std::size_t>(model_->nv)});
  WriteDoubles(writer, memory_);
  WriteDoubles(writer, {observation_.data(), static_cast<std::size_t>(observation_.size())});
  WriteDoubles(writer, geometry_);
  writer.Text(fault_);
}

void MujocoEnv::ReadState(ByteReader& reader, std::uint64_t seed) {
  const auto nv = static_cast<std::size_t>(model_->nv);
  const double time = reader.FiniteDouble();
  const auto qpos = ReadDoubles(reader, static_cast<std::size_t>(model_->nq));
  const auto qvel = ReadDoubles(reader, nv);
  const auto warm_start = ReadDoubles(reader, nv);
  const auto remembered = ReadDoubles(reader, memory_.size());
  const auto observation = ReadDoubles(reader, static_cast<std::size_t>(spec_.observation_size));
  const auto geometry = ReadDoubles(reader, kGeometrySize);
  const std::string fault = reader.Text();
  reader.RequireEnd();
  EnsureInstance(seed);
  ClearFault();
  data_->time = time;
  Replace(qpos, qvel, warm_start);
  std::copy(remembered.begin(), remembered.end(), memory_.begin());
  std::copy(observation.begin(), observation.end(), observation_.data());
  std::copy(geometry.begin(), geometry.end(), geometry_.begin());
  fault_ = fault;
}

}  // namespace msrl
