#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"
#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/datasets/segment_sources.h"
#include "msrl/env/spec.h"
#include "msrl/files/atomic_file.h"
#include "msrl/memory/segment_library.h"
#include "msrl/report/statistics.h"
#include "msrl/run/start_from.h"
#include "msrl/run/stop_signal.h"

namespace msrl::cli {
namespace {

struct MakeArguments : OptionList {
  std::string& data = Required("--data", "Episodes to read (.h5, made by the command collect)");
  std::string& out = Required("--out", "Library to write (.safetensors)");
  Replace replace = ReplaceFlag();
  std::string& family = Text("--family", "Which environment, if there are several");
  double& best = Option("--best", "Only the best share of the episodes (1)", 1.0);
  std::int64_t& capacity = Option<std::int64_t>("--capacity", "Most segments to keep (5000)", 5000);
};

struct BuildArguments : MakeArguments {
  std::int64_t& length = Option<std::int64_t>("--length", "Steps of a segment (1)", 1);
  std::int64_t& stride = Option<std::int64_t>(
      "--stride", "Steps from the beginning of one to that of the next (1)", 1);
  std::string& policy =
      Text("--policy", "fifo | reservoir | by-value: what goes when it is full (fifo)", "fifo");
  std::uint64_t& seed = Option<std::uint64_t>("--seed", "Seed of the policy reservoir (0)", 0);
};

struct MineArguments : MakeArguments {
  std::vector<std::int64_t>& lengths = Option<std::vector<std::int64_t>>(
      "--length", "Steps of a segment, several if need be (4)", {4});
  std::int64_t& stride =
      Option<std::int64_t>("--stride", "Steps from one beginning to the next (1)", 1);
  double& radius = Option("--radius", "Frobenius distance per step of what is the same (1)", 1.0);
  std::int64_t& min_episodes = Option<std::int64_t>(
      "--min-episodes", "Episodes in which a segment is found at least (3)", 3);
  bool& json = Flag("--json", "All motifs, as JSON");
};

struct LookArguments : OptionList {
  std::string& place = Required("LIBRARY", "A library, or the directory of a run");
};

struct ShowArguments : LookArguments {
  bool& json = Flag("--json", "As JSON");
};

struct NearestArguments : LookArguments {
  std::int64_t& slot = Option<std::int64_t>("--slot", "Near the beginning of this segment", -1,
                                            CLI::NonNegativeNumber);
  std::string& context = Text("--context", "Near this context: \"x,y,..\"");
  int& k = Option("-k", "How many (8)", 8, CLI::Range(1, 10'000));
  bool& json = Flag("--json", "As JSON, with contexts and tails");
};

// The episodes of one environment that a library is made from, with their numbers in the file.
struct Source {
  std::vector<StoredEpisode> episodes;
  std::vector<std::int64_t> numbers;
  Lift::Ptr lift;
};

void RequireGoingOn() {
  if (!StopRequested()) return;
  fmt::print(stderr, "stopped; nothing was written\n");
  throw ExitRequest{kInterrupted};
}

Source ReadSource(const MakeArguments& arguments) {
  RequireWritable(arguments.out, arguments.replace());
  InstallStopSignals();
  EpisodeFile file = ReadEpisodes(arguments.data);
  Source source;
  source.lift = CompactLift();
  if (file.lift_id != source.lift->id().ToString()) {
    throw UserError(StrCat(arguments.data, ": geometry of lift ", file.lift_id, ", this is lift ",
                           source.lift->id().ToString()));
  }
  std::set<std::string> envs;
  for (const StoredEpisode& episode : file.episodes) envs.insert(episode.env);
  const std::vector<std::string> names(envs.begin(), envs.end());
  if (!arguments.family.empty() && !envs.contains(arguments.family)) {
    throw UserError(StrCat(arguments.data, ": no episode of '", arguments.family, "'",
                           DidYouMean(arguments.family, names)));
  }
  if (arguments.family.empty() && envs.size() > 1) {
    throw UserError(fmt::format("{}: episodes of {}; choose one with --family", arguments.data,
                                fmt::join(names, ", ")));
  }
  for (const std::size_t e : BestEpisodes(file.episodes, arguments.best)) {
    if (!arguments.family.empty() && file.episodes[e].env != arguments.family) continue;
    source.numbers.push_back(static_cast<std::int64_t>(e));
    source.episodes.push_back(std::move(file.episodes[e]));
  }
  return source;
}

SegmentLibrary EmptyLibrary(const MakeArguments& arguments, const Source& source,
                            LibraryPolicy policy, std::int64_t max_length) {
  SegmentLibraryConfig config = ConfigFor(source.episodes.front(), source.lift);
  config.capacity = arguments.capacity;
  config.policy = policy;
  config.family = source.episodes.front().env;
  config.max_length = max_length;
  return SegmentLibrary(std::move(config));
}

// An empty library is of no use to anyone: UserError that says why it is empty.
void Save(const SegmentLibrary& library, const MakeArguments& arguments, const std::string& why) {
  if (library.size() == 0) throw UserError(StrCat(why, "; nothing was written"));
  RequireGoingOn();
  RequireWritable(arguments.out, arguments.replace());  // it may have come meanwhile
  library.SaveFile(arguments.out);
}

void RunBuild(const BuildArguments& arguments, const Program& /*program*/) {
  const Source source = ReadSource(arguments);
  SegmentLibrary library =
      EmptyLibrary(arguments, source, ParseEnum<LibraryPolicy>("library policy", arguments.policy),
                   std::max<std::int64_t>(1, arguments.length));
  Rng rng(arguments.seed, "library");
  const CutOptions cut{.length = arguments.length, .stride = arguments.stride};
  for (std::size_t e = 0; e < source.episodes.size(); ++e) {
    RequireGoingOn();
    AddEpisode(source.episodes[e], source.numbers[e], cut, rng, library);
  }
  Save(library, arguments,
       StrCat("no episode of ", arguments.data, " has ", arguments.length, " steps"));
  fmt::print("{}: {} of {} segments of length {} from {} episodes of {}\n", arguments.out,
             library.size(), library.offered(), arguments.length, source.episodes.size(),
             library.config().family);
}

void RunMine(const MineArguments& arguments, const Program& /*program*/) {
  const Source source = ReadSource(arguments);
  std::vector<Motif> motifs = Mine(source.lift, source.episodes,
                                   {.lengths = arguments.lengths,
                                    .stride = arguments.stride,
                                    .radius = arguments.radius,
                                    .min_episodes = arguments.min_episodes});
  const std::size_t found = motifs.size();
  SegmentLibrary library =
      EmptyLibrary(arguments, source, LibraryPolicy::kFifo, std::ranges::max(arguments.lengths));
  motifs.resize(std::min(found, static_cast<std::size_t>(arguments.capacity)));
  Rng rng(0, "library");
  for (const Motif& motif : motifs) {
    RequireGoingOn();
    AddPiece(source.episodes[motif.episode], source.numbers[motif.episode], motif.interval, rng,
             library);
  }
  Save(library, arguments, "no segment is in as many episodes as --min-episodes says");
  if (arguments.json) {
    Json json = Json::array();
    for (const Motif& motif : motifs) {
      json.push_back({{"slot", json.size()},
                      {"episode", source.numbers[motif.episode]},
                      {"begin", motif.interval.begin},
                      {"length", motif.interval.length()},
                      {"episodes", motif.episodes},
                      {"occurrences", motif.occurrences},
                      {"spread", motif.spread}});
    }
    return PrintJson(json);
  }
  constexpr std::size_t kShown = 10;
  fmt::print("{:>6} {:>8} {:>6} {:>7} {:>9} {:>12} {:>9}\n", "slot", "episode", "begin", "length",
             "episodes", "occurrences", "spread");
  for (std::size_t i = 0; i < std::min(motifs.size(), kShown); ++i) {
    const Motif& motif = motifs[i];
    fmt::print("{:>6} {:>8} {:>6} {:>7} {:>9} {:>12} {:>9.3g}\n", i, source.numbers[motif.episode],
               motif.interval.begin, motif.interval.length(), motif.episodes, motif.occurrences,
               motif.spread);
  }
  fmt::print("{}: {} of {} motifs in {} episodes of {}\n", arguments.out, motifs.size(), found,
             source.episodes.size(), library.config().family);
}

constexpr std::size_t kMostReused = 5;

void RunShow(const ShowArguments& arguments, const Program& program) {
  const SegmentLibrary library = ReadSegments(arguments.place, program.warn);
  const SegmentLibraryConfig& config = library.config();
  std::map<std::int64_t, std::int64_t> lengths;
  std::map<std::string, std::int64_t> envs;
  std::set<std::int64_t> episodes;
  std::vector<double> rewards;
  std::vector<std::int64_t> reused;
  std::int64_t uses = 0;
  std::int64_t terminated = 0;
  for (std::int64_t slot = 0; slot < library.size(); ++slot) {
    ++lengths[library.length(slot)];
    ++envs[library.env(slot)];
    episodes.insert(library.episode(slot));
    rewards.push_back(library.reward_sum(slot));
    uses += library.uses(slot);
    terminated += library.terminated(slot) ? 1 : 0;
    if (library.uses(slot) > 0) reused.push_back(slot);
  }
  std::ranges::stable_sort(reused, std::greater<>(),
                           [&](std::int64_t slot) { return library.uses(slot); });
  if (reused.size() > kMostReused) reused.resize(kMostReused);
  const std::vector<std::pair<const char*, double>> quantiles{
      {"min", 0.0}, {"q25", 0.25}, {"median", 0.5}, {"q75", 0.75}, {"max", 1.0}};

  if (arguments.json) {
    Json json{{"segments", library.size()},
              {"offered", library.offered()},
              {"capacity", config.capacity},
              {"policy", EnumName(config.policy)},
              {"family", config.family},
              {"lift_id", config.lift->id().ToString()},
              {"context_size", config.context_size},
              {"action_size", config.action_size},
              {"observation_size", config.observation_size},
              {"discrete", config.discrete},
              {"lengths", Json::object()},
              {"envs", envs},
              {"episodes", episodes.size()},
              {"terminated", terminated},
              {"reward_sum", Json::object()},
              {"uses", uses},
              {"most_reused", Json::array()}};
    for (const auto& [length, count] : lengths) json["lengths"][std::to_string(length)] = count;
    for (const auto& [name, p] : quantiles) {
      if (!rewards.empty()) json["reward_sum"][name] = report::Quantile(rewards, p);
    }
    for (const std::int64_t slot : reused) {
      json["most_reused"].push_back({{"slot", slot}, {"uses", library.uses(slot)}});
    }
    return PrintJson(json);
  }
  fmt::print("{}: {} of {} segments offered, capacity {}, {}\n", arguments.place, library.size(),
             library.offered(), config.capacity, EnumName(config.policy));
  fmt::print("  family      {}\n  lift        {}\n", config.family, config.lift->Describe());
  for (const auto& [length, count] : lengths) fmt::print("  length {:<4} {}\n", length, count);
  for (const auto& [env, count] : envs) fmt::print("  from        {} {}\n", env, count);
  fmt::print("  episodes    {}\n  terminated  {}\n", episodes.size(), terminated);
  if (!rewards.empty()) {
    std::string line;
    for (const auto& [name, p] : quantiles) {
      line += fmt::format("  {} {:.4g}", name, report::Quantile(rewards, p));
    }
    fmt::print("  reward sum{}\n", line);
  }
  fmt::print("  uses        {}\n", uses);
  for (const std::int64_t slot : reused) {
    fmt::print("  slot {:<6} used {} times\n", slot, library.uses(slot));
  }
}

std::vector<float> ParseNumbers(std::string_view text) {
  std::vector<float> numbers;
  for (std::string_view part : SplitAt(text, ',')) {
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    part = part.substr(0, part.find_last_not_of(' ') + 1);
    const std::optional<float> number = ParseNumber<float>(part);
    if (!number || !std::isfinite(*number)) {
      throw UserError(StrCat("--context needs numbers like 0.5,1,-2, got '", text, "'"));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

void RunNearest(const NearestArguments& arguments, const Program& program) {
  if ((arguments.slot < 0) == arguments.context.empty()) {
    throw UserError("say what to look near: --slot N or --context \"x,y,..\"");
  }
  const SegmentLibrary library = ReadSegments(arguments.place, program.warn);
  std::vector<float> context;
  if (!arguments.context.empty()) {
    context = ParseNumbers(arguments.context);
    if (std::ssize(context) != library.config().context_size) {
      throw UserError(StrCat("--context has ", context.size(), " numbers, contexts of ",
                             arguments.place, " have ", library.config().context_size));
    }
  } else if (arguments.slot >= library.size()) {
    throw UserError(StrCat("slot ", arguments.slot, " is empty; ", arguments.place, " has ",
                           library.size(), " segments"));
  } else {
    const std::span<const float> own = library.context(arguments.slot);
    context.assign(own.begin(), own.end());
  }
  std::vector<Neighbour> found(static_cast<std::size_t>(arguments.k));
  found.resize(static_cast<std::size_t>(library.Query(context, {.k = arguments.k}, found)));
  if (arguments.json) {
    Json json = Json::array();
    for (const auto& [slot, distance] : found) {
      json.push_back({{"slot", slot},
                      {"distance", distance},
                      {"head_action", library.head_action(slot)},
                      {"context", library.context(slot)},
                      {"tail_geometry", library.tail_geometry(slot)},
                      {"tail_observation", library.tail_observation(slot)},
                      {"terminated", library.terminated(slot)},
                      {"reward_sum", library.reward_sum(slot)},
                      {"length", library.length(slot)},
                      {"episode", library.episode(slot)},
                      {"env", library.env(slot)},
                      {"uses", library.uses(slot)}});
    }
    return PrintJson(json);
  }
  fmt::print("{:>8} {:>10} {:>7} {:>8} {:>11} {:>6}  {}\n", "slot", "distance", "length", "episode",
             "reward sum", "uses", "head action");
  for (const auto& [slot, distance] : found) {
    std::string action;
    for (const float a : library.head_action(slot)) action += fmt::format(" {:.3g}", a);
    fmt::print("{:>8} {:>10.4g} {:>7} {:>8} {:>11.4g} {:>6} {}\n", slot, distance,
               library.length(slot), library.episode(slot), library.reward_sum(slot),
               library.uses(slot), action);
  }
}

}  // namespace

void AddLibrary(CLI::App& app, const Program& program) {
  CLI::App* library =
      app.add_subcommand("library", "Make segment libraries and look into them, or into a run's");
  library->require_subcommand(1);
  library->footer("What a library is and how it is searched: docs/segment-library.md.");
  AddCommand(*library, program, "build", "Cut episodes into segments", RunBuild);
  AddCommand(*library, program, "mine", "Find segments that recur across episodes", RunMine)
      ->get_option("--length")
      ->delimiter(',');
  AddCommand(*library, program, "show", "What is in a library", RunShow);
  AddCommand(*library, program, "nearest", "The segments that begin near a state", RunNearest);
}

}  // namespace msrl::cli
