#include "msrl/datasets/episode_file.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "msrl/core/bytes.h"
#include "msrl/core/check.h"
#include "msrl/datasets/episode_child.h"
#include "msrl/datasets/hdf5.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/checksum.h"

namespace msrl {
namespace {

using internal::H5Reader;
using internal::H5Shape;
using internal::H5Writer;

constexpr std::string_view kFormat = "msrl-episodes";
constexpr std::string_view kBlockStart = "msrl-hdf5 1 xxh64=";
// HDF5 looks for its own start at 0, 512, 1024, ...: a block of 512 bytes is invisible to it
constexpr std::size_t kBlockSize = 512;
constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 28;
constexpr std::int64_t kMaxEpisodes = 10'000'000;

std::string Digest(std::string_view bytes) {
  Xxh64 hash;
  hash.Add(std::as_bytes(std::span(bytes)));
  return Hex(hash.Digest());
}

std::string GroupName(std::size_t k) { return StrCat("episode_", k); }

std::span<const float> Flat(const Eigen::MatrixXf& matrix) {
  return {matrix.data(), static_cast<std::size_t>(matrix.size())};
}

// Times are rows in the file, columns here: the same order of numbers.
H5Shape TimeRows(const Eigen::MatrixXf& matrix) {
  return {static_cast<std::uint64_t>(matrix.cols()), static_cast<std::uint64_t>(matrix.rows())};
}

void AddFloats(Xxh64& hash, std::span<const float> values) { hash.Add(std::as_bytes(values)); }

void WriteEpisode(H5Writer& writer, const StoredEpisode& episode, std::size_t k) {
  const std::string group = GroupName(k);
  const auto steps = static_cast<std::size_t>(episode.horizon());
  writer.Group(group);
  writer.IntAttribute(group, "id", static_cast<std::int64_t>(k));
  writer.TextAttribute(group, "seed", std::to_string(episode.seed));
  writer.IntAttribute(group, "total_steps", episode.horizon());
  writer.TextAttribute(group, "env", episode.env);
  writer.TextAttribute(group, "instance", episode.instance);
  writer.DoubleAttribute(group, "reward_scale", episode.reward_scale);
  for (const auto& [name, value] : episode.facts) {
    writer.DoubleAttribute(group, "fact_" + name, value);
  }
  writer.Floats(group + "/observations", Flat(episode.observations),
                TimeRows(episode.observations));
  if (episode.discrete) {
    std::vector<std::int64_t> indices(steps);
    for (std::size_t t = 0; t < steps; ++t) {
      indices[t] = std::lround(episode.actions(0, static_cast<Index>(t)));
    }
    writer.Ints(group + "/actions", indices, {steps});
  } else {
    writer.Floats(group + "/actions", Flat(episode.actions), TimeRows(episode.actions));
  }
  writer.Doubles(group + "/rewards", {episode.rewards.data(), steps}, {steps});
  std::vector<std::uint8_t> flags(steps, 0);
  flags.back() = episode.terminated ? 1 : 0;
  writer.Bools(group + "/terminations", flags, {steps});
  flags.back() = episode.truncated ? 1 : 0;
  writer.Bools(group + "/truncations", flags, {steps});
  if (episode.geometry.rows() > 0) {
    writer.Floats(group + "/infos/geometry", Flat(episode.geometry), TimeRows(episode.geometry));
  }
  for (const auto& [name, values] : episode.values) {
    writer.Floats(group + "/infos/value_" + name,
                  {values.data(), static_cast<std::size_t>(values.size())},
                  {static_cast<std::uint64_t>(values.size())});
  }
}

Eigen::MatrixXf ReadMatrix(const H5Reader& reader, const std::string& path, std::uint64_t times) {
  const H5Shape shape = reader.ShapeOf(path, 2, kMaxValues);
  if (shape[0] != times || shape[1] == 0) {
    reader.Fail(path, StrCat("expected ", times, " rows, got ", shape[0]));
  }
  const std::vector<float> values = reader.Floats(path, shape);
  return Eigen::Map<const Eigen::MatrixXf>(values.data(), static_cast<Index>(shape[1]),
                                           static_cast<Index>(shape[0]));
}

bool LastFlag(const H5Reader& reader, const std::string& path, std::uint64_t steps) {
  const std::vector<std::uint8_t> flags = reader.Bools(path, {steps});
  for (std::size_t t = 0; t + 1 < flags.size(); ++t) {
    if (flags[t] != 0) reader.Fail(path, StrCat("the episode goes on after step ", t));
  }
  return flags.back() != 0;
}

StoredEpisode ReadEpisode(const H5Reader& reader, std::size_t k) {
  const std::string group = GroupName(k);
  StoredEpisode episode;
  const H5Shape length = reader.ShapeOf(group + "/rewards", 1, kMaxValues);
  const std::uint64_t steps = length[0];
  if (steps == 0) reader.Fail(group, "an episode has at least one step");
  if (reader.IntAttribute(group, "total_steps") != static_cast<std::int64_t>(steps) ||
      reader.IntAttribute(group, "id") != static_cast<std::int64_t>(k)) {
    reader.Fail(group, "id or total_steps do not fit");
  }
  const std::string seed = reader.TextAttribute(group, "seed");
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), episode.seed);
  if (error != std::errc{} || end != seed.data() + seed.size()) {
    reader.Fail(group, StrCat("seed is '", seed, "'"));
  }
  episode.env = reader.TextAttribute(group, "env");
  episode.instance = reader.TextAttribute(group, "instance");
  episode.reward_scale = reader.DoubleAttribute(group, "reward_scale");
  for (const std::string& name : reader.AttributeNames(group)) {
    if (name.starts_with("fact_")) {
      episode.facts[name.substr(5)] = reader.DoubleAttribute(group, name);
    }
  }
  episode.observations = ReadMatrix(reader, group + "/observations", steps + 1);
  episode.discrete = reader.IsInteger(group + "/actions");
  if (episode.discrete) {
    const std::vector<std::int64_t> indices = reader.Ints(group + "/actions", {steps});
    episode.actions.resize(1, static_cast<Index>(steps));
    for (std::size_t t = 0; t < indices.size(); ++t) {
      if (indices[t] < 0 || indices[t] >= 1'000'000) {
        reader.Fail(group + "/actions", StrCat("action ", indices[t]));
      }
      episode.actions(0, static_cast<Index>(t)) = static_cast<float>(indices[t]);
    }
  } else {
    episode.actions = ReadMatrix(reader, group + "/actions", steps);
  }
  const std::vector<double> rewards = reader.Doubles(group + "/rewards", {steps});
  episode.rewards = Eigen::Map<const Eigen::VectorXd>(rewards.data(), static_cast<Index>(steps));
  episode.terminated = LastFlag(reader, group + "/terminations", steps);
  episode.truncated = LastFlag(reader, group + "/truncations", steps);
  episode.geometry = ReadMatrix(reader, group + "/infos/geometry", steps + 1);
  for (const std::string& name : reader.Names(group + "/infos")) {
    if (!name.starts_with("value_")) continue;
    const std::vector<float> values = reader.Floats(group + "/infos/" + name, {steps + 1});
    episode.values[name.substr(6)] =
        Eigen::Map<const Eigen::VectorXf>(values.data(), static_cast<Index>(steps + 1));
  }
  return episode;
}

}  // namespace

