#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/progress.h"
#include "msrl/cli/work_folder.h"
#include "msrl/core/check.h"
#include "msrl/run/start_from.h"
#include "msrl/run/stop_signal.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/pretrain_table.h"

namespace msrl::cli {
namespace {

namespace fs = std::filesystem;

struct PretrainOptions : OptionList {
  std::string& kind = Text("--kind", "What is trained (the first of --list)");
  std::vector<std::string>& compare = Option<std::vector<std::string>>(
      "--compare",
      "Train several kinds on the same episodes and show their figures side by side: all that "
      "learn values, or these",
      {});
  bool& list = Flag("--list", "List the kinds, and the options of this one");
  std::string& data = Text("--data", "Training episodes (command collect)");
  std::string& held_out = Text("--held-out", "Validation episodes (collect --split held-out)");
  int& episodes = Option(
      "--episodes", "Without --data: episodes to collect (20000), and a quarter held out", 20000);
  std::uint64_t& data_seed =
      Option<std::uint64_t>("--data-seed", "Without --data: their seed (0)", 0);
  int& critic_steps = Option(
      "--critic-steps", "Without --data and with target=critic: training steps per family (20000)",
      CollectOptions{}.critic_steps, CLI::PositiveNumber);
  std::vector<std::string>& rows = Option<std::vector<std::string>>(
      "--rows", "Rows of the table: sources, mixed; all if not said", {});
  std::string& objective = Text("--objective", "paper | shape (default paper)");
  std::string& control =
      Text("--control", "shuffled | unaligned | last-state | observation-only | identity");
  std::vector<std::string>& settings =
      Repeated("--set", "key=value; with --compare for all kinds that know it, or KIND.key=value");
  int& updates = Option("--updates", "Gradient steps", -1, CLI::NonNegativeNumber);
  int& seeds = Option("--seeds", "Number of seeds (1)", 1);
  std::uint64_t& first_seed = Option<std::uint64_t>("--first-seed", "The first of them (0)", 0);
  std::string& out =
      Text("--out", "Write the artefact of the row 'mixed', or of the only row, here");
  std::string& work =
      Text("--work",
           "Folder for what is done so far (OUT.work; none without --out, of --compare "
           "RECORD.work)");
  double& checkpoint_seconds =
      Option("--checkpoint-seconds", "Between checkpoints of a training (60)", 60.0,
             CLI::NonNegativeNumber);
  std::string& record = Text("--record", "Write the rows as JSON to this file too");
  Replace replace = ReplaceFlag();
  bool& json = Flag("--json", "Rows as JSON");
};

std::vector<std::string> AllSettings(const PretrainOptions& options) {
  std::vector<std::string> settings;
  if (!options.objective.empty()) settings.push_back("objective=" + options.objective);
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  if (!options.control.empty()) settings.push_back("control=" + options.control);
  if (options.updates >= 0) settings.push_back(StrCat("updates=", options.updates));
  return settings;
}

// What is common to commands that train on source episodes: they go on where they were stopped if
// they have a folder to work in.
class SourceCommand {
 protected:
  SourceCommand(const PretrainOptions& options, const Registries& registries, fs::path work_path)
      : options_(options), registries_(registries), work_path_(std::move(work_path)) {
    if (options.seeds < 1 || options.seeds > 1000) throw UserError("--seeds must be 1 to 1000");
    if (options.episodes < 4) throw UserError("--episodes must be at least 4");
    if (options.data.empty() != options.held_out.empty()) {
      throw UserError("name both --data and --held-out, or neither");
    }
  }

