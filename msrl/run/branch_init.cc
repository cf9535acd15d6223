#include "msrl/run/branch_init.h"

#include <algorithm>
#include <memory>
#include <span>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/run/run_directory.h"

namespace msrl {

std::vector<std::string> BranchSettings(const BranchShape& shape, std::string_view features) {
  return {StrCat("branch_width=", shape.width), StrCat("branch_layers=", shape.layers),
          StrCat("features=", features)};
}

bool TakesBranch(std::string_view agent) {
  const std::vector<ConfigField> fields = FindAgent(agent).options({});
  return std::any_of(fields.begin(), fields.end(),
                     [](const ConfigField& field) { return field.key == "branch_width"; });
}

std::string StartFromBranch(RunSpec& spec, const std::filesystem::path& file, bool unaligned) {
  std::string contents = ReadWholeFile(file, std::uintmax_t{1} << 30);
  const std::string source = file.string();
  // the lift is checked by the agent, which knows its own
  const ValueBranch branch = ValueBranch::Parse(std::as_bytes(std::span(contents)), source,
                                                LiftId{}, Alignment::kUnaligned);
  if (!TakesBranch(spec.agent)) {
    throw UserError(StrCat("--init needs an agent with a matrix-value branch (msrl, msrl-td3, ",
                           "msrl-dqn), not '", spec.agent, "'"));
  }
  std::vector<std::string>& settings = spec.agent_settings;
  const std::vector<std::string> shape =
      BranchSettings(branch.shape(), branch.info().features.Name());
  settings.insert(settings.begin(), shape.begin(), shape.end());
  if (unaligned) settings.emplace_back("unaligned=true");
  spec.init = ContentsHash(contents);
  const std::unique_ptr<Env> env = MakeEnv(spec.env, spec.env_settings);
  MakeAgent(FindAgent(spec.agent), env->spec(), settings, spec.seed)
      ->Initialise(std::as_bytes(std::span(contents)), source);
  return contents;
}

}  // namespace msrl
