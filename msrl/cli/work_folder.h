// The folder in which a command keeps what it has done so far, until its result is written.
#ifndef MSRL_CLI_WORK_FOLDER_H_
#define MSRL_CLI_WORK_FOLDER_H_

#include <filesystem>
#include <optional>
#include <string_view>

#include "msrl/files/atomic_file.h"
#include "msrl/run/lease.h"

namespace msrl::cli {

// Made and taken for this process, which is then asked to stop by signals (stop_signal.h) instead
// of being ended by them. All of this if the path is not empty.
class WorkFolder {
 public:
  explicit WorkFolder(std::filesystem::path path);
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  // Removes it if nothing was kept: the command may have failed before it did anything.
  ~WorkFolder();

  const std::filesystem::path& path() const { return path_; }
  // Says how to go on, and ends the command.
  [[noreturn]] void Stop() const;
  // With all that was kept in it; what others put there stays.
  void Remove() const;

 private:
  std::filesystem::path path_;
  std::optional<Lease> lease_;
};

// For a result of the work in this folder. A command that was killed between writing it and
// removing the folder finds its own file when it goes on: so what is there is only refused at once
// if no work was begun, and then unless it holds these very contents.
void RequireResultWritable(const std::filesystem::path& path, const std::filesystem::path& work,
                           Existing existing);
void WriteResult(const std::filesystem::path& path, std::string_view contents, Existing existing);

}  // namespace msrl::cli

#endif  // MSRL_CLI_WORK_FOLDER_H_
