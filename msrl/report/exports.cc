#include "msrl/report/exports.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/json_text.h"
#include "msrl/run/json_fields.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kPlace = "\"__MSRL_DATA__\"";

// Lists, and values that may be missing.
template <typename T>
Json Value(const T& value) {
  return ToJsonValue<Json>(value);
}
Json Low(const std::optional<Interval>& interval) {
  return interval ? Json(interval->low) : Json();
}
Json High(const std::optional<Interval>& interval) {
  return interval ? Json(interval->high) : Json();
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(4 * (bytes.size() / 3 + 1));
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) -> unsigned {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0;
    };
    const unsigned bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

template <typename Items, typename Convert>
Json List(const Items& items, const Convert& convert) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(convert(item));
  return list;
}

Json CellJson(const std::optional<ScoreCell>& cell) {
  if (!cell) return nullptr;
  Json json{{"mean", cell->mean},
            {"std", Value(cell->std)},
            {"n", cell->n},
            {"iqm", Value(cell->iqm)},
            {"low", Low(cell->interval)},
            {"high", High(cell->interval)},
            {"mean_low", Low(cell->mean_interval)},
            {"mean_high", High(cell->mean_interval)},
            {"paper", nullptr}};
  if (cell->paper) json["paper"] = {{"mean", cell->paper->mean}, {"std", Value(cell->paper->std)}};
  return json;
}

Json RateJson(const std::optional<ScoreCell>& cell) {
  return cell ? Json{{"mean", cell->mean}, {"n", cell->n}} : Json();
}

Json ThresholdJson(const std::optional<ThresholdSummary>& cell) {
  if (!cell) return nullptr;
  return {{"median", Value(cell->median)}, {"reached", cell->reached}, {"n", cell->n}};
}

// Everything that is shown, as one document: the page's data, and the rows of the CSV files.
class Document {
 public:
  Document(const RunRecords& records, const Analysis& analysis)
      : records_(records), analysis_(analysis) {}

