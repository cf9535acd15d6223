// Files appear whole or not at all.
#ifndef MSRL_DATA_ATOMIC_FILE_H_
#define MSRL_DATA_ATOMIC_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace msrl {

// Writes `contents` to a temporary file beside `path`, flushes it to disk, renames it over `path`
// and flushes the folder. On any failure the old file is untouched, the temporary one is removed
// and a UserError names path and cause.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view contents);

// The whole file; UserError if it cannot be read or has more than `max_bytes`.
std::string ReadWholeFile(const std::filesystem::path& path, std::uintmax_t max_bytes);

}  // namespace msrl

#endif  // MSRL_DATA_ATOMIC_FILE_H_
