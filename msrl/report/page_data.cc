#include "msrl/report/page_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "msrl/core/check.h"

namespace msrl::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlace = "\"__MSRL_DATA__\"";

Json Number(double value) {
  if (!std::isfinite(value)) return nullptr;
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

Json Number(const std::optional<double>& value) { return value ? Number(*value) : Json(); }

template <typename Values>
Json Numbers(const Values& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(Number(value));
  return list;
}

Json Low(const std::optional<Interval>& interval) {
  return interval ? Number(interval->low) : Json();
}
Json High(const std::optional<Interval>& interval) {
  return interval ? Number(interval->high) : Json();
}

Json CellJson(const std::optional<ScoreCell>& cell) {
  if (!cell) return nullptr;
  Json json{{"mean", Number(cell->mean)},
            {"std", Number(cell->std)},
            {"n", cell->n},
            {"iqm", Number(cell->iqm)},
            {"low", Low(cell->interval)},
            {"high", High(cell->interval)},
            {"mean_low", Low(cell->mean_interval)},
            {"mean_high", High(cell->mean_interval)},
            {"paper", nullptr}};
  if (cell->paper) {
    json["paper"] = {{"mean", Number(cell->paper->mean)}, {"std", Number(cell->paper->std)}};
  }
  return json;
}

Json RateJson(const std::optional<RateCell>& cell) {
  return cell ? Json{{"mean", Number(cell->mean)}, {"n", cell->n}} : Json();
}

Json ThresholdJson(const std::optional<ThresholdSummary>& cell) {
  if (!cell) return nullptr;
  return {{"median", Number(cell->median)}, {"reached", cell->reached}, {"n", cell->n}};
}

template <typename Cells, typename Convert>
Json List(const Cells& cells, const Convert& convert) {
  Json list = Json::array();
  for (const auto& cell : cells) list.push_back(convert(cell));
  return list;
}

class PageMaker {
 public:
  PageMaker(const RunRecords& records, const Analysis& analysis, const Exhibits& exhibits)
      : records_(records), analysis_(analysis), exhibits_(exhibits) {}

  const std::string& Method(int method) const {
    return analysis_.methods[static_cast<std::size_t>(method)].facts.name;
  }
  std::string Task(int task) const {
    return task == kAllTasks ? "all" : analysis_.tasks[static_cast<std::size_t>(task)].name;
  }

  Json Header(const PageHeader& header) const {
    const RunCounts& counts = records_.counts;
    Json json;
    json["title"] = records_.sweep.name;
    json["created"] = header.created;
    json["msrl_version"] = BuildVersion();
    json["commit"] = BuildCommit();
    json["host"] = header.host;
    json["commands"] = header.commands;
    json["few_shot"] = Number(analysis_.few_shot);
    json["runs"] = {{"finished", counts.finished}, {"running", counts.running},
                    {"failed", counts.failed},     {"interrupted", counts.interrupted},
                    {"missing", counts.missing},   {"damaged", counts.damaged}};
    json["problems"] = Json::array();
    for (const auto* problems : {&records_.problems, &analysis_.problems, &exhibits_.problems}) {
      for (const RecordProblem& problem : *problems) {
        json["problems"].push_back({{"path", problem.path}, {"what", problem.what}});
      }
    }
    return json;
  }

  Json Verdicts() const {
    return List(analysis_.verdicts, [this](const Verdict& verdict) {
      return Json{{"env", Task(verdict.task)},
                  {"comparison", StrCat(Method(verdict.of.a), " − ", Method(verdict.of.b))},
                  {"gain", Number(verdict.gain.mean)},
                  {"low", Low(verdict.gain.interval)},
                  {"high", High(verdict.gain.interval)},
                  {"n", verdict.gain.n},
                  {"text", verdict.text}};
    });
  }

  Json Families() const {
    return List(analysis_.families, [this](const std::string& family) {
      Json envs = Json::array();
      for (const int task : analysis_.TasksOf(family)) envs.push_back(Task(task));
      return Json{{"name", family}, {"envs", envs}};
    });
  }

  Json Envs() const {
    return List(analysis_.tasks, [](const TaskInfo& task) {
      return Json{{"name", task.name},
                  {"id", task.id},
                  {"family", task.family},
                  {"steps", task.steps},
                  {"few_shot_steps", Number(task.few_shot_steps)},
                  {"random_return", Number(task.random_return)},
                  {"reference_return", Number(task.reference_return)},
                  {"still_return", Number(task.still_return)},
                  {"best_final_return", Number(task.best_final_return)},
                  {"unit", "return"}};
    });
  }

  Json Methods() const {
    return List(analysis_.methods, [](const MethodInfo& method) {
      return Json{{"name", method.facts.name},   {"title", method.facts.title},
                  {"role", method.facts.role},   {"component", method.facts.component},
                  {"paper", method.facts.paper}, {"agent", method.facts.agent},
                  {"measured", method.measured}};
    });
  }

  Json Curves() const {
    return List(analysis_.curves, [this](const Curve& curve) {
      Json json{{"env", Task(curve.task)},
                {"method", Method(curve.method)},
                {"steps", curve.steps},
                {"mean", Numbers(curve.mean)},
                {"low", Numbers(curve.low)},
                {"high", Numbers(curve.high)},
                {"raw_mean", Numbers(curve.mean_return)}};
      json["raw_low"] = Numbers(curve.low_return);
      json["raw_high"] = Numbers(curve.high_return);
      const bool success = std::any_of(curve.success.begin(), curve.success.end(),
                                       [](const auto& value) { return value.has_value(); });
      json["success"] = success ? Numbers(curve.success) : Json();
      json["seeds"] = List(curve.seeds, [](const CurveOfSeed& line) {
        return Json{
            {"seed", line.seed}, {"values", Numbers(line.values)}, {"raw", Numbers(line.returns)}};
      });
      return json;
    });
  }

  // Rows of methods with these roles; all if there are none.
  Json Rows(const std::vector<std::string>& roles) const {
    Json rows = Json::array();
    for (const MethodRow& row : analysis_.rows) {
      const std::string& role = analysis_.methods[static_cast<std::size_t>(row.method)].facts.role;
      if (!roles.empty() && std::find(roles.begin(), roles.end(), role) == roles.end()) continue;
      rows.push_back({{"method", Method(row.method)},
                      {"cells", List(row.auc, CellJson)},
                      {"final", List(row.final_return, CellJson)},
                      {"success", List(row.success, RateJson)},
                      {"threshold", List(row.threshold, ThresholdJson)},
                      {"auc_paper_style", List(row.paper_style, CellJson)}});
    }
    return rows;
  }
  // Empty if no method has the role that the table is about.
  Json RowsAbout(const char* role) const {
    const bool any =
        std::any_of(analysis_.methods.begin(), analysis_.methods.end(),
                    [role](const MethodInfo& method) { return method.facts.role == role; });
    return {{"rows", any ? Rows({"scratch", role, "transfer"}) : Json::array()}};
  }

  Json Main() const {
    Json json{{"columns", analysis_.Columns()}, {"rows", Rows({})}};
    json["improvement"] = List(analysis_.improvements, [this](const ImprovementEntry& entry) {
      return Json{{"a", Method(entry.of.a)},    {"b", Method(entry.of.b)},
                  {"env", Task(entry.task)},    {"p", Number(entry.probability)},
                  {"low", Low(entry.interval)}, {"high", High(entry.interval)}};
    });
    return json;
  }

  Json Gains() const {
    return List(analysis_.gains, [this](const GainEntry& entry) {
      return Json{{"env", Task(entry.task)},
                  {"a", Method(entry.of.a)},
                  {"b", Method(entry.of.b)},
                  {"mean", Number(entry.gain.mean)},
                  {"low", Low(entry.gain.interval)},
                  {"high", High(entry.gain.interval)},
                  {"n", entry.gain.n},
                  {"wins", entry.gain.wins},
                  {"paper", Number(entry.paper)}};
    });
  }

  Json Pretraining() const {
    if (records_.pretrain_json.empty()) return nullptr;
    const Json read = Json::parse(records_.pretrain_json);
    Json json{{"rows", read.at("rows")}, {"objective", nullptr}};
    if (read.contains("config") && read["config"].contains("objective")) {
      json["objective"] = read["config"]["objective"];
    }
    return json;
  }

  Json Branches() const {
    Json list = Json::array();
    const auto& branches = records_.branches;
    for (std::size_t i = 0; i < branches.size();) {
      double rank = 0.0, centred = 0.0, difference = 0.0;
      std::size_t end = i;
      for (; end < branches.size() && branches[end].branch == branches[i].branch; ++end) {
        rank += branches[end].rank_correlation;
        centred += branches[end].centred_rank_correlation;
        difference += branches[end].difference_correlation;
      }
      const auto n = static_cast<double>(end - i);
      list.push_back({{"name", branches[i].branch},
                      {"seeds", end - i},
                      {"rank_correlation", Number(rank / n)},
                      {"centred_rank_correlation", Number(centred / n)},
                      {"difference_correlation", Number(difference / n)},
                      {"updates", branches[i].updates},
                      {"dataset", branches[i].dataset}});
      i = end;
    }
    return list;
  }

  Json Predictor() const {
    Json list = Json::array();
    for (const RunScore& score : analysis_.scores) {
      if (!score.run->transfer) continue;
      list.push_back({{"env", Task(score.task)},
                      {"method", Method(score.method)},
                      {"seed", score.seed()},
                      {"predictor", Number(score.run->transfer->predictor)},
                      {"amplitude", Number(score.run->transfer->amplitude)}});
    }
    return list;
  }

  Json Of(const RunScore& score) const {
    return {{"env", Task(score.task)}, {"method", Method(score.method)}, {"seed", score.seed()}};
  }

  Json Matrices() const {
    return List(exhibits_.matrices, [this](const MatrixExhibit& exhibit) {
      Json json = Of(*exhibit.of);
      json["blocks"] = List(exhibit.blocks, [](const auto& block) {
        return Json{{"name", block.first}, {"size", block.second}};
      });
      json["labels"] = exhibit.labels;
      json["prefixes"] = List(exhibit.prefixes, [](const MatrixPrefix& prefix) {
        return Json{{"t", prefix.step},
                    {"reward", Number(prefix.reward)},
                    {"return", Number(prefix.episode)},
                    {"packed", Numbers(prefix.packed)}};
      });
      return json;
    });
  }

  Json Libraries() const {
    return List(exhibits_.libraries, [this](const LibraryExhibit& exhibit) {
      Json json = Of(*exhibit.of);
      json["size"] = exhibit.size;
      json["capacity"] = exhibit.capacity;
      json["slots"] =
          List(AlignedSlots(), [](const GeometrySlot& slot) { return Json(slot.name); });
      json["segments"] = List(exhibit.segments, [](const LibrarySegment& segment) {
        return Json{{"id", segment.slot},
                    {"uses", segment.uses},
                    {"reward", Number(segment.reward)},
                    {"length", segment.length},
                    {"head", Numbers(segment.head)},
                    {"entry", Numbers(segment.entry)},
                    {"tail", Numbers(segment.tail)},
                    {"terminated", segment.terminated}};
      });
      return json;
    });
  }

  Json Obstructions() const {
    return List(exhibits_.obstructions, [this](const ObstructionExhibit& exhibit) {
      Json json = Of(*exhibit.of);
      json["auroc"] = Number(exhibit.auroc);
      json["ece"] = Number(exhibit.ece);
      json["brier"] = Number(exhibit.brier);
      json["base_rate"] = Number(exhibit.base_rate);
      json["threshold"] = Number(exhibit.threshold);
      json["roc"] = List(exhibit.roc, [](const auto& point) {
        return Json::array({Number(point.first), Number(point.second)});
      });
      json["calibration"] = List(exhibit.calibration, [](const CalibrationBin& bin) {
        return Json{
            {"predicted", Number(bin.predicted)}, {"observed", Number(bin.observed)}, {"n", bin.n}};
      });
      return json;
    });
  }

  Json Costs() const {
    return List(analysis_.costs, [this](const CostEntry& cost) {
      const bool timed = cost.seconds > 0.0;
      return Json{{"env", Task(cost.task)},
                  {"method", Method(cost.method)},
                  {"steps_per_second", timed ? Number(cost.steps_per_second) : Json()},
                  {"parameters", cost.parameters},
                  {"seconds", timed ? Number(cost.seconds) : Json()}};
    });
  }

 private:
  const RunRecords& records_;
  const Analysis& analysis_;
  const Exhibits& exhibits_;
};

}  // namespace

