#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/datasets/replay_episodes.h"
#include "msrl/env/instance.h"
#include "msrl/run/runner.h"
#include "msrl/transfer/foreign_dataset.h"

namespace msrl::cli {
namespace {

struct ImportOptions : OptionList {
  std::string& data =
      Required("FILE", "HDF5 of Minari or D4RL, or the folder of a dataset of Minari");
  std::string& map = Required("--map", "What its numbers mean (.toml, docs/datasets.md)");
  std::string& out = Required("--out", "Episodes to write (.h5)");
  std::string& held_out = Text("--held-out", "Every fifth episode goes here instead (.h5)");
  Replace replace = ReplaceFlag();
};

constexpr std::size_t kHeldOutEvery = 5;

void WriteWithValues(const std::string& path, EpisodeFile file, Split split,
                     const std::string& origin) {
  file.attributes = {{"imported", origin}, {"split", std::string(EnumName(split))}};
  AddValues(file);
  WriteEpisodes(path, file);
  fmt::print("{}: {} episodes, {} steps of {}, contents {}\n", path, file.episodes.size(),
             file.TotalSteps(), file.episodes.front().env, file.ContentHash());
}

void RunImport(const ImportOptions& options, const Program& /*program*/) {
  for (const std::string& path : {options.out, options.held_out}) {
    if (path.empty()) continue;
    if (!path.ends_with(".h5") && !path.ends_with(".hdf5")) {
      throw UserError(StrCat("episodes must be named .h5 or .hdf5, got '", path, "'"));
    }
    RequireWritable(path, options.replace());
  }
  if (std::filesystem::weakly_canonical(options.out) ==
      std::filesystem::weakly_canonical(options.held_out)) {
    throw UserError("--out and --held-out are the same file");
  }
  EpisodeFile all = ReadForeignEpisodes(options.data, ReadDatasetMap(options.map));
  if (!options.held_out.empty() && all.episodes.size() < 2) {
    throw UserError(StrCat(options.data, " has one episode: there is none to hold out"));
  }
  EpisodeFile train{.lift_id = all.lift_id,
                    .action_code_size = all.action_code_size,
                    .gamma = all.gamma,
                    .attributes = {},
                    .episodes = {}};
  EpisodeFile held_out = train;
  for (std::size_t k = 0; k < all.episodes.size(); ++k) {
    // the second of every five, so that there is one of two already
    const bool holds = !options.held_out.empty() && k % kHeldOutEvery == 1;
    (holds ? held_out : train).episodes.push_back(std::move(all.episodes[k]));
  }
  const std::string origin = std::filesystem::path(options.data).filename().string();
  WriteWithValues(options.out, std::move(train), Split::kTrain, origin);
  if (options.held_out.empty()) return;
  WriteWithValues(options.held_out, std::move(held_out), Split::kHeldOut, origin);
}

struct ExportDatasetOptions : OptionList {
  std::string& data =
      Required("FROM", "Episodes (.h5, made by the command collect), or the directory of a run");
  std::string& root =
      Required("--minari", "Folder of all datasets, as MINARI_DATASETS_PATH names it");
  std::string& id = Required("--id", "Which one this becomes: NAMESPACE/NAME-v0");
  Replace replace = ReplaceFlag();
};

// As the environment says if it is known here, else by what was done.
int CountActions(const EpisodeFile& file, const EnvRegistry& envs) {
  const StoredEpisode& first = file.episodes.front();
  if (!first.discrete) return 0;
  float largest = 0.0F;
  for (const StoredEpisode& episode : file.episodes) {
    largest = std::max(largest, episode.actions.maxCoeff());
  }
  const int used = static_cast<int>(std::lround(largest)) + 1;
  return envs.Has(first.env) ? std::max(used, envs.Make(first.env, {})->spec().action.size) : used;
}

// What a run's agent keeps of its training.
EpisodeFile ReplayOf(const std::string& place, const Program& program) {
  const RunDirectory directory = RunDirectory::OpenForReading(place);
  const RunSpec& spec = directory.spec();
  const EnvSpec env = program.registries.envs.Make(spec.env, spec.env_settings)->spec();
  const std::unique_ptr<Agent> agent = LoadAgent(directory, program.registries, program.warn);
  const KeptExperience kept = agent->Kept();
  if (kept.replay == nullptr) {
    throw UserError(StrCat("agent '", spec.agent, "' keeps no replay: there is nothing to export"));
  }
  ReplayEpisodes replay =
      EpisodesOf(*kept.replay, {.env = spec.env,
                                .seed = spec.seed,
                                .reward_scale = env.reward_scale,
                                .discrete = env.action.kind == ActionKind::kDiscrete,
                                .first = kept.first,
                                .observation_size = env.observation_size});
  if (replay.episodes.empty()) {
    throw UserError(StrCat("the replay of ", place, " has no episode from its first step on"));
  }
  if (replay.forgotten_steps > 0) {
    program.warn(StrCat("the oldest episode is left out: the replay has forgotten its beginning, ",
                        replay.forgotten_steps, " steps of it are left"));
  }
  if (replay.last_is_open) {
    program.warn("the newest episode was under way; its last step counts as truncated");
  }
  EpisodeFile file;
  file.attributes = {{"agent", spec.agent}, {"seed", std::to_string(spec.seed)}};
  file.gamma = env.gamma;
  file.action_code_size = kActionCodeSize;
  file.lift_id = CompactLift(agent->lift_kind())->id().ToString();
  file.episodes = std::move(replay.episodes);
  return file;
}

void RunExportDataset(const ExportDatasetOptions& options, const Program& program) {
  const bool is_run = std::filesystem::is_directory(options.data);
  const EpisodeFile file = is_run ? ReplayOf(options.data, program) : ReadEpisodes(options.data);
  MinariDataset dataset{options.id, CountActions(file, program.registries.envs)};
  if (is_run) dataset.algorithm = StrCat("msrl ", file.attributes.at("agent"));
  const std::filesystem::path folder = WriteMinari(options.root, dataset, file, options.replace());
  fmt::print("{}: {} episodes, {} steps of {}\n", folder.string(), file.episodes.size(),
             file.TotalSteps(), file.episodes.front().env);
  fmt::print("  MINARI_DATASETS_PATH={} and minari.load_dataset(\"{}\") open it\n",
             Quoted(options.root), options.id);
}

}  // namespace

void AddDataset(CLI::App& app, const Program& program) {
  CLI::App* command = app.add_subcommand("dataset", "Exchange episodes with Minari and D4RL");
  command->require_subcommand(1);
  AddCommand(*command, program, "import",
             "Make episodes of somebody else's dataset, for describe, library and pretrain",
             RunImport);
  AddCommand(*command, program, "export",
             "Write episodes, or the replay of a run, as a dataset of Minari", RunExportDataset);
}

}  // namespace msrl::cli
