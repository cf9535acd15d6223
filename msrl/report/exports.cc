#include "msrl/report/exports.h"

#include <charconv>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"

namespace msrl::report {
namespace {

namespace fs = std::filesystem;

std::string CsvNumber(double value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  MSRL_CHECK(error == std::errc());
  return {text, end};
}
std::string CsvNumber(const std::optional<double>& value) {
  return value ? CsvNumber(*value) : std::string();
}

class CsvFile {
 public:
  explicit CsvFile(std::string_view header) : text_(StrCat(header, "\n")) {}
  // Fields are ready: CsvText or numbers.
  template <typename... Fields>
  void Line(const Fields&... fields) {
    std::string line;
    ((line += StrCat(fields, ",")), ...);
    line.back() = '\n';
    text_ += line;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string_view StateName(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kFinished:
      return "finished";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFailed:
      return "failed";
  }
  return "";
}

class CsvMaker {
 public:
  CsvMaker(const RunRecords& records, const Analysis& analysis)
      : records_(records), analysis_(analysis) {}

  std::string Runs() const {
    CsvFile file(
        "path,env,method,seed,state,step,steps,few_shot_auc,few_shot_auc_paper_style,"
        "final_return,final_normalised,success_rate,steps_to_threshold,parameters,seconds,commit");
    for (const RunScore& score : analysis_.scores) {
      const RunRecord& run = *score.run;
      file.Line(CsvText(run.path), CsvText(run.env), CsvText(run.method), score.seed(),
                StateName(run.status.state), run.status.step, run.facts.spec.steps,
                CsvNumber(score.auc), CsvNumber(score.paper_style), CsvNumber(score.final_return),
                CsvNumber(score.final_normalised), CsvNumber(score.success), ThresholdStep(score),
                run.facts.parameters, CsvNumber(run.timing.seconds), CsvText(run.facts.commit));
    }
    return file.text();
  }

  std::string Evaluations() const {
    CsvFile file("env,method,seed,step,return,normalised_return,success_rate");
    for (const RunScore& score : analysis_.scores) {
      const std::string begin =
          StrCat(CsvText(score.run->env), ",", CsvText(score.run->method), ",", score.seed());
      const TaskInfo& task = analysis_.tasks[static_cast<std::size_t>(score.task)];
      for (const Evaluation& evaluation : score.run->evaluations) {
        file.Line(begin, evaluation.step, CsvNumber(evaluation.mean_return),
                  CsvNumber(task.Normalised(evaluation.mean_return)),
                  CsvNumber(evaluation.success_rate));
      }
    }
    return file.text();
  }

  std::string Tables() const {
    CsvFile file(
        "metric,column,method,title,n,mean,std,iqm,iqm_low,iqm_high,mean_low,mean_high,"
        "paper,reached");
    const std::vector<std::string> columns = analysis_.Columns();
    for (const MethodRow& row : analysis_.rows) {
      const SweepMethod& method = analysis_.methods[static_cast<std::size_t>(row.method)].facts;
      const std::string names = StrCat(CsvText(method.name), ",", CsvText(method.title));
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const std::string column = CsvText(columns[c]);
        const auto scores = [&](const char* metric, const std::optional<ScoreCell>& cell) {
          if (!cell) return;
          const auto low = [](const std::optional<Interval>& interval) {
            return interval ? CsvNumber(interval->low) : std::string();
          };
          const auto high = [](const std::optional<Interval>& interval) {
            return interval ? CsvNumber(interval->high) : std::string();
          };
          file.Line(metric, column, names, cell->n, CsvNumber(cell->mean), CsvNumber(cell->std),
                    CsvNumber(cell->iqm), low(cell->interval), high(cell->interval),
                    low(cell->mean_interval), high(cell->mean_interval),
                    cell->paper ? CsvNumber(cell->paper->mean) : std::string(), "");
        };
        scores("few_shot_auc", row.auc[c]);
        scores("few_shot_auc_paper_style", row.paper_style[c]);
        scores("final_normalised", row.final_return[c]);
        if (const auto& cell = row.success[c]) {
          file.Line("success_rate", column, names, cell->n, CsvNumber(cell->mean), "", "", "", "",
                    "", "", "", "");
        }
        if (const auto& cell = row.threshold[c]) {
          // the median; empty if at least half never reached it
          file.Line("steps_to_threshold", column, names, cell->n, CsvNumber(cell->median), "", "",
                    "", "", "", "", "", cell->reached);
        }
      }
    }
    return file.text();
  }

