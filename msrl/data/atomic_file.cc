#include "msrl/data/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

[[noreturn]] void FailIo(const char* action, const std::filesystem::path& path) {
  const int cause = errno;
  throw UserError(StrCat("cannot ", action, " ", path.string(), ": ", std::strerror(cause)));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  // Closing can report a delayed write error, so it is a step of its own.
  bool Close() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool WriteAll(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void SyncFolder(const std::filesystem::path& folder) {
  const FileDescriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) FailIo("flush the folder", folder);
}

}  // namespace

void WriteFileAtomically(const std::filesystem::path& path, std::string_view contents) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::string temporary = (folder / ("." + path.filename().string() + ".XXXXXX")).string();
  FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) FailIo("write", path);
  try {
    // mkstemp makes private files; a result should have the usual permissions
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(file.get(), 0666 & ~mask) != 0) FailIo("write", path);
    if (!WriteAll(file.get(), contents)) FailIo("write", path);
    if (fsync(file.get()) != 0) FailIo("flush", path);
    if (!file.Close()) FailIo("write", path);
    if (rename(temporary.c_str(), path.c_str()) != 0) FailIo("write", path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  SyncFolder(folder);
}

std::string ReadWholeFile(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) FailIo("read", path);
  std::string contents;
  constexpr std::size_t kChunk = 1 << 20;
  for (;;) {
    const std::size_t old_size = contents.size();
    contents.resize(old_size + kChunk);
    const ssize_t count = read(file.get(), contents.data() + old_size, kChunk);
    if (count < 0 && errno != EINTR) FailIo("read", path);
    contents.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (contents.size() > max_bytes) {
      throw UserError(
          StrCat("cannot read ", path.string(), ": it has more than ", max_bytes, " bytes"));
    }
    if (count == 0) return contents;
  }
}

}  // namespace msrl
