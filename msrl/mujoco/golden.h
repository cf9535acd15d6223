// Recorded trajectories of MuJoCo tasks, and how far a task of ours is from them.
#ifndef MSRL_MUJOCO_GOLDEN_H_
#define MSRL_MUJOCO_GOLDEN_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

// The file format "mujoco-golden-1" (docs/file-formats.md). Everything about a step but action,
// positions and velocities may be missing in a file, and is then not compared.
struct GoldenGoal {
  double distance = 0.0;
  double reward_sparse = 0.0;
  double reward_dense = 0.0;
  bool success = false;
};

struct GoldenStep {
  std::vector<double> action;  // physical units
  std::vector<double> qpos;
  std::vector<double> qvel;
  std::vector<double> qacc_warmstart;
  std::map<std::string, std::vector<double>> observation;  // by version
  std::map<std::string, double> reward;                    // by version
  std::vector<bool> terminated;                            // none or one
  std::vector<int> contacts;                               // none or one
  std::vector<GoldenGoal> goals;                           // mazes
};

struct GoldenTrajectory {
  std::string name;
  std::vector<double> init_qpos;
  std::vector<double> init_qvel;
  std::vector<std::vector<double>> goals;  // mazes
  GoldenStep reset;  // only what a reset leaves: observation and qacc_warmstart
  std::vector<GoldenStep> steps;
};

struct GoldenFile {
  std::string task;
  std::vector<std::string> versions;  // whose physics this is: "v4", "v5"
  // Figures of the compiled model: numbers or lists by name, one entry per body, joint, ...
  std::map<std::string, std::vector<std::vector<double>>> model;
  std::vector<GoldenTrajectory> trajectories;
};

// Strict: UserError that names `name` and the place.
GoldenFile ParseGolden(std::string_view text, std::string_view name);

struct Deviation {
  std::string quantity;
  double largest = 0.0;
  double tolerance = 0.0;
  std::string where;  // of the largest
  bool ok() const { return largest <= tolerance; }
};

// Compares model figures, teacher-forced single steps and open-loop replays of the task `id` with
// the file, in every version that the file lists. UserError if the sizes are of another task.
std::vector<Deviation> CheckAgainst(const std::string& id, const GoldenFile& file);

}  // namespace msrl

#endif  // MSRL_MUJOCO_GOLDEN_H_
