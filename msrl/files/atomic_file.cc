#include "msrl/files/atomic_file.h"

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
  const std::string message =
      StrCat("cannot ", action, " ", path.string(), ": ", std::strerror(cause));
  if (cause == ENOSPC || cause == EDQUOT || cause == EFBIG || cause == EIO) {
    throw StorageError(message);
  }
  throw UserError(message);
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
  WriteFileAtomically(path, std::span(&contents, 1));
}

void WriteFileAtomically(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::string temporary = (folder / ("." + path.filename().string() + ".XXXXXX")).string();
  FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) FailIo("write", path);
  try {
    // mkstemp makes private files; a result should have the usual permissions
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(file.get(), 0666 & ~mask) != 0) FailIo("write", path);
    for (const std::string_view piece : pieces) {
      if (!WriteAll(file.get(), piece)) FailIo("write", path);
    }
    if (fsync(file.get()) != 0) FailIo("flush", path);
    if (!file.Close()) FailIo("write", path);
    if (rename(temporary.c_str(), path.c_str()) != 0) FailIo("write", path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  SyncFolder(folder);
}

void MakeFolder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw UserError(StrCat("cannot make ", path.string(), ": ", error.message()));
}

AppendFile::AppendFile(const std::filesystem::path& path, std::uint64_t size)
    : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)), size_(size) {
  if (fd_ < 0) FailIo("write", path);
  const off_t end = lseek(fd_, 0, SEEK_END);
  const bool short_file = end >= 0 && static_cast<std::uint64_t>(end) < size;
  if (end < 0 || short_file || ftruncate(fd_, static_cast<off_t>(size)) != 0 ||
      lseek(fd_, static_cast<off_t>(size), SEEK_SET) < 0) {
    const int cause = errno;
    close(fd_);
    errno = cause;
    if (short_file) {
      throw UserError(StrCat(path.string(), " has ", end, " bytes where at least ", size,
                             " were written: it was changed from outside"));
    }
    FailIo("write", path);
  }
}

AppendFile::~AppendFile() { close(fd_); }

void AppendFile::Append(std::string_view bytes) {
  if (!WriteAll(fd_, bytes)) {
    const int cause = errno;
    // half a line must not stay; if even this fails, the next opening cuts it
    if (ftruncate(fd_, static_cast<off_t>(size_)) == 0) {
      lseek(fd_, static_cast<off_t>(size_), SEEK_SET);
    }
    errno = cause;
    FailIo("write", path_);
  }
  size_ += bytes.size();
}

void AppendFile::Sync() {
  if (fsync(fd_) != 0) FailIo("flush", path_);
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
