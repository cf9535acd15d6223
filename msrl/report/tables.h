// The report as tables: for the terminal and for LaTeX.
#ifndef MSRL_REPORT_TABLES_H_
#define MSRL_REPORT_TABLES_H_

#include <string>
#include <string_view>
#include <vector>

#include "msrl/report/analysis.h"
#include "msrl/report/fairness.h"

namespace msrl::report {

struct Table {
  std::string title = {};
  std::string note = {};  // below it; may be empty
  std::vector<std::string> header = {};
  std::vector<std::vector<std::string>> rows = {};  // the first column is text, the others figures
};

// In the order of reading. A table without rows is left out.
std::vector<Table> MakeTables(const RunRecords& records, const Analysis& analysis,
                              const std::vector<FairnessItem>& fairness);

// What is unfinished or damaged, in lines; empty if all is well.
std::string ProblemText(const RunRecords& records, const Analysis& analysis);

// Columns aligned by characters (not bytes). Control characters become '?'.
std::string ToText(const Table& table);
// A booktabs tabular in a table environment; everything that is special to TeX is escaped.
std::string ToLatex(const Table& table);

// A number with so many decimals; never "-0.00".
std::string FixedText(double value, int decimals);
// "12,300".
std::string StepsText(double steps);
// Without control characters; for a terminal.
std::string Printable(std::string_view text);

}  // namespace msrl::report

#endif  // MSRL_REPORT_TABLES_H_
