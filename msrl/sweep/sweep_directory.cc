#include "msrl/sweep/sweep_directory.h"

#include <algorithm>
#include <map>
#include <set>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/run/run_directory.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxPlanBytes = std::uintmax_t{1} << 28;
constexpr const char* kPlanFile = "sweep.json";
constexpr const char* kLockFile = "lock";

// Files in a directory without a plan must be those of this sweep: its plan may have been lost.
void RequireOurs(const fs::path& path, const SweepPlan& plan) {
  // the last two are records for the report, which may come first
  std::set<std::string> ours{"source",  "logs",          "slurm",
                             kLockFile, "diagnose.json", "pretrain.json"};
  for (const SweepEnv& env : plan.envs) ours.insert(env.name);
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || ours.contains(name)) continue;
    throw UserError(
        StrCat(path.string(), " is not empty and holds no sweep; choose another --out"));
  }
}

}  // namespace

std::string LastLine(std::string text) {
  text.resize(text.find_last_not_of("\n ") + 1);  // npos + 1 is 0
  return text.substr(text.rfind('\n') + 1);
}

bool SweepDirectory::HasPlan() const {
  std::error_code error;
  return fs::exists(path_ / kPlanFile, error);
}

SweepPlan SweepDirectory::ReadPlan() const {
  if (!HasPlan()) {
    throw UserError(StrCat("no sweep in ", path_.string(), ": it has no ", kPlanFile));
  }
  const fs::path file = path_ / kPlanFile;
  return PlanFromJson(ReadWholeFile(file, kMaxPlanBytes), file.string());
}

fs::path SweepDirectory::LogOf(std::string_view task) const {
  return path_ / "logs" / StrCat(task, ".log");
}

fs::path SweepDirectory::FailureFile(std::string_view task) const {
  return path_ / "logs" / StrCat(task, ".failed");
}

std::string SweepDirectory::LastLogLine(std::string_view task) const {
  return LastLine(FileTail(LogOf(task), 4096));
}

std::optional<std::string> SweepDirectory::FailureOf(std::string_view task) const {
  const fs::path file = FailureFile(task);
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  try {
    std::string text = ReadWholeFile(file, 1 << 20);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  } catch (const UserError& problem) {
    return problem.what();
  }
}

void SweepDirectory::RecordFailure(std::string_view task, const std::string& message) const {
  const fs::path file = FailureFile(task);
  try {
    const std::string text = message + "\n";
    const std::string_view contents = text;
    Make(file.parent_path().lexically_relative(path_))
        .Write(file.filename().string(), std::span(&contents, 1));
  } catch (const UserError&) {
    // the reason that is being recorded may be the same
  }
}

void SweepDirectory::ForgetFailure(std::string_view task) const {
  const fs::path file = FailureFile(task);
  try {
    Folder(file.parent_path()).Remove(file.filename().string());
  } catch (const UserError&) {
    // where there is no folder there was no failure; what else goes wrong here matters little
  }
}

std::optional<LeaseHolder> SweepDirectory::Driver() const {
  return Lease::HolderOf(path_ / kLockFile, LeaseOf::kFolder);
}

bool SameCode(const RunRecord& record) {
  CodeRecord ours;
  ours.version = BuildVersion();
  ours.commit = BuildCommit();
  return std::ranges::all_of(record.code,
                             [&ours](const CodeRecord& code) { return code.SameCode(ours); });
}

void RequirePlanned(const SweepDirectory& directory, const PlannedRun& run, const RunRecord& record,
                    const RunSpec& wanted) {
  const std::string where = directory.File(run.path).string();
  const auto fail = [&where](const std::string& what) {
    throw UserError(
        StrCat(where, " holds another run than the sweep wants: ", what, "; choose another --out"));
  };
  if (const std::string difference = FirstDifference(*record.spec, wanted); !difference.empty()) {
    fail(difference);
  }
  if (run.branch.empty() != record.spec->init.empty()) {
    fail(run.branch.empty() ? "it starts from a branch" : "it starts from no branch");
  }
  const fs::path branch = directory.File(run.branch);
  if (!run.branch.empty() && fs::exists(branch) &&
      ContentsHash(ReadWholeFile(branch, std::uintmax_t{1} << 30)) != record.spec->init) {
    fail(StrCat("it did not start from ", branch.string()));
  }
}

void RequireFits(const SweepDirectory& directory, SweepPlan& plan, const Registries& registries,
                 const PrepareOptions& options) {
  const fs::path& path = directory.path();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) throw UserError(StrCat(path.string(), " is not a directory"));
  if (directory.HasPlan()) {
    RequireGrown(directory.ReadPlan(), plan, path.string());
  } else {
    RequireOurs(path, plan);
  }
  int old_finished = 0;
  std::map<std::pair<std::size_t, std::size_t>, RunSpec> resolved;
  for (PlannedRun& run : plan.runs) {
    const RunRecord record = ReadRunRecord(directory.File(run.path));
    // what is damaged is reported as failed, and the others go on
    if (record.state == RunState::kAbsent || record.state == RunState::kDamaged) continue;
    const auto place = std::pair(run.env, run.method);
    if (!resolved.contains(place)) resolved[place] = plan.ResolvedSpecOf(run, registries);
    RunSpec wanted = resolved.at(place);
    wanted.seed = run.seed;
    RequirePlanned(directory, run, record, wanted);
    run.identity = Identity(plan, run, wanted, registries.pretrainers, VersionsOf(record.code),
                            CommitsOf(record.code));
    if (SameCode(record)) continue;
    if (record.state == RunState::kFinished) {
      ++old_finished;
    } else if (!options.any_version) {
      throw UserError(StrCat(directory.File(run.path).string(), " was made by ",
                             record.code.back().Describe(), ", this is ", BuildVersion(), " (",
                             BuildCommit(), "): continue with that one, or say --any-version"));
    }
  }
  if (old_finished > 0) {
    options.warn(StrCat(old_finished, " finished run", old_finished == 1 ? " was" : "s were",
                        " made by other code than this msrl ", BuildVersion(), " (", BuildCommit(),
                        ") and ", old_finished == 1 ? "is" : "are", " kept"));
  }
}

Lease TakeDirectory(const SweepDirectory& directory, const SweepPlan& plan) {
  MakeFolder(directory.path());
  Lease lease(directory.path() / kLockFile,
              directory.path().string() + " is being swept already, by", LeaseOf::kFolder);
  for (const auto& [hash, contents] : plan.libraries) {
    const fs::path file = LibraryPath(hash);
    const std::string_view piece = contents;
    directory.Make(file.parent_path()).Write(file.filename().string(), std::span(&piece, 1));
  }
  WriteFileAtomically(directory.path() / kPlanFile, ToJson(plan));
  return lease;
}

}  // namespace msrl
