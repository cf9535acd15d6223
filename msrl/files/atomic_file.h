// Files appear whole or not at all.
#ifndef MSRL_FILES_ATOMIC_FILE_H_
#define MSRL_FILES_ATOMIC_FILE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "msrl/core/check.h"

namespace msrl {

// The disk is full, a quota is used up or the device fails: nothing is wrong with the input, and
// the same command can succeed later.
class StorageError : public UserError {
  using UserError::UserError;
};

// Writes `contents` to a temporary file beside `path`, flushes it to disk, renames it over `path`
// and flushes the folder. On any failure the old file is untouched, the temporary one is removed
// and a UserError names path and cause.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view contents);
// The same for contents in pieces.
void WriteFileAtomically(const std::filesystem::path& path,
                         std::span<const std::string_view> pieces);

// With its parents. UserError if it cannot be made.
void MakeFolder(const std::filesystem::path& path);

// A file that grows at its end. What was appended is in the file, though not yet on the disk,
// when Append returns; a failed Append leaves the file as it was and is a UserError.
class AppendFile {
 public:
  // Opens or creates the file and cuts it to `size` bytes. UserError if it has fewer.
  AppendFile(const std::filesystem::path& path, std::uint64_t size);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  void Append(std::string_view bytes);
  // Until all is on the disk.
  void Sync();
  std::uint64_t size() const { return size_; }

 private:
  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_;
};

// The whole file; UserError if it cannot be read or has more than `max_bytes`.
std::string ReadWholeFile(const std::filesystem::path& path, std::uintmax_t max_bytes);

}  // namespace msrl

#endif  // MSRL_FILES_ATOMIC_FILE_H_
