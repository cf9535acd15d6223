#include <fmt/format.h>

#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/json_output.h"
#include "msrl/cli/progress.h"
#include "msrl/core/config.h"
#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/figures.h"
#include "msrl/files/atomic_file.h"

namespace msrl::cli {
namespace {

struct DiagnoseOptions : OptionList {
  std::vector<std::string>& families =
      Option<std::vector<std::string>>("FAMILY", "Families to diagnose", {});
  std::vector<std::string>& settings = Repeated("--set", "key=value");
  std::string& figures = Text("--figures", "Write one picture per family to this folder");
  std::string& record = Text("--record", "Write the rows as JSON to this file too");
  Replace replace = ReplaceFlag();
  bool& json = Flag("--json", "Rows as JSON");
};

Json ToJson(const std::vector<DiagnosticRow>& rows, const DiagnoseConfig& config) {
  Json document;
  for (const ConfigField& field : ListFields(config)) {
    document["config"][field.key] = Json::parse(field.value);
  }
  document["rows"] = Json::array();
  for (const DiagnosticRow& row : rows) {
    Json weaker_scores = Json::object();
    for (const WeakerScore& weaker : row.weaker) weaker_scores[weaker.name] = weaker.score.mean;
    document["rows"].push_back({{"env", row.env},
                                {"diagnostic", row.diagnostic},
                                {"metric", row.metric},
                                {"headline", row.headline},
                                {"score", row.score.mean},
                                {"std", row.score.std},
                                {"compact", row.compact.mean},
                                {"compact_std", row.compact.std},
                                {"additive_error", row.additive_error.mean},
                                {"weaker", weaker_scores},
                                {"paper", row.paper ? Json(row.paper->mean) : Json()}});
  }
  return document;
}

std::string FormatScore(const Score& score, const std::string& metric) {
  if (metric == "error") return fmt::format("{:.1e} ± {:.0e}", score.mean, score.std);
  return fmt::format("{:.3f} ± {:.3f}", score.mean, score.std);
}

void PrintRows(const std::vector<DiagnosticRow>& rows, const DiagnoseConfig& config) {
  fmt::print(
      "Source diagnostics: held-out instances, seeds {} to {}, {} queries each, observation noise "
      "{} steps\n",
      config.first_seed, config.first_seed + config.seeds - 1, config.queries, config.noise);
  std::string env;
  for (const DiagnosticRow& row : rows) {
    if (row.env != env) {
      env = row.env;
      fmt::print("\n{}   additive consistency error {:.1e}{}\n", env, row.additive_error.mean,
                 row.paper_additive_error
                     ? fmt::format("   (paper {:.1e})", row.paper_additive_error->mean)
                     : "");
    }
    fmt::print("  {:<50} {:<8} {:<15}  compact {:<15}{}\n", row.diagnostic, row.metric,
               FormatScore(row.score, row.metric), FormatScore(row.compact, row.metric),
               row.paper
                   ? fmt::format("   (paper {:.3f} ± {:.3f})", row.paper->mean, row.paper->std)
                   : "");
    for (const WeakerScore& weaker : row.weaker) {
      fmt::print("    {:<57} {}\n", weaker.name, FormatScore(weaker.score, row.metric));
    }
  }
  fmt::print(
      "\nFirst with the full lift, then with the compact one, which agents have. Indented: the "
      "same data\nseen by weaker descriptors, and blind guessing. A share counts compositions.\n");
}

void RunDiagnose(const DiagnoseOptions& options, const Program& /*program*/) {
  DiagnoseConfig config;
  for (const std::string& setting : options.settings) SetField(config, setting);
  if (!options.record.empty()) RequireWritable(options.record, options.replace());
  ProgressLine line("diagnose");
  const std::vector<DiagnosticRow> rows = RunDiagnostics(
      config, options.families, [&line](int done, int total) { line.Show(done, total); });
  if (!options.figures.empty()) {
    WriteFigures(options.figures, static_cast<std::uint64_t>(config.first_seed));
  }
  if (!options.record.empty()) {
    WriteFileAtomically(options.record, JsonText(ToJson(rows, config)), options.replace());
  }
  if (options.json) return PrintJson(ToJson(rows, config));
  PrintRows(rows, config);
  if (!options.figures.empty()) fmt::print("Pictures of the families: {}\n", options.figures);
}

}  // namespace

void AddDiagnose(CLI::App& app, const Program& program) {
  std::string footer =
      fmt::format("FAMILY is one of {}; all if none is named.\nSettings (--set key=value):\n",
                  fmt::join(DiagnosableFamilies(), " "));
  for (const ConfigField& field : ListFields(DiagnoseConfig{})) {
    footer += fmt::format("  {:<12} {} ({}; default {})\n", field.key, field.meaning,
                          field.Accepts(), field.value);
  }
  AddCommand(app, program, "diagnose",
             "Show what the matrices reveal of the source environments, next to the paper",
             RunDiagnose)
      ->footer(footer);
}

}  // namespace msrl::cli
