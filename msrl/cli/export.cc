#include <fmt/format.h>

#include <string>

#include "msrl/cli/commands.h"
#include "msrl/core/check.h"
#include "msrl/policy_files/policy_files.h"

namespace msrl::cli {
namespace {

struct ExportOptions : OptionList {
  std::string& run = Required("DIR", "Directory of the run");
  std::string& onnx = Text("--onnx", "Write the policy as a model of ONNX to this file");
  std::string& header = Text("--header", "Write the policy as C99 in one header to this file");
  std::string& name = Text("--name", "Name of the header's functions (default policy)", "policy");
  Replace replace = ReplaceFlag();
};

void RunExport(const ExportOptions& options, const Program& program) {
  if (options.onnx.empty() && options.header.empty()) {
    throw UserError("nothing to write: give --onnx FILE, --header FILE or both");
  }
  const RunDirectory run = RunDirectory::OpenForReading(options.run);
  const ExportedPolicy exported = ExportPolicy(run, program.registries, program.warn);
  const auto written =
      WritePolicy(exported, {options.onnx, options.header, options.name}, options.replace());
  const FeedForwardPolicy& policy = exported.policy;
  fmt::print("{} in {}: {} numbers in, {} out\n", exported.agent, exported.env,
             policy.observation_size(),
             policy.discrete ? fmt::format("one of {} actions", policy.output_size())
                             : fmt::format("{} in [-1, 1]", policy.output_size()));
  for (const WrittenFile& file : written) {
    fmt::print("  written  {} ({:.1f} kB)\n", file.path, 1e-3 * static_cast<double>(file.bytes));
  }
}

}  // namespace

void AddExport(CLI::App& app, const Program& program) {
  AddCommand(app, program, "export", "Write the policy of a run for other programs: ONNX, C",
             RunExport);
}

}  // namespace msrl::cli