  // What the page is made of; figures are not rounded yet.
  Json Page(const std::vector<FairnessItem>& fairness, const Exhibits& exhibits = {},
            const PageHeader& header = {}) const {
    Json json;
    json["format"] = "msrl-report";
    json["format_version"] = 1;
    json["header"] = Header(header, exhibits.problems);
    json["min_verdict_pairs"] = kMinVerdictPairs;
    json["verdicts"] = List(analysis_.verdicts, [this](const Verdict& verdict) {
      return Json{{"env", Task(verdict.task)},
                  {"comparison", StrCat(Method(verdict.of.a), " − ", Method(verdict.of.b))},
                  {"gain", verdict.gain.mean},
                  {"low", Low(verdict.gain.interval)},
                  {"high", High(verdict.gain.interval)},
                  {"n", verdict.gain.n},
                  {"text", verdict.text}};
    });
    json["judges_transfer"] = analysis_.JudgesTransfer();
    json["cautions"] = List(analysis_.cautions, [this](const Caution& caution) {
      return Json{{"env", Task(caution.task)}, {"text", caution.text}};
    });
    json["selections"] = List(analysis_.selections, [this](const Selection& selection) {
      return Json{{"of", selection.of},
                  {"best", Method(selection.best)},
                  {"settings", analysis_.Method(selection.best).varied},
                  {"score", selection.score},
                  {"next", selection.next},
                  {"last", selection.last},
                  {"raw", selection.raw},
                  {"variants", selection.variants},
                  {"scored", selection.scored},
                  {"tasks", selection.tasks},
                  {"seeds", selection.seeds}};
    });
    for (const auto& [key, aggregates] :
         {std::pair("aggregate_curves", &analysis_.aggregate_curves),
          std::pair("profiles", &analysis_.profiles)}) {
      json[key] = List(*aggregates, [this](const Aggregate& aggregate) {
        return Json{{"method", Method(aggregate.method)},
                    {"at", aggregate.at},
                    {"value", aggregate.value},
                    {"low", Value(aggregate.low)},
                    {"high", Value(aggregate.high)}};
      });
    }
    json["families"] = List(analysis_.families, [this](const std::string& family) {
      return Json{{"name", family},
                  {"envs", List(analysis_.TasksOf(family), [this](int t) { return Task(t); })}};
    });
    json["envs"] = List(analysis_.tasks, [](const TaskInfo& task) {
      return Json{{"name", task.name},
                  {"id", task.id},
                  {"family", task.family},
                  {"steps", task.steps},
                  {"few_shot_steps", task.few_shot_steps},
                  {"random_return", Value(task.random_return)},
                  {"reference_return", Value(task.reference_return)},
                  {"still_return", Value(task.still_return)},
                  {"best_final_return", Value(task.best_final_return)},
                  {"unit", "return"}};
    });
    json["methods"] = List(analysis_.methods, [](const MethodInfo& method) {
      return Json{{"name", method.facts.name},
                  {"title", method.facts.title},
                  {"role", method.facts.role},
                  {"component", method.facts.component},
                  {"paper", method.facts.paper},
                  {"agent", method.facts.agent},
                  {"measured", method.measured != nullptr}};
    });
    json["curves"] =
        List(analysis_.curves, [this](const Curve& curve) { return CurveJson(curve); });
    json["main"] = {{"columns", analysis_.Columns()}, {"rows", Rows({})}};
    json["main"]["improvement"] =
        List(analysis_.improvements, [this](const ImprovementEntry& entry) {
          return Json{{"a", Method(entry.of.a)},    {"b", Method(entry.of.b)},
                      {"env", Task(entry.task)},    {"p", entry.probability},
                      {"low", Low(entry.interval)}, {"high", High(entry.interval)}};
        });
    json["raw_returns"] = List(analysis_.raw_returns, [this](const RawReturns& entry) {
      return Json{{"env", Task(entry.task)},
                  {"method", Method(entry.method)},
                  {"few_shot", CellJson(entry.few_shot)},
                  {"final", CellJson(entry.final_return)}};
    });
    json["gains"] = List(analysis_.gains, [this](const GainEntry& entry) {
      return Json{{"env", Task(entry.task)},
                  {"a", Method(entry.of.a)},
                  {"b", Method(entry.of.b)},
                  {"mean", entry.gain.mean},
                  {"low", Low(entry.gain.interval)},
                  {"high", High(entry.gain.interval)},
                  {"n", entry.gain.n},
                  {"wins", entry.gain.wins},
                  {"paper", Value(entry.paper)}};
    });
    for (const std::string role : {"control", "ablation"}) {
      json[role + "s"] = {
          {"rows", analysis_.HasRole(role) ? Rows({"scratch", role, "transfer"}) : Json::array()}};
    }
    json["pretraining"] = nullptr;
    json["branches"] = List(records_.branches, [](const BranchRecord& branch) {
      Json row{{"name", branch.branch}, {"seeds", branch.seeds}};
      for (const char* key :
           {"rank_correlation", "centred_rank_correlation", "difference_correlation"}) {
        row[key] = Value(branch.Figure(key));
      }
      row["updates"] = branch.updates;
      row["dataset"] = branch.dataset;
      return row;
    });
    json["diagnostics"] = nullptr;
    json["predictor"] = Json::array();
    for (const RunScore& score : analysis_.scores) {
      if (const std::optional<TransferFigures>& transfer = score.run->transfer) {
        json["predictor"].push_back(Of(score, {{"predictor", transfer->predictor},
                                               {"amplitude", Value(transfer->amplitude)}}));
      }
    }
    json["clips"] = List(exhibits.clips, [this](const Clip& clip) {
      return Of(*clip.of, {{"runs", clip.runs},
                           {"steps", clip.steps},
                           {"ended", clip.ended},
                           {"return", clip.episode},
                           {"width", clip.width},
                           {"height", clip.height},
                           {"gif", Base64(clip.gif)},
                           {"first_frame", Base64(clip.still)}});
    });
    json["matrices"] = List(exhibits.matrices, [this](const MatrixExhibit& exhibit) {
      const auto block = [](const auto& named) {
        return Json{{"name", named.first}, {"size", named.second}};
      };
      const auto prefix = [](const MatrixPrefix& shown) {
        return Json{{"t", shown.step},
                    {"reward", shown.reward},
                    {"return", shown.episode},
                    {"packed", shown.packed}};
      };
      return Of(*exhibit.of, {{"blocks", List(exhibit.blocks, block)},
                              {"labels", exhibit.labels},
                              {"prefixes", List(exhibit.prefixes, prefix)}});
    });
    json["library"] = List(exhibits.libraries, [this](const LibraryExhibit& exhibit) {
      const auto name = [](const GeometrySlot& slot) { return Json(slot.name); };
      const auto segment = [](const LibrarySegment& shown) {
        return Json{{"id", shown.slot},       {"uses", shown.uses},
                    {"reward", shown.reward}, {"length", shown.length},
                    {"head", shown.head},     {"entry", shown.entry},
                    {"tail", shown.tail},     {"terminated", shown.terminated}};
      };
      return Of(*exhibit.of, {{"size", exhibit.size},
                              {"capacity", exhibit.capacity},
                              {"slots", List(AlignedSlots(), name)},
                              {"segments", List(exhibit.segments, segment)}});
    });
    json["obstruction"] = List(exhibits.obstructions, [this](const ObstructionExhibit& exhibit) {
      const auto bin = [](const CalibrationBin& shown) {
        return Json{{"predicted", shown.predicted}, {"observed", shown.observed}, {"n", shown.n}};
      };
      return Of(*exhibit.of, {{"auroc", Value(exhibit.auroc)},
                              {"ece", exhibit.ece},
                              {"brier", exhibit.brier},
                              {"base_rate", exhibit.base_rate},
                              {"threshold", Value(exhibit.threshold)},
                              {"roc", exhibit.roc},
                              {"calibration", List(exhibit.calibration, bin)}});
    });
    json["fairness"] = List(fairness, [](const FairnessItem& item) {
      return Json{{"item", item.item}, {"ok", Value(item.ok)}, {"found", item.found}};
    });
    json["cost"] = List(analysis_.costs, [this](const CostEntry& cost) {
      const bool timed = cost.seconds > 0.0;
      return Json{{"env", Task(cost.task)},
                  {"method", Method(cost.method)},
                  {"steps_per_second", timed ? Json(cost.steps_per_second) : Json()},
                  {"parameters", cost.parameters},
                  {"simulator_steps", cost.simulator_steps},
                  {"seconds", timed ? Json(cost.seconds) : Json()}};
    });
    return json;
  }

