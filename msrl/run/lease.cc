#include "msrl/run/lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>
#include <utility>

#include "msrl/files/file_system.h"
#include "msrl/files/json_text.h"
#include "msrl/run/utc_time.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// HolderOf has the lock for a moment; a lease that is really held stays so.
constexpr int kAttempts = 10;
constexpr std::chrono::milliseconds kPause(20);

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Job() {
  const std::string array = Variable("SLURM_ARRAY_JOB_ID");
  return array.empty() ? Variable("SLURM_JOB_ID") : array + "_" + Variable("SLURM_ARRAY_TASK_ID");
}

LeaseHolder ReadHolder(int fd) {
  std::string text(1024, '\0');
  const ssize_t size =
      Files().Read(fd, std::as_writable_bytes(std::span(text)).data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
  const std::optional<Json> json = TryParseJson<Json>(text);
  LeaseHolder holder;
  // not yet written, or by an older version: somebody, then
  if (!json || !json->is_object()) return holder;
  try {
    holder.host = json->value("host", "");
    holder.process = json->value("process", 0);
    holder.job = json->value("job", "");
    holder.since = json->value("since", "");
  } catch (const Json::exception&) {
    holder = {};
  }
  return holder;
}

enum class Attempt { kLocked, kTaken, kImpossible };

Attempt LockFor(int fd) {
  for (int attempt = 1; Files().Lock(fd, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EWOULDBLOCK) return Attempt::kImpossible;
    if (attempt == kAttempts) return Attempt::kTaken;
    std::this_thread::sleep_for(kPause);
  }
  return Attempt::kLocked;
}

}  // namespace

std::string LeaseHolder::Describe() const {
  if (process == 0) return "another process";
  return StrCat("process ", process, " on ", host, job.empty() ? "" : " (Slurm job " + job + ")",
                " since ", since);
}

Lease::Lease(const fs::path& file, const std::string& what, LeaseOf of)
    : folder_(file.has_parent_path() ? file.parent_path() : "."),
      name_(file.filename().string()),
      file_(folder_.OpenForUpdate(name_)) {
  const auto require = [&](Attempt attempt) {
    if (attempt == Attempt::kTaken) {
      throw LeaseError(StrCat(what, " ", ReadHolder(file_.get()).Describe()));
    }
    return attempt == Attempt::kLocked;
  };
  folder_locked_ = of == LeaseOf::kFolder && require(LockFor(folder_.fd()));
  // between opening and locking, the one before may have been removed
  for (;; file_ = folder_.OpenForUpdate(name_)) {
    if (!require(LockFor(file_.get()))) FailIo("lock", file);
    if (folder_.IsSameFile(name_, file_.get())) break;
  }
  // a lock tells what was begun from what others left there: its name is on the disk before theirs
  if (of == LeaseOf::kFolder) folder_.Sync();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const Json json{{"host", host}, {"process", getpid()}, {"job", Job()}, {"since", UtcNow()}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // for people alone: a lease without a name is still one
  if (Files().Truncate(file_.get(), 0) == 0) {
    Files().Write(file_.get(), text.data(), text.size(), 0);
  }
}

void Lease::RequireHeld() const {
  if (folder_locked_ || folder_.IsSameFile(name_, file_.get())) return;
  throw LeaseError(StrCat((folder_.path() / name_).string(),
                          " was removed: another process may be at work, so this one stops"));
}

std::optional<LeaseHolder> Lease::HolderOf(const fs::path& file, LeaseOf of) {
  const auto look = [](const fs::path& path, int flags) {
    return FileDescriptor(
        Files().Open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags));
  };
  const auto taken = [](const FileDescriptor& it) {
    return it.get() >= 0 && Files().Lock(it.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  };
  const FileDescriptor lock = look(file, O_NOFOLLOW);
  if (taken(lock)) return ReadHolder(lock.get());
  if (of == LeaseOf::kFile) return std::nullopt;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!taken(look(folder, O_DIRECTORY))) return std::nullopt;
  return LeaseHolder{};  // the file that has the name is gone
}

}  // namespace msrl