  EpisodeFile Load(const std::string& path, Split split) const {
    if (!path.empty()) {
      EpisodeFile file = ReadEpisodes(path);
      const auto made = file.attributes.find("split");
      if (made == file.attributes.end() || made->second != EnumName(split)) {
        throw UserError(
            StrCat(path, ": its instances are not of the split '", EnumName(split), "'"));
      }
      return file;
    }
    CollectOptions collect;
    collect.split = split;
    collect.seed = options_.data_seed;
    collect.targets = targets_;
    collect.critic_steps = options_.critic_steps;
    collect.episodes =
        std::max(1, split == Split::kTrain ? options_.episodes : options_.episodes / 4);
    const fs::path kept = work_path_ / StrCat(collect.Fingerprint(), kWorkEpisodes);
    const bool keep = !work_path_.empty();
    if (keep && fs::exists(kept)) return ReadEpisodes(kept);
    collect.work = work_path_;
    ProgressLine line("collect");
    EpisodeFile file = Collect(collect, registries_.envs, registries_.agents,
                               [&](std::string_view stage, int done, int total) {
                                 if (keep && StopRequested()) work_->Stop();
                                 line.Begin(StrCat(EnumName(split), " ", stage));
                                 line.Show(done, total);
                               });
    if (keep) WriteEpisodes(kept, file);
    return file;
  }

  // Trains, or goes on with it.
  PretrainResult RunJob(const Pretrainer& ready, const PretrainJob& job, const std::string& name,
                        const std::function<void(double share)>& progress) const {
    PretrainingOptions how;
    if (!work_path_.empty()) {
      how.checkpoint = work_path_ / StrCat(name, "-", job.seed, kWorkTensors);
      how.stop = StopRequested;
    }
    how.checkpoint_seconds = options_.checkpoint_seconds;
    how.progress = [&](int done, int of) { progress(static_cast<double>(done) / std::max(1, of)); };
    std::optional<PretrainResult> result = RunPretraining(ready, job, how);
    if (!result) work_->Stop();
    return std::move(*result);
  }

  std::uint64_t Seed(int number) const {
    return options_.first_seed + static_cast<std::uint64_t>(number);
  }

  const PretrainOptions& options_;
  const Registries& registries_;
  const fs::path work_path_;  // empty: nothing is kept
  std::optional<WorkFolder> work_;
  std::vector<ValueTarget> targets_;  // that the episodes must have
};

// One kind, with a row for each source.
class PretrainCommand : SourceCommand {
 public:
  PretrainCommand(const PretrainOptions& options, const Registries& registries)
      : SourceCommand(
            options, registries,
            options.work.empty() && !options.out.empty() ? options.out + ".work" : options.work),
        pretrainer_(registries.pretrainers.FindOrFirst(options.kind)),
        settings_(AllSettings(options)) {
    targets_ = pretrainer_.targets(settings_);
    if (!options.out.empty()) pretrainer_.announce(settings_);
  }

  void Run() {
    RequireWritableFiles();
    work_.emplace(work_path_);
    const EpisodeFile train = Load(options_.data, Split::kTrain);
    const EpisodeFile held_out = Load(options_.held_out, Split::kHeldOut);
    const std::string train_hash = train.ContentHash();
    const std::string held_out_hash = held_out.ContentHash();
    std::vector<PretrainRow> rows = ChooseRows(SourcesOf(train));
    const auto ready = pretrainer_.prepare(settings_, train, held_out);
    const std::vector<std::string> written = Train(*ready, train_hash, held_out_hash, rows);
    const std::string json = ToJson(rows, pretrainer_, settings_, train_hash, held_out_hash) + "\n";
    if (!options_.record.empty()) WriteResult(options_.record, json, options_.replace());
    Print(rows, *ready, json, train_hash, held_out_hash, written);
    // last: killed before that, the same command tells its figures again
    std::fflush(stdout);
    work_->Remove();
  }

