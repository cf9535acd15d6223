// The report for other programs: the page's data, CSV files and LaTeX tables.
#ifndef MSRL_REPORT_EXPORTS_H_
#define MSRL_REPORT_EXPORTS_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/files/atomic_file.h"
#include "msrl/report/analysis.h"
#include "msrl/report/exhibits.h"
#include "msrl/report/fairness.h"
#include "msrl/report/tables.h"

namespace msrl::report {

// Writes into the folder, which is made if need be, each file atomically; their names are returned:
//   runs.csv         every run: state, scores
//   evaluations.csv  every evaluation of every run
//   table.csv        the tables by family, one row per metric, column and method
//   gains.csv        paired gains
//   improvement.csv  probabilities of improvement
//   fairness.csv     the checklist
//   problems.csv     what is damaged or left out
// Numbers round-trip; an empty field is a number that does not exist.
std::vector<std::string> WriteCsv(const std::filesystem::path& folder, const RunRecords& records,
                                  const Analysis& analysis,
                                  const std::vector<FairnessItem>& fairness,
                                  Existing existing = Existing::kReplace);

// All tables, one after the other, to be put into a document that loads booktabs.
std::string ToLatexDocument(const std::vector<Table>& tables, std::string_view title);

// A text field: quoted where RFC 4180 wants it. One that a spreadsheet would take for a formula
// gets a ' in front.
std::string CsvText(std::string_view text);

struct PageHeader {
  std::string created = {};  // UTC, ISO 8601
  std::string host = {};
  std::vector<std::string> commands = {};  // that make this report
};

// One JSON object of format "msrl-report" 1 (docs/report.md). Figures have six significant digits.
// Always valid UTF-8.
std::string ToPageData(const RunRecords& records, const Analysis& analysis,
                       const std::vector<FairnessItem>& fairness, const Exhibits& exhibits,
                       const PageHeader& header);

// The template with the data in it. Nothing in the data can end the script element it is put into:
// every '<' becomes \u003c. InvariantError unless the template has exactly one place for it.
std::string FillPage(std::string_view page_template, std::string_view data);

}  // namespace msrl::report

#endif  // MSRL_REPORT_EXPORTS_H_
