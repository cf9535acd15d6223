#include "msrl/files/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace msrl {
namespace {

FileSystem& System() {
  static FileSystem system;
  return system;
}

FileSystem*& Current() {
  static FileSystem* current = &System();
  return current;
}

}  // namespace

int FileSystem::DoOpen(int folder, const char* name, int flags, mode_t mode) {
  return openat(folder, name, flags, mode);
}
int FileSystem::DoClose(int fd) { return close(fd); }
ssize_t FileSystem::DoRead(int fd, std::byte* to, std::size_t size, std::uint64_t at) {
  return pread(fd, to, size, static_cast<off_t>(at));
}
ssize_t FileSystem::DoWrite(int fd, const char* from, std::size_t size, std::uint64_t at) {
  return pwrite(fd, from, size, static_cast<off_t>(at));
}
int FileSystem::DoTruncate(int fd, std::uint64_t size) {
  return ftruncate(fd, static_cast<off_t>(size));
}
int FileSystem::DoSync(int fd) { return fsync(fd); }
int FileSystem::DoSetMode(int fd, mode_t mode) { return fchmod(fd, mode); }
int FileSystem::DoLook(int folder, const char* name, struct stat& info) {
  return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}
int FileSystem::DoMakeFolder(int parent, const char* name) { return mkdirat(parent, name, 0777); }
int FileSystem::DoRename(int folder, const char* from, const char* to) {
  return renameat(folder, from, folder, to);
}
int FileSystem::DoRemove(int folder, const char* name, int flags) {
  return unlinkat(folder, name, flags);
}
int FileSystem::DoLock(int fd, int operation) { return flock(fd, operation); }

FileSystem& Files() { return *Current(); }

UseFileSystem::UseFileSystem(FileSystem& files) : before_(std::exchange(Current(), &files)) {}
UseFileSystem::~UseFileSystem() { Current() = before_; }

}  // namespace msrl
