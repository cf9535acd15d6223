#include "msrl/env_list/env_list.h"

#include "msrl/core/check.h"
#include "msrl/env/dubins_reacher.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/micro_grid.h"
#include "msrl/env/point_rooms.h"
#include "msrl/mujoco/tasks.h"

namespace msrl {
namespace {

// The row of a target whose reward is part of its id.
EnvEntry FourRoomsEntry(GoalReward reward) {
  EnvEntry entry;
  entry.id = StrCat("four-rooms-", EnumName(reward));
  entry.make = [reward](std::span<const std::string> options) -> std::unique_ptr<Env> {
    if (!options.empty()) {
      throw UserError(StrCat("four-rooms-", EnumName(reward), " has no option '", options[0], "'"));
    }
    return std::make_unique<FourRooms>(FourRoomsConfig{.reward = reward});
  };
  entry.options = [] { return std::vector<ConfigField>{}; };
  return entry;
}

EnvEntry MujocoEntry(const MujocoTask& task) {
  EnvEntry entry;
  entry.id = task.id;
  entry.make = task.make;
  entry.options = task.options;
  return entry;
}

std::vector<EnvEntry> MakeEntries() {
  std::vector<EnvEntry> entries = {
      MakeEnvEntry<GraphMotif, GraphMotifConfig>(GraphMotif::kId, /*is_source=*/true),
      MakeEnvEntry<MicroGrid, MicroGridConfig>(MicroGrid::kId, /*is_source=*/true),
      MakeEnvEntry<PointRooms, PointRoomsConfig>(PointRoomsModel::kId, /*is_source=*/true),
      MakeEnvEntry<DubinsReacher, DubinsReacherConfig>(DubinsReacherModel::kId, /*is_source=*/true),
      FourRoomsEntry(GoalReward::kSparse),
      FourRoomsEntry(GoalReward::kDense),
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