  std::string Gains() const {
    CsvFile file("env,a,b,gain,low,high,pairs,wins,paper");
    for (const GainEntry& entry : analysis_.gains) {
      const auto& interval = entry.gain.interval;
      file.Line(Task(entry.task), Method(entry.of.a), Method(entry.of.b),
                CsvNumber(entry.gain.mean), interval ? CsvNumber(interval->low) : "",
                interval ? CsvNumber(interval->high) : "", entry.gain.n, entry.gain.wins,
                CsvNumber(entry.paper));
    }
    return file.text();
  }

  std::string Improvements() const {
    CsvFile file("env,a,b,probability,low,high");
    for (const ImprovementEntry& entry : analysis_.improvements) {
      file.Line(Task(entry.task), Method(entry.of.a), Method(entry.of.b),
                CsvNumber(entry.probability), entry.interval ? CsvNumber(entry.interval->low) : "",
                entry.interval ? CsvNumber(entry.interval->high) : "");
    }
    return file.text();
  }

  std::string Problems() const {
    CsvFile file("path,what");
    for (const auto* problems : {&records_.problems, &analysis_.problems}) {
      for (const RecordProblem& problem : *problems) {
        file.Line(CsvText(problem.path), CsvText(problem.what));
      }
    }
    return file.text();
  }

 private:
  std::string Method(int method) const {
    return CsvText(analysis_.methods[static_cast<std::size_t>(method)].facts.name);
  }
  // "never" only where there is something to reach
  std::string ThresholdStep(const RunScore& score) const {
    if (score.threshold_step) return std::to_string(*score.threshold_step);
    const TaskInfo& task = analysis_.tasks[static_cast<std::size_t>(score.task)];
    return score.run->finished() && task.threshold_return ? "never" : "";
  }
  std::string Task(int task) const {
    return task == kAllTasks ? "all"
                             : CsvText(analysis_.tasks[static_cast<std::size_t>(task)].name);
  }

  const RunRecords& records_;
  const Analysis& analysis_;
};

std::string FairnessCsv(const std::vector<FairnessItem>& fairness) {
  CsvFile file("item,ok,found");
  for (const FairnessItem& item : fairness) {
    file.Line(CsvText(item.item), item.ok ? (*item.ok ? "yes" : "no") : "", CsvText(item.found));
  }
  return file.text();
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
                                  const std::vector<FairnessItem>& fairness) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw UserError(StrCat("cannot make the folder ", folder.string(), ": ",
                           error ? error.message() : "something else is there"));
  }
  const CsvMaker maker(records, analysis);
  const std::vector<std::pair<std::string, std::string>> files{
      {"runs.csv", maker.Runs()},
      {"evaluations.csv", maker.Evaluations()},
      {"table.csv", maker.Tables()},
      {"gains.csv", maker.Gains()},
      {"improvement.csv", maker.Improvements()},
      {"fairness.csv", FairnessCsv(fairness)},
      {"problems.csv", maker.Problems()}};
  std::vector<std::string> names;
  for (const auto& [name, text] : files) {
    WriteFileAtomically(folder / name, text);
    names.push_back(name);
  }
  return names;
}

std::string ToLatexDocument(const std::vector<Table>& tables, std::string_view title) {
  // the title is a comment: it must not leave its line
  std::string text =
      StrCat("% ", Printable(title), ": msrl report; needs \\usepackage{booktabs}\n");
  for (const Table& table : tables) text += "\n" + ToLatex(table);
  return text;
}

}  // namespace msrl::report
