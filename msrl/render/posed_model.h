// An environment's model, posed exactly as its present state.
#ifndef MSRL_RENDER_POSED_MODEL_H_
#define MSRL_RENDER_POSED_MODEL_H_

#include <memory>

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

// What an environment has derived from its state lags behind it (see MujocoEnv), so the poses are
// computed anew, in memory of our own. The environment must outlive this.
class PosedModel {
 public:
  explicit PosedModel(const MujocoEnv& env);

  // Takes over the present state: poses of bodies, geoms, cameras and lights, centres of mass.
  void Update();
  const MujocoEnv& env() const { return env_; }
  // A copy; its `visual` part may be changed.
  mjModel& model() { return *model_; }
  const mjModel& model() const { return *model_; }
  const mjData& data() const { return *data_; }
  mjData& data() { return *data_; }

 private:
  struct ModelDeleter {
    void operator()(mjModel* model) const { mj_deleteModel(model); }
  };

  const MujocoEnv& env_;
  std::unique_ptr<mjModel, ModelDeleter> model_;
  DataPtr data_;
};

}  // namespace msrl

#endif  // MSRL_RENDER_POSED_MODEL_H_