std::int64_t EpisodeFile::TotalSteps() const {
  std::int64_t total = 0;
  for (const StoredEpisode& episode : episodes) total += episode.horizon();
  return total;
}

std::string EpisodeFile::ContentHash() const {
  Xxh64 hash;
  const auto add = [&hash](const ByteWriter& writer) { hash.Add(writer.bytes()); };
  ByteWriter head;
  head.Text(lift_id);
  head.I64(action_code_size);
  head.Double(gamma);
  for (const auto& [key, value] : attributes) {
    head.Text(key);
    head.Text(value);
  }
  add(head);
  for (const StoredEpisode& episode : episodes) {
    ByteWriter facts;
    facts.Text(episode.env);
    facts.U64(episode.seed);
    facts.Text(episode.instance);
    facts.Bool(episode.discrete);
    facts.Double(episode.reward_scale);
    facts.Bool(episode.terminated);
    facts.Bool(episode.truncated);
    facts.I64(episode.horizon());
    facts.I64(episode.observations.rows());
    facts.I64(episode.actions.rows());
    facts.I64(episode.geometry.rows());
    for (const auto& [name, value] : episode.facts) {
      facts.Text(name);
      facts.Double(value);
    }
    add(facts);
    AddFloats(hash, Flat(episode.observations));
    AddFloats(hash, Flat(episode.actions));
    AddFloats(hash, Flat(episode.geometry));
    hash.Add(std::as_bytes(
        std::span(episode.rewards.data(), static_cast<std::size_t>(episode.rewards.size()))));
    for (const auto& [name, values] : episode.values) {
      ByteWriter label;
      label.Text(name);
      add(label);
      AddFloats(hash, {values.data(), static_cast<std::size_t>(values.size())});
    }
  }
  return Hex(hash.Digest());
}

