#include <fmt/format.h>

#include <string>

#include "msrl/cli/commands.h"
#include "msrl/files/atomic_file.h"
#include "msrl/mujoco/golden.h"

namespace msrl::cli {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 256 << 20;
constexpr int kBeyondTolerance = 1;

struct EnvCheckOptions : OptionList {
  std::string& id = Required("ENV", "Environment");
  std::string& file = Required("--against", "Recorded trajectories (mujoco-golden-1)");
};

void RunEnvCheck(const EnvCheckOptions& options, const Program& /*program*/) {
  const GoldenFile file = ParseGolden(ReadWholeFile(options.file, kMaxFileBytes), options.file);
  const std::vector<Deviation> rows = CheckAgainst(options.id, file);
  fmt::print("{} against {}: {} trajectories of {}, MuJoCo {}\n\n", options.id, options.file,
             file.trajectories.size(), file.task, mj_versionString());
  fmt::print("{:<60} {:>10} {:>10}\n", "quantity", "deviation", "tolerance");
  int beyond = 0;
  for (const Deviation& row : rows) {
    beyond += row.ok() ? 0 : 1;
    fmt::print("{:<60} {:>10.2g} {:>10.2g}{}\n", row.quantity, row.largest, row.tolerance,
               row.ok() ? "" : fmt::format("  BEYOND at {}", row.where));
  }
  if (beyond == 0) {
    fmt::print("\nall {} quantities within tolerance\n", rows.size());
    return;
  }
  fmt::print("\n{} of {} quantities beyond tolerance\n", beyond, rows.size());
  throw ExitRequest{kBeyondTolerance};
}

}  // namespace

void AddEnvCheck(CLI::App& app, const Program& program) {
  AddCommand(app, program, "env-check",
             "Replay recorded trajectories in a MuJoCo task and show the deviations", RunEnvCheck);
}

}  // namespace msrl::cli
