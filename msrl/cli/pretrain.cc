#include "msrl/cli/pretrain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "msrl/cli/progress.h"
#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/files/atomic_file.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/pretrain.h"
#include "msrl/transfer/pretrain_table.h"

namespace msrl::app {
namespace {

struct PretrainOptions {
  std::string data;
  std::string held_out;
  int episodes = 4000;
  std::uint64_t data_seed = 0;
  int critic_steps = CollectOptions{}.critic_steps;
  std::vector<std::string> rows;
  std::string objective = "paper";
  std::vector<std::string> settings;
  std::string control;
  int updates = -1;
  int seeds = 1;
  std::uint64_t first_seed = 0;
  std::string out;
  std::string record;
  bool json = false;
};

EpisodeFile Load(const std::string& path, const char* split, const PretrainOptions& options,
                 const std::string& target) {
  if (!path.empty()) {
    EpisodeFile file = ReadEpisodes(path);
    const auto made = file.attributes.find("split");
    if (made == file.attributes.end() || made->second != split) {
      throw UserError(StrCat(path, ": its instances are not of the split '", split, "'"));
    }
    return file;
  }
  CollectOptions collect;
  collect.split = split;
  collect.seed = options.data_seed;
  collect.targets = {target};
  collect.critic_steps = options.critic_steps;
  collect.episodes =
      std::max(1, std::string_view(split) == "train" ? options.episodes : options.episodes / 4);
  ProgressLine line("collect");
  return Collect(collect, [&](std::string_view stage, int done, int total) {
    line.Begin(StrCat(split, " ", stage));
    line.Show(done, total);
  });
}

std::vector<PretrainRow> ChooseRows(const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& sources) {
  std::vector<PretrainRow> rows;
  std::vector<std::string> known = sources;
  known.emplace_back("mixed");
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UserError(StrCat("row '", name, "' is neither 'mixed' nor a source in the data",
                             DidYouMean(name, known)));
    }
  }
  const bool all = wanted.empty();
  for (const std::string& name : known) {
    if (!all && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    const bool mixed = name == "mixed";
    if (mixed && all && sources.size() < 2) continue;
    rows.push_back({name, mixed ? sources : std::vector<std::string>{name}, {}});
  }
  return rows;
}

void PrintRows(const std::vector<PretrainRow>& rows) {
  fmt::print("{:<16}", "source");
  for (const PretrainColumn& column : PretrainColumns()) {
    fmt::print("  {:<{}}", column.title, column.paper != nullptr ? 22 : 14);
  }
  fmt::print("\n");
  for (const PretrainRow& row : rows) {
    const auto paper = PaperRow(row.name);
    fmt::print("{:<16}", row.name);
    for (const PretrainColumn& column : PretrainColumns()) {
      const MeanStd value = row.Of(column.field);
      std::string cell = fmt::format("{:.3f} ± {:.3f}", value.mean, value.std);
      if (column.paper != nullptr && paper) {
        cell += fmt::format(" ({:.3f})", ((*paper).*(column.paper)).mean);
      }
      fmt::print("  {:<{}}", cell, column.paper != nullptr ? 22 : 14);
    }
    fmt::print("\n");
  }
  fmt::print(
      "\nMean ± std over seeds, on held-out instances; in brackets the paper's. Errors are in "
      "units "
      "of\nthe variance of the training targets.\n");
}

std::string BranchPath(const std::string& out, std::uint64_t seed, int seeds) {
  if (seeds == 1) return out;
  const std::filesystem::path path(out);
  return (path.parent_path() /
          fmt::format("{}-{}{}", path.stem().string(), seed, path.extension().string()))
      .string();
}

void RunPretrain(const PretrainOptions& options) {
  PretrainConfig config = PretrainConfig::For(options.objective);
  for (const std::string& setting : options.settings) SetField(config, setting);
  if (!options.control.empty()) SetField(config, "control", options.control);
  if (options.updates >= 0) config.updates = options.updates;
  RequireValid(config);
  if (options.seeds < 1 || options.seeds > 1000) throw UserError("--seeds must be 1 to 1000");
  if (options.episodes < 4) throw UserError("--episodes must be at least 4");
  if (options.data.empty() != options.held_out.empty()) {
    throw UserError("name both --data and --held-out, or neither");
  }
  if (!options.out.empty() && config.oracle != "none") {
    throw UserError("a network with oracle inputs is no branch; leave out --out");
  }

  std::string train_hash;
  std::string validation_hash;
  const auto load = [&](const std::string& path, const char* split,
                        const PrefixSetOptions& prefixes, std::string& hash) {
    const EpisodeFile file = Load(path, split, options, config.target);
    hash = file.ContentHash();
    return MakePrefixSet(file, prefixes);
  };
  const PrefixSet train = load(options.data, "train", TrainingPrefixes(config), train_hash);
  const PrefixSet validation =
      load(options.held_out, "held-out", ValidationPrefixes(config), validation_hash);
  std::vector<PretrainRow> rows = ChooseRows(options.rows, train.sources);
  // the branch is that of all sources, or of the only row
  const std::string saved = rows.size() == 1 ? rows[0].name : "mixed";

  ProgressLine line("pretrain");
  const int total = static_cast<int>(rows.size()) * options.seeds;
  int done = 0;
  std::vector<std::string> written;
  for (PretrainRow& row : rows) {
    for (int s = 0; s < options.seeds; ++s, ++done) {
      const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(s);
      PretrainResult result =
          Pretrain(config, train, validation, row.sources, seed, [&](int updates) {
            line.Show(100 * done + static_cast<int>(100.0 * updates / config.updates), 100 * total);
          });
      row.runs.push_back(result.metrics);
      if (options.out.empty() || row.name != saved) continue;
      result.branch.info().made["dataset"] = train_hash;
      written.push_back(BranchPath(options.out, seed, options.seeds));
      WriteFileAtomically(written.back(), result.branch.Encode());
    }
  }
  line.Show(100 * total, 100 * total);
  const std::string json = ToJson(rows, config, train_hash, validation_hash) + "\n";
  if (!options.record.empty()) WriteFileAtomically(options.record, json);
  if (options.json) {
    fmt::print("{}", json);
    return;
  }
  fmt::print(
      "Source pretraining: objective {}, target {}, lift {}, {} updates, seeds {} to {}, control "
      "{}\n",
      config.objective, config.target, config.lift, config.updates, options.first_seed,
      options.first_seed + static_cast<std::uint64_t>(options.seeds) - 1, config.control);
  fmt::print("train {} ({} prefixes), held-out {} ({} prefixes)\n\n", train_hash,
             train.value.size(), validation_hash, validation.value.size());
  PrintRows(rows);
  for (const std::string& path : written) fmt::print("branch: {}\n", path);
}

}  // namespace

