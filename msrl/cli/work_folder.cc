#include "msrl/cli/work_folder.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "msrl/cli/commands.h"
#include "msrl/run/stop_signal.h"

namespace msrl::cli {

WorkFolder::WorkFolder(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (!path_.has_filename()) path_ = path_.parent_path();  // "work/"
  MakeFolder(path_);
  lease_.emplace(path_ / kWorkLock, path_.string() + " is being worked in by", LeaseOf::kFolder);
  InstallStopSignals();
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (path_.empty() || !std::filesystem::exists(path_, ignored)) return;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
    if (entry.path().filename() != kWorkLock) return;
  }
  try {
    RemoveWorkFolder(path_);
  } catch (const UserError&) {
    // an empty folder does no harm
  }
}

void WorkFolder::Stop() const {
  fmt::print(stderr, "stopped; the same command continues with what is in {}\n", path_.string());
  throw ExitRequest{kInterrupted};
}

void WorkFolder::Remove() const {
  if (!path_.empty()) RemoveWorkFolder(path_);
}

void RequireResultWritable(const std::filesystem::path& path, const std::filesystem::path& work,
                           Existing existing) {
  const bool begun = !work.empty() && std::filesystem::exists(work);
  RequireWritable(path, begun ? Existing::kReplace : existing);
}

void WriteResult(const std::filesystem::path& path, std::string_view contents, Existing existing) {
  std::error_code error;
  const bool there =
      std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error)) &&
      std::filesystem::file_size(path, error) == contents.size() &&
      ReadWholeFile(path, contents.size()) == contents;
  if (!there) WriteFileAtomically(path, contents, existing);
}

}  // namespace msrl::cli