Segment ToSegment(const StoredEpisode& episode, int action_code_size) {
  Segment segment;
  segment.x = episode.geometry.cast<double>();
  segment.a.setZero(action_code_size, episode.horizon());
  if (episode.discrete) {
    for (Index t = 0; t < episode.horizon(); ++t)
      segment.a(std::lround(episode.actions(0, t)), t) = 1.0;
  } else {
    segment.a.topRows(episode.actions.rows()) = episode.actions.cast<double>();
  }
  segment.r = episode.rewards / episode.reward_scale;
  return segment;
}

void RequireValid(const EpisodeFile& file, std::string_view source, GeometryIs geometry) {
  const auto fail = [source](std::size_t k, std::string_view problem) {
    throw UserError(StrCat(source, ": ", GroupName(k), ": ", problem));
  };
  if (file.episodes.empty()) throw UserError(StrCat(source, ": no episode in it"));
  if (!(file.gamma > 0.0 && file.gamma < 1.0) || file.action_code_size < 1 ||
      file.action_code_size > 1024) {
    throw UserError(StrCat(source, ": gamma or action_code_size can't be"));
  }
  for (std::size_t k = 0; k < file.episodes.size(); ++k) {
    const StoredEpisode& e = file.episodes[k];
    const Index steps = e.horizon();
    if (steps < 1) fail(k, "an episode has at least one step");
    if (e.observations.cols() != steps + 1 || e.geometry.cols() != steps + 1 ||
        e.actions.cols() != steps || (e.discrete && e.actions.rows() != 1)) {
      fail(k, "lengths do not fit each other");
    }
    if (e.geometry.rows() != file.episodes[0].geometry.rows() ||
        (e.geometry.rows() < 1 && geometry == GeometryIs::kThere)) {
      fail(k, "geometry has another size than before");
    }
    if (!e.observations.allFinite() || !e.geometry.allFinite() || !e.actions.allFinite() ||
        !e.rewards.allFinite()) {
      fail(k, "a number is not finite");
    }
    if (!(e.reward_scale > 0.0) || !std::isfinite(e.reward_scale)) fail(k, "reward_scale");
    if (e.rewards.size() > 0 && e.rewards.cwiseAbs().maxCoeff() / e.reward_scale > 1e30) {
      fail(k, "a reward is too large");
    }
    if (e.discrete) {
      for (Index t = 0; t < steps; ++t) {
        const float a = e.actions(0, t);
        if (!(a >= 0.0F && a < static_cast<float>(file.action_code_size)) || a != std::floor(a)) {
          fail(k, StrCat("action ", a, " of step ", t, " does not fit the action code"));
        }
      }
    } else if (e.actions.rows() > file.action_code_size || e.actions.rows() < 1) {
      fail(k, "the actions do not fit the action code");
    }
    for (const auto& [name, values] : e.values) {
      if (values.size() != steps + 1 || !values.allFinite()) {
        fail(k, StrCat("value_", name, " must have ", steps + 1, " finite numbers"));
      }
    }
    for (const auto& [name, value] : e.facts) {
      if (!std::isfinite(value)) fail(k, StrCat("fact_", name, " is not finite"));
    }
  }
}

