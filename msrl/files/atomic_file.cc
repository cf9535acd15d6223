#include "msrl/files/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/files/file_system.h"
#include "msrl/files/memory.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryStart = ".msrl-tmp-";

[[noreturn]] void FailKind(const char* action, const fs::path& path, mode_t mode) {
  const char* kind = S_ISLNK(mode)    ? "a link"
                     : S_ISDIR(mode)  ? "a folder"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  throw UserError(StrCat("cannot ", action, " ", path.string(), ": it is ", kind));
}

// The system may take less than all at once.
bool WriteAll(int fd, std::string_view contents, std::uint64_t at) {
  while (!contents.empty()) {
    const ssize_t written = Files().Write(fd, contents.data(), contents.size(), at);
    if (written < 0) return false;
    contents.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  return true;
}

// As the user would write it.
fs::path PathOf(const Folder& folder, const std::string& name) {
  return folder.path() == "." ? fs::path(name) : folder.path() / name;
}

// What the name itself is, not what it points to; empty if there is nothing.
std::optional<mode_t> ModeOf(const Folder& folder, const std::string& name) {
  struct stat info {};
  if (Files().Look(folder.fd(), name.c_str(), info) == 0) return info.st_mode;
  if (errno != ENOENT) FailIo("write", PathOf(folder, name));
  return std::nullopt;
}

// Short whatever the file is called, so that a name can be as long as the system allows.
std::string TemporaryName() {
  static std::atomic<std::uint64_t> count{0};
  return StrCat(kTemporaryStart, getpid(), "-", count++);
}

bool IsTemporaryName(std::string_view name) {
  if (!name.starts_with(kTemporaryStart)) return false;
  name.remove_prefix(kTemporaryStart.size());
  const std::size_t dash = name.find('-');
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash != std::string_view::npos && digits(name.substr(0, dash)) &&
         digits(name.substr(dash + 1));
}

std::pair<fs::path, std::string> Split(const fs::path& path) {
  return {path.has_parent_path() ? path.parent_path() : ".", path.filename().string()};
}

}  // namespace

void FailIo(const char* action, const fs::path& path, std::uint64_t needed) {
  const int cause = errno;
  const bool full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
  std::string message = StrCat("cannot ", action, " ", path.string(), ": ", std::strerror(cause));
  if (full && needed > 0) message += StrCat(" (", needed, " bytes are needed)");
  if (full || cause == EIO) {
    throw StorageError(message);
  }
  throw UserError(message);
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) Files().Close(fd_);
}

bool FileDescriptor::Close() { return Files().Close(Release()) == 0; }

Folder::Folder(const fs::path& path)
    : path_(path), fd_(Files().Open(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_.get() < 0) FailIo("open the folder", path);
}

