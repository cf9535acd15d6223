// What all MuJoCo tasks share: one step of the reference implementation (Gymnasium), resets, and
// snapshots that continue bit for bit.
#ifndef MSRL_MUJOCO_MUJOCO_ENV_H_
#define MSRL_MUJOCO_MUJOCO_ENV_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/env/env.h"
#include "msrl/env/model_env.h"
#include "msrl/mujoco/handles.h"

namespace msrl {

enum class GymnasiumVersion { kV5, kV4 };
constexpr auto EnumNames(GymnasiumVersion) { return Names("v5", "v4"); }

// Options of every task. Meanings are part of a snapshot's identity, see InstanceOptions.
struct ModelConfig {
  std::string model;

  template <typename V>
  void Fields(V&& visit) {
    visit("model", model, "an MJCF file to use instead of the built-in model");
  }
};

// Of every task that has changed with Gymnasium's versions.
struct MujocoConfig : ModelConfig {
  GymnasiumVersion version = GymnasiumVersion::kV5;

  template <typename V>
  void Fields(V&& visit) {
    visit("version", version, "reward, observation and model of this Gymnasium version");
    ModelConfig::Fields(visit);
  }
  bool is_v4() const { return version == GymnasiumVersion::kV4; }
};

// A disc on the floor.
struct GoalMark {
  double x = 0.0;  // m
  double y = 0.0;
  double radius = 0.0;
};

// A step is: ctrl = action, `frame_skip` times mj_step, and then everything is read from mjData
// without another forward pass. Positions and velocities are therefore those after the step, while
// what MuJoCo derives from them (xpos, cinert, cfrc_ext, ...) lags behind: it is of the
// integrator's last evaluation. The reference does the same, and published rewards contain it.
//
// Not safe to share between threads; the model is shared between environments.
class MujocoEnv : public EnvBase {
 public:
  StepResult Step(const Action& action) final;
  std::string fault() const final { return fault_; }

  const mjModel& model() const { return *model_; }
  const mjData& data() const { return *data_; }
  // Where the goal of the episode is, for pictures; empty if there is none or a geom shows it.
  virtual std::optional<GoalMark> goal_mark() const { return std::nullopt; }

  // For checks against recorded trajectories.
  //
  // Starts an episode in this state: what Reset does after its draws. An episode must have begun.
  void StartAt(std::span<const double> qpos, std::span<const double> qvel);
  // Replaces the state in the middle of an episode, with the solver's warm start.
  void Replace(std::span<const double> qpos, std::span<const double> qvel,
               std::span<const double> qacc_warmstart);
  // A step with controls in physical units, not clipped.
  StepResult StepControl(std::span<const double> control);
  // What the task remembers of the episode, such as a goal; each task names its entries.
  std::span<double> memory() { return memory_; }
  std::span<const double> memory() const { return memory_; }

 protected:
  struct Setup {
    EnvSpec spec;
    std::string options;  // see EnvBase
    ModelPtr model;
    bool contact_forces = false;  // whether cfrc_ext is needed
    int memory_size = 0;
  };
  explicit MujocoEnv(Setup setup);

  // The start of an episode: qpos holds the model's qpos0, qvel zeros. Also draws goals.
  virtual void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) = 0;
  // Called after the first forward pass: remembers what the first step compares with.
  virtual void Begun() = 0;
  // The physics of a step: `frame_skip` times mj_step with these controls.
  virtual void Simulate(std::span<const double> control);
  // Reward and end of the step just made.
  virtual Outcome Judge(std::span<const double> control) = 0;
  // Fills observation_ and geometry_.
  virtual void Show() = 0;

  mjData& mutable_data() { return *data_; }
  std::span<const double> qpos() const {
    return {data_->qpos, static_cast<std::size_t>(model_->nq)};
  }
  std::span<const double> qvel() const {
    return {data_->qvel, static_cast<std::size_t>(model_->nv)};
  }
  const double* body_position(int body) const { return data_->xpos + 3 * body; }
  // value / unit, kept within the geometry bound.
  double InUnits(double value, double unit) const;

 private:
  void Begin(std::uint64_t seed) final;
  void WriteState(ByteWriter& writer) const final;
  void ReadState(ByteReader& reader, std::uint64_t seed) final;
  // Nothing: what is shown lags behind the state, so it is made by Step and kept in snapshots.
  void Publish() final {}
  // Runs the reset with a state that is already in mjData.
  void Forward();
  void ClearFault();
  // Whether the state is none; says why in fault_.
  bool Diverged();

  ModelPtr model_;
  DataPtr data_;
  bool contact_forces_;
  std::vector<double> memory_;
  std::vector<double> unit_action_;
  std::vector<double> control_;
  std::vector<double> control_middle_;
  std::vector<double> control_half_width_;
  std::string fault_;
};

// The compiled model of a task: the built-in text, or the file that the config names. UserError if
// its sizes are not those of the task.
struct ModelSizes {
  int nq = 0;
  int nv = 0;
  int nu = 0;
};
ModelPtr TaskModel(const ModelConfig& config, std::string_view name, const std::string& built_in,
                   const ModelSizes& sizes);

double SquaredNorm(std::span<const double> values);

}  // namespace msrl

#endif  // MSRL_MUJOCO_MUJOCO_ENV_H_
