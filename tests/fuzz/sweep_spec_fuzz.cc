// Whatever a sweep file holds, it is read or refused in one line that begins with file and line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msrl/agents/registry.h"
#include "msrl/core/check.h"
#include "msrl/sweep/sweep_spec.h"
#include "msrl/sweep/variants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const msrl::SweepSpec spec = msrl::ParseSweepSpec(text, "input");
    // what the rest of the program relies on
    if (spec.envs.empty() || spec.methods.empty() || spec.seeds.empty()) std::abort();
    for (const msrl::SweepEnv& env : spec.envs) {
      if (env.steps < 1 || env.name.empty() || env.name.find('/') != std::string::npos)
        std::abort();
    }
    for (const msrl::SweepBranch& branch : spec.branches) {
      if (branch.seeds.empty()) std::abort();
    }
    const msrl::SweepSpec single = msrl::WithVariants(spec, msrl::BuiltinAgents());
    if (single.search || single.methods.size() > msrl::kMaxSweepNames) std::abort();
    for (const msrl::SweepMethod& method : single.methods) {
      if (method.name.find('/') != std::string::npos) std::abort();
      for (const msrl::SweepSetting& setting : method.written) {
        if (!setting.values.empty()) std::abort();
      }
    }
  } catch (const msrl::UserError& error) {
    const std::string_view what = error.what();
    if (!what.starts_with("input:") || what.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
