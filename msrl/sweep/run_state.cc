#include "msrl/sweep/run_state.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/json_text.h"
#include "msrl/run/run_directory.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The last whole lines that are JSON objects, newest first, until `take` says that it is done.
template <typename Take>
void LastObjects(const fs::path& file, std::streamoff most, const Take& take) {
  std::string text = FileTail(file, most);
  while (true) {
    const std::size_t end = text.rfind('\n');
    if (end == std::string::npos) return;
    text.resize(end);
    const std::size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
    const auto line = TryParseJson<Json>(std::string_view(text).substr(begin));
    if (line && line->is_object() && take(*line)) return;
  }
}

double Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

// What no run can have done reads 0.
std::int64_t StepNumber(const Json& object) {
  const double step = Number(object, "step");
  return step >= 0.0 && step <= static_cast<double>(RunSpec::kMaxSteps)
             ? static_cast<std::int64_t>(step)
             : 0;
}

void ReadSpeed(const fs::path& run, RunRecord& record) {
  bool newest = true;
  LastObjects(run / "timing.jsonl", 4096, [&](const Json& line) {
    // steps after the last start count; a speed from before it is still a speed
    if (newest) record.step = std::max(record.step, StepNumber(line));
    newest = false;
    record.steps_per_second = Number(line, "steps_per_second");
    return record.steps_per_second > 0.0;
  });
}

template <typename Compare>
void CompareSettings(std::string_view kind, const std::vector<std::string>& found,
                     const std::vector<std::string>& wanted, const Compare& compare) {
  std::map<std::string, std::pair<std::string, std::string>> values;  // found and wanted, by key
  const auto add = [&](const std::vector<std::string>& settings, bool first) {
    for (const std::string& setting : settings) {
      const auto [key, value] = SplitOnce(setting, '=');
      auto& both = values.try_emplace(std::string(key), "missing", "missing").first->second;
      (first ? both.first : both.second) = value;
    }
  };
  add(found, true);
  add(wanted, false);
  for (const auto& [key, both] : values) {
    compare(StrCat(kind, " ", key), both.first, both.second);
  }
}

}  // namespace

std::string_view StateName(RunState state) {
  constexpr std::string_view kNames[] = {"waiting", "running", "finished", "interrupted",
                                         "killed",  "failed",  "damaged"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string FileTail(const fs::path& file, std::streamoff most) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const std::streamoff size = in.tellg();
  const std::streamoff length = std::min(size, most);
  in.seekg(size - length);
  std::string text(static_cast<std::size_t>(length), '\0');
  in.read(text.data(), length);
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

RunRecord ReadRunRecord(const fs::path& run) {
  RunRecord record;
  std::error_code error;
  if (!fs::exists(run / "run.json", error)) return record;
  try {
    const std::string text = ReadWholeFile(run / "run.json", 1 << 24);
    record.spec = RunSpecFromJson(text, (run / "run.json").string());
    record.steps = record.spec->steps;
    record.code = CodeFromJson(text, (run / "run.json").string());
  } catch (const std::exception& problem) {
    record.state = RunState::kDamaged;
    record.message = problem.what();
    return record;
  }
  // killed until the status says otherwise: also if it never came to write one
  record.state = RunState::kKilled;
  const std::string status = FileTail(run / "status.json", 1 << 16);
  if (const auto json = TryParseJson<Json>(status); json && json->is_object()) {
    const Json state = json->value("state", Json());
    record.step = StepNumber(*json);
    if (state == "finished" && record.step >= record.steps) record.state = RunState::kFinished;
    if (state == "interrupted") record.state = RunState::kInterrupted;
    if (state == "failed") record.state = RunState::kFailed;
    const Json message = json->value("message", Json());
    if (message.is_string()) record.message = message.get<std::string>();
  }
  ReadSpeed(run, record);
  if (record.state == RunState::kFinished) return record;
  record.holder = RunDirectory::HolderOf(run);
  if (record.holder) record.state = RunState::kRunning;
  return record;
}

std::optional<double> LastReturn(const fs::path& run) {
  std::optional<double> value;
  LastObjects(run / "evals.jsonl", 1 << 20, [&value](const Json& line) {
    if (line.contains("mean_return")) value = Number(line, "mean_return");
    return value.has_value();
  });
  return value;
}

std::string FirstDifference(const RunSpec& found, const RunSpec& wanted) {
  std::vector<std::string> differences;
  const auto compare = [&](std::string_view what, const std::string& a, const std::string& b) {
    if (a != b) differences.push_back(StrCat(what, " is ", a, ", not ", b));
  };
  compare("environment", found.env, wanted.env);
  compare("agent", found.agent, wanted.agent);
  const std::vector<ConfigField> found_fields = ListFields(found), fields = ListFields(wanted);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].key == "init") continue;
    compare(fields[i].key, found_fields[i].Text(), fields[i].Text());
  }
  CompareSettings("environment option", found.env_settings, wanted.env_settings, compare);
  CompareSettings("setting", found.agent_settings, wanted.agent_settings, compare);
  return differences.empty() ? "" : differences.front();
}

}  // namespace msrl
