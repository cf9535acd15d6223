#include "msrl/run/metrics_log.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "msrl/agents/agent.h"
#include "msrl/run/event_file.h"
#include "msrl/run/run_spec.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kEvalsFile = "evals.jsonl";
constexpr const char* kEventsFile = "events.out.tfevents.0.msrl";
constexpr const char* kTimingFile = "timing.jsonl";

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The length up to the last whole line; a killed process may have left half of one.
std::uint64_t WholeLines(const fs::path& path) {
  if (!fs::exists(path)) return 0;
  const std::string text = ReadWholeFile(path, std::uintmax_t{1} << 32);
  const std::size_t end = text.rfind('\n');
  return end == std::string::npos ? 0 : end + 1;
}

std::uint64_t SizeOf(const fs::path& path) { return fs::exists(path) ? InputFile(path).size() : 0; }

// So many bytes of a file of lines are taken over.
std::uint64_t Kept(const fs::path& path, std::int64_t written, LostLines lost) {
  const auto all = static_cast<std::uint64_t>(written);
  return lost == LostLines::kRefuse || SizeOf(path) >= all ? all : WholeLines(path);
}

}  // namespace

void LogSizes::Visit(const Archive& state) {
  state.Int("metrics_bytes", metrics);
  state.Int("evals_bytes", evals);
  state.Int("events_bytes", events);
}

void MetricsLog::RequireLines(const fs::path& folder, const LogSizes& sizes) {
  for (const auto& [name, size] :
       {std::pair(kMetricsFile, sizes.metrics), std::pair(kEvalsFile, sizes.evals),
        std::pair(kEventsFile, sizes.events)}) {
    const std::uint64_t there = SizeOf(folder / name);
    if (there >= static_cast<std::uint64_t>(size)) continue;
    throw UserError(StrCat((folder / name).string(), " has ", there, " bytes where at least ", size,
                           " were written: it was changed from outside"));
  }
}

MetricsLog::MetricsLog(const fs::path& folder, const LogSizes& sizes, LostLines lost)
    : metrics_(folder / kMetricsFile, Kept(folder / kMetricsFile, sizes.metrics, lost)),
      evals_(folder / kEvalsFile, Kept(folder / kEvalsFile, sizes.evals, lost)),
      events_(folder / kEventsFile,
              lost == LostLines::kGoOnWithout &&
                      SizeOf(folder / kEventsFile) < static_cast<std::uint64_t>(sizes.events)
                  ? 0
                  : static_cast<std::uint64_t>(sizes.events)),
      timing_(folder / kTimingFile, WholeLines(folder / kTimingFile)) {
  if (events_.size() == 0) events_.Append(EncodeEventHeader(WallTime()));
}

void MetricsLog::Metrics(std::int64_t step, const Scalars& scalars) {
  Json line{{"step", step}};
  for (const auto& [name, value] : scalars) {
    RequireFinite(name, std::span(&value, 1));
    line[name] = value;
  }
  metrics_.Append(line.dump() + "\n");
  events_.Append(EncodeScalars(WallTime(), step, scalars));
}

void MetricsLog::Evaluation(std::int64_t step, const EvalResult& result, const EnvSpec& spec) {
  Json line;
  line["step"] = step;
  line["episodes"] = result.returns.size();
  line["mean_return"] = result.MeanReturn();
  line["std_return"] = result.StdReturn();
  line["mean_length"] = result.MeanLength();
  Scalars scalars{{"eval/return", result.MeanReturn()}, {"eval/length", result.MeanLength()}};
  if (const auto normalised = NormalisedReturn(spec, result.MeanReturn())) {
    line["normalised_return"] = *normalised;
    scalars.emplace_back("eval/normalised_return", *normalised);
  }
  if (result.successes) {
    line["success_rate"] = result.SuccessRate();
    scalars.emplace_back("eval/success", result.SuccessRate());
  }
  line["returns"] = result.returns;
  line["lengths"] = result.lengths;
  evals_.Append(line.dump() + "\n");
  events_.Append(EncodeScalars(WallTime(), step, scalars));
}

void MetricsLog::Started(std::int64_t step) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const Json line{{"event", "start"},
                  {"step", step},
                  {"time", WallTime()},
                  {"host", host},
                  {"msrl_version", BuildVersion()},
                  {"commit", BuildCommit()}};
  timing_.Append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void MetricsLog::Speed(std::int64_t step, std::int64_t steps, double seconds,
                       double evaluation_seconds) {
  const Json line{{"event", "speed"},
                  {"step", step},
                  {"seconds", seconds},
                  {"training_seconds", seconds - evaluation_seconds},
                  {"evaluation_seconds", evaluation_seconds},
                  {"steps_per_second", static_cast<double>(steps) / seconds}};
  timing_.Append(line.dump() + "\n");
}

LogSizes MetricsLog::Sync() {
  for (AppendFile* file : {&metrics_, &evals_, &events_, &timing_}) file->Sync();
  const auto size = [](const AppendFile& file) { return static_cast<std::int64_t>(file.size()); };
  return {size(metrics_), size(evals_), size(events_)};
}

}  // namespace msrl
