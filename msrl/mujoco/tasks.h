// The list of MuJoCo tasks.
#ifndef MSRL_MUJOCO_TASKS_H_
#define MSRL_MUJOCO_TASKS_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

struct MujocoTask {
  std::string id;
  std::function<std::unique_ptr<MujocoEnv>(std::span<const std::string> options)> make;
  std::function<std::vector<ConfigField>()> options;
};

const std::vector<MujocoTask>& MujocoTasks();

}  // namespace msrl

#endif  // MSRL_MUJOCO_TASKS_H_
