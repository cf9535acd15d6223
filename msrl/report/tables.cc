#include "msrl/report/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "msrl/core/check.h"

namespace msrl::report {
namespace {

constexpr const char* kNothing = "–";

// Characters, as far as UTF-8 tells.
std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string Padded(const std::string& text, std::size_t width, bool right) {
  const std::string blanks(width - std::min(width, Width(text)), ' ');
  return right ? blanks + text : text + blanks;
}

std::string IntervalText(const std::optional<Interval>& interval) {
  if (!interval) return kNothing;
  return StrCat("[", FixedText(interval->low, 3), ", ", FixedText(interval->high, 3), "]");
}

// "0.70 ±0.04 (0.75)": ours, and the paper's in brackets.
std::string ScoreText(const std::optional<ScoreCell>& cell) {
  if (!cell) return kNothing;
  std::string text = FixedText(cell->mean, 2);
  if (cell->std) text += StrCat(" ±", FixedText(*cell->std, 2));
  if (cell->paper) text += StrCat(" (", FixedText(cell->paper->mean, 2), ")");
  return text;
}

std::string IqmText(const std::optional<ScoreCell>& cell) {
  if (!cell || !cell->iqm) return kNothing;
  std::string text = FixedText(*cell->iqm, 2);
  if (cell->interval) {
    text += StrCat(" [", FixedText(cell->interval->low, 2), ", ",
                   FixedText(cell->interval->high, 2), "]");
  }
  return text;
}

std::string RateText(const std::optional<RateCell>& cell) {
  return cell ? StrCat(FixedText(100.0 * cell->mean, 0), " %") : kNothing;
}

std::string ThresholdText(const std::optional<ThresholdSummary>& cell) {
  if (!cell) return kNothing;
  const std::string median = cell->median         ? StepsText(*cell->median)
                             : cell->reached == 0 ? "never"
                                                  : "mostly never";
  return StrCat(median, " (", cell->reached, "/", cell->n, ")");
}

class TableMaker {
 public:
  TableMaker(const RunRecords& records, const Analysis& analysis)
      : records_(records), analysis_(analysis) {}

  const SweepMethod& Method(int method) const {
    return analysis_.methods[static_cast<std::size_t>(method)].facts;
  }
  std::string Task(int task) const {
    return task == kAllTasks ? "all" : analysis_.tasks[static_cast<std::size_t>(task)].name;
  }

  // Methods x families.
  template <typename Cell>
  Table ByFamily(std::string title, std::string note,
                 std::vector<std::optional<Cell>> MethodRow::*field,
                 const std::function<std::string(const std::optional<Cell>&)>& text,
                 const std::function<bool(const SweepMethod&)>& wanted,
                 bool with_average = true) const {
    Table table{std::move(title), std::move(note), {"method"}, {}};
    std::vector<std::string> columns = analysis_.Columns();
    // the average of one family is that family
    if (!with_average || analysis_.families.size() < 2) columns.pop_back();
    table.header.insert(table.header.end(), columns.begin(), columns.end());
    for (const MethodRow& row : analysis_.rows) {
      if (!wanted(Method(row.method))) continue;
      const auto& cells = row.*field;
      std::vector<std::string> line{Method(row.method).title};
      for (std::size_t c = 0; c < columns.size(); ++c) line.push_back(text(cells[c]));
      const bool empty = std::all_of(line.begin() + 1, line.end(),
                                     [](const std::string& cell) { return cell == kNothing; });
      if (!empty) table.rows.push_back(std::move(line));
    }
    return table;
  }

  Table Verdicts() const {
    Table table{"Transfer gain, in words",
                "Gain in few-shot AUC, paired by seeds, with 95 % interval. Clear: the interval "
                "leaves out 0 (at least 5 pairs).",
                {"task", "comparison", "gain", "95 % interval", "pairs", "verdict"},
                {}};
    for (const Verdict& verdict : analysis_.verdicts) {
      table.rows.push_back({Task(verdict.task), Pair(verdict.of), FixedText(verdict.gain.mean, 3),
                            IntervalText(verdict.gain.interval), std::to_string(verdict.gain.n),
                            verdict.text});
    }
    return table;
  }

  Table Gains() const {
    Table table{"Matched gain in few-shot AUC",
                "Mean of the differences of equal seeds; in brackets the paper's. Wins: pairs with "
                "a difference above 0.",
                {"comparison", "task", "gain", "95 % interval", "wins"},
                {}};
    for (const GainEntry& entry : analysis_.gains) {
      std::string gain = FixedText(entry.gain.mean, 3);
      if (entry.paper) gain += StrCat(" (", FixedText(*entry.paper, 2), ")");
      table.rows.push_back({Pair(entry.of), Task(entry.task), gain,
                            IntervalText(entry.gain.interval),
                            StrCat(entry.gain.wins, "/", entry.gain.n)});
    }
    return table;
  }

