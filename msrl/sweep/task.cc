#include "msrl/sweep/task.h"

#include <algorithm>
#include <filesystem>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/run/runner.h"
#include "msrl/run/start_from.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/pretrain_table.h"
#include "msrl/transfer/pretrainer.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

// Thrown out of work that is to go on another time.
struct Stopped {};

class TaskRunner {
 public:
  TaskRunner(const SweepDirectory& directory, const SweepPlan& plan, const Registries& registries,
             const TaskOptions& options)
      : directory_(directory), plan_(plan), registries_(registries), options_(options) {}

  TaskOutcome Carry(const SweepTask& task) const {
    if (task.is_run()) return Run(plan_.runs[task.item]);
    const fs::path file = directory_.File(task.path);
    directory_.Make(fs::path(task.path).parent_path());
    const Lease lease(Beside(file, ".lock"), file.string() + " is being made by", LeaseOf::kFile);
    if (fs::exists(file)) return TaskOutcome::kDone;
    try {
      if (task.kind == SweepTask::Kind::kData) {
        MakeData(task.path == kTrainData, file);
      } else {
        MakeBranch(plan_.branches[task.item], task.seed, file);
      }
    } catch (const Stopped&) {
      return TaskOutcome::kInterrupted;
    }
    return TaskOutcome::kDone;
  }

 private:
  void GoOn() const {
    if (options_.stop()) throw Stopped{};
  }
  // A file beside another, for as long as that is being made.
  static fs::path Beside(const fs::path& file, const char* ending) {
    return file.parent_path() / StrCat(".", file.filename().string(), ending);
  }

  void MakeData(bool train, const fs::path& file) const {
    CollectOptions collect;
    collect.split = train ? Split::kTrain : Split::kHeldOut;
    collect.episodes = train ? plan_.source->episodes : plan_.source->held_out_episodes;
    collect.seed = plan_.source->seed;
    collect.targets.clear();
    for (const std::string& target : plan_.source->targets) {
      collect.targets.push_back(ParseEnum<ValueTarget>("target", target));
    }
    collect.behaviour = ParseEnum<BehaviourMix>("behaviour", plan_.source->behaviour);
    collect.work = Beside(file, ".work");
    const EpisodeFile data = Collect(collect, registries_.envs, registries_.agents,
                                     [this](std::string_view, int, int) { GoOn(); });
    WriteEpisodes(file, data);
    RemoveWorkFolder(collect.work);
    options_.say(StrCat(file.string(), ": ", data.episodes.size(), " episodes, contents ",
                        data.ContentHash()));
  }

  void MakeBranch(const SweepBranch& branch, std::uint64_t seed, const fs::path& file) const {
    const PretrainerEntry& pretrainer = registries_.pretrainers.Find(branch.kind);
    const std::vector<std::string> settings = branch.Options();
    const EpisodeFile train = ReadEpisodes(directory_.File(kTrainData));
    GoOn();
    const EpisodeFile held_out = ReadEpisodes(directory_.File(kHeldOutData));
    GoOn();
    const auto ready = pretrainer.prepare(settings, train, held_out);
    const std::string train_hash = train.ContentHash();
    const std::string held_out_hash = held_out.ContentHash();
    PretrainRow row{"mixed", SourcesOf(train), {}};
    const PretrainJob job =
        pretrainer.JobOf(settings, row.sources, train_hash, held_out_hash, seed, ProgramTexts());
    PretrainingOptions how;
    how.checkpoint = Beside(file, ".state");
    how.checkpoint_seconds = options_.checkpoint_seconds;
    how.begin_anew = true;
    how.stop = options_.stop;
    const std::optional<PretrainResult> result = RunPretraining(*ready, job, how);
    if (!result) throw Stopped{};
    row.runs.push_back(result->figures);
    // the artefact last: where it is, its figures are too
    fs::path figures = file;
    WriteFileAtomically(
        figures.replace_extension(".json"),
        ToJson(std::span(&row, 1), pretrainer, settings, train_hash, held_out_hash) + "\n");
    WriteFileAtomically(file, result->artefact);
    Folder(file.parent_path()).Remove(how.checkpoint.filename().string());
    std::string text = file.string();
    for (const PretrainColumn& column : pretrainer.columns) {
      text += StrCat(text == file.string() ? ": " : ", ", column.title, " ",
                     result->figures.at(column.key));
    }
    options_.say(text);
  }

