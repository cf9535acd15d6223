#include "msrl/run/failure_file.h"

#include <bit>
#include <cstddef>
#include <span>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/core/text.h"

namespace msrl {
namespace {

constexpr std::string_view kFormat = "msrl-failure";
constexpr std::string_view kVersion = "1";

std::span<const std::uint8_t> Octets(const void* data, std::size_t size) {
  return {static_cast<const std::uint8_t*>(data), size};
}

// The shape of a list of any length.
Shape ListOf(const TensorFile& file, std::string_view name) {
  const TensorInfo* info = file.Find(name);
  if (info == nullptr || info->shape.size() != 1) {
    throw UserError(StrCat(file.source(), ": no list '", name, "'"));
  }
  return info->shape;
}

std::vector<double> Numbers(const TensorFile& file, std::string_view name) {
  const std::span<const double> values = file.F64(name, ListOf(file, name));
  return {values.begin(), values.end()};
}

}  // namespace

TensorFileBuilder EncodeFailure(const RunFailure& failure, std::uint64_t fingerprint) {
  TensorFileBuilder file;
  file.SetMetadata("format", std::string(kFormat));
  file.SetMetadata("format_version", std::string(kVersion));
  file.SetMetadata("run", Hex(fingerprint));
  file.SetMetadata("step", std::to_string(failure.step));
  file.SetMetadata("evaluating", failure.evaluating ? "yes" : "no");
  const auto add = [&file](const char* name, std::span<const double> values) {
    file.Add(name, values, {std::ssize(values)});
  };
  const auto add_octets = [&file](const char* name, std::span<const std::uint8_t> values) {
    file.Add(name, values, {std::ssize(values)});
  };
  const EpisodeTrace& episode = failure.episode;
  // not among the metadata: what others raise may be no text
  add_octets("message", Octets(failure.message.data(), failure.message.size()));
  const auto seed = std::bit_cast<std::int64_t>(episode.seed);
  file.AddCopy("seed", std::span<const std::int64_t>(&seed, 1), {1});
  add_octets("snapshot", Octets(episode.snapshot.data(), episode.snapshot.size()));
  add("actions", episode.actions);
  add("observation_before", episode.before);
  const double reward = episode.reward.value_or(0.0);
  const std::int64_t rewards = episode.reward ? 1 : 0;
  file.AddCopy("reward", std::span(&reward, static_cast<std::size_t>(rewards)), {rewards});
  add("observation", failure.observation);
  add("geometry", failure.geometry);
  return file;
}

RunFailure ParseFailure(const TensorFile& file, std::uint64_t fingerprint) {
  const auto get = [&file](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  const auto fail = [&file](std::string_view problem) {
    throw UserError(StrCat(file.source(), ": ", problem));
  };
  if (get("format") != kFormat) fail("not the failure of a run");
  if (get("format_version") != kVersion) {
    fail(StrCat("format version '", get("format_version"), "', this msrl knows ", kVersion));
  }
  if (get("run") != Hex(fingerprint)) fail("the failure of another run");
  RunFailure failure;
  const auto step = ParseNumber<std::int64_t>(get("step"));
  if (!step || *step < 0) fail("a failure without a step");
  failure.step = *step;
  failure.evaluating = get("evaluating") == "yes";
  const auto message = file.U8("message", ListOf(file, "message"));
  failure.message.assign(message.begin(), message.end());
  EpisodeTrace& episode = failure.episode;
  episode.seed = std::bit_cast<std::uint64_t>(file.I64("seed", {1})[0]);
  const auto snapshot = std::as_bytes(file.U8("snapshot", ListOf(file, "snapshot")));
  episode.snapshot.assign(snapshot.begin(), snapshot.end());
  episode.actions = Numbers(file, "actions");
  episode.before = Numbers(file, "observation_before");
  const std::vector<double> reward = Numbers(file, "reward");
  if (reward.size() > 1) fail("more than one reward");
  if (!reward.empty()) episode.reward = reward[0];
  failure.observation = Numbers(file, "observation");
  failure.geometry = Numbers(file, "geometry");
  return failure;
}

}  // namespace msrl
