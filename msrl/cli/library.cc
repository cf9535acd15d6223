#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/datasets/segment_sources.h"
#include "msrl/env/spec.h"
#include "msrl/memory/segment_library.h"
#include "msrl/run/run_directory.h"

namespace msrl::cli {
namespace {

struct MakeArguments {
  std::string data;
  std::string out;
  std::int64_t capacity = 5000;
  std::string policy = "fifo";
  std::string family;
  double best = 1.0;
  std::uint64_t seed = 0;
  CutOptions cut;
  MineOptions mine;
  bool json = false;
};

struct LookArguments {
  std::string place;
  std::int64_t slot = -1;
  std::string context;
  int k = 8;
  bool json = false;
};

// The episodes of one environment that a library is made from, with their numbers in the file.
struct Source {
  std::vector<StoredEpisode> episodes;
  std::vector<std::int64_t> numbers;
  Lift::Ptr lift;
};

Source ReadSource(const MakeArguments& arguments) {
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
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw UserError(StrCat(arguments.data, ": episodes of ", list, "; choose one with --family"));
  }
  for (const std::size_t e : BestEpisodes(file.episodes, arguments.best)) {
    if (!arguments.family.empty() && file.episodes[e].env != arguments.family) continue;
    source.numbers.push_back(static_cast<std::int64_t>(e));
    source.episodes.push_back(std::move(file.episodes[e]));
  }
  return source;
}

SegmentLibrary EmptyLibrary(const MakeArguments& arguments, const Source& source,
                            std::int64_t max_length) {
  SegmentLibraryConfig config = ConfigFor(source.episodes.front(), source.lift);
  config.capacity = arguments.capacity;
  config.policy = ParseEnum<LibraryPolicy>("library policy", arguments.policy);
  config.family = source.episodes.front().env;
  config.max_length = max_length;
  return SegmentLibrary(std::move(config));
}

void RunBuild(const MakeArguments& arguments) {
  const Source source = ReadSource(arguments);
  SegmentLibrary library =
      EmptyLibrary(arguments, source, std::max<std::int64_t>(1, arguments.cut.length));
  Rng rng(arguments.seed, "library");
  for (std::size_t e = 0; e < source.episodes.size(); ++e) {
    AddEpisode(source.episodes[e], source.numbers[e], arguments.cut, rng, library);
  }
  library.SaveFile(arguments.out);
  fmt::print("{}: {} of {} segments of length {} from {} episodes of {}\n", arguments.out,
             library.size(), library.offered(), arguments.cut.length, source.episodes.size(),
             library.config().family);
}

void RunMine(const MakeArguments& arguments) {
  const Source source = ReadSource(arguments);
  const std::vector<Motif> motifs = Mine(source.lift, source.episodes, arguments.mine);
  SegmentLibrary library =
      EmptyLibrary(arguments, source, std::ranges::max(arguments.mine.lengths));
  Rng rng(arguments.seed, "library");
  const std::size_t count = std::min(motifs.size(), static_cast<std::size_t>(arguments.capacity));
  for (std::size_t i = 0; i < count; ++i) {
    const Motif& motif = motifs[i];
    AddPiece(source.episodes[motif.episode], source.numbers[motif.episode], motif.interval, rng,
             library);
  }
  library.SaveFile(arguments.out);
  if (arguments.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < count; ++i) {
      const Motif& motif = motifs[i];
      json.push_back({{"slot", i},
                      {"episode", source.numbers[motif.episode]},
                      {"begin", motif.interval.begin},
                      {"length", motif.interval.length()},
                      {"episodes", motif.episodes},
                      {"occurrences", motif.occurrences},
                      {"spread", motif.spread}});
    }
    fmt::print("{}\n", json.dump(2));
    return;
  }
  constexpr std::size_t kShown = 10;
  fmt::print("{:>6} {:>8} {:>6} {:>7} {:>9} {:>12} {:>9}\n", "slot", "episode", "begin", "length",
             "episodes", "occurrences", "spread");
  for (std::size_t i = 0; i < std::min(count, kShown); ++i) {
    const Motif& motif = motifs[i];
    fmt::print("{:>6} {:>8} {:>6} {:>7} {:>9} {:>12} {:>9.3g}\n", i, source.numbers[motif.episode],
               motif.interval.begin, motif.interval.length(), motif.episodes, motif.occurrences,
               motif.spread);
  }
  fmt::print("{}: {} of {} motifs in {} episodes of {}\n", arguments.out, count, motifs.size(),
             source.episodes.size(), library.config().family);
}

