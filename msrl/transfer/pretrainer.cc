#include "msrl/transfer/pretrainer.h"

#include <chrono>
#include <filesystem>

#include "msrl/core/check.h"
#include "msrl/core/text.h"

namespace msrl {
namespace {

constexpr const char* kFormat = "msrl-pretraining";
constexpr std::chrono::milliseconds kShowEvery{200};

// All that the training depends on.
std::string Fingerprint(const PretrainJob& job) {
  std::string text;
  for (const auto& [key, value] : job.made) text += StrCat(key, "=", value, "\n");
  return Hex(StableHash(text));
}

// Empty if the training took it over, otherwise what is wrong with it.
std::string TakeCheckpoint(const std::filesystem::path& path, const std::string& fingerprint,
                           Pretraining& training) {
  const TensorFile file = TensorFile::Read(path);
  const auto entry = [&file](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (entry("format") != kFormat || entry("version") != "1" || !file.has_checksum()) {
    return "no state of a pretraining";
  }
  if (entry("job") != fingerprint) {
    return "the state of a pretraining with other options, data or another msrl";
  }
  const Archive state(file);
  training.Visit(state);
  state.RequireAllUsed();
  return {};
}

void WriteCheckpoint(const std::filesystem::path& path, const std::string& fingerprint,
                     const Pretraining& training) {
  TensorFileBuilder file;
  Archive(file).Save(training);
  file.SetMetadata("format", kFormat);
  file.SetMetadata("version", "1");
  file.SetMetadata("job", fingerprint);
  file.Write(path);
}

}  // namespace

const PretrainerEntry& PretrainerRegistry::FindOrFirst(std::string_view kind) const {
  if (!kind.empty()) return Find(kind);
  if (size() == 0) throw UserError("this program has no kind of pretraining");
  return *begin();
}

PretrainJob PretrainerEntry::JobOf(std::span<const std::string> settings,
                                   std::vector<std::string> sources, std::string_view dataset,
                                   std::string_view held_out, std::uint64_t seed,
                                   ArtefactTexts program) const {
  PretrainJob job{.sources = std::move(sources), .seed = seed, .made = std::move(program)};
  std::string all;
  for (const ConfigField& field : options(settings)) {
    all += StrCat(all.empty() ? "" : "; ", field.key, " = ", field.value);
  }
  std::string names;
  for (const std::string& source : job.sources) names += (names.empty() ? "" : ",") + source;
  job.made["pretrainer"] = id;
  job.made["options"] = all;
  job.made["sources"] = names;
  job.made["dataset"] = dataset;
  job.made["held_out"] = held_out;
  job.made["seed"] = std::to_string(seed);
  return job;
}

std::optional<PretrainResult> RunPretraining(const Pretrainer& pretrainer, const PretrainJob& job,
                                             const PretrainingOptions& options) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<Pretraining> training = pretrainer.Start(job);
  const std::string fingerprint = Fingerprint(job);
  const bool keeps = !options.checkpoint.empty();
  if (keeps && std::filesystem::exists(options.checkpoint)) {
    const std::string problem = TakeCheckpoint(options.checkpoint, fingerprint, *training);
    if (!problem.empty() && !options.begin_anew) {
      throw UserError(
          StrCat(options.checkpoint.string(), " is ", problem, "; remove it to begin anew"));
    }
  }
  const int first = training->done();
  auto saved = Clock::now();
  const auto save = [&] {
    if (keeps) WriteCheckpoint(options.checkpoint, fingerprint, *training);
    saved = Clock::now();
  };
  auto shown = Clock::now();
  const auto show = [&] {
    if (options.progress) options.progress(training->done(), training->total());
    shown = Clock::now();
  };
  while (training->done() < training->total()) {
    if (options.stop && options.stop()) {
      save();
      return std::nullopt;
    }
    training->Advance();
    const auto now = Clock::now();
    if (now - saved >= std::chrono::duration<double>(options.checkpoint_seconds)) save();
    if (now - shown >= kShowEvery) show();
  }
  if (first < training->total()) save();
  show();
  return training->Finish();
}

}  // namespace msrl