  // A row per run and a row per evaluation, which the page does not have.
  Json Runs() const {
    return List(analysis_.scores, [this](const RunScore& score) {
      const RunRecord& run = *score.run;
      // "never" only where there is something to reach
      const bool never = run.finished() && analysis_.Task(score.task).threshold_return;
      const Json threshold =
          score.threshold_step ? Json(*score.threshold_step) : Json(never ? "never" : "");
      return Of(score, {{"path", run.path},
                        {"state", StateName(run.status.state)},
                        {"step", run.status.step},
                        {"steps", run.facts.spec.steps},
                        {"few_shot_return", Value(score.few_shot_return)},
                        {"few_shot_auc", Value(score.auc)},
                        {"few_shot_auc_paper_style", Value(score.paper_style)},
                        {"final_return", Value(score.final_return)},
                        {"final_normalised", Value(score.final_normalised)},
                        {"success_rate", Value(score.success)},
                        {"steps_to_threshold", threshold},
                        {"parameters", run.facts.parameters},
                        {"seconds", run.timing.seconds},
                        {"commit", CommitsOf(run.facts.code)}});
    });
  }
  Json Evaluations() const {
    Json rows = Json::array();
    for (const RunScore& score : analysis_.scores) {
      for (const Evaluation& evaluation : score.run->evaluations) {
        const auto normalised = analysis_.Task(score.task).Normalised(evaluation.mean_return);
        rows.push_back(Of(score, {{"step", evaluation.step},
                                  {"return", evaluation.mean_return},
                                  {"normalised_return", Value(normalised)},
                                  {"success_rate", Value(evaluation.success_rate)}}));
      }
    }
    return rows;
  }
  // The cells of the page's main table, one by one.
  Json Cells(const Json& page) const {
    Json rows = Json::array();
    const std::vector<std::string> columns = analysis_.Columns();
    for (std::size_t m = 0; m < analysis_.rows.size(); ++m) {
      const Json& row = page["main"]["rows"][m];
      for (std::size_t c = 0; c < columns.size(); ++c) {
        for (const auto& [metric, key] :
             {std::pair("few_shot_auc", "cells"),
              std::pair("few_shot_auc_paper_style", "auc_paper_style"),
              std::pair("final_normalised", "final"), std::pair("success_rate", "success"),
              std::pair("steps_to_threshold", "threshold")}) {
          Json cell = row[key][c];
          if (cell.is_null()) continue;
          cell["metric"] = metric;
          cell["column"] = columns[c];
          cell["method"] = row["method"];
          cell["title"] = page["methods"][m]["title"];
          // empty if at least half never reached it
          if (cell.contains("median")) cell["mean"] = cell["median"];
          if (cell.contains("paper") && cell["paper"].is_object()) {
            cell["paper"] = Json(cell["paper"]["mean"]);
          }
          rows.push_back(std::move(cell));
        }
      }
    }
    return rows;
  }

