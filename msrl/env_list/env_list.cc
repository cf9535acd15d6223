#include "msrl/env_list/env_list.h"

#include "msrl/core/check.h"
#include "msrl/env/dubins_reacher.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/hidden.h"
#include "msrl/env/micro_grid.h"
#include "msrl/env/point_rooms.h"
#include "msrl/mujoco/tasks.h"

namespace msrl {
namespace {

// The row of a target whose options are part of its id.
EnvEntry FourRoomsEntry(const FourRoomsConfig& config) {
  EnvEntry entry;
  entry.id = FourRoomsModel::Spec(config).id;
  entry.make = [config,
                id = entry.id](std::span<const std::string> options) -> std::unique_ptr<Env> {
    if (!options.empty()) throw UserError(StrCat(id, " has no option '", options[0], "'"));
    return std::make_unique<FourRooms>(config);
  };
  entry.options = [] { return std::vector<ConfigField>{}; };
  return WithHidden(entry);
}

EnvEntry MujocoEntry(const MujocoTask& task) {
  EnvEntry entry;
  entry.id = task.id;
  entry.make = task.make;
  entry.options = task.options;
  return WithHidden(entry);
}

std::vector<EnvEntry> MakeEntries() {
  std::vector<EnvEntry> entries = {
      MakeEnvEntry<GraphMotif, GraphMotifConfig>(GraphMotif::kId, /*is_source=*/true),
      MakeEnvEntry<MicroGrid, MicroGridConfig>(MicroGrid::kId, /*is_source=*/true),
      MakeEnvEntry<PointRooms, PointRoomsConfig>(PointRoomsModel::kId, /*is_source=*/true),
      MakeEnvEntry<DubinsReacher, DubinsReacherConfig>(DubinsReacherModel::kId, /*is_source=*/true),
      FourRoomsEntry({.reward = GoalReward::kSparse}),
      FourRoomsEntry({.reward = GoalReward::kDense}),
      FourRoomsEntry({.reward = GoalReward::kSparse, .walls = false}),
      FourRoomsEntry({.reward = GoalReward::kDense, .walls = false}),
  };
  for (const MujocoTask& task : MujocoTasks()) entries.push_back(MujocoEntry(task));
  return entries;
}

}  // namespace

const EnvRegistry& BuiltinEnvs() {
  static const EnvRegistry registry(MakeEntries());
  return registry;
}

}  // namespace msrl
