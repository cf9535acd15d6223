#include "msrl/transfer/collect.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>

#include "msrl/cli/commands.h"
#include "msrl/cli/progress.h"
#include "msrl/cli/work_folder.h"
#include "msrl/core/check.h"
#include "msrl/run/stop_signal.h"

namespace msrl::cli {
namespace {

struct CollectArguments : OptionList {
  std::string& out = Required("--out", "File to write (.h5)");
  Replace replace = ReplaceFlag();
  CollectOptions& options = Fields(CollectOptions());
};

// What is kept of a collection with other options is not thrown away for this one.
void RequireSameCollection(const std::filesystem::path& work, const CollectOptions& options) {
  const std::string own = options.Fingerprint();
  for (const auto& entry : std::filesystem::directory_iterator(work)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kWorkEpisodes) || name.starts_with(own)) continue;
    throw UserError(StrCat(work.string(),
                           " holds what a collection with other options has done so far: continue "
                           "that one, or remove it to begin anew"));
  }
}

void RunCollect(CollectArguments& arguments, const Program& program) {
  if (!arguments.out.ends_with(".h5") && !arguments.out.ends_with(".hdf5")) {
    throw UserError(StrCat("--out must be named .h5 or .hdf5, got '", arguments.out, "'"));
  }
  const std::string work_path = arguments.out + ".work";
  RequireResultWritable(arguments.out, work_path, arguments.replace());
  const WorkFolder work(work_path);
  RequireSameCollection(work_path, arguments.options);
  arguments.options.work = work.path();
  ProgressLine line("collect");
  const EpisodeFile file =
      Collect(arguments.options, program.registries.envs, program.registries.agents,
              [&](std::string_view stage, int done, int total) {
                if (StopRequested()) work.Stop();
                line.Begin(StrCat("collect ", stage));
                line.Show(done, total);
              });
  WriteResult(arguments.out, EncodeEpisodes(file), arguments.replace());
  work.Remove();
  std::map<std::string, std::pair<int, std::int64_t>> counts;
  for (const StoredEpisode& episode : file.episodes) {
    counts[episode.env].first += 1;
    counts[episode.env].second += episode.horizon();
  }
  for (const auto& [env, count] : counts) {
    fmt::print("{:<16} {:>7} episodes {:>9} steps\n", env, count.first, count.second);
  }
  fmt::print("{}: split {}, seed {}, contents {}\n", arguments.out,
             EnumName(arguments.options.split), arguments.options.seed, file.ContentHash());
}

}  // namespace

void AddCollect(CLI::App& app, const Program& program) {
  CLI::App* command =
      AddCommand(app, program, "collect",
                 "Play the source families and write episodes with values to a file", RunCollect);
  command->footer(
      "The file is HDF5 in the layout of Minari datasets (docs/file-formats.md). Values are in\n"
      "units of reward / reward_scale, discounted by 0.99:\n"
      "  mc      the rest of the episode; expert  the value of the scripted expert;\n"
      "  fitted  fitted evaluation of the behaviour; regression  the V(o, Z) behind it;\n"
      "  critic  V(o) of an agent trained for it\n"
      "A command that was stopped or killed continues with what is in OUT.work.");
}

}  // namespace msrl::cli
