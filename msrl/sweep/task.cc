#include "msrl/sweep/task.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/run/runner.h"
#include "msrl/run/start_from.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/pretrain.h"
#include "msrl/transfer/pretrain_table.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

// Thrown out of work that cannot be saved half-way.
struct Stopped {};

class TaskRunner {
 public:
  TaskRunner(const SweepDirectory& directory, const SweepPlan& plan, const TaskOptions& options)
      : directory_(directory), plan_(plan), options_(options) {}

  TaskOutcome Carry(const SweepTask& task) const {
    if (task.kind == SweepTask::Kind::kRun) return Run(plan_.runs[task.item]);
    const fs::path file = directory_.File(task.path);
    MakeFolder(file.parent_path());
    const Lease lease(file.parent_path() / ("." + file.filename().string() + ".lock"),
                      file.string() + " is being made by");
    if (fs::exists(file)) return TaskOutcome::kDone;
    try {
      if (task.kind == SweepTask::Kind::kData) {
        MakeData(task.path);
      } else {
        MakeBranch(plan_.branches[task.item], task.seed, file);
      }
    } catch (const Stopped&) {
      return TaskOutcome::kInterrupted;
    }
    return TaskOutcome::kDone;
  }

 private:
  void Say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }
  void GoOn() const {
    if (options_.stop && options_.stop()) throw Stopped{};
  }

  void MakeData(std::string_view path) const {
    const bool train = path == kTrainData;
    CollectOptions collect;
    collect.split = train ? "train" : "held-out";
    collect.episodes = train ? plan_.source->episodes : plan_.source->held_out_episodes;
    collect.seed = plan_.source->seed;
    collect.targets = plan_.source->targets;
    const EpisodeFile file = Collect(collect, [this](std::string_view, int, int) { GoOn(); });
    WriteEpisodes(directory_.File(path), file);
    Say(StrCat(directory_.File(path).string(), ": ", file.episodes.size(), " episodes, contents ",
               file.ContentHash()));
  }

  void MakeBranch(const PlannedBranch& branch, std::uint64_t seed, const fs::path& file) const {
    const PretrainConfig config = branch.Config();
    std::string train_hash;
    std::string validation_hash;
    const auto load = [&](const char* path, const PrefixSetOptions& prefixes, std::string& hash) {
      const EpisodeFile episodes = ReadEpisodes(directory_.File(path));
      hash = episodes.ContentHash();
      GoOn();
      return MakePrefixSet(episodes, prefixes);
    };
    const PrefixSet train = load(kTrainData, TrainingPrefixes(config), train_hash);
    const PrefixSet validation = load(kHeldOutData, ValidationPrefixes(config), validation_hash);
    PretrainRow row{"mixed", train.sources, {}};
    PretrainResult result =
        Pretrain(config, train, validation, row.sources, seed, [this](int) { GoOn(); });
    row.runs.push_back(result.metrics);
    result.branch.info().made["dataset"] = train_hash;
    // the branch last: where it is, its figures are too
    fs::path figures = file;
    WriteFileAtomically(figures.replace_extension(".json"),
                        ToJson(std::span(&row, 1), config, train_hash, validation_hash) + "\n");
    WriteFileAtomically(file, result.branch.Encode());
    Say(StrCat(file.string(), ": rank correlation ", result.metrics.rank_correlation,
               ", difference correlation ", result.metrics.difference_correlation));
  }

  TaskOutcome Run(const PlannedRun& run) const {
    const fs::path path = directory_.File(run.path);
    const RunRecord record = ReadRunRecord(path);
    if (record.state == RunState::kDamaged) throw UserError(record.message);
    if (record.state == RunState::kAbsent) return Play(Create(run, path));
    RequirePlanned(directory_, run, record, plan_.ResolvedSpecOf(run));
    if (record.state == RunState::kFinished) {
      Say(StrCat(path.string(), " has finished before"));
      return TaskOutcome::kDone;
    }
    if (!SameCode(record) && !options_.any_version) {
      throw UserError(StrCat(path.string(), " was begun by msrl ", record.version, " (",
                             record.commit, "); --any-version goes on all the same"));
    }
    return Play(RunDirectory::OpenForWriting(path));
  }

  RunDirectory Create(const PlannedRun& run, const fs::path& path) const {
    RunSpec spec = plan_.SpecOf(run);
    std::string init;
    if (!run.branch.empty()) {
      const Artefact artefact = Artefact::Read(directory_.File(run.branch));
      StartFrom(artefact, plan_.methods[run.method].unaligned, spec);
      init = artefact.contents();
    }
    try {
      return RunDirectory::Create(path, Resolve(spec), {}, init);
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
    options.on_warning = options.on_notice = [this](const std::string& text) { Say(text); };
    const std::string path = directory.path().string();
    Runner runner(directory, {}, options);
    Say(StrCat(path, ": from step ", runner.step()));
    const RunOutcome outcome = runner.Run();
    Say(StrCat(path, outcome == RunOutcome::kInterrupted ? ": stopped" : ": finished", " at step ",
               runner.step()));
    return outcome == RunOutcome::kInterrupted ? TaskOutcome::kInterrupted : TaskOutcome::kDone;
  }

  const SweepDirectory& directory_;
  const SweepPlan& plan_;
  const TaskOptions& options_;
};

}  // namespace

TaskOutcome RunTask(const SweepDirectory& directory, std::string_view path,
                    const TaskOptions& options) {
  const SweepPlan plan = directory.ReadPlan();
  const std::vector<SweepTask> tasks = TasksOf(plan);
  const SweepTask* chosen = nullptr;
  std::vector<std::string> known;
  for (const SweepTask& task : tasks) {
    if (task.path == path) chosen = &task;
    known.push_back(task.path);
  }
  if (chosen == nullptr) {
    throw UserError(StrCat("the sweep in ", directory.path().string(), " has no task '", path, "'",
                           DidYouMean(path, known)));
  }
  try {
    const TaskOutcome outcome = TaskRunner(directory, plan, options).Carry(*chosen);
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