void AddPretrain(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "pretrain", "Train the matrix-value branch on source episodes, beside the paper's table");
  std::string footer =
      "Without --data and --held-out, episodes are collected first. Settings (--set key=value):\n";
  const std::vector<ConfigField> shape = ListFields(PretrainConfig::For("shape"));
  const std::vector<ConfigField> paper = ListFields(PretrainConfig::For("paper"));
  for (std::size_t i = 0; i < paper.size(); ++i) {
    const bool same = paper[i].value == shape[i].value;
    footer += fmt::format("  {:<20} {} ({}{})\n", paper[i].key, paper[i].meaning, paper[i].value,
                          same ? "" : "; shape: " + shape[i].value);
  }
  command->footer(footer);
  const auto options = std::make_shared<PretrainOptions>();
  command->add_option("--data", options->data, "Training episodes (msrl collect)");
  command->add_option("--held-out", options->held_out,
                      "Validation episodes (msrl collect --split held-out)");
  command->add_option("--episodes", options->episodes,
                      "Without --data: episodes to collect (4000), and a quarter held out");
  command->add_option("--data-seed", options->data_seed, "Without --data: their seed (0)");
  command->add_option("--critic-steps", options->critic_steps,
                      "Without --data and with target=critic: training steps per family (20000)");
  command->add_option("--rows", options->rows, "Rows of the table: sources, mixed; all if not said")
      ->delimiter(',');
  command->add_option("--objective", options->objective, "paper | shape (default paper)");
  command->add_option("--control", options->control, "shuffled | unaligned | observation-only");
  command->add_option("--set", options->settings, "key=value")->allow_extra_args(false);
  command->add_option("--updates", options->updates, "Gradient steps");
  command->add_option("--seeds", options->seeds, "Number of seeds (1)");
  command->add_option("--first-seed", options->first_seed, "The first of them (0)");
  command->add_option("--out", options->out,
                      "Write the branch of the row 'mixed', or of the only row, here");
  command->add_option("--record", options->record, "Write the rows as JSON to this file too");
  command->add_flag("--json", options->json, "Rows as JSON");
  command->callback([options] { RunPretrain(*options); });
}

}  // namespace msrl::app