  Table Improvements() const {
    Table table{"Probability of improvement",
                "P(a run of the first scores a higher few-shot AUC than one of the second), ties "
                "half; stratified bootstrap.",
                {"comparison", "task", "probability", "95 % interval"},
                {}};
    for (const ImprovementEntry& entry : analysis_.improvements) {
      table.rows.push_back({Pair(entry.of), Task(entry.task), FixedText(entry.probability, 2),
                            IntervalText(entry.interval)});
    }
    return table;
  }

  Table Branches() const {
    Table table{"Source pretraining: the branches",
                "Correlations of F with the value on held-out instances, mean over seeds.",
                {"branch", "seeds", "updates", "rank", "centred rank", "difference", "dataset"},
                {}};
    for (std::size_t i = 0; i < records_.branches.size();) {
      const BranchRecord& first = records_.branches[i];
      double rank = 0.0, centred = 0.0, difference = 0.0;
      std::size_t end = i;
      for (; end < records_.branches.size() && records_.branches[end].branch == first.branch;
           ++end) {
        rank += records_.branches[end].rank_correlation;
        centred += records_.branches[end].centred_rank_correlation;
        difference += records_.branches[end].difference_correlation;
      }
      const auto n = static_cast<double>(end - i);
      table.rows.push_back({first.branch, std::to_string(end - i),
                            StepsText(static_cast<double>(first.updates)), FixedText(rank / n, 3),
                            FixedText(centred / n, 3), FixedText(difference / n, 3),
                            first.dataset});
      i = end;
    }
    return table;
  }

  Table Cost() const {
    Table table{"Cost",
                "Per run, evaluations included.",
                {"task", "method", "steps/s", "seconds", "parameters"},
                {}};
    for (const CostEntry& cost : analysis_.costs) {
      table.rows.push_back({Task(cost.task), Method(cost.method).title,
                            cost.seconds > 0.0 ? StepsText(cost.steps_per_second) : kNothing,
                            cost.seconds > 0.0 ? FixedText(cost.seconds, 1) : kNothing,
                            StepsText(static_cast<double>(cost.parameters))});
    }
    return table;
  }

 private:
  std::string Pair(const Comparison& of) const {
    return StrCat(Method(of.a).name, " − ", Method(of.b).name);
  }

  const RunRecords& records_;
  const Analysis& analysis_;
};

std::string LatexEscaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("±")) {
      out += "$\\pm$";
      ++i;  // two bytes
    } else if (rest.starts_with("−")) {
      out += "$-$";
      i += 2;
    } else if (rest.starts_with("–")) {
      out += "--";
      i += 2;
    } else if (c == '\\') {
      out += "\\textbackslash{}";
    } else if (c == '~') {
      out += "\\textasciitilde{}";
    } else if (c == '^') {
      out += "\\textasciicircum{}";
    } else if (c == '<' || c == '>') {
      out += c == '<' ? "\\textless{}" : "\\textgreater{}";
    } else if (c == '[') {
      out += "{[}";  // after \\ it would be an argument
    } else if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) {
      out += '\\';
      out += c;
    } else {
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

}  // namespace

std::string FixedText(double value, int decimals) {
  char buffer[512];
  const int size = std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  std::string text(buffer, static_cast<std::size_t>(size));
  if (text.starts_with("-") && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string StepsText(double steps) {
  std::string text = FixedText(std::round(steps), 0);
  const std::size_t first = text.starts_with("-") ? 1 : 0;
  for (std::size_t end = text.size(); end > first + 3;) {
    end -= 3;
    text.insert(end, ",");
  }
  return text;
}

std::string Printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

std::string ToText(const Table& table) {
  std::vector<std::size_t> widths;
  const auto measure = [&widths](const std::vector<std::string>& line) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], Width(Printable(line[c])));
    }
  };
  measure(table.header);
  for (const auto& row : table.rows) measure(row);
  std::string text = Printable(table.title) + "\n";
  const auto print = [&](const std::vector<std::string>& line) {
    std::string out;
    for (std::size_t c = 0; c < line.size(); ++c) {
      out += StrCat("  ", Padded(Printable(line[c]), widths[c], false));
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  print(table.header);
  for (const auto& row : table.rows) print(row);
  if (!table.note.empty()) text += StrCat("  ", Printable(table.note), "\n");
  return text;
}

std::string ToLatex(const Table& table) {
  std::string text = "\\begin{table}[t]\n\\centering\n\\small\n";
  text += StrCat("\\caption{", LatexEscaped(table.title), ". ", LatexEscaped(table.note), "}\n");
  text += StrCat("\\begin{tabular}{l", std::string(table.header.size() - 1, 'c'), "}\n\\toprule\n");
  const auto print = [&text](const std::vector<std::string>& line) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      text += StrCat(c == 0 ? "" : " & ", LatexEscaped(line[c]));
    }
    text += " \\\\\n";
  };
  print(table.header);
  text += "\\midrule\n";
  for (const auto& row : table.rows) print(row);
  return text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

