// The calls of the system that touch files, behind one interface, so that tests can put failures,
// crashes and lost writes in their place.
#ifndef MSRL_FILES_FILE_SYSTEM_H_
#define MSRL_FILES_FILE_SYSTEM_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace msrl {

// Each method is the system call that it names: -1 and errno on failure. A call that a signal
// interrupted is made again, so that callers never see EINTR. Names are looked up in an open
// folder, AT_FDCWD being the current one. What only looks (listings, fs::exists) goes to the system
// directly.
class FileSystem {
 public:
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  // openat
  int Open(int folder, const char* name, int flags, mode_t mode = 0) {
    return Again([&] { return DoOpen(folder, name, flags, mode); });
  }
  // close; an interrupted one has closed the file
  int Close(int fd) { return DoClose(fd) == 0 || errno == EINTR ? 0 : -1; }
  // pread
  ssize_t Read(int fd, std::byte* to, std::size_t size, std::uint64_t at) {
    return Again([&] { return DoRead(fd, to, size, at); });
  }
  // pwrite
  ssize_t Write(int fd, const char* from, std::size_t size, std::uint64_t at) {
    return Again([&] { return DoWrite(fd, from, size, at); });
  }
  // ftruncate
  int Truncate(int fd, std::uint64_t size) {
    return Again([&] { return DoTruncate(fd, size); });
  }
  // fsync
  int Sync(int fd) {
    return Again([&] { return DoSync(fd); });
  }
  // fchmod
  int SetMode(int fd, mode_t mode) {
    return Again([&] { return DoSetMode(fd, mode); });
  }
  // fstatat: what the name itself is, not what it points to; "" is the open file
  int Look(int folder, const char* name, struct stat& info) {
    return Again([&] { return DoLook(folder, name, info); });
  }
  // mkdirat
  int MakeFolder(int parent, const char* name) {
    return Again([&] { return DoMakeFolder(parent, name); });
  }
  // renameat within a folder
  int Rename(int folder, const char* from, const char* to) {
    return Again([&] { return DoRename(folder, from, to); });
  }
  // unlinkat; flags: AT_REMOVEDIR for a folder
  int Remove(int folder, const char* name, int flags = 0) {
    return Again([&] { return DoRemove(folder, name, flags); });
  }
  // flock
  int Lock(int fd, int operation) {
    return Again([&] { return DoLock(fd, operation); });
  }

 protected:
  virtual int DoOpen(int folder, const char* name, int flags, mode_t mode);
  virtual int DoClose(int fd);
  virtual ssize_t DoRead(int fd, std::byte* to, std::size_t size, std::uint64_t at);
  virtual ssize_t DoWrite(int fd, const char* from, std::size_t size, std::uint64_t at);
  virtual int DoTruncate(int fd, std::uint64_t size);
  virtual int DoSync(int fd);
  virtual int DoSetMode(int fd, mode_t mode);
  virtual int DoLook(int folder, const char* name, struct stat& info);
  virtual int DoMakeFolder(int parent, const char* name);
  virtual int DoRename(int folder, const char* from, const char* to);
  virtual int DoRemove(int folder, const char* name, int flags);
  virtual int DoLock(int fd, int operation);

 private:
  template <typename Call>
  static auto Again(const Call& call) -> decltype(call()) {
    for (;;) {
      const auto result = call();
      if (result >= 0 || errno != EINTR) return result;
    }
  }
};

// What this process uses: the system's, but for tests.
FileSystem& Files();

// Puts another in its place for as long as this lives. For one thread at a time.
class UseFileSystem {
 public:
  explicit UseFileSystem(FileSystem& files);
  UseFileSystem(const UseFileSystem&) = delete;
  UseFileSystem& operator=(const UseFileSystem&) = delete;
  ~UseFileSystem();

 private:
  FileSystem* before_;
};

}  // namespace msrl

#endif  // MSRL_FILES_FILE_SYSTEM_H_
