#include "msrl/run/manifest.h"

#include <nlohmann/json.hpp>

#include "msrl/core/check.h"
#include "msrl/files/checksum.h"
#include "msrl/files/json_text.h"
#include "msrl/run/json_fields.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
// All that reports and people read. Checkpoints have a checksum of their own, and run.json has
// those of what the run started from.
constexpr const char* kRecords[] = {"run.json",    "config.toml",   "status.json",
                                    "evals.jsonl", "metrics.jsonl", "timing.jsonl"};

std::string ChecksumOf(const fs::path& path) {
  InputFile file(path);
  std::vector<std::byte> part(std::size_t{1} << 16);
  Xxh64 hash;
  for (;;) {
    const std::size_t size = file.Read(part);
    hash.Add(std::span(part).first(size));
    if (size < part.size()) return Hex(hash.Digest());
  }
}

}  // namespace

void WriteManifest(const Folder& run) {
  Json files = Json::object();
  for (const char* name : kRecords) {
    if (fs::exists(run.path() / name)) files[name] = ChecksumOf(run.path() / name);
  }
  const Json json{
      {"format", "msrl-manifest"}, {"format_version", kFormatVersion}, {"xxh64", files}};
  const std::string text = json.dump(2) + "\n";
  const std::string_view contents = text;
  run.Write(kManifestFile, std::span(&contents, 1));
}

std::vector<std::string> ChangedRecords(const fs::path& run) {
  const fs::path file = run / kManifestFile;
  if (!fs::exists(fs::symlink_status(file))) return {};
  const std::string source = file.string();
  const auto json = ParseJson<Json>(ReadWholeFile(file, 1 << 16), source);
  return Strictly<Json>(source, [&] {
    RequireFormat(json, "msrl-manifest", kFormatVersion, "a manifest", source);
    const Json& sums = json.at("xxh64");
    std::vector<std::string> changed;
    for (const char* name : kRecords) {
      if (!sums.contains(name)) continue;
      const bool there = fs::exists(run / name);
      if (there && ChecksumOf(run / name) == sums.at(name).get<std::string>()) continue;
      changed.emplace_back(name);
    }
    return changed;
  });
}

std::string DescribeChanges(const std::vector<std::string>& records) {
  std::string text = "changed after the run had finished:";
  for (const std::string& name : records) text += StrCat(text.back() == ':' ? " " : ", ", name);
  return StrCat(text, " (", kManifestFile, " has the checksums)");
}

}  // namespace msrl
