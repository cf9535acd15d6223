#include "msrl/datasets/episode_child.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>

#include "msrl/core/bytes.h"
#include "msrl/files/limited_child.h"

namespace msrl {
namespace {

template <typename Matrix>
void WriteMatrix(ByteWriter& writer, const Matrix& matrix) {
  writer.I64(matrix.rows());
  writer.I64(matrix.cols());
  writer.Blob(std::as_bytes(std::span(matrix.data(), static_cast<std::size_t>(matrix.size()))));
}

template <typename Matrix>
Matrix ReadMatrix(ByteReader& reader, std::string_view source) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Index rows = reader.I64In(0, kMost);
  constexpr bool kVector = Matrix::ColsAtCompileTime == 1;
  const Index cols = reader.I64In(kVector ? 1 : 0, kVector ? 1 : kMost);
  const std::span<const std::byte> values = reader.Blob();
  constexpr std::size_t kItem = sizeof(typename Matrix::Scalar);
  if (values.size() % kItem != 0 || static_cast<Index>(values.size() / kItem) != rows * cols) {
    throw UserError(StrCat(source, ": ", values.size(), " bytes for ", rows, " x ", cols));
  }
  Matrix matrix(rows, cols);
  if (!values.empty()) std::memcpy(matrix.data(), values.data(), values.size());
  return matrix;
}

template <typename Value, typename Write>
void WriteMap(ByteWriter& writer, const std::map<std::string, Value>& map, const Write& write) {
  writer.U64(map.size());
  for (const auto& [key, value] : map) {
    writer.Text(key);
    write(value);
  }
}

template <typename Value, typename Read>
void ReadMap(ByteReader& reader, std::map<std::string, Value>& map, const Read& read) {
  // a wrong number ends with the bytes
  for (std::uint64_t left = reader.U64(); left > 0; --left) {
    std::string key = reader.Text();
    map[std::move(key)] = read();
  }
}

}  // namespace

std::string PackEpisodes(const EpisodeFile& file) {
  ByteWriter writer;
  writer.Text(file.lift_id);
  writer.I64(file.action_code_size);
  writer.Double(file.gamma);
  WriteMap(writer, file.attributes, [&](const std::string& value) { writer.Text(value); });
  writer.U64(file.episodes.size());
  for (const StoredEpisode& episode : file.episodes) {
    writer.Text(episode.env);
    writer.U64(episode.seed);
    writer.Text(episode.instance);
    writer.Bool(episode.discrete);
    writer.Double(episode.reward_scale);
    writer.Bool(episode.terminated);
    writer.Bool(episode.truncated);
    WriteMap(writer, episode.facts, [&](double value) { writer.Double(value); });
    WriteMatrix(writer, episode.observations);
    WriteMatrix(writer, episode.geometry);
    WriteMatrix(writer, episode.actions);
    WriteMatrix(writer, episode.rewards);
    WriteMap(writer, episode.values,
             [&](const Eigen::VectorXf& values) { WriteMatrix(writer, values); });
  }
  const std::vector<std::byte>& bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

EpisodeFile UnpackEpisodes(std::span<const std::byte> bytes, std::string_view source) {
  ByteReader reader(bytes, source);
  EpisodeFile file;
  file.lift_id = reader.Text();
  file.action_code_size = static_cast<int>(reader.I64In(1, 1024));
  file.gamma = reader.Double();
  ReadMap(reader, file.attributes, [&] { return reader.Text(); });
  for (std::uint64_t left = reader.U64(); left > 0; --left) {
    StoredEpisode episode;
    episode.env = reader.Text();
    episode.seed = reader.U64();
    episode.instance = reader.Text();
    episode.discrete = reader.Bool();
    episode.reward_scale = reader.Double();
    episode.terminated = reader.Bool();
    episode.truncated = reader.Bool();
    ReadMap(reader, episode.facts, [&] { return reader.Double(); });
    episode.observations = ReadMatrix<Eigen::MatrixXf>(reader, source);
    episode.geometry = ReadMatrix<Eigen::MatrixXf>(reader, source);
    episode.actions = ReadMatrix<Eigen::MatrixXf>(reader, source);
    episode.rewards = ReadMatrix<Eigen::VectorXd>(reader, source);
    ReadMap(reader, episode.values, [&] { return ReadMatrix<Eigen::VectorXf>(reader, source); });
    file.episodes.push_back(std::move(episode));
  }
  reader.RequireEnd();
  RequireValid(file, source);
  return file;
}

EpisodeFile ParseInChild(std::string_view source, std::size_t file_size,
                         const std::function<EpisodeFile()>& parse) {
  const std::uint64_t memory = 200 * std::uint64_t{file_size} + (std::uint64_t{1} << 28);
  const std::string answer =
      InLimitedChild(source, {.memory = memory}, [&parse] { return PackEpisodes(parse()); });
  return UnpackEpisodes(std::as_bytes(std::span(answer)), source);
}

}  // namespace msrl