 private:
  void Print(const std::vector<PretrainRow>& rows, const Pretrainer& ready, const std::string& json,
             const std::string& train_hash, const std::string& held_out_hash,
             const std::vector<std::string>& written) const {
    if (options_.json) return fmt::print("{}", json);
    const auto [train_count, held_out_count] = ready.examples();
    fmt::print("Source pretraining of a {}: {}, seeds {} to {}\n", pretrainer_.id, Summary(),
               options_.first_seed,
               options_.first_seed + static_cast<std::uint64_t>(options_.seeds) - 1);
    fmt::print("train {} ({} prefixes), held-out {} ({} prefixes)\n\n", train_hash, train_count,
               held_out_hash, held_out_count);
    PrintRows(rows);
    for (const std::string& path : written) fmt::print("{}: {}\n", pretrainer_.id, path);
  }

  std::vector<PretrainRow> ChooseRows(const std::vector<std::string>& sources) const {
    std::vector<PretrainRow> rows;
    std::vector<std::string> known = sources;
    known.emplace_back("mixed");
    for (const std::string& name : options_.rows) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        throw UserError(StrCat("row '", name, "' is neither 'mixed' nor a source in the data",
                               DidYouMean(name, known)));
      }
    }
    const std::vector<std::string>& wanted = options_.rows;
    const bool all = wanted.empty();
    for (const std::string& name : known) {
      if (!all && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
      const bool mixed = name == "mixed";
      if (mixed && all && sources.size() < 2) continue;
      rows.push_back({name, mixed ? sources : std::vector<std::string>{name}, {}});
    }
    return rows;
  }

  // Fills in the rows; returns the files that it wrote.
  std::vector<std::string> Train(const Pretrainer& ready, const std::string& train_hash,
                                 const std::string& held_out_hash,
                                 std::vector<PretrainRow>& rows) const {
    // the artefact is that of all sources, or of the only row
    const std::string saved = rows.size() == 1 ? rows[0].name : "mixed";
    ProgressLine line("pretrain");
    const int total = static_cast<int>(rows.size()) * options_.seeds;
    int before = 0;
    std::vector<std::string> written;
    for (PretrainRow& row : rows) {
      for (int s = 0; s < options_.seeds; ++s, ++before) {
        const std::uint64_t seed = Seed(s);
        const PretrainJob job = pretrainer_.JobOf(settings_, row.sources, train_hash, held_out_hash,
                                                  seed, ProgramTexts());
        PretrainResult result = RunJob(ready, job, row.name, [&](double share) {
          line.Show(100 * before + static_cast<int>(100.0 * share), 100 * total);
        });
        row.runs.push_back(std::move(result.figures));
        if (options_.out.empty() || row.name != saved) continue;
        written.push_back(OutPath(seed));
        WriteResult(written.back(), result.artefact, options_.replace());
      }
    }
    line.Show(100 * total, 100 * total);
    return written;
  }

  std::string OutPath(std::uint64_t seed) const {
    if (options_.seeds == 1) return options_.out;
    fs::path path(options_.out);
    path.replace_filename(
        fmt::format("{}-{}{}", path.stem().string(), seed, path.extension().string()));
    return path.string();
  }

  void RequireWritableFiles() const {
    const auto require = [this](const std::string& path) {
      RequireResultWritable(path, work_path_, options_.replace());
    };
    if (!options_.record.empty()) require(options_.record);
    for (int s = 0; s < options_.seeds && !options_.out.empty(); ++s) {
      require(OutPath(Seed(s)));
    }
  }

