#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "msrl/cli/clips.h"
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

struct ReportOptions : OptionList {
  std::string& folder = Required("DIR", "A sweep's folder, or any with runs below it");
  std::string& html = Text("--html", "Write the page here");
  std::string& csv = Text("--csv", "Write tables and evaluations into this folder");
  std::string& latex = Text("--latex", "Write booktabs tables here");
  std::string& json = Text("--json", "Write the page's data here");
  std::optional<double>& few_shot = Option<std::optional<double>>(
      "--few-shot", "Share of the budget for the few-shot AUC (the sweep's, or 0.25)", {});
  std::string& baseline = Text("--baseline", "Compare every method with this one too");
  Replace replace = ReplaceFlag();
  bool& clips = Flag("--clips", "Film the best run of each task for the page (needs ffmpeg)");
  bool& no_exhibits = Flag(
      "--no-exhibits", "Leave out matrices, library and obstruction filter (no agent is loaded)");
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
  if (options.clips) command += " --clips";
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
  if (options.clips && options.html.empty() && options.json.empty()) {
    throw UserError("--clips are for the page: give --html FILE too");
  }
  for (const std::string& path : {options.html, options.latex, options.json}) {
    if (!path.empty()) RequireWritable(path, options.replace());
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
  const auto write = [&](const std::string& path, const std::string& contents) {
    WriteFileAtomically(path, contents, options.replace());
    written.push_back(path);
  };
  if (!options.csv.empty()) {
    for (const std::string& name :
         report::WriteCsv(options.csv, records, analysis, fairness, options.replace())) {
      written.push_back((std::filesystem::path(options.csv) / name).string());
    }
  }
  if (!options.latex.empty()) {
    write(options.latex, report::ToLatexDocument(tables, records.sweep.name));
  }
  if (!options.json.empty() || !options.html.empty()) {
    report::Exhibits exhibits =
        options.no_exhibits ? report::Exhibits{}
                            : report::CollectExhibits(records, analysis, program.registries);
    if (options.clips) AddClips(records, analysis, program, exhibits);
    const std::string data = report::ToPageData(records, analysis, fairness, exhibits,
                                                MakeHeader(records, options, program));
    if (!options.json.empty()) write(options.json, data);
    if (!options.html.empty()) write(options.html, report::FillPage(report::PageTemplate(), data));
    for (const report::RecordProblem& problem : exhibits.problems) {
      program.warn(StrCat(report::Printable(problem.path), ": ", report::Printable(problem.what)));
    }
  }
  if (!written.empty()) fmt::print("\n");
  for (const std::string& path : written) fmt::print("wrote {}\n", path);
}

}  // namespace

void AddReport(CLI::App& app, const Program& program) {
  CLI::App* command = AddCommand(
      app, program, "report",
      "Tables, page and exports of a folder of runs, next to the paper's figures", RunReport);
  command->footer(StrCat(
      "Works while runs are going on. What each figure means: docs/report.md.\n  ", program.name,
      " report runs/quick --html report.html      one file, opens without a network"));
}

}  // namespace msrl::cli