 private:
  const std::string& Method(int method) const { return analysis_.Method(method).name; }
  std::string Task(int task) const { return analysis_.TaskName(task); }
  Json Of(const RunScore& score, const Json& more) const {
    Json row{{"env", Task(score.task)}, {"method", Method(score.method)}, {"seed", score.seed()}};
    row.update(more);
    return row;
  }

  Json Header(const PageHeader& header, const std::vector<RecordProblem>& more_problems) const {
    const RunCounts& counts = records_.counts;
    Json json{{"title", records_.sweep.name},
              {"created", header.created},
              {"msrl_version", BuildVersion()},
              {"commit", BuildCommit()},
              {"host", header.host},
              {"commands", header.commands},
              {"few_shot", analysis_.few_shot}};
    json["runs"] = {{"finished", counts.finished}, {"running", counts.running},
                    {"failed", counts.failed},     {"interrupted", counts.interrupted},
                    {"missing", counts.missing},   {"damaged", counts.damaged},
                    {"other", counts.other}};
    json["problems"] = Json::array();
    for (const auto* problems : {&records_.problems, &analysis_.problems, &more_problems}) {
      for (const RecordProblem& problem : *problems) {
        json["problems"].push_back(Json{{"path", problem.path}, {"what", problem.what}});
      }
    }
    return json;
  }

  Json CurveJson(const Curve& curve) const {
    const bool success =
        std::ranges::any_of(curve.success, [](const auto& value) { return value.has_value(); });
    const auto normalised = [&task = analysis_.Task(curve.task)](const auto& returns) {
      return List(returns, [&task](const std::optional<double>& value) {
        return value ? Value(task.Normalised(*value)) : Json();
      });
    };
    return {{"env", Task(curve.task)},
            {"method", Method(curve.method)},
            {"steps", curve.steps},
            {"mean", normalised(curve.mean)},
            {"low", normalised(curve.low)},
            {"high", normalised(curve.high)},
            {"raw_mean", Value(curve.mean)},
            {"raw_low", Value(curve.low)},
            {"raw_high", Value(curve.high)},
            {"success", success ? Value(curve.success) : Json()},
            {"seeds", List(curve.seeds, [&](const CurveOfSeed& line) {
               return Json{{"seed", line.seed},
                           {"values", normalised(line.values)},
                           {"raw", Value(line.values)}};
             })}};
  }

  // Rows of methods with these roles; all if there are none.
  Json Rows(const std::vector<std::string>& roles) const {
    Json rows = Json::array();
    for (const MethodRow& row : analysis_.rows) {
      const std::string& role = analysis_.Method(row.method).role;
      if (!roles.empty() && std::ranges::find(roles, role) == roles.end()) continue;
      rows.push_back({{"method", Method(row.method)},
                      {"cells", List(row.auc, CellJson)},
                      {"final", List(row.final_return, CellJson)},
                      {"success", List(row.success, RateJson)},
                      {"threshold", List(row.threshold, ThresholdJson)},
                      {"auc_paper_style", List(row.paper_style, CellJson)}});
    }
    return rows;
  }

  const RunRecords& records_;
  const Analysis& analysis_;
};

