#include "msrl/run/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/memory.h"
#include "msrl/run/manifest.h"
#include "msrl/run/utc_time.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCheckpointVersion = "1";
constexpr std::size_t kKeptCheckpoints = 2;
constexpr const char* kConfigFile = "config.toml";
constexpr const char* kInitFile = "init.safetensors";
constexpr const char* kLockFile = "lock";
constexpr const char* kRunFile = "run.json";
constexpr const char* kStatusFile = "status.json";
constexpr const char* kCheckpointFolder = "checkpoints";

std::string CheckpointName(std::int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, 13 - std::min<std::size_t>(13, digits.size()), '0');
  return "step-" + digits + ".safetensors";
}

std::string ReadRunFile(const fs::path& path) {
  const fs::path file = path / kRunFile;
  if (!fs::exists(file)) {
    throw UserError(StrCat("no run in ", path.string(), ": it has no ", kRunFile));
  }
  return ReadWholeFile(file, 1 << 24);
}

// The disk must not hold records that change together with checksums of what they were.
void RemoveManifest(const fs::path& run) {
  if (!fs::exists(fs::symlink_status(run / kManifestFile))) return;
  const Folder folder(run);
  folder.Remove(kManifestFile);
  folder.Sync();
}

}  // namespace

RunDirectory::RunDirectory(fs::path path, RunSpec spec, std::vector<CodeRecord> code)
    : path_(std::move(path)), spec_(std::move(spec)), code_(std::move(code)) {}

RunDirectory RunDirectory::Open(const fs::path& path) {
  const std::string text = ReadRunFile(path);
  const std::string source = (path / kRunFile).string();
  return {path, RunSpecFromJson(text, source), CodeFromJson(text, source)};
}

std::optional<LeaseHolder> RunDirectory::HolderOf(const fs::path& path) {
  return Lease::HolderOf(path / kLockFile, LeaseOf::kFolder);
}

void RunDirectory::Lock() {
  lease_.emplace(path_ / kLockFile, path_.string() + " is being run by", LeaseOf::kFolder);
}

std::string ContentsHash(std::string_view contents) { return Hex(StableHash(contents)); }

RunDirectory RunDirectory::Create(const fs::path& path, const RunSpec& spec,
                                  const Registries& registries, const RunStart& start) {
  MSRL_CHECK_EQ(spec.init, start.init.empty() ? "" : ContentsHash(start.init));
  MSRL_CHECK_EQ(spec.library, start.library.empty() ? "" : ContentsHash(start.library));
  const auto require_none = [&path] {
    if (!fs::exists(path / kRunFile)) return;
    throw UserError(
        StrCat(path.string(), " holds a run already; continue it with: resume ", path.string()));
  };
  require_none();
  if (fs::exists(path)) {
    if (!fs::is_directory(path)) throw UserError(StrCat(path.string(), " is not a directory"));
    const bool begun = fs::exists(path / kLockFile);
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      // what a killed start leaves behind
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(".") && name != kInitFile && name != kStartLibraryFile &&
          name != kLockFile && !(begun && name == kConfigFile)) {
        throw UserError(StrCat(path.string(), " is not empty and holds no run; choose another"));
      }
    }
  }
  const std::string json = ToJson(spec, registries);
  const std::string toml = ToToml(spec, registries);
  MakeFolder(path);
  RunDirectory run(path, spec, {ThisCode(registries, 0)});
  run.Lock();
  require_none();  // another process may have made it meanwhile
  if (!start.init.empty()) WriteFileAtomically(path / kInitFile, start.init);
  if (!start.library.empty()) WriteFileAtomically(path / kStartLibraryFile, start.library);
  WriteFileAtomically(path / kConfigFile, toml);
  // from here on the run can be resumed
  WriteFileAtomically(path / kRunFile, json);
  Folder(path).Make(kCheckpointFolder);
  return run;
}

std::string RunDirectory::ReadStart(const char* name, std::uintmax_t most,
                                    const std::string& hash) const {
  const fs::path file = path_ / name;
  std::string contents = ReadWholeFile(file, most);
  if (ContentsHash(contents) != hash) {
    throw UserError(StrCat(file.string(), " is not what the run was made with (contents ",
                           ContentsHash(contents), ", expected ", hash, ")"));
  }
  return contents;
}

Artefact RunDirectory::ReadInit() const {
  return Artefact::Parse(ReadStart(kInitFile, Artefact::kMaxBytes, spec_.init),
                         (path_ / kInitFile).string());
}

SegmentLibrary RunDirectory::ReadLibrary() const {
  const std::string contents =
      ReadStart(kStartLibraryFile, SegmentLibrary::kMaxFileBytes, spec_.library);
  return SegmentLibrary::Parse(std::as_bytes(std::span(contents)),
                               (path_ / kStartLibraryFile).string());
}

RunDirectory RunDirectory::OpenForWriting(const fs::path& path) {
  RunDirectory run = Open(path);
  run.Lock();
  std::vector<std::string> changed = ChangedRecords(path);
  // the checkpoint says what that would
  std::erase(changed, kStatusFile);
  if (!changed.empty()) {
    throw UserError(StrCat(path.string(), ": ", DescribeChanges(changed),
                           "; bring back what was there, or remove ", kManifestFile,
                           " to continue with what is"));
  }
  // of a process that was killed
  const Folder folder(path);
  folder.RemoveTemporaries();
  folder.Make(kCheckpointFolder).RemoveTemporaries();
  return run;
}

RunDirectory RunDirectory::OpenForReading(const fs::path& path) { return Open(path); }

