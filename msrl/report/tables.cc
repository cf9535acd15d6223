#include "msrl/report/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

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

std::string RateText(const std::optional<ScoreCell>& cell) {
  return cell ? StrCat(FixedText(100.0 * cell->mean, 0), " %") : kNothing;
}

std::string ThresholdText(const std::optional<ThresholdSummary>& cell) {
  if (!cell) return kNothing;
  const std::string median = cell->median         ? StepsText(*cell->median)
                             : cell->reached == 0 ? "never"
                                                  : "mostly never";
  return StrCat(median, " (", cell->reached, "/", cell->n, ")");
}

using Line = std::vector<std::string>;

// A line per item.
template <typename Items, typename MakeLine>
Table ListOf(const char* title, const char* note, Line header, const Items& items,
             const MakeLine& line) {
  Table table{title, note, std::move(header), {}};
  for (const auto& item : items) table.rows.push_back(line(item));
  return table;
}

// Methods x families; methods without any figure are left out.
template <typename Cell, typename Wanted>
Table ByFamily(const Analysis& analysis, std::string title, std::string note,
               std::vector<std::optional<Cell>> MethodRow::*cells,
               std::string (*text)(const std::optional<Cell>&), const Wanted& wanted,
               bool with_average = true) {
  Line header = analysis.Columns();
  // the average of one family is that family
  if (!with_average || analysis.families.size() < 2) header.pop_back();
  header.insert(header.begin(), "method");
  Table table{std::move(title), std::move(note), header, {}};
  for (const MethodRow& row : analysis.rows) {
    const SweepMethod& method = analysis.Method(row.method);
    if (!wanted(method.role)) continue;
    Line line{method.title};
    for (std::size_t c = 1; c < header.size(); ++c) line.push_back(text((row.*cells)[c - 1]));
    const bool empty = std::all_of(line.begin() + 1, line.end(),
                                   [](const std::string& cell) { return cell == kNothing; });
    if (!empty) table.rows.push_back(std::move(line));
  }
  return table;
}