std::string ProblemText(const RunRecords& records, const Analysis& analysis) {
  const RunCounts& counts = records.counts;
  std::string text = StrCat("runs: ", counts.finished, " finished");
  const auto add = [&text](int count, const char* what) {
    if (count > 0) text += StrCat(", ", count, " ", what);
  };
  add(counts.running, "running");
  add(counts.interrupted, "stopped");
  add(counts.failed, "failed");
  add(counts.missing, "not started");
  add(counts.damaged, "damaged");
  text += "\n";
  if (counts.running + counts.interrupted + counts.missing > 0) {
    text += "  not complete: tables use what there is, and will change\n";
  }
  constexpr std::size_t kShown = 20;
  std::vector<RecordProblem> problems = records.problems;
  problems.insert(problems.end(), analysis.problems.begin(), analysis.problems.end());
  for (std::size_t i = 0; i < std::min(problems.size(), kShown); ++i) {
    text += StrCat("  ", Printable(problems[i].path), ": ", Printable(problems[i].what), "\n");
  }
  if (problems.size() > kShown) text += StrCat("  and ", problems.size() - kShown, " more\n");
  return text;
}

std::vector<Table> MakeTables(const RunRecords& records, const Analysis& analysis,
                              const std::vector<FairnessItem>& fairness) {
  const TableMaker maker(records, analysis);
  const auto any = [](const SweepMethod&) { return true; };
  const auto in_main = [](const SweepMethod& method) { return method.role != "control"; };
  const auto with_roles = [](std::vector<std::string> roles) {
    return [roles = std::move(roles)](const SweepMethod& method) {
      return std::find(roles.begin(), roles.end(), method.role) != roles.end();
    };
  };
  const bool has_controls =
      std::any_of(analysis.methods.begin(), analysis.methods.end(),
                  [](const MethodInfo& method) { return method.facts.role == "control"; });
  const bool has_ablations =
      std::any_of(analysis.methods.begin(), analysis.methods.end(),
                  [](const MethodInfo& method) { return method.facts.role == "ablation"; });
  const std::string share = FixedText(100.0 * analysis.few_shot, 0);

  std::vector<Table> tables;
  tables.push_back(maker.ByFamily<ScoreCell>(
      "Normalised few-shot AUC",
      StrCat("Mean ± std over seeds, first ", share,
             " % of the budget; 0 is random, 1 the reference policy; in brackets the paper's, "
             "which is normalised in its own way."),
      &MethodRow::auc, ScoreText, in_main));
  tables.push_back(maker.Verdicts());
  tables.push_back(maker.Gains());
  if (has_controls) {
    tables.push_back(maker.ByFamily<ScoreCell>("Negative controls: few-shot AUC", "",
                                               &MethodRow::auc, ScoreText,
                                               with_roles({"scratch", "control", "transfer"})));
  }
  if (has_ablations) {
    tables.push_back(maker.ByFamily<ScoreCell>("Ablations: few-shot AUC", "", &MethodRow::auc,
                                               ScoreText,
                                               with_roles({"scratch", "ablation", "transfer"})));
  }
  tables.push_back(maker.ByFamily<ScoreCell>(
      "Interquartile mean of the few-shot AUC",
      "With 95 % stratified bootstrap interval; few seeds make it too narrow (docs/report.md).",
      &MethodRow::auc, IqmText, any));
  tables.push_back(maker.Improvements());
  tables.push_back(maker.ByFamily<ScoreCell>("Final normalised return",
                                             "Mean ± std over seeds of the last evaluation.",
                                             &MethodRow::final_return, ScoreText, any));
  tables.push_back(maker.ByFamily<ScoreCell>(
      "Few-shot AUC in the paper's normalisation",
      "1 is the best final return within this comparison; in brackets the paper's.",
      &MethodRow::paper_style, ScoreText, any));
  tables.push_back(maker.ByFamily<RateCell>("Success at the end", "Share of episodes.",
                                            &MethodRow::success, RateText, any));
  tables.push_back(maker.ByFamily<ThresholdSummary>(
      "Steps to 80 % of the best final return",
      "Median over runs (reached/all); a run that never reaches it counts as later than all.",
      &MethodRow::threshold, ThresholdText, any, /*with_average=*/false));
  tables.push_back(maker.Branches());
  tables.push_back(maker.Cost());
  Table checklist{"Fairness checklist", "From the run records.", {"item", "", "found"}, {}};
  for (const FairnessItem& item : fairness) {
    checklist.rows.push_back(
        {item.item, item.ok ? (*item.ok ? "ok" : "NOT OK") : "n/a", item.found});
  }
  tables.push_back(std::move(checklist));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace msrl::report