std::string EncodePlainEpisodes(const EpisodeFile& file) {
  RequireValid(file, "episodes", GeometryIs::kOptional);
  H5Writer writer;
  writer.TextAttribute("", "format", std::string(kFormat));
  writer.IntAttribute("", "version", 1);
  writer.IntAttribute("", "total_episodes", std::ssize(file.episodes));
  writer.IntAttribute("", "total_steps", file.TotalSteps());
  writer.TextAttribute("", "lift_id", file.lift_id);
  writer.IntAttribute("", "action_code_size", file.action_code_size);
  writer.DoubleAttribute("", "gamma", file.gamma);
  writer.TextAttribute("", "content_hash", file.ContentHash());
  for (const auto& [key, value] : file.attributes) writer.TextAttribute("", "made_" + key, value);
  for (std::size_t k = 0; k < file.episodes.size(); ++k) WriteEpisode(writer, file.episodes[k], k);
  return writer.Finish();
}

std::string EncodeEpisodes(const EpisodeFile& file) {
  RequireValid(file, "episodes");
  const std::string body = EncodePlainEpisodes(file);
  std::string bytes = std::string(kBlockStart) + Digest(body) + "\n";
  bytes.resize(kBlockSize, '\0');
  return bytes + body;
}

void WriteEpisodes(const std::filesystem::path& path, const EpisodeFile& file) {
  WriteFileAtomically(path, EncodeEpisodes(file));
}

EpisodeFile ParseEpisodes(std::span<const std::byte> bytes, std::string_view source) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(kBlockStart)) {
    if (text.size() <= kBlockSize) throw UserError(StrCat(source, ": the file is cut off"));
    const std::string_view digest = text.substr(kBlockStart.size(), 16);
    if (digest != Digest(text.substr(kBlockSize))) {
      throw UserError(StrCat(source, ": the file is damaged (its checksum is wrong)"));
    }
    bytes = bytes.subspan(kBlockSize);
  }
  const H5Reader reader(bytes, source);
  if (!reader.HasAttribute("", "format") || reader.TextAttribute("", "format") != kFormat ||
      reader.IntAttribute("", "version") != 1) {
    reader.Fail("",
                "not a file of episodes of this version; those of Minari and D4RL go through the "
                "command dataset import");
  }
  EpisodeFile file;
  file.lift_id = reader.TextAttribute("", "lift_id");
  const std::int64_t code = reader.IntAttribute("", "action_code_size");
  if (code < 1 || code > 1024) reader.Fail("", StrCat("action_code_size is ", code));
  file.action_code_size = static_cast<int>(code);
  file.gamma = reader.DoubleAttribute("", "gamma");
  for (const std::string& name : reader.AttributeNames("")) {
    if (name.starts_with("made_")) file.attributes[name.substr(5)] = reader.TextAttribute("", name);
  }
  const std::int64_t count = reader.IntAttribute("", "total_episodes");
  if (count < 1 || count > kMaxEpisodes || count != std::ssize(reader.Names(""))) {
    reader.Fail("", StrCat("total_episodes is ", count, ", which does not fit the groups"));
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
    file.episodes.push_back(ReadEpisode(reader, k));
  }
  RequireValid(file, source);
  if (reader.IntAttribute("", "total_steps") != file.TotalSteps() ||
      reader.TextAttribute("", "content_hash") != file.ContentHash()) {
    reader.Fail("", "the contents do not fit total_steps and content_hash");
  }
  return file;
}

EpisodeFile ReadEpisodes(const std::filesystem::path& path) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 35;
  const std::string bytes = ReadWholeFile(path, kMaxBytes);
  const std::string source = path.string();
  // whoever made it can have made its checksum: the library may crash on it, or take what it likes
  return ParseInChild(source, bytes.size(),
                      [&] { return ParseEpisodes(std::as_bytes(std::span(bytes)), source); });
}

}  // namespace msrl
