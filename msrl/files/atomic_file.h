// Files appear whole or not at all, and where they were meant to.
#ifndef MSRL_FILES_ATOMIC_FILE_H_
#define MSRL_FILES_ATOMIC_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/core/check.h"

namespace msrl {

// The disk is full, a quota is used up or the device fails: nothing is wrong with the input, and
// the same command can succeed later.
class StorageError : public UserError {
  using UserError::UserError;
};

// After a call of the system: "cannot ACTION PATH:" and what errno says, as a StorageError or a
// UserError. A full disk says how many bytes were needed, unless that is 0.
[[noreturn]] void FailIo(const char* action, const std::filesystem::path& path,
                         std::uint64_t needed = 0);

// An open file of the system, closed at its end.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }
  // No longer ours to close.
  int Release() { return std::exchange(fd_, -1); }
  // Closing can report a delayed write error, so it is a step of its own.
  bool Close();

 private:
  int fd_;
};

// What becomes of a file that is there already.
enum class Existing { kReplace, kRefuse };

// A folder that is held open. Names in it are looked up without following links, and only regular
// files are written: nothing outside is touched, whoever filled the folder. Every failure is a
// UserError that names path and cause.
class Folder {
 public:
  // The path is what the user named: links in it are followed.
  explicit Folder(const std::filesystem::path& path);

  // The folder at this relative path, made if need be and then on the disk. UserError if a part
  // of the path below this folder is a link or no folder.
  Folder Make(const std::filesystem::path& below) const;

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }

  // See WriteFileAtomically. The file keeps its mode if it is replaced.
  void Write(const std::string& name, std::span<const std::string_view> pieces,
             Existing existing = Existing::kReplace) const;
  // UserError if Write would refuse to write a file of this name.
  void RequireWritable(const std::string& name, Existing existing) const;
  // Open for reading and writing; made if there is none.
  FileDescriptor OpenForUpdate(const std::string& name) const;
  // Whether there is a file, and it is the open one.
  bool IsSameFile(const std::string& name, int fd) const;
  void Remove(const std::string& name) const;
  void Rename(const std::string& from, const std::string& to) const;
  // Until all names in it are on the disk.
  void Sync() const;
  // Of all that is in it, in no order.
  std::vector<std::string> Names() const;
  // What a Write that was killed left behind.
  void RemoveTemporaries() const;

 private:
  Folder(std::filesystem::path path, FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::filesystem::path path_;
  FileDescriptor fd_;
};

// Writes `contents` to a temporary file beside `path`, flushes it to disk, renames it over `path`
// and flushes the folder. On any failure the old file is untouched, the temporary one is removed
// and a UserError names path and cause; a full disk, the bytes too. What is no regular file (a
// link, a device) is never replaced.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view contents,
                         Existing existing = Existing::kReplace);
// The same for contents in pieces.
void WriteFileAtomically(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces,
                         Existing existing = Existing::kReplace);
// What these would refuse is refused here, before hours of work; the folder may be missing still.
void RequireWritable(const std::filesystem::path& path, Existing existing);

// With its parents, all on the disk. UserError if it cannot be made.
void MakeFolder(const std::filesystem::path& path);
// What is kept of work in progress has names with these endings, in folders of work.
inline constexpr std::string_view kWorkEpisodes = ".work.h5";
inline constexpr std::string_view kWorkTensors = ".work.safetensors";
inline constexpr std::string_view kWorkLock = "lock";
bool IsWorkFile(std::string_view name);

// With its files of work, if there is one. Whatever else is in it was put there by others: it
// stays, and so does the folder.
void RemoveWorkFolder(const std::filesystem::path& path);

// A file that grows at its end. What was appended is in the file, though not yet on the disk,
// when Append returns; a failed Append leaves the file as it was and is a UserError.
class AppendFile {
 public:
  // Opens or creates the file and cuts it to `size` bytes. UserError if it has fewer, or is no
  // regular file.
  AppendFile(const std::filesystem::path& path, std::uint64_t size);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void Append(std::string_view bytes);
  // Until all is on the disk.
  void Sync();
  std::uint64_t size() const { return size_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t size_;
};

// A regular file that is read. Every failure is a UserError; a pipe or a device is one too, since
// it may never end.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  std::uint64_t size() const { return size_; }  // when it was opened
  // As many bytes as there are from here on, up to `most`.
  std::size_t Read(std::span<std::byte> most);
  // All of them, or a UserError that the file is cut off.
  void ReadAll(std::span<std::byte> bytes);

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

// The whole file; UserError if it cannot be read or has more than `max_bytes`.
std::string ReadWholeFile(const std::filesystem::path& path, std::uintmax_t max_bytes);

}  // namespace msrl

#endif  // MSRL_FILES_ATOMIC_FILE_H_
