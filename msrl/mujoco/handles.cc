#include "msrl/mujoco/handles.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"

namespace msrl {
namespace {

constexpr std::uintmax_t kMaxModelBytes = 1 << 20;

// Thrown through MuJoCo's frames, which hold no resources at the places that report errors.
[[noreturn]] void OnError(const char* message) {
  throw InvariantError(StrCat("MuJoCo: ", message));
}
void OnWarning(const char* /*message*/) {}

void InstallHandlers() {
  mju_user_error = OnError;
  mju_user_warning = OnWarning;
}

// A file in memory. MuJoCo 3 has one call for it; before, the buffer was filled by hand.
template <typename Vfs>
void AddFile(Vfs* vfs, const char* name, const std::string& text) {
  const auto size = static_cast<int>(text.size());
  if constexpr (requires { vfs->filedata; }) {
    MSRL_CHECK_EQ(mj_makeEmptyFileVFS(vfs, name, size), 0);
    std::memcpy(vfs->filedata[mj_findFileVFS(vfs, name)], text.data(), text.size());
  } else {
    MSRL_CHECK_EQ(mj_addBufferVFS(vfs, name, text.data(), size), 0);
  }
}

std::string FirstLine(const char* text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

ModelPtr Compile(std::string_view name, const std::string& xml) {
  // two megabytes in MuJoCo 2: not for the stack
  const std::unique_ptr<mjVFS, void (*)(mjVFS*)> vfs(new mjVFS, [](mjVFS* v) {
    mj_deleteVFS(v);
    delete v;
  });
  mj_defaultVFS(vfs.get());
  AddFile(vfs.get(), "model.xml", xml);
  std::array<char, 1000> error{};
  mjModel* model = mj_loadXML("model.xml", vfs.get(), error.data(), static_cast<int>(error.size()));
  if (model == nullptr) {
    throw UserError(StrCat(name, ": not a usable model: ", FirstLine(error.data())));
  }
  return {model, [](const mjModel* m) { mj_deleteModel(const_cast<mjModel*>(m)); }};
}

}  // namespace

ModelPtr CompileModel(std::string_view name, const std::string& xml) {
  // MuJoCo's parser and compiler are not safe to run twice at once
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const mjModel>, std::less<>> compiled;
  if (xml.empty()) throw UserError(StrCat(name, ": not a usable model: empty"));
  const std::lock_guard lock(mutex);
  InstallHandlers();
  if (ModelPtr model = compiled[xml].lock()) return model;
  std::erase_if(compiled, [](const auto& entry) { return entry.second.expired(); });
  ModelPtr model = Compile(name, xml);
  compiled[xml] = model;
  return model;
}

ModelPtr LoadModel(const std::filesystem::path& path) {
  return CompileModel(path.string(), ReadWholeFile(path, kMaxModelBytes));
}

DataPtr MakeData(const mjModel& model) {
  DataPtr data(mj_makeData(&model));
  MSRL_CHECK(data != nullptr, "MuJoCo could not make its data");
  return data;
}

int RequireId(const mjModel& model, mjtObj type, const char* name) {
  const int id = mj_name2id(&model, type, name);
  if (id < 0) throw UserError(StrCat("the model has no ", mju_type2Str(type), " '", name, "'"));
  return id;
}

}  // namespace msrl
