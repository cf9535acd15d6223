// One writer at a time: a locked file that says who holds it.
#ifndef MSRL_RUN_LEASE_H_
#define MSRL_RUN_LEASE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"

namespace msrl {

// Another process works there: nothing is wrong, and the same command can succeed later.
class LeaseError : public UserError {
  using UserError::UserError;
};

struct LeaseHolder {
  std::string host;
  int process = 0;
  std::string job;    // of Slurm; empty elsewhere
  std::string since;  // UTC

  // "process 12 on host since 2026-01-01T00:00:00Z"; "another process" if nothing is known.
  std::string Describe() const;
};

// What a lease is of. A folder is locked itself, too, where the file system can do that (NFS
// cannot): who removes the file in it does not let a second process in.
enum class LeaseOf { kFile, kFolder };

// Held until it is destroyed or the process ends, however it ends. The file stays.
class Lease {
 public:
  // LeaseError that begins with `what` and names the holder, if another process has it.
  Lease(const std::filesystem::path& file, const std::string& what, LeaseOf of);
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease() = default;

  // LeaseError if the file was removed or replaced and the folder is not locked: another process
  // may hold the lease by now.
  void RequireHeld() const;

  // Who holds the lease of this file now; empty if nobody does.
  static std::optional<LeaseHolder> HolderOf(const std::filesystem::path& file, LeaseOf of);

 private:
  Folder folder_;
  std::string name_;
  bool folder_locked_ = false;
  FileDescriptor file_;
};

}  // namespace msrl

#endif  // MSRL_RUN_LEASE_H_