// Six significant digits; what is not finite does not exist.
void Round(Json& json) {
  if (json.is_structured()) {
    for (Json& element : json) Round(element);
  } else if (json.is_number_float()) {
    const auto value = json.get<double>();
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", value);
    json = std::isfinite(value) ? Json(std::strtod(text, nullptr)) : Json();
  }
}

std::string CsvField(const Json& value) {
  if (value.is_string()) return CsvText(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_null()) return "";
  if (!value.is_number_float()) return value.dump();
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value.get<double>());
  MSRL_CHECK(error == std::errc());
  return {text, end};
}

// A line per row. Columns are keys of the rows, "name" or "name=key"; one that a row lacks is
// empty.
std::string Csv(std::string_view columns, const Json& rows) {
  std::string header;
  std::vector<std::string> keys;
  for (const std::string_view column : SplitAt(columns, ',')) {
    header += StrCat(header.empty() ? "" : ",", column.substr(0, column.find('=')));
    keys.emplace_back(column.substr(column.find('=') + 1));  // npos + 1 is 0
  }
  std::string text = header + "\n";
  for (const Json& row : rows) {
    for (const std::string& key : keys) text += CsvField(row.value(key, Json())) + ",";
    text.back() = '\n';
  }
  return text;
}

}  // namespace

std::string CsvText(std::string_view text) {
  std::string field(text);
  if (!field.empty() && std::string_view("=+-@\t\r").find(field[0]) != std::string_view::npos) {
    field.insert(0, "'");
  }
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::vector<std::string> WriteCsv(const fs::path& folder, const RunRecords& records,
                                  const Analysis& analysis,
                                  const std::vector<FairnessItem>& fairness, Existing existing) {
  MakeFolder(folder);
  const Document document(records, analysis);
  const Json page = document.Page(fairness);
  std::vector<std::string> names;
  const auto write = [&](const char* name, std::string_view columns, const Json& rows) {
    WriteFileAtomically(folder / name, Csv(columns, rows), existing);
    names.emplace_back(name);
  };
  write("runs.csv",
        "path,env,method,seed,state,step,steps,few_shot_return,few_shot_auc,"
        "few_shot_auc_paper_style,final_return,final_normalised,success_rate,steps_to_threshold,"
        "parameters,seconds,commit",
        document.Runs());
  write("evaluations.csv", "env,method,seed,step,return,normalised_return,success_rate",
        document.Evaluations());
  write("table.csv",
        "metric,column,method,title,n,mean,std,iqm,iqm_low=low,iqm_high=high,mean_low,mean_high,"
        "paper,reached",
        document.Cells(page));
  write("gains.csv", "env,a,b,gain=mean,low,high,pairs=n,wins,paper", page["gains"]);
  write("improvement.csv", "env,a,b,probability=p,low,high", page["main"]["improvement"]);
  write("fairness.csv", "item,ok,found", page["fairness"]);
  write("problems.csv", "path,what", page["header"]["problems"]);
  return names;
}

std::string ToLatexDocument(const std::vector<Table>& tables, std::string_view title) {
  // the title is a comment: it must not leave its line
  std::string text =
      StrCat("% ", Printable(title), ": msrl report; needs \\usepackage{booktabs}\n");
  for (const Table& table : tables) text += "\n" + ToLatex(table);
  return text;
}

std::string ToPageData(const RunRecords& records, const Analysis& analysis,
                       const std::vector<FairnessItem>& fairness, const Exhibits& exhibits,
                       const PageHeader& header) {
  Json json = Document(records, analysis).Page(fairness, exhibits, header);
  Round(json);
  // records of others, as they are
  if (!records.pretrain_json.empty()) {
    const auto read = ParseJson<Json>(records.pretrain_json, "pretrain.json");
    json["pretraining"] = {{"rows", read.at("rows")}, {"objective", nullptr}};
    if (read.contains("config") && read["config"].contains("objective")) {
      json["pretraining"]["objective"] = read["config"]["objective"];
    }
  }
  if (!records.diagnose_json.empty()) {
    json["diagnostics"] = {
        {"rows", ParseJson<Json>(records.diagnose_json, "diagnose.json").at("rows")}};
  }
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