std::string ToPageData(const RunRecords& records, const Analysis& analysis,
                       const std::vector<FairnessItem>& fairness, const Exhibits& exhibits,
                       const PageHeader& header) {
  const PageMaker page(records, analysis, exhibits);
  Json json;
  json["format"] = "msrl-report";
  json["format_version"] = 1;
  json["header"] = page.Header(header);
  json["min_verdict_pairs"] = kMinVerdictPairs;
  json["verdicts"] = page.Verdicts();
  json["families"] = page.Families();
  json["envs"] = page.Envs();
  json["methods"] = page.Methods();
  json["curves"] = page.Curves();
  json["main"] = page.Main();
  json["gains"] = page.Gains();
  json["controls"] = page.RowsAbout("control");
  json["ablations"] = page.RowsAbout("ablation");
  json["pretraining"] = page.Pretraining();
  json["branches"] = page.Branches();
  json["diagnostics"] = nullptr;
  if (!records.diagnose_json.empty()) {
    json["diagnostics"] = {{"rows", Json::parse(records.diagnose_json).at("rows")}};
  }
  json["predictor"] = page.Predictor();
  json["matrices"] = page.Matrices();
  json["library"] = page.Libraries();
  json["obstruction"] = page.Obstructions();
  json["fairness"] = List(fairness, [](const FairnessItem& item) {
    return Json{
        {"item", item.item}, {"ok", item.ok ? Json(*item.ok) : Json()}, {"found", item.found}};
  });
  json["cost"] = page.Costs();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string FillPage(std::string_view page_template, std::string_view data) {
  const std::size_t place = page_template.find(kPlace);
  MSRL_CHECK(place != std::string_view::npos &&
                 page_template.find(kPlace, place + 1) == std::string_view::npos,
             "the page has no single place for its data");
  std::string page(page_template.substr(0, place));
  page.reserve(page_template.size() + data.size() + data.size() / 16);
  for (const char c : data) {
    if (c == '<') {
      page += "\\u003c";
    } else {
      page += c;
    }
  }
  page += page_template.substr(place + kPlace.size());
  return page;
}

}  // namespace msrl::report
