// MuJoCo's objects with owners. MuJoCo's error and warning handlers are replaced as soon as a model
// is made: an error becomes an exception, a warning is counted in mjData and otherwise silent, and
// neither waits for a key nor writes a log file.
#ifndef MSRL_MUJOCO_HANDLES_H_
#define MSRL_MUJOCO_HANDLES_H_

#include <mujoco/mujoco.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace msrl {

// Compiled models are never changed, so that environments and threads can share one.
using ModelPtr = std::shared_ptr<const mjModel>;

struct DataDeleter {
  void operator()(mjData* data) const { mj_deleteData(data); }
};
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

// Compiles MJCF text; equal texts give the same model while one of its users lives. UserError with
// `name` and MuJoCo's message. Safe to call from several threads.
ModelPtr CompileModel(std::string_view name, const std::string& xml);

// CompileModel on a file's text. UserError if it cannot be read.
ModelPtr LoadModel(const std::filesystem::path& path);

DataPtr MakeData(const mjModel& model);

// UserError if there is no such body, geom, ...
int RequireId(const mjModel& model, mjtObj type, const char* name);

}  // namespace msrl

#endif  // MSRL_MUJOCO_HANDLES_H_
