#include "msrl/run/lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "msrl/run/utc_time.h"

namespace msrl {
namespace {

using Json = nlohmann::ordered_json;

// HolderOf has the lock for a moment; a lease that is really held stays so.
constexpr int kAttempts = 5;
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
  char text[1024];
  const ssize_t size = pread(fd, text, sizeof text, 0);
  const Json json = Json::parse(text, text + std::max<ssize_t>(0, size), nullptr, false);
  LeaseHolder holder;
  // not yet written, or by an older version: somebody, then
  if (!json.is_object()) return holder;
  try {
    holder.host = json.value("host", "");
    holder.process = json.value("process", 0);
    holder.job = json.value("job", "");
    holder.since = json.value("since", "");
  } catch (const Json::exception&) {
    holder = {};
  }
  return holder;
}

}  // namespace

std::string LeaseHolder::Describe() const {
  if (process == 0) return "another process";
  return StrCat("process ", process, " on ", host, job.empty() ? "" : " (Slurm job " + job + ")",
                " since ", since);
}

Lease::Lease(const std::filesystem::path& file, const std::string& what) {
  fd_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw UserError(StrCat("cannot write ", file.string(), ": ", std::strerror(errno)));
  }
  for (int attempt = 1; flock(fd_, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      const int error = errno;
      close(fd_);
      throw UserError(StrCat("cannot lock ", file.string(), ": ", std::strerror(error)));
    }
    if (attempt == kAttempts) {
      const LeaseHolder holder = ReadHolder(fd_);
      close(fd_);
      throw LeaseError(StrCat(what, " ", holder.Describe()));
    }
    std::this_thread::sleep_for(kPause);
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const Json json{{"host", host}, {"process", getpid()}, {"job", Job()}, {"since", UtcNow()}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  // for people alone: a lease without a name is still one
  if (ftruncate(fd_, 0) == 0) static_cast<void>(!pwrite(fd_, text.data(), text.size(), 0));
}

Lease::Lease(Lease&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Lease::~Lease() {
  if (fd_ >= 0) close(fd_);
}

std::optional<LeaseHolder> Lease::HolderOf(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<LeaseHolder> holder;
  if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) holder = ReadHolder(fd);
  close(fd);
  return holder;
}

}  // namespace msrl
