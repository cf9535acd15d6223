#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "msrl/cli/commands.h"
#include "msrl/cli/progress.h"
#include "msrl/core/config.h"
#include "msrl/diagnose/diagnostic.h"
#include "msrl/diagnose/figures.h"
#include "msrl/files/atomic_file.h"

namespace msrl::cli {
namespace {

struct DiagnoseOptions {
  std::vector<std::string> families;
  std::vector<std::string> settings;
  std::string figures;
  std::string record;
  bool json = false;
};

std::string ToJson(const std::vector<DiagnosticRow>& rows, const DiagnoseConfig& config) {
  nlohmann::ordered_json document;
  for (const ConfigField& field : ListFields(config)) {
    document["config"][field.key] = nlohmann::ordered_json::parse(field.value);
  }
  document["rows"] = nlohmann::ordered_json::array();
  for (const DiagnosticRow& row : rows) {
    nlohmann::ordered_json object;
    object["env"] = row.env;
    object["diagnostic"] = row.diagnostic;
    object["metric"] = row.metric;
    object["headline"] = row.headline;
    object["score"] = row.score.mean;
    object["std"] = row.score.std;
    object["additive_error"] = row.additive_error.mean;
    object["weaker"] = nlohmann::ordered_json::object();
    for (const WeakerScore& weaker : row.weaker) object["weaker"][weaker.name] = weaker.score.mean;
    object["paper"] = row.paper ? nlohmann::ordered_json(row.paper->mean) : nullptr;
    document["rows"].push_back(object);
  }
  return document.dump(2);
}

std::string FormatScore(const Score& score, const std::string& metric) {
  if (metric == "error") return fmt::format("{:.1e} ± {:.0e}", score.mean, score.std);
  return fmt::format("{:.3f} ± {:.3f}", score.mean, score.std);
}

void PrintRows(const std::vector<DiagnosticRow>& rows, const DiagnoseConfig& config) {
  fmt::print(
      "Source diagnostics: held-out instances, seeds {} to {}, {} queries each, observation noise "
      "{} "
      "steps\n",
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
    fmt::print(
        "  {:<50} {:<8} {}{}\n", row.diagnostic, row.metric, FormatScore(row.score, row.metric),
        row.paper ? fmt::format("   (paper {:.3f} ± {:.3f})", row.paper->mean, row.paper->std)
                  : "");
    for (const WeakerScore& weaker : row.weaker) {
      fmt::print("    {:<57} {}\n", weaker.name, FormatScore(weaker.score, row.metric));
    }
  }
  fmt::print(
      "\nIndented: the same data seen by weaker descriptors, and blind guessing. A share counts "
      "compositions.\n");
}

void RunDiagnose(const DiagnoseOptions& options) {
  DiagnoseConfig config;
  for (const std::string& setting : options.settings) SetField(config, setting);
  ProgressLine line("diagnose");
  const std::vector<DiagnosticRow> rows = RunDiagnostics(
      config, options.families, [&line](int done, int total) { line.Show(done, total); });
  if (!options.figures.empty()) {
    WriteFigures(options.figures, static_cast<std::uint64_t>(config.first_seed));
  }
  if (!options.record.empty()) WriteFileAtomically(options.record, ToJson(rows, config) + "\n");
  if (options.json) {
    fmt::print("{}\n", ToJson(rows, config));
    return;
  }
  PrintRows(rows, config);
  if (!options.figures.empty()) fmt::print("Pictures of the families: {}\n", options.figures);
}

}  // namespace

void AddDiagnose(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "diagnose", "Show what the matrices reveal of the source environments, beside the paper");
  std::string footer = "FAMILY is one of";
  for (const std::string& family : DiagnosableFamilies()) footer += " " + family;
  footer += "; all if none is named.\nSettings (--set key=value):\n";
  for (const ConfigField& field : ListFields(DiagnoseConfig{})) {
    footer += fmt::format("  {:<12} {} ({}; default {})\n", field.key, field.meaning,
                          field.Accepts(), field.value);
  }
  command->footer(footer);
  const auto options = std::make_shared<DiagnoseOptions>();
  command->add_option("FAMILY", options->families, "Families to diagnose");
  AddSettings(*command, options->settings, "key=value");
  command->add_option("--figures", options->figures, "Write one picture per family to this folder");
  command->add_option("--record", options->record, "Write the rows as JSON to this file too");
  command->add_flag("--json", options->json, "Rows as JSON");
  command->callback([options] { RunDiagnose(*options); });
}

}  // namespace msrl::cli