void RunDirectory::SetSteps(std::int64_t steps, const Registries& registries) {
  const std::vector<fs::path> checkpoints = Checkpoints();
  if (!checkpoints.empty() && checkpoints.back().filename() > CheckpointName(steps)) {
    throw UserError(StrCat(path_.string(), " has done more than ", steps, " steps already (",
                           checkpoints.back().filename().string(), ")"));
  }
  RunSpec changed = spec_;
  changed.steps = steps;
  RequireInRange(changed);
  RemoveManifest(path_);  // no longer finished
  WriteFileAtomically(path_ / kConfigFile, ToToml(changed, registries));
  spec_ = changed;
  RewriteRunFile();
}

void RunDirectory::SetCode(const CodeRecord& code) {
  if (code_.back().SameCode(code)) return;
  code_.push_back(code);
  RewriteRunFile();
}

void RunDirectory::RewriteRunFile() const {
  const std::string source = (path_ / kRunFile).string();
  WriteFileAtomically(source, WithChanges(ReadRunFile(path_), source, spec_.steps, code_));
}

void RunDirectory::WriteStatus(std::string_view state, std::int64_t step,
                               std::string_view message) const {
  if (lease_) lease_->RequireHeld();
  RemoveManifest(path_);
  nlohmann::ordered_json json;
  json["state"] = state;
  json["step"] = step;
  json["steps"] = spec_.steps;
  if (!message.empty()) json["message"] = message;
  json["process"] = getpid();
  json["updated"] = UtcNow();
  WriteFileAtomically(path_ / kStatusFile,
                      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void RunDirectory::Finish(std::int64_t step) const {
  if (fs::exists(path_ / kManifestFile) && ChangedRecords(path_).empty()) return;
  WriteStatus("finished", step);
  WriteManifest(Folder(path_));
}

void RunDirectory::WriteFailure(const RunFailure& failure) const {
  if (lease_) lease_->RequireHeld();
  EncodeFailure(failure, spec_.Fingerprint()).Write(Folder(path_), kFailureFile);
}

RunFailure RunDirectory::ReadFailure() const {
  const fs::path file = path_ / kFailureFile;
  if (!fs::exists(file)) {
    throw UserError(StrCat(path_.string(), " has no ", kFailureFile,
                           ": it is written where a bad number or an exception ends a run"));
  }
  // by its header first: another file can be of any size
  const TensorFile header = TensorFile::ReadHeader(file);
  if (!header.has_checksum() || !header.metadata().contains("run")) {
    throw UserError(StrCat(file.string(), ": not the failure of a run"));
  }
  return ParseFailure(TensorFile::Read(file), spec_.Fingerprint());
}

std::vector<fs::path> RunDirectory::Checkpoints() const {
  std::vector<fs::path> files;
  const fs::path folder = path_ / kCheckpointFolder;
  if (fs::is_symlink(folder)) throw UserError(StrCat(folder.string(), " is a link, not a folder"));
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".safetensors")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // the steps have leading zeros
  return files;
}

void RunDirectory::WriteCheckpoint(std::int64_t step, TensorFileBuilder& contents) const {
  contents.SetMetadata("format", "msrl-checkpoint");
  contents.SetMetadata("format_version", std::string(kCheckpointVersion));
  contents.SetMetadata("run", Hex(spec_.Fingerprint()));
  contents.SetMetadata("step", std::to_string(step));
  if (lease_) lease_->RequireHeld();
  const Folder folder = Folder(path_).Make(kCheckpointFolder);
  contents.Write(folder, CheckpointName(step));
  const std::vector<fs::path> files = Checkpoints();
  for (std::size_t i = 0; i + kKeptCheckpoints < files.size(); ++i) {
    folder.Remove(files[i].filename().string());
  }
}

std::optional<TensorFile> RunDirectory::ReadNewestCheckpoint(
    const std::function<void(const std::string&)>& warn) const {
  return ReadNewestCheckpoint(warn, [](const TensorFile&) {});
}

std::optional<TensorFile> RunDirectory::ReadNewestCheckpoint(
    const std::function<void(const std::string&)>& warn,
    const std::function<void(const TensorFile&)>& require) const {
  const std::vector<fs::path> files = Checkpoints();
  if (files.empty()) return std::nullopt;
  std::string problem;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    if (!problem.empty()) warn(problem + "; trying the one before");
    try {
      // by its header first: another file can be of any size
      RequireCheckpoint(TensorFile::ReadHeader(*file), spec_.Fingerprint());
      TensorFile checkpoint = TensorFile::Read(*file);
      require(checkpoint);
      return checkpoint;
    } catch (const MemoryError&) {
      throw;  // nothing is wrong with the file
    } catch (const UserError& error) {
      problem = error.what();
    }
  }
  throw UserError(StrCat(problem, "; no checkpoint of this run can be used"));
}

void RunDirectory::SetAsideAfter(std::int64_t step) const {
  for (const fs::path& file : Checkpoints()) {
    const std::string name = file.filename().string();
    if (name > CheckpointName(step)) Folder(file.parent_path()).Rename(name, "damaged-" + name);
  }
}

std::int64_t RequireCheckpoint(const TensorFile& file, std::uint64_t fingerprint) {
  const auto get = [&file](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (get("format") != "msrl-checkpoint" || !file.has_checksum()) {
    throw UserError(StrCat(file.source(), ": not a checkpoint"));
  }
  if (get("format_version") != kCheckpointVersion) {
    throw UserError(StrCat(file.source(), ": checkpoint of format version '", get("format_version"),
                           "', this msrl knows ", kCheckpointVersion));
  }
  if (get("run") != Hex(fingerprint)) {
    throw UserError(StrCat(file.source(), ": checkpoint of another run"));
  }
  const auto step = ParseNumber<std::int64_t>(get("step"));
  if (!step || *step < 0) throw UserError(StrCat(file.source(), ": checkpoint without a step"));
  return *step;
}

}  // namespace msrl