  TaskOutcome Run(const PlannedRun& run) const {
    const fs::path path = directory_.Make(run.path).path();
    const RunRecord record = ReadRunRecord(path);
    if (record.state == RunState::kDamaged) throw UserError(record.message);
    if (record.state == RunState::kAbsent) return Play(Create(run, path));
    RequirePlanned(directory_, run, record, plan_.ResolvedSpecOf(run, registries_));
    if (record.state == RunState::kFinished) {
      options_.say(StrCat(path.string(), " has finished before"));
      return TaskOutcome::kDone;
    }
    if (!SameCode(record) && !options_.any_version) {
      throw UserError(StrCat(path.string(), " was made by ", record.code.back().Describe(),
                             "; --any-version continues all the same"));
    }
    return Play(RunDirectory::OpenForWriting(path));
  }

  RunDirectory Create(const PlannedRun& run, const fs::path& path) const {
    RunSpec spec = plan_.SpecOf(run);
    RunStart start;
    if (!run.branch.empty()) {
      const Artefact artefact = Artefact::Read(directory_.File(run.branch));
      StartFrom(artefact, plan_.methods[run.method].unaligned, registries_, spec);
      start.init = artefact.contents();
    }
    if (!spec.library.empty()) {
      const std::string file = directory_.File(LibraryPath(spec.library)).string();
      start.library = SegmentLibrary::ReadContents(file);
      if (ContentsHash(start.library) != spec.library) {
        throw UserError(StrCat(file, " is damaged; the sweep's command writes it again"));
      }
      StartWithSegments(start.library, file, registries_, spec);
    }
    try {
      return RunDirectory::Create(path, Resolve(spec, registries_), registries_, start);
    } catch (const LeaseError&) {
      throw;
    } catch (const UserError&) {
      if (!fs::exists(path / "run.json")) throw;
      throw LeaseError(StrCat(path.string(), " was begun by another process just now"));
    }
  }

  TaskOutcome Play(RunDirectory directory) const {
    RunOptions options;
    options.checkpoint_seconds = options_.checkpoint_seconds;
    options.stop = options_.stop;
    options.on_warning = options.on_notice = options_.say;
    const std::string path = directory.path().string();
    Runner runner(directory, registries_, options);
    options_.say(StrCat(path, ": from step ", runner.step()));
    const bool stopped = runner.Run() == RunOutcome::kInterrupted;
    options_.say(StrCat(path, stopped ? ": stopped" : ": finished", " at step ", runner.step()));
    return stopped ? TaskOutcome::kInterrupted : TaskOutcome::kDone;
  }

  const SweepDirectory& directory_;
  const SweepPlan& plan_;
  const Registries& registries_;
  const TaskOptions& options_;
};

}  // namespace

TaskOutcome RunTask(const SweepDirectory& directory, std::string_view path,
                    const Registries& registries, const TaskOptions& options) {
  const SweepPlan plan = directory.ReadPlan();
  const std::vector<SweepTask> tasks = TasksOf(plan);
  const auto chosen = std::ranges::find(tasks, path, &SweepTask::path);
  if (chosen == tasks.end()) {
    std::vector<std::string> known;
    for (const SweepTask& task : tasks) known.push_back(task.path);
    throw UserError(StrCat("the sweep in ", directory.path().string(), " has no task '", path, "'",
                           DidYouMean(path, known)));
  }
  try {
    const TaskOutcome outcome = TaskRunner(directory, plan, registries, options).Carry(*chosen);
    if (outcome == TaskOutcome::kDone) directory.ForgetFailure(path);
    return outcome;
  } catch (const LeaseError&) {
    throw;
  } catch (const std::exception& error) {
    directory.RecordFailure(path, error.what());
    throw;
  }
}

}  // namespace msrl
