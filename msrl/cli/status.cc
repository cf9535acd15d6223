#include "msrl/cli/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"

namespace msrl::cli {
namespace {

using State = TaskEntry::State;

struct StatusArguments : OptionList {
  std::string& directory = Required("DIR", "Directory of the sweep");
  bool& json = Flag("--json", "As JSON");
};

// Runs by the names of their states.
using Counts = std::map<std::string, int>;

struct Cell {
  Counts counts;
  int total = 0;
  double returns = 0.0;
  int returned = 0;
};
// By environment and method, in the plan's order.
using Cells = std::map<std::pair<std::size_t, std::size_t>, Cell>;

// What a user calls the state of a task.
std::string NameOf(const TaskEntry& entry) {
  if (entry.state == State::kDone) return "finished";
  if (entry.state == State::kFailed) {
    return entry.record.state == RunState::kDamaged ? "damaged" : "failed";
  }
  if (entry.task.kind == SweepTask::Kind::kRun) return std::string(StateName(entry.record.state));
  return entry.state == State::kWaiting ? "waiting" : "running";
}

Cells CellsOf(const Ledger& ledger) {
  Cells cells;
  for (const TaskEntry& entry : ledger.entries()) {
    if (entry.task.kind != SweepTask::Kind::kRun || !entry.wanted) continue;
    const PlannedRun& run = ledger.plan().runs[entry.task.item];
    Cell& cell = cells[{run.env, run.method}];
    ++cell.total;
    ++cell.counts[NameOf(entry)];
    if (entry.state != State::kDone) continue;
    if (const auto value = LastReturn(ledger.directory().File(run.path))) {
      cell.returns += *value;
      ++cell.returned;
    }
  }
  return cells;
}

Counts Totals(const Cells& cells) {
  Counts totals;
  for (const auto& [place, cell] : cells) {
    for (const auto& [name, count] : cell.counts) totals[name] += count;
  }
  return totals;
}

int Workers(const Ledger& ledger) {
  return static_cast<int>(std::count_if(
      ledger.entries().begin(), ledger.entries().end(),
      [](const TaskEntry& entry) { return entry.record.state == RunState::kRunning; }));
}

Json ToJson(const Ledger& ledger) {
  const SweepPlan& plan = ledger.plan();
  const Cells cells = CellsOf(ledger);
  const auto driver = ledger.directory().Driver();
  Json json{{"name", plan.name},
            {"directory", ledger.directory().path().string()},
            {"driver", driver ? Json(driver->Describe()) : Json()},
            {"runs", Totals(cells)},
            {"table", Json::array()}};
  for (const auto& [place, cell] : cells) {
    Json row{{"env", plan.envs[place.first].name},
             {"method", plan.methods[place.second].name},
             {"total", cell.total}};
    for (const auto& [name, count] : cell.counts) row[name] = count;
    row["final_return"] = cell.returned > 0 ? Json(cell.returns / cell.returned) : Json();
    json["table"].push_back(std::move(row));
  }
  json["running"] = Json::array();
  json["failed"] = Json::array();
  for (const TaskEntry& entry : ledger.entries()) {
    if (entry.state == State::kFailed) {
      json["failed"].push_back({{"task", entry.task.path}, {"message", entry.message}});
    }
    if (entry.record.state != RunState::kRunning) continue;
    json["running"].push_back({{"task", entry.task.path},
                               {"step", entry.record.step},
                               {"steps", entry.record.steps},
                               {"steps_per_second", entry.record.steps_per_second},
                               {"holder", entry.record.holder->Describe()}});
  }
  const auto left = ledger.SecondsLeft(Workers(ledger));
  json["seconds_left"] = left ? Json(*left) : Json();
  return json;
}

void Print(const Ledger& ledger) {
  const TaskCounts runs = ledger.Runs();
  const TaskCounts preparations = ledger.Preparations();
  const auto driver = ledger.directory().Driver();
  fmt::print("{} in {}: {} of {} runs finished{}\n", ledger.plan().name,
             ledger.directory().path().string(), runs.done, runs.total(),
             driver ? ", driven by " + driver->Describe() : "");
  if (preparations.total() > 0) {
    fmt::print("source data and branches: {} of {} there\n", preparations.done,
               preparations.total());
  }
  fmt::print("\n{}", SummaryTable(ledger));
  bool any = false;
  for (const TaskEntry& entry : ledger.entries()) {
    if (entry.record.state != RunState::kRunning) continue;
    fmt::print("{}running {}: step {} of {}, {:.0f} steps/s, {}\n", any ? "" : "\n",
               entry.task.path, entry.record.step, entry.record.steps,
               entry.record.steps_per_second, entry.record.holder->Describe());
    any = true;
  }
  if (const std::string failures = FailureList(ledger); !failures.empty()) {
    fmt::print("\n{}", failures);
  }
  if (runs.done == runs.total()) return;
  const int workers = Workers(ledger);
  const auto left = ledger.SecondsLeft(workers);
  if (left && workers > 0) {
    fmt::print("\nabout {} left with {} at work\n", Duration(*left), workers);
  } else if (workers == 0 && !driver) {
    fmt::print("\nnobody is at work; continue with: {}{}\n", ledger.plan().command,
               FailureList(ledger).empty() ? "" : " --retry");
  }
}

void RunStatus(const StatusArguments& arguments, const Program& /*program*/) {
  const SweepDirectory directory(arguments.directory);
  const Ledger ledger(directory, directory.ReadPlan());
  if (arguments.json) return PrintJson(ToJson(ledger));
  Print(ledger);
}

}  // namespace

std::string SummaryTable(const Ledger& ledger) {
  const SweepPlan& plan = ledger.plan();
  const Cells cells = CellsOf(ledger);
  const Counts totals = Totals(cells);
  std::vector<std::string> columns{"finished", "running", "waiting", "interrupted",
                                   "killed",   "failed",  "damaged"};
  std::erase_if(columns, [&totals](const std::string& column) {
    return column != "finished" && !totals.contains(column);
  });
  std::size_t width = 12;
  for (const auto& [place, cell] : cells) {
    width = std::max(
        {width, plan.envs[place.first].name.size(), plan.methods[place.second].name.size()});
  }
  std::string text = fmt::format("{:<{}}  {:<{}}", "environment", width, "method", width);
  for (const std::string& column : columns) text += fmt::format("  {:>11}", column);
  text += fmt::format("  {:>12}\n", "final return");
  std::size_t last_env = SIZE_MAX;
  for (const auto& [place, cell] : cells) {
    const bool repeated = place.first == last_env;
    last_env = place.first;
    text += fmt::format("{:<{}}  {:<{}}", repeated ? "" : plan.envs[place.first].name, width,
                        plan.methods[place.second].name, width);
    for (const std::string& column : columns) {
      const auto found = cell.counts.find(column);
      const int count = found == cell.counts.end() ? 0 : found->second;
      const std::string shown = column == "finished" ? fmt::format("{} of {}", count, cell.total)
                                : count == 0         ? "."
                                                     : std::to_string(count);
      text += fmt::format("  {:>11}", shown);
    }
    text +=
        fmt::format("  {:>12}\n",
                    cell.returned == 0 ? "." : fmt::format("{:.4g}", cell.returns / cell.returned));
  }
  return text;
}

std::string FailureList(const Ledger& ledger) {
  std::string text;
  int blocked = 0;
  const TaskEntry* by = nullptr;
  for (const TaskEntry& entry : ledger.entries()) {
    if (entry.wanted && entry.state == State::kFailed) {
      text += fmt::format("failed {}: {}\n", entry.task.path, entry.message);
    }
    const TaskEntry* reason = entry.wanted ? ledger.BlockedBy(entry) : nullptr;
    if (reason == nullptr) continue;
    ++blocked;
    by = reason;
  }
  if (blocked > 0) {
    text += fmt::format("{} task{} for what failed, e.g. {}\n", blocked,
                        blocked == 1 ? " waits" : "s wait", by->task.path);
  }
  return text;
}

void AddStatus(CLI::App& app, const Program& program) {
  AddCommand(app, program, "status", "What is done and left of a sweep", RunStatus)
      ->footer("Reads the run directories alone: it works while a sweep runs and after it.");
}

}  // namespace msrl::cli