std::string LatexEscaped(std::string_view text) {
  // "[" would be an argument at the beginning of a row
  static constexpr std::pair<std::string_view, std::string_view> kSpecial[] = {
      {"±", "$\\pm$"},
      {"−", "$-$"},
      {"–", "--"},
      {"\\", "\\textbackslash{}"},
      {"~", "\\textasciitilde{}"},
      {"^", "\\textasciicircum{}"},
      {"<", "\\textless{}"},
      {">", "\\textgreater{}"},
      {"[", "{[}"}};
  std::string out;
  while (!text.empty()) {
    const auto* const special =
        std::find_if(std::begin(kSpecial), std::end(kSpecial),
                     [text](const auto& entry) { return text.starts_with(entry.first); });
    if (special != std::end(kSpecial)) {
      out += special->second;
      text.remove_prefix(special->first.size());
      continue;
    }
    if (std::string_view("&%$#_{}").find(text[0]) != std::string_view::npos) out += '\\';
    out += Printable(text.substr(0, 1));
    text.remove_prefix(1);
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
      const std::string cell = Printable(line[c]);
      out += StrCat("  ", cell, std::string(widths[c] - Width(cell), ' '));
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
  add(counts.other, "with other settings");
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
  const auto any = [](const std::string&) { return true; };
  const auto pair = [&analysis](const Comparison& of) {
    return StrCat(analysis.Method(of.a).name, " − ", analysis.Method(of.b).name);
  };
  std::vector<Table> tables;
  tables.push_back(ByFamily(
      analysis, "Normalised few-shot AUC",
      StrCat("Mean ± std over seeds, first ", FixedText(100.0 * analysis.few_shot, 0),
             " % of the budget; 0 is random, 1 the reference policy; in brackets the paper's, "
             "which is normalised in its own way."),
      &MethodRow::auc, ScoreText, [](const std::string& role) { return role != "control"; }));
  tables.push_back(ListOf(
      "Raw returns",
      "Of tasks without a random and a reference return, in their own unit: mean ± std over seeds "
      "of the mean over the few-shot window and of the last evaluation.",
      {"task", "method", "few-shot", "final"}, analysis.raw_returns,
      [&](const RawReturns& entry) -> Line {
        return {analysis.TaskName(entry.task), analysis.Method(entry.method).title,
                ScoreText(entry.few_shot), ScoreText(entry.final_return)};
      }));
  tables.push_back(ListOf("What to know before the figures", "", {"task", ""}, analysis.cautions,
                          [&](const Caution& caution) -> Line {
                            return {analysis.TaskName(caution.task), caution.text};
                          }));
  tables.push_back(ListOf(
      "Best of the variants",
      "By the mean few-shot AUC over the tasks and seeds that all variants have. Each was selected "
      "on these seeds, so its score flatters it: run it on other seeds before you report it.",
      {"method", "best", "settings", "score", "second", "worst", "variants", "tasks", "seeds"},
      analysis.selections, [&](const Selection& selection) -> Line {
        const SweepMethod& best = analysis.Method(selection.best);
        const int decimals = selection.raw ? 1 : 3;
        std::string settings;
        for (const std::string& setting : best.varied) {
          settings += StrCat(settings.empty() ? "" : " ", setting);
        }
        std::string variants = std::to_string(selection.scored);
        if (selection.scored < selection.variants) variants += StrCat(" of ", selection.variants);
        return {selection.of,
                best.name,
                settings,
                FixedText(selection.score, decimals),
                FixedText(selection.next, decimals),
                FixedText(selection.last, decimals),
                variants,
                std::to_string(selection.tasks),
                std::to_string(selection.seeds.size())};
      }));
  tables.push_back(ListOf(
      analysis.JudgesTransfer() ? "Transfer gain, in words" : "Gain, in words",
      "Gain in few-shot AUC, paired by seeds, with 95 % interval. Clear: the interval leaves out 0 "
      "(at least 5 pairs).",
      {"task", "comparison", "gain", "95 % interval", "pairs", "verdict"}, analysis.verdicts,
      [&](const Verdict& verdict) -> Line {
        return {analysis.TaskName(verdict.task), pair(verdict.of),
                FixedText(verdict.gain.mean, 3), IntervalText(verdict.gain.interval),
                std::to_string(verdict.gain.n),  verdict.text};
      }));
  tables.push_back(ListOf(
      "Matched gain in few-shot AUC",
      "Mean of the differences of equal seeds; in brackets the paper's. Wins: seeds with a "
      "difference above 0, in the mean over the tasks where these are several.",
      {"comparison", "task", "gain", "95 % interval", "wins"}, analysis.gains,
      [&](const GainEntry& entry) -> Line {
        std::string gain = FixedText(entry.gain.mean, 3);
        if (entry.paper) gain += StrCat(" (", FixedText(*entry.paper, 2), ")");
        return {pair(entry.of), analysis.TaskName(entry.task), gain,
                IntervalText(entry.gain.interval), StrCat(entry.gain.wins, "/", entry.gain.n)};
      }));
  for (const auto& [about, title] : {std::pair("control", "Negative controls: few-shot AUC"),
                                     std::pair("ablation", "Ablations: few-shot AUC")}) {
    if (!analysis.HasRole(about)) continue;
    tables.push_back(ByFamily(analysis, title, "", &MethodRow::auc, ScoreText,
                              [wanted = std::string(about)](const std::string& role) {
                                return role == "scratch" || role == wanted || role == "transfer";
                              }));
  }
  tables.push_back(ByFamily(
      analysis, "Interquartile mean of the few-shot AUC",
      "With 95 % stratified bootstrap interval; few seeds make it too narrow (docs/report.md).",
      &MethodRow::auc, IqmText, any));
  tables.push_back(ListOf(
      "Probability of improvement",
      "P(a run of the first scores a higher few-shot AUC than one of the second), ties half; "
      "stratified bootstrap.",
      {"comparison", "task", "probability", "95 % interval"}, analysis.improvements,
      [&](const ImprovementEntry& entry) -> Line {
        return {pair(entry.of), analysis.TaskName(entry.task), FixedText(entry.probability, 2),
                IntervalText(entry.interval)};
      }));
  tables.push_back(ByFamily(analysis, "Final normalised return",
                            "Mean ± std over seeds of the last evaluation.",
                            &MethodRow::final_return, ScoreText, any));
  tables.push_back(
      ByFamily(analysis, "Few-shot AUC in the paper's normalisation",
               "1 is the best final return within this comparison; in brackets the paper's.",
               &MethodRow::paper_style, ScoreText, any));
  tables.push_back(ByFamily(analysis, "Success at the end", "Share of episodes.",
                            &MethodRow::success, RateText, any));
  tables.push_back(ByFamily(
      analysis, "Steps to 80 % of the best final return",
      "Median over runs (reached/all); a run that never reaches it counts as later than all.",
      &MethodRow::threshold, ThresholdText, any, /*with_average=*/false));
  tables.push_back(
      ListOf("Source pretraining: the branches",
             "Correlations of F with the value on held-out instances, mean over seeds.",
             {"branch", "seeds", "updates", "rank", "centred rank", "difference", "dataset"},
             records.branches, [](const BranchRecord& branch) -> Line {
               const auto figure = [&branch](const char* key) {
                 const std::optional<double> value = branch.Figure(key);
                 return value ? FixedText(*value, 3) : kNothing;
               };
               return {branch.branch,
                       std::to_string(branch.seeds),
                       StepsText(static_cast<double>(branch.updates)),
                       figure("rank_correlation"),
                       figure("centred_rank_correlation"),
                       figure("difference_correlation"),
                       branch.dataset};
             }));
  tables.push_back(
      ListOf("Cost", "Per run, evaluations included; simulator: steps beside the budget.",
             {"task", "method", "steps/s", "seconds", "parameters", "simulator"}, analysis.costs,
             [&](const CostEntry& cost) -> Line {
               const bool timed = cost.seconds > 0.0;
               return {analysis.TaskName(cost.task),
                       analysis.Method(cost.method).title,
                       timed ? StepsText(cost.steps_per_second) : kNothing,
                       timed ? FixedText(cost.seconds, 1) : kNothing,
                       StepsText(static_cast<double>(cost.parameters)),
                       cost.simulator_steps > 0.0 ? StepsText(cost.simulator_steps) : kNothing};
             }));
  tables.push_back(
      ListOf("Fairness checklist", "From the run records.", {"item", "", "found"}, fairness,
             [](const FairnessItem& item) -> Line {
               return {item.item, item.ok ? (*item.ok ? "ok" : "NOT OK") : "n/a", item.found};
             }));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace msrl::report
