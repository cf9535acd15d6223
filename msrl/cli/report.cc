#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/report/analysis.h"
#include "msrl/report/exhibits.h"
#include "msrl/report/exports.h"
#include "msrl/report/fairness.h"
#include "msrl/report/page_template.h"
#include "msrl/report/tables.h"
#include "msrl/run/utc_time.h"

namespace msrl::cli {
namespace {

struct ReportOptions {
  std::string folder;
  std::string html, csv, latex, json;
  std::optional<double> few_shot;
  std::string baseline;
  bool no_exhibits = false;
};

report::PageHeader MakeHeader(const report::RunRecords& records, const ReportOptions& options,
                              const Program& program) {
  report::PageHeader header;
  header.created = UtcNow();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  header.host = host;
  if (!records.sweep.command.empty()) header.commands.push_back(records.sweep.command);
  std::string command = program.name + " report " + Quoted(options.folder);
  const auto add = [&command](const char* name, const std::string& value) {
    if (!value.empty()) command += StrCat(" ", name, " ", Quoted(value));
  };
  add("--html", options.html);
  add("--csv", options.csv);
  add("--latex", options.latex);
  add("--json", options.json);
  if (options.few_shot) add("--few-shot", StrCat(*options.few_shot));
  add("--baseline", options.baseline);
  if (options.no_exhibits) command += " --no-exhibits";
  header.commands.push_back(command);
  return header;
}

void RunReport(const ReportOptions& options, const Program& program) {
  if (!options.html.empty() && report::PageTemplate().empty()) {
    throw UserError(
        "this program was built without the report's page; install npm (scripts/install-packages), "
        "configure and build again, or use --json");
  }
  const report::RunRecords records =
      report::ReadRunRecords(options.folder, program.registries.agents);
  const report::Analysis analysis = report::Analyse(
      records, program.registries, {.few_shot = options.few_shot, .baseline = options.baseline});
  const std::vector<report::FairnessItem> fairness = report::CheckFairness(records, analysis);
  const std::vector<report::Table> tables = report::MakeTables(records, analysis, fairness);

  fmt::print("{}\n{}", report::Printable(records.sweep.name),
             report::ProblemText(records, analysis));
  for (const report::Table& table : tables) fmt::print("\n{}", report::ToText(table));

  std::vector<std::string> written;
  if (!options.csv.empty()) {
    for (const std::string& name : report::WriteCsv(options.csv, records, analysis, fairness)) {
      written.push_back((std::filesystem::path(options.csv) / name).string());
    }
  }
  if (!options.latex.empty()) {
    WriteFileAtomically(options.latex, report::ToLatexDocument(tables, records.sweep.name));
    written.push_back(options.latex);
  }
  if (!options.json.empty() || !options.html.empty()) {
    const report::Exhibits exhibits =
        options.no_exhibits ? report::Exhibits{}
                            : report::CollectExhibits(records, analysis, program.registries);
    const std::string data = report::ToPageData(records, analysis, fairness, exhibits,
                                                MakeHeader(records, options, program));
    if (!options.json.empty()) {
      WriteFileAtomically(options.json, data);
      written.push_back(options.json);
    }
    if (!options.html.empty()) {
      WriteFileAtomically(options.html, report::FillPage(report::PageTemplate(), data));
      written.push_back(options.html);
    }
    for (const report::RecordProblem& problem : exhibits.problems) {
      program.warn(StrCat(report::Printable(problem.path), ": ", report::Printable(problem.what)));
    }
  }
  if (!written.empty()) fmt::print("\n");
  for (const std::string& path : written) fmt::print("wrote {}\n", path);
}

}  // namespace

void AddReport(CLI::App& app, const Program& program) {
  CLI::App* command = app.add_subcommand(
      "report", "Tables, page and exports of a folder of runs, beside the paper's figures");
  command->footer(StrCat(
      "Works while runs are going on. What each figure means: docs/report.md.\n  ", program.name,
      " report runs/quick --html report.html      one file, opens without a network"));
  const auto options = std::make_shared<ReportOptions>();
  command->add_option("DIR", options->folder, "A sweep's folder, or any with runs below it")
      ->required();
  command->add_option("--html", options->html, "Write the page here");
  command->add_option("--csv", options->csv, "Write tables and evaluations into this folder");
  command->add_option("--latex", options->latex, "Write booktabs tables here");
  command->add_option("--json", options->json, "Write the page's data here");
  command->add_option("--few-shot", options->few_shot,
                      "Share of the budget for the few-shot AUC (the sweep's, or 0.25)");
  command->add_option("--baseline", options->baseline, "Compare every method with this one too");
  command->add_flag("--no-exhibits", options->no_exhibits,
                    "Leave out matrices, library and obstruction filter (no agent is loaded)");
  command->callback([options, &program] { RunReport(*options, program); });
}

}  // namespace msrl::cli
