// A run on disk. The directory is the truth about its run (docs/running.md lists the files).
#ifndef MSRL_RUN_RUN_DIRECTORY_H_
#define MSRL_RUN_RUN_DIRECTORY_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/artefacts/artefact.h"
#include "msrl/files/safetensors.h"
#include "msrl/memory/segment_library.h"
#include "msrl/run/failure_file.h"
#include "msrl/run/lease.h"
#include "msrl/run/run_spec.h"

namespace msrl {

// Contents of the files that spec.init and spec.library are the hashes of (ContentsHash); empty
// where these are.
struct RunStart {
  std::string init = {};
  std::string library = {};
};

class RunDirectory {
 public:
  static constexpr const char* kStartLibraryFile = "library.safetensors";

  // Makes the directory (and its parents) for a resolved spec, and locks it. What the run starts
  // with is copied, so that it stands alone. UserError if the directory holds a run already or
  // anything else.
  static RunDirectory Create(const std::filesystem::path& path, const RunSpec& spec,
                             const Registries& registries, const RunStart& start = {});
  // UserError if there is no run in it, if it is finished and its records were changed since, or if
  // a part of it that is written is a link; LeaseError if another process is running it.
  static RunDirectory OpenForWriting(const std::filesystem::path& path);
  static RunDirectory OpenForReading(const std::filesystem::path& path);

  RunDirectory(RunDirectory&&) noexcept = default;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory() = default;

  // Who is running it now; empty if nobody is.
  static std::optional<LeaseHolder> HolderOf(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const RunSpec& spec() const { return spec_; }
  // A longer (or shorter) budget, written down.
  void SetSteps(std::int64_t steps, const Registries& registries);

  // All code that made the run, in the order of its steps.
  const std::vector<CodeRecord>& code() const { return code_; }
  // Adds this one to run.json if it is another than the last.
  void SetCode(const CodeRecord& code);

  // What `init` was at creation. UserError if it is gone or changed.
  Artefact ReadInit() const;
  // The same of `library`.
  SegmentLibrary ReadLibrary() const;

  // status.json: "running", "interrupted" or "failed". LeaseError if the lock was taken away.
  void WriteStatus(std::string_view state, std::int64_t step, std::string_view message = "") const;
  // "finished", and the manifest of all records. Nothing is written if they are there and right.
  void Finish(std::int64_t step) const;

  // What ended the run, in place of an earlier failure. LeaseError if the lock was taken away.
  void WriteFailure(const RunFailure& failure) const;
  // UserError if there is none, or it is damaged or another run's.
  RunFailure ReadFailure() const;

  // Writes checkpoints/step-<step>.safetensors, then removes all but the newest two.
  void WriteCheckpoint(std::int64_t step, TensorFileBuilder& contents) const;
  // The newest whole checkpoint of this run; empty if none was ever written. A damaged one is
  // reported in one line to `warn` and the one before is used; UserError if all are damaged.
  std::optional<TensorFile> ReadNewestCheckpoint(
      const std::function<void(const std::string&)>& warn) const;
  // The same, and what `require` throws a UserError for counts as damaged.
  std::optional<TensorFile> ReadNewestCheckpoint(
      const std::function<void(const std::string&)>& warn,
      const std::function<void(const TensorFile&)>& require) const;

  // Renames checkpoints after this step to damaged-*: they must not push out good ones.
  void SetAsideAfter(std::int64_t step) const;

 private:
  RunDirectory(std::filesystem::path path, RunSpec spec, std::vector<CodeRecord> code);
  static RunDirectory Open(const std::filesystem::path& path);
  void Lock();
  void RewriteRunFile() const;
  std::string ReadStart(const char* file, std::uintmax_t most, const std::string& hash) const;
  std::vector<std::filesystem::path> Checkpoints() const;  // oldest first

  std::filesystem::path path_;
  RunSpec spec_;
  std::vector<CodeRecord> code_;
  std::optional<Lease> lease_;  // of those that write
};

// 16 hexadecimal digits.
std::string ContentsHash(std::string_view contents);

// The step in a checkpoint's metadata. UserError unless the file is a checkpoint of the run with
// this fingerprint, whole and of a version that we know.
std::int64_t RequireCheckpoint(const TensorFile& file, std::uint64_t fingerprint);

}  // namespace msrl

#endif  // MSRL_RUN_RUN_DIRECTORY_H_
