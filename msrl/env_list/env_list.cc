#include "msrl/env_list/env_list.h"

#include <utility>

#include "msrl/core/check.h"
#include "msrl/env/dubins_reacher.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/micro_grid.h"
#include "msrl/env/point_rooms.h"
#include "msrl/env/time_limit.h"
#include "msrl/mujoco/tasks.h"

namespace msrl {
namespace {

// The row of an environment that is made from a config.
template <typename Concrete, typename Config>
EnvEntry SourceEntry(std::string id) {
  EnvEntry entry;
  entry.id = std::move(id);
  entry.is_source = true;
  entry.make = [](std::span<const std::string> options) -> std::unique_ptr<Env> {
    Config config;
    for (const std::string& option : options) SetField(config, option);
    return std::make_unique<Concrete>(std::move(config));
  };
  entry.options = [] { return ListFields(Config{}); };
  return entry;
}

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
      SourceEntry<GraphMotif, GraphMotifConfig>(GraphMotif::kId),
      SourceEntry<MicroGrid, MicroGridConfig>(MicroGrid::kId),
      SourceEntry<PointRooms, PointRoomsConfig>(PointRoomsModel::kId),
      SourceEntry<DubinsReacher, DubinsReacherConfig>(DubinsReacherModel::kId),
      FourRoomsEntry(GoalReward::kSparse),
      FourRoomsEntry(GoalReward::kDense),
  };
  for (const MujocoTask& task : MujocoTasks()) entries.push_back(MujocoEntry(task));
  return entries;
}

}  // namespace

const std::vector<EnvEntry>& Environments() {
  static const std::vector<EnvEntry> entries = MakeEntries();
  return entries;
}

const EnvEntry& FindEnvironment(std::string_view id) {
  std::vector<std::string> known;
  for (const EnvEntry& entry : Environments()) {
    if (entry.id == id) return entry;
    known.push_back(entry.id);
  }
  throw UserError(StrCat("unknown environment '", id, "'", DidYouMean(id, known)));
}

std::unique_ptr<Env> MakeEnv(std::string_view id, std::span<const std::string> options) {
  return std::make_unique<TimeLimit>(FindEnvironment(id).make(options));
}

}  // namespace msrl