  // What was asked for, as far as this kind knows it.
  std::string Summary() const {
    std::vector<std::string> parts;
    for (const ConfigField& field : pretrainer_.options(settings_)) {
      for (const char* key : {"objective", "target", "lift", "updates", "control"}) {
        if (field.key == key) parts.push_back(fmt::format("{} {}", key, field.Text()));
      }
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void PrintRows(const std::vector<PretrainRow>& rows) const {
    const auto width = [this](const PretrainColumn& column) {
      return pretrainer_.paper("mixed", column.key) ? 22 : 14;
    };
    fmt::print("{:<16}", "source");
    for (const PretrainColumn& column : pretrainer_.columns) {
      fmt::print("  {:<{}}", column.title, width(column));
    }
    fmt::print("\n");
    for (const PretrainRow& row : rows) {
      fmt::print("{:<16}", row.name);
      for (const PretrainColumn& column : pretrainer_.columns) {
        const MeanStd value = row.Of(column.key);
        std::string cell = fmt::format("{:.3f}", value.mean);
        if (options_.seeds > 1) cell += fmt::format(" ± {:.3f}", value.std);
        if (const auto paper = pretrainer_.paper(row.name, column.key)) {
          cell += fmt::format(" ({:.3f})", paper->mean);
        }
        fmt::print("  {:<{}}", cell, width(column));
      }
      fmt::print("\n");
    }
    fmt::print(
        "\n{}n held-out instances; in brackets the paper's. Errors are in units of\nthe variance "
        "of the training targets.\n",
        options_.seeds > 1 ? "Mean ± std over seeds, o" : "O");
  }

  const PretrainerEntry& pretrainer_;
  const std::vector<std::string> settings_;
};

// Several kinds on all sources, side by side.
class CompareCommand : SourceCommand {
 public:
  CompareCommand(const PretrainOptions& options, const Registries& registries)
      : SourceCommand(options, registries,
                      options.work.empty() && !options.record.empty() ? options.record + ".work"
                                                                      : options.work) {
    for (const auto& [name, used] :
         std::initializer_list<std::pair<const char*, bool>>{{"--kind", !options.kind.empty()},
                                                             {"--rows", !options.rows.empty()},
                                                             {"--out", !options.out.empty()}}) {
      if (used) throw UserError(StrCat("--compare has no ", name));
    }
    ChooseKinds();
    ChooseSettings();
    for (const ComparedKind& kind : kinds_) {
      for (const ValueTarget target : kind.pretrainer->targets(kind.settings)) {
        if (std::ranges::find(targets_, target) == targets_.end()) targets_.push_back(target);
      }
    }
  }

  void Run() {
    if (!options_.record.empty()) {
      RequireResultWritable(options_.record, work_path_, options_.replace());
    }
    work_.emplace(work_path_);
    const EpisodeFile train = Load(options_.data, Split::kTrain);
    const EpisodeFile held_out = Load(options_.held_out, Split::kHeldOut);
    const std::string train_hash = train.ContentHash();
    const std::string held_out_hash = held_out.ContentHash();
    const std::vector<std::string> sources = SourcesOf(train);
    ProgressLine line("pretrain");
    for (ComparedKind& kind : kinds_) {
      const PretrainerEntry& pretrainer = *kind.pretrainer;
      line.Begin(pretrainer.id);
      const auto ready = pretrainer.prepare(kind.settings, train, held_out);
      for (int s = 0; s < options_.seeds; ++s) {
        const PretrainJob job = pretrainer.JobOf(kind.settings, sources, train_hash, held_out_hash,
                                                 Seed(s), ProgramTexts());
        const PretrainResult result = RunJob(*ready, job, pretrainer.id, [&](double share) {
          line.Show(100 * s + static_cast<int>(100.0 * share), 100 * options_.seeds);
        });
        kind.parameters = Artefact::Parse(result.artefact, pretrainer.id).parameter_count();
        kind.runs.push_back(result.figures);
      }
    }
    const std::string json = ToJson(kinds_, train_hash, held_out_hash) + "\n";
    if (!options_.record.empty()) WriteResult(options_.record, json, options_.replace());
    if (options_.json) {
      fmt::print("{}", json);
    } else {
      fmt::print("Seeds {} to {}; train {}, held-out {}\n\n", Seed(0), Seed(options_.seeds - 1),
                 train_hash, held_out_hash);
      PrintTable();
    }
    std::fflush(stdout);
    work_->Remove();
  }

 private:
  void ChooseKinds() {
    const bool all = options_.compare == std::vector<std::string>{"all"};
    for (const PretrainerEntry& entry : registries_.pretrainers) {
      if (all && Knows(entry, "target")) kinds_.push_back({&entry, {}, 0, {}});
    }
    for (const std::string& name : options_.compare) {
      if (std::ranges::count(options_.compare, name) > 1) {
        throw UserError(StrCat("--compare names '", name, "' twice"));
      }
      if (!all) kinds_.push_back({&registries_.pretrainers.Find(name), {}, 0, {}});
    }
  }

  static bool Knows(const PretrainerEntry& entry, std::string_view key) {
    return std::ranges::any_of(entry.options({}),
                               [key](const ConfigField& field) { return field.key == key; });
  }

  void ChooseSettings() {
    for (const std::string& setting : AllSettings(options_)) {
      const std::string key = setting.substr(0, setting.find('='));
      bool known = false;
      for (ComparedKind& kind : kinds_) {
        const std::string own = kind.pretrainer->id + ".";
        if (setting.starts_with(own)) {
          kind.settings.push_back(setting.substr(own.size()));
        } else if (Knows(*kind.pretrainer, key)) {
          kind.settings.push_back(setting);
        } else {
          continue;
        }
        known = true;
      }
      if (!known) throw UserError(StrCat("no kind that is compared has the option '", key, "'"));
    }
    for (const ComparedKind& kind : kinds_) kind.pretrainer->announce(kind.settings);
  }

  void PrintTable() const {
    const auto width = [this](const ComparedKind& kind) {
      return std::max<std::size_t>(kind.pretrainer->id.size(), options_.seeds > 1 ? 15 : 7);
    };
    const auto line = [&](const std::string& title, const auto& cell) {
      fmt::print("{:<22}", title);
      for (const ComparedKind& kind : kinds_) fmt::print("  {:>{}}", cell(kind), width(kind));
      fmt::print("\n");
    };
    line("", [](const ComparedKind& kind) { return kind.pretrainer->id; });
    line("numbers", [](const ComparedKind& kind) { return std::to_string(kind.parameters); });
    for (const PretrainColumn& column : ColumnsOf(kinds_)) {
      line(column.title, [&](const ComparedKind& kind) {
        const auto value = FigureOf(kind, column.key);
        if (!value) return std::string("-");
        return options_.seeds > 1 ? fmt::format("{:.3f} ± {:.3f}", value->mean, value->std)
                                  : fmt::format("{:.3f}", value->mean);
      });
    }
    fmt::print("\nOn held-out instances of all sources; -: the method has no such figure.\n");
  }

  std::vector<ComparedKind> kinds_;
};

void PrintOptions(const PretrainOptions& options, const PretrainerRegistry& pretrainers) {
  for (const PretrainerEntry& entry : pretrainers) {
    fmt::print("{:<24} {}\n", entry.id, entry.description);
  }
  const PretrainerEntry& pretrainer = pretrainers.FindOrFirst(options.kind);
  fmt::print("\nOptions of {} (--set key=value):\n", pretrainer.id);
  for (const ConfigField& field : pretrainer.options(AllSettings(options))) {
    fmt::print("  {:<20} {} ({})\n", field.key, field.meaning, field.value);
  }
}

void RunPretrain(const PretrainOptions& options, const Program& program) {
  if (options.list) return PrintOptions(options, program.registries.pretrainers);
  if (!options.compare.empty()) return CompareCommand(options, program.registries).Run();
  PretrainCommand(options, program.registries).Run();
}

}  // namespace

void AddPretrain(CLI::App& app, const Program& program) {
  CLI::App* command =
      AddCommand(app, program, "pretrain",
                 "Train on source episodes what agents can start from (train --init)", RunPretrain);
  command->get_option("--rows")->delimiter(',');
  command->get_option("--compare")->delimiter(',');
  command->footer(
      "Without --data and --held-out, episodes are collected first. A command with --out or "
      "--work\n"
      "that was stopped or killed continues where it was, and ends with the same files.\n"
      "--list shows the kinds and all options of the one that --kind names.");
}

}  // namespace msrl::cli