SegmentLibrary ReadLibrary(const std::string& place, const Program& program) {
  if (!std::filesystem::is_directory(place)) return SegmentLibrary::LoadFile(place);
  const RunDirectory directory = RunDirectory::OpenForReading(place);
  const std::optional<TensorFile> checkpoint = directory.ReadNewestCheckpoint(program.warn);
  if (!checkpoint) throw UserError(StrCat(place, ": the run has no checkpoint yet"));
  Archive state(*checkpoint);
  for (const std::string_view part : kLibraryState) state = state.Child(part);
  if (!state.Has("capacity")) {
    throw UserError(
        StrCat(place, ": the agent '", directory.spec().agent, "' keeps no segment library"));
  }
  return SegmentLibrary::FromState(state);
}

// Share p of the sorted values is below it.
double Quantile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

constexpr std::size_t kMostReused = 5;

void RunShow(const LookArguments& arguments, const Program& program) {
  const SegmentLibrary library = ReadLibrary(arguments.place, program);
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
  std::ranges::sort(rewards);
  std::ranges::stable_sort(reused, std::greater<>(),
                           [&](std::int64_t slot) { return library.uses(slot); });
  if (reused.size() > kMostReused) reused.resize(kMostReused);
  const std::vector<std::pair<const char*, double>> quantiles{
      {"min", 0.0}, {"q25", 0.25}, {"median", 0.5}, {"q75", 0.75}, {"max", 1.0}};

  if (arguments.json) {
    nlohmann::ordered_json json;
    json["segments"] = library.size();
    json["offered"] = library.offered();
    json["capacity"] = config.capacity;
    json["policy"] = EnumName(config.policy);
    json["family"] = config.family;
    json["lift_id"] = config.lift->id().ToString();
    json["context_size"] = config.context_size;
    json["action_size"] = config.action_size;
    json["observation_size"] = config.observation_size;
    json["discrete"] = config.discrete;
    json["lengths"] = nlohmann::ordered_json::object();
    for (const auto& [length, count] : lengths) json["lengths"][std::to_string(length)] = count;
    json["envs"] = envs;
    json["episodes"] = episodes.size();
    json["terminated"] = terminated;
    json["reward_sum"] = nlohmann::ordered_json::object();
    for (const auto& [name, p] : quantiles) {
      if (!rewards.empty()) json["reward_sum"][name] = Quantile(rewards, p);
    }
    json["uses"] = uses;
    json["most_reused"] = nlohmann::ordered_json::array();
    for (const std::int64_t slot : reused) {
      json["most_reused"].push_back({{"slot", slot}, {"uses", library.uses(slot)}});
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
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
      line += fmt::format("  {} {:.4g}", name, Quantile(rewards, p));
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
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    while (next != end && *next == ' ') ++next;
    float value = 0.0F;
    const auto [stop, error] = std::from_chars(next, end, value);
    if (error != std::errc{} || !std::isfinite(value)) break;
    numbers.push_back(value);
    next = stop;
    while (next != end && *next == ' ') ++next;
    if (next == end) return numbers;
    if (*next++ != ',') break;
  }
  throw UserError(StrCat("--context needs numbers like 0.5,1,-2, got '", text, "'"));
}

void RunNearest(const LookArguments& arguments, const Program& program) {
  if ((arguments.slot < 0) == arguments.context.empty()) {
    throw UserError("say what to look near: --slot N or --context \"x,y,..\"");
  }
  const SegmentLibrary library = ReadLibrary(arguments.place, program);
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
  QueryOptions options;
  options.k = arguments.k;
  found.resize(static_cast<std::size_t>(library.Query(context, options, found)));
  const auto list = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  if (arguments.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const auto& [slot, distance] : found) {
      json.push_back({{"slot", slot},
                      {"distance", distance},
                      {"head_action", list(library.head_action(slot))},
                      {"context", list(library.context(slot))},
                      {"tail_geometry", list(library.tail_geometry(slot))},
                      {"tail_observation", list(library.tail_observation(slot))},
                      {"terminated", library.terminated(slot)},
                      {"reward_sum", library.reward_sum(slot)},
                      {"length", library.length(slot)},
                      {"episode", library.episode(slot)},
                      {"env", library.env(slot)},
                      {"uses", library.uses(slot)}});
    }
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
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

void AddMakeOptions(CLI::App& command, MakeArguments& arguments) {
  command
      .add_option("--data", arguments.data, "Episodes to read (.h5, made by the command collect)")
      ->required();
  command.add_option("--out", arguments.out, "Library to write (.safetensors)")->required();
  command.add_option("--family", arguments.family, "Which environment, if there are several");
  command.add_option("--best", arguments.best, "Only the best share of the episodes (1)");
  command.add_option("--capacity", arguments.capacity, "Most segments to keep (5000)");
}

void AddBuild(CLI::App& library) {
  CLI::App* command = library.add_subcommand("build", "Cut episodes into segments");
  const auto arguments = std::make_shared<MakeArguments>();
  AddMakeOptions(*command, *arguments);
  command->add_option("--length", arguments->cut.length, "Steps of a segment (1)");
  command->add_option("--stride", arguments->cut.stride,
                      "Steps from the beginning of one to that of the next (1)");
  command->add_option("--policy", arguments->policy,
                      "fifo | reservoir | by-value: what goes when it is full (fifo)");
  command->add_option("--seed", arguments->seed, "Seed of the policy reservoir (0)");
  command->callback([arguments] { RunBuild(*arguments); });
}

void AddMine(CLI::App& library) {
  CLI::App* command = library.add_subcommand("mine", "Find segments that recur across episodes");
  const auto arguments = std::make_shared<MakeArguments>();
  AddMakeOptions(*command, *arguments);
  MineOptions& mine = arguments->mine;
  command->add_option("--length", mine.lengths, "Steps of a segment, several if need be (4)")
      ->delimiter(',');
  command->add_option("--stride", mine.stride, "Steps from one beginning to the next (1)");
  command->add_option("--radius", mine.radius,
                      "Frobenius distance per step of what is the same (1)");
  command->add_option("--min-episodes", mine.min_episodes,
                      "Episodes in which a segment is found at least (3)");
  command->add_flag("--json", arguments->json, "All motifs, as JSON");
  command->callback([arguments] { RunMine(*arguments); });
}

void AddShow(CLI::App& library, const Program& program) {
  CLI::App* command = library.add_subcommand("show", "What is in a library");
  const auto arguments = std::make_shared<LookArguments>();
  command->add_option("LIBRARY", arguments->place, "A library, or the directory of a run")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  command->callback([arguments, &program] { RunShow(*arguments, program); });
}

void AddNearest(CLI::App& library, const Program& program) {
  CLI::App* command = library.add_subcommand("nearest", "The segments that begin near a state");
  const auto arguments = std::make_shared<LookArguments>();
  command->add_option("LIBRARY", arguments->place, "A library, or the directory of a run")
      ->required();
  command->add_option("--slot", arguments->slot, "Near the beginning of this segment")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--context", arguments->context, "Near this context: \"x,y,..\"");
  command->add_option("-k", arguments->k, "How many (8)")->check(CLI::Range(1, 10'000));
  command->add_flag("--json", arguments->json, "As JSON, with contexts and tails");
  command->callback([arguments, &program] { RunNearest(*arguments, program); });
}

}  // namespace

void AddLibrary(CLI::App& app, const Program& program) {
  CLI::App* command =
      app.add_subcommand("library", "Make segment libraries and look into them, or into a run's");
  command->require_subcommand(1);
  command->footer("What a library is and how it is searched: docs/segment-library.md.");
  AddBuild(*command);
  AddMine(*command);
  AddShow(*command, program);
  AddNearest(*command, program);
}

}  // namespace msrl::cli
