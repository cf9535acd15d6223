#include "msrl/transfer/foreign_dataset.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/datasets/episode_child.h"
#include "msrl/datasets/hdf5.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/fitted_value.h"

namespace msrl {
namespace {

using internal::H5Reader;
using internal::H5Shape;

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 28;
constexpr float kActionSlack = 1e-3F;  // beyond [-1, 1]: rounding of others
// What an observation may differ from the next one that was announced: formats round differently.
constexpr float kSameObservation = 1e-5F;
// The oldest version of Minari whose files have this layout.
constexpr const char* kMinariVersion = "0.5.0";

// Times are rows in the file, columns here.
Eigen::MatrixXf ReadRows(const H5Reader& reader, const std::string& path) {
  const H5Shape shape = reader.ShapeOf(path, 2, kMaxValues);
  if (shape[1] == 0) reader.Fail(path, "has no columns");
  if (reader.IsInteger(path)) reader.Fail(path, "has whole numbers; others are wanted");
  const std::vector<float> values = reader.Floats(path, shape);
  return Eigen::Map<const Eigen::MatrixXf>(values.data(), static_cast<Index>(shape[1]),
                                           static_cast<Index>(shape[0]));
}

// The parts that the map names below each other, or the one list.
Eigen::MatrixXf ReadObservations(const H5Reader& reader, const std::string& path,
                                 const DatasetMap& map) {
  if (map.observations.empty()) return ReadRows(reader, path);
  Eigen::MatrixXf all;
  for (const std::string& part : map.observations) {
    const Eigen::MatrixXf rows = ReadRows(reader, StrCat(path, "/", part));
    if (all.size() > 0 && rows.cols() != all.cols()) {
      reader.Fail(StrCat(path, "/", part), "has another length than the parts before");
    }
    Eigen::MatrixXf joined(all.rows() + rows.rows(), rows.cols());
    if (all.size() > 0) joined.topRows(all.rows()) = all;
    joined.bottomRows(rows.rows()) = rows;
    all = std::move(joined);
  }
  return all;
}

// One row of indices, or numbers in [-1, 1].
Eigen::MatrixXf ReadActions(const H5Reader& reader, const std::string& path, const DatasetMap& map,
                            bool& discrete) {
  discrete = reader.IsInteger(path);
  if (discrete) {
    const std::vector<std::int64_t> indices =
        reader.Ints(path, reader.ShapeOf(path, 1, kMaxValues));
    Eigen::MatrixXf actions(1, std::ssize(indices));
    for (std::size_t t = 0; t < indices.size(); ++t) {
      if (indices[t] < 0 || indices[t] >= kActionCodeSize) {
        reader.Fail(path, StrCat("action ", indices[t], "; there can be ", kActionCodeSize));
      }
      actions(0, static_cast<Index>(t)) = static_cast<float>(indices[t]);
    }
    return actions;
  }
  Eigen::MatrixXf actions = ReadRows(reader, path);
  if (!map.action_low.empty()) {
    const bool one_for_all = map.action_low.size() == 1;
    if (!one_for_all && std::ssize(map.action_low) != actions.rows()) {
      reader.Fail(path,
                  StrCat("has ", actions.rows(), " numbers, action_low ", map.action_low.size()));
    }
    for (Index i = 0; i < actions.rows(); ++i) {
      const std::size_t bound = one_for_all ? 0 : static_cast<std::size_t>(i);
      const auto low = static_cast<float>(map.action_low[bound]);
      const auto high = static_cast<float>(map.action_high[bound]);
      actions.row(i) = 2.0F * (actions.row(i).array() - low) / (high - low) - 1.0F;
    }
  }
  // not <=: what is no number is none either
  if (!(actions.size() == 0 || actions.cwiseAbs().maxCoeff() <= 1.0F + kActionSlack)) {
    reader.Fail(path, "actions beyond [-1, 1]: name their bounds, action_low and action_high");
  }
  return actions.cwiseMax(-1.0F).cwiseMin(1.0F);
}

Eigen::VectorXd ReadRewards(const H5Reader& reader, const std::string& path) {
  const std::vector<double> rewards = reader.Doubles(path, reader.ShapeOf(path, 1, kMaxValues));
  return Eigen::Map<const Eigen::VectorXd>(rewards.data(), std::ssize(rewards));
}

// Empty if there is no such list.
std::vector<std::uint8_t> ReadFlags(const H5Reader& reader, const std::string& path,
                                    std::uint64_t steps) {
  if (!reader.Has(path)) return {};
  return reader.Bools(path, {steps});
}

bool IsOneOf(const std::vector<std::uint8_t>& flags, std::size_t t) {
  return !flags.empty() && flags[t] != 0;
}

// An episode but for its numbers.
StoredEpisode Blank(const DatasetMap& map) {
  StoredEpisode episode;
  episode.env = map.env;
  episode.reward_scale = map.reward_scale;
  return episode;
}

void Finish(const H5Reader& reader, const std::string& place, const DatasetMap& map,
            StoredEpisode& episode) {
  if (episode.observations.rows() < map.geometry.MinObservationSize()) {
    reader.Fail(place,
                StrCat("observations have ", episode.observations.rows(),
                       " entries; the map names entry ", map.geometry.MinObservationSize() - 1));
  }
  episode.geometry = map.geometry.Apply(episode.observations);
}

StoredEpisode ReadMinariEpisode(const H5Reader& reader, const std::string& group,
                                const DatasetMap& map) {
  StoredEpisode episode = Blank(map);
  episode.rewards = ReadRewards(reader, group + "/rewards");
  const auto steps = static_cast<std::size_t>(episode.rewards.size());
  if (steps == 0) reader.Fail(group, "an episode has at least one step");
  episode.observations = ReadObservations(reader, group + "/observations", map);
  episode.actions = ReadActions(reader, group + "/actions", map, episode.discrete);
  if (episode.observations.cols() != episode.rewards.size() + 1 ||
      episode.actions.cols() != episode.rewards.size()) {
    reader.Fail(
        group, StrCat(steps, " rewards need ", steps + 1, " observations and ", steps, " actions"));
  }
  const std::vector<std::uint8_t> terminations = ReadFlags(reader, group + "/terminations", steps);
  const std::vector<std::uint8_t> truncations = ReadFlags(reader, group + "/truncations", steps);
  for (std::size_t t = 0; t + 1 < steps; ++t) {
    if (IsOneOf(terminations, t) || IsOneOf(truncations, t)) {
      reader.Fail(group, StrCat("the episode goes on after its end in step ", t));
    }
  }
  episode.terminated = IsOneOf(terminations, steps - 1);
  episode.truncated = IsOneOf(truncations, steps - 1);
  Finish(reader, group, map, episode);
  return episode;
}

// Flat lists of steps.
std::vector<StoredEpisode> ReadFlatEpisodes(const H5Reader& reader, const DatasetMap& map) {
  bool discrete = false;
  const Eigen::VectorXd rewards = ReadRewards(reader, "rewards");
  const Eigen::MatrixXf observations = ReadObservations(reader, "observations", map);
  const Eigen::MatrixXf actions = ReadActions(reader, "actions", map, discrete);
  const auto steps = static_cast<std::size_t>(rewards.size());
  if (observations.cols() != rewards.size() || actions.cols() != rewards.size()) {
    reader.Fail("", StrCat("lists of different lengths: ", observations.cols(), " observations, ",
                           actions.cols(), " actions, ", steps, " rewards"));
  }
  const std::vector<std::uint8_t> terminals = ReadFlags(reader, "terminals", steps);
  const std::vector<std::uint8_t> timeouts = ReadFlags(reader, "timeouts", steps);
  if (terminals.empty() && timeouts.empty()) {
    reader.Fail("", "neither terminals nor timeouts: nobody knows where episodes end");
  }
  Eigen::MatrixXf next;  // without: empty
  if (reader.Has("next_observations")) next = ReadObservations(reader, "next_observations", map);
  if (next.size() > 0 && (next.cols() != rewards.size() || next.rows() != observations.rows())) {
    reader.Fail("next_observations", "has another shape than observations");
  }
  const auto follows = [&](Index t) {
    if (t + 1 >= rewards.size()) return false;
    if (next.size() == 0) return true;
    const float size = 1.0F + next.col(t).cwiseAbs().maxCoeff();
    return (next.col(t) - observations.col(t + 1)).cwiseAbs().maxCoeff() <= kSameObservation * size;
  };

  std::vector<StoredEpisode> episodes;
  for (Index begin = 0, end = 0; begin < rewards.size(); begin = end) {
    bool terminated = false;
    bool truncated = false;
    for (end = begin; !terminated && !truncated && end < rewards.size(); ++end) {
      terminated = IsOneOf(terminals, static_cast<std::size_t>(end));
      truncated =
          !terminated && (IsOneOf(timeouts, static_cast<std::size_t>(end)) || !follows(end));
    }
    // the state after the last step, or without that step
    const Index length = next.size() > 0 ? end - begin : end - begin - 1;
    if (length < 1) continue;
    StoredEpisode episode = Blank(map);
    episode.discrete = discrete;
    episode.observations.resize(observations.rows(), length + 1);
    episode.observations.leftCols(length) = observations.middleCols(begin, length);
    const Eigen::MatrixXf& last = next.size() > 0 ? next : observations;
    episode.observations.col(length) = last.col(end - 1);
    episode.actions = actions.middleCols(begin, length);
    episode.rewards = rewards.segment(begin, length);
    episode.terminated = terminated && next.size() > 0;
    episode.truncated = !episode.terminated;
    Finish(reader, StrCat("step ", begin), map, episode);
    episodes.push_back(std::move(episode));
  }
  return episodes;
}

// "(namespace/)name-vN" of letters, digits, '-', '_' and '.'.
bool IsDatasetId(const std::string& id) {
  const std::size_t slash = id.rfind('/');
  const std::string name = slash == std::string::npos ? id : id.substr(slash + 1);
  const std::size_t version = name.rfind("-v");
  const auto good = [](const std::string& text) {
    return !text.empty() && text.front() != '.' && std::ranges::all_of(text, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
  };
  return version != std::string::npos && good(name.substr(0, version)) &&
         version + 2 < name.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(version) + 2, name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         (slash == std::string::npos || good(id.substr(0, slash)));
}

// A box as Minari writes spaces: JSON in which numbers may be Infinity.
std::string BoxText(Index size, const char* low, const char* high) {
  const auto list = [size](const char* value) {
    std::string text;
    for (Index i = 0; i < size; ++i) text += StrCat(i == 0 ? "" : ", ", value);
    return text;
  };
  return StrCat(R"({"type": "Box", "dtype": "float32", "shape": [)", size, R"(], "low": [)",
                list(low), R"(], "high": [)", list(high), "]}");
}

}  // namespace

EpisodeFile ParseForeignEpisodes(std::span<const std::byte> bytes, std::string_view source,
                                 const DatasetMap& map) {
  const H5Reader reader(bytes, source);
  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  file.action_code_size = kActionCodeSize;
  file.gamma = map.gamma;
  if (reader.Has("episode_0")) {
    std::size_t count = 0;
    for (const std::string& name : reader.Names("")) count += name.starts_with("episode_") ? 1 : 0;
    for (std::size_t k = 0; k < count; ++k) {
      file.episodes.push_back(ReadMinariEpisode(reader, StrCat("episode_", k), map));
    }
  } else if (reader.Has("observations") && reader.Has("rewards") && reader.Has("actions")) {
    file.episodes = ReadFlatEpisodes(reader, map);
  } else {
    reader.Fail("", "neither episode_0 (Minari) nor observations, actions and rewards (D4RL)");
  }
  for (const StoredEpisode& episode : file.episodes) {
    const StoredEpisode& first = file.episodes.front();
    if (episode.observations.rows() != first.observations.rows() ||
        episode.actions.rows() != first.actions.rows() || episode.discrete != first.discrete) {
      reader.Fail("", "its episodes have different observations or actions");
    }
  }
  RequireValid(file, source);
  return file;
}

EpisodeFile ReadForeignEpisodes(const std::filesystem::path& path, const DatasetMap& map) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 35;
  std::filesystem::path place = path;
  if (std::filesystem::is_directory(place / "data")) place /= "data";
  if (std::filesystem::is_directory(place)) place /= "main_data.hdf5";
  const std::string bytes = ReadWholeFile(place, kMaxBytes);
  const std::string source = place.string();
  return ParseInChild(source, bytes.size(), [&] {
    return ParseForeignEpisodes(std::as_bytes(std::span(bytes)), source, map);
  });
}

void AddValues(EpisodeFile& file) {
  for (StoredEpisode& episode : file.episodes) AddMonteCarlo(episode, file.gamma);
  FittedValue(file).AddTo(file);
}

std::filesystem::path WriteMinari(const std::filesystem::path& root, const MinariDataset& dataset,
                                  const EpisodeFile& file, Existing existing) {
  if (!IsDatasetId(dataset.id)) {
    throw UserError(StrCat("'", dataset.id, "' is no id of a dataset; write NAMESPACE/NAME-v0"));
  }
  const StoredEpisode& first = file.episodes.front();
  for (const StoredEpisode& episode : file.episodes) {
    if (episode.env != first.env || episode.observations.rows() != first.observations.rows()) {
      throw UserError(StrCat("episodes of ", first.env, " and of ", episode.env,
                             ": a dataset of Minari has one environment; collect one family"));
    }
  }
  nlohmann::ordered_json metadata{
      {"total_episodes", file.episodes.size()},
      {"total_steps", file.TotalSteps()},
      {"data_format", "hdf5"},
      {"observation_space", BoxText(first.observations.rows(), "-Infinity", "Infinity")},
      {"action_space", first.discrete
                           ? StrCat(R"({"type": "Discrete", "dtype": "int64", "start": 0, "n": )",
                                    dataset.actions, "}")
                           : BoxText(first.actions.rows(), "-1.0", "1.0")},
      {"dataset_id", dataset.id},
      {"algorithm_name", dataset.algorithm},
      {"description", StrCat("Episodes of ", first.env, ", recorded by msrl")},
      {"minari_version", kMinariVersion}};
  const std::string data = EncodePlainEpisodes(file);
  metadata["dataset_size"] = std::round(1e-5 * static_cast<double>(data.size())) / 10.0;  // MB
  const std::filesystem::path folder = root / dataset.id / "data";
  const std::array<std::filesystem::path, 2> paths{folder / "main_data.hdf5",
                                                   folder / "metadata.json"};
  for (const std::filesystem::path& path : paths) RequireWritable(path, existing);
  MakeFolder(folder);
  WriteFileAtomically(paths[0], data, existing);
  // last: without it there is no dataset
  WriteFileAtomically(paths[1], metadata.dump(2) + "\n", existing);
  return folder;
}

}  // namespace msrl