Folder Folder::Make(const fs::path& below) const {
  Folder at(path_, FileDescriptor(fcntl(fd(), F_DUPFD_CLOEXEC, 0)));
  if (at.fd() < 0) FailIo("open the folder", path_);
  for (const fs::path& part : below) {
    if (part.empty() || part == ".") continue;
    const fs::path path = at.path_ / part;
    if (Files().MakeFolder(at.fd(), part.c_str()) == 0) {
      // what is written into it is lost with it, should its name not reach the disk
      at.Sync();
    } else if (errno != EEXIST) {
      FailIo("make", path);
    }
    FileDescriptor next(
        Files().Open(at.fd(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (next.get() < 0) {
      const std::optional<mode_t> mode = ModeOf(at, part.string());
      if (mode && !S_ISDIR(*mode)) FailKind("write into", path, *mode);
      FailIo("open the folder", path);
    }
    at = Folder(path, std::move(next));
  }
  return at;
}

void Folder::RequireWritable(const std::string& name, Existing existing) const {
  const std::optional<mode_t> mode = ModeOf(*this, name);
  if (mode && !S_ISREG(*mode)) FailKind("write", PathOf(*this, name), *mode);
  if (mode && existing == Existing::kRefuse) {
    throw UserError(StrCat(PathOf(*this, name).string(), " is there already; --force replaces it"));
  }
}

void Folder::Write(const std::string& name, std::span<const std::string_view> pieces,
                   Existing existing) const {
  RequireWritable(name, existing);
  const fs::path path = PathOf(*this, name);
  const std::optional<mode_t> old = ModeOf(*this, name);
  const mode_t mode = old ? *old & 0777 : 0666;
  std::uint64_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  std::string temporary;
  int fd = -1;
  do {
    temporary = TemporaryName();
    fd = Files().Open(this->fd(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EEXIST);
  FileDescriptor file(fd);
  if (fd < 0) FailIo("write", path, size);
  try {
    // what the mask took away from the mode that the old file had
    if (old && Files().SetMode(fd, mode) != 0) FailIo("write", path);
    std::uint64_t at = 0;
    for (const std::string_view piece : pieces) {
      if (!WriteAll(fd, piece, at)) FailIo("write", path, size);
      at += piece.size();
    }
    if (Files().Sync(fd) != 0) FailIo("flush", path, size);
    if (!file.Close()) FailIo("write", path, size);
    RequireWritable(name, existing);  // it may have come meanwhile
    if (Files().Rename(this->fd(), temporary.c_str(), name.c_str()) != 0) FailIo("write", path);
  } catch (...) {
    Files().Remove(this->fd(), temporary.c_str());
    throw;
  }
  Sync();
}

void Folder::Sync() const {
  if (Files().Sync(fd()) != 0) FailIo("flush the folder", path_);
}

FileDescriptor Folder::OpenForUpdate(const std::string& name) const {
  FileDescriptor file(Files().Open(fd(), name.c_str(),
                                   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file.get() < 0) {
    const int cause = errno;
    RequireWritable(name, Existing::kReplace);  // says it better, if it is a link
    errno = cause;
    FailIo("write", PathOf(*this, name));
  }
  struct stat info {};
  if (Files().Look(file.get(), "", info) != 0) FailIo("write", PathOf(*this, name));
  if (!S_ISREG(info.st_mode)) FailKind("write", PathOf(*this, name), info.st_mode);
  return file;
}

bool Folder::IsSameFile(const std::string& name, int file) const {
  struct stat named {};
  struct stat open {};
  return Files().Look(fd(), name.c_str(), named) == 0 && Files().Look(file, "", open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

void Folder::Remove(const std::string& name) const {
  if (Files().Remove(fd(), name.c_str()) != 0 && errno != ENOENT) {
    FailIo("remove", PathOf(*this, name));
  }
}

void Folder::Rename(const std::string& from, const std::string& to) const {
  if (Files().Rename(fd(), from.c_str(), to.c_str()) != 0) FailIo("rename", PathOf(*this, from));
}

std::vector<std::string> Folder::Names() const {
  // reading a folder moves its descriptor, so it gets one of its own
  FileDescriptor copy(Files().Open(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (copy.get() < 0) FailIo("read the folder", path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(copy.get()), closedir);
  if (entries == nullptr) FailIo("read the folder", path_);
  copy.Release();
  std::vector<std::string> names;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

void Folder::RemoveTemporaries() const {
  for (const std::string& name : Names()) {
    if (!IsTemporaryName(name)) continue;
    const std::optional<mode_t> mode = ModeOf(*this, name);
    if (mode && S_ISREG(*mode)) Remove(name);
  }
}

void WriteFileAtomically(const fs::path& path, std::string_view contents, Existing existing) {
  WriteFileAtomically(path, std::span(&contents, 1), existing);
}

void WriteFileAtomically(const fs::path& path, std::span<const std::string_view> pieces,
                         Existing existing) {
  const auto [folder, name] = Split(path);
  Folder(folder).Write(name, pieces, existing);
}

void RequireWritable(const fs::path& path, Existing existing) {
  const auto [folder, name] = Split(path);
  if (fs::is_directory(folder)) Folder(folder).RequireWritable(name, existing);
}

void MakeFolder(const fs::path& path) {
  fs::path there = fs::absolute(path).lexically_normal();
  fs::path below;
  std::error_code error;
  while (!fs::exists(there, error) && there.has_relative_path()) {
    below = below.empty() ? there.filename() : there.filename() / below;
    there = there.parent_path();
  }
  try {
    Folder(there).Make(below);
  } catch (const StorageError&) {
    throw;
  } catch (const UserError& problem) {
    throw UserError(StrCat("cannot make ", path.string(), ": ", problem.what()));
  }
}

bool IsWorkFile(std::string_view name) {
  return name == kWorkLock || IsTemporaryName(name) || name.ends_with(kWorkEpisodes) ||
         name.ends_with(kWorkTensors);
}

void RemoveWorkFolder(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const auto [parent, name] = Split(path);
  const Folder folder(path);
  for (const std::string& file : folder.Names()) {
    if (!IsWorkFile(file)) continue;
    const std::optional<mode_t> mode = ModeOf(folder, file);
    if (mode && !S_ISDIR(*mode)) folder.Remove(file);
  }
  // a folder with something else in it, ".", or a link to one
  const auto stays = [](int cause) {
    return cause == ENOTEMPTY || cause == EINVAL || cause == ENOTDIR;
  };
  if (Files().Remove(Folder(parent).fd(), name.c_str(), AT_REMOVEDIR) != 0 && !stays(errno)) {
    FailIo("remove", path);
  }
}

AppendFile::AppendFile(const fs::path& path, std::uint64_t size)
    : path_(path), file_(Folder(Split(path).first).OpenForUpdate(Split(path).second)), size_(size) {
  const int fd = file_.get();
  struct stat info {};
  if (Files().Look(fd, "", info) != 0) FailIo("write", path);
  if (static_cast<std::uint64_t>(info.st_size) < size) {
    throw UserError(StrCat(path.string(), " has ", info.st_size, " bytes where at least ", size,
                           " were written: it was changed from outside"));
  }
  if (Files().Truncate(fd, size) != 0) FailIo("write", path);
}

void AppendFile::Append(std::string_view bytes) {
  const int fd = file_.get();
  if (!WriteAll(fd, bytes, size_)) {
    const int cause = errno;
    // half a line must not stay; if even this fails, the next opening cuts it
    Files().Truncate(fd, size_);
    errno = cause;
    FailIo("write", path_, bytes.size());
  }
  size_ += bytes.size();
}

void AppendFile::Sync() {
  if (Files().Sync(file_.get()) != 0) FailIo("flush", path_);
}

// Without waiting for the other end of a pipe.
InputFile::InputFile(const fs::path& path)
    : path_(path),
      file_(Files().Open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  struct stat info {};
  if (file_.get() < 0 || Files().Look(file_.get(), "", info) != 0) FailIo("read", path);
  if (!S_ISREG(info.st_mode)) FailKind("read", path, info.st_mode);
  size_ = static_cast<std::uint64_t>(info.st_size);
}

std::size_t InputFile::Read(std::span<std::byte> most) {
  std::size_t done = 0;
  while (done < most.size()) {
    const ssize_t count =
        Files().Read(file_.get(), most.data() + done, most.size() - done, position_ + done);
    if (count < 0) FailIo("read", path_);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  position_ += done;
  return done;
}

void InputFile::ReadAll(std::span<std::byte> bytes) {
  if (Read(bytes) != bytes.size()) throw UserError(StrCat(path_.string(), ": the file is cut off"));
}

std::string ReadWholeFile(const fs::path& path, std::uintmax_t max_bytes) {
  InputFile file(path);
  const auto require = [&](std::uintmax_t size) {
    if (size <= max_bytes) return;
    throw UserError(
        StrCat("cannot read ", path.string(), ": it has more than ", max_bytes, " bytes"));
  };
  require(file.size());
  RequireMemory(file.size(), path.string());
  // files of the system say that they are empty, others may grow: to the end, whatever was said
  std::string contents(static_cast<std::size_t>(file.size()) + 1, '\0');
  std::size_t size = 0;
  for (;;) {
    size += file.Read(std::as_writable_bytes(std::span(contents)).subspan(size));
    require(size);
    if (size < contents.size()) break;
    contents.resize(2 * contents.size() + 4096);
  }
  contents.resize(size);
  return contents;
}

}  // namespace msrl
