// A damaged snapshot is refused, or restores a state from which the environment goes on.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::unique_ptr<msrl::Env>> envs = [] {
    std::vector<std::unique_ptr<msrl::Env>> list;
    for (const msrl::EnvEntry& entry : msrl::BuiltinEnvs()) {
      list.push_back(msrl::MakeEnv(entry.id));
    }
    return list;
  }();
  if (size < 2) return 0;
  msrl::Env& env = *envs[data[0] % envs.size()];
  env.Reset(data[1] % 8);
  std::vector<std::byte> bytes = env.Snapshot();
  // triples: overwrite one byte, or cut or extend the end
  for (std::size_t k = 2; k + 2 < size; k += 3) {
    const std::size_t place = static_cast<std::size_t>(data[k]) + 256u * (data[k + 1] & 0x3f);
    if (data[k + 1] >= 0xc0) bytes.resize(place % (bytes.size() + 9));
    if (!bytes.empty()) bytes[place % bytes.size()] = static_cast<std::byte>(data[k + 2]);
  }
  try {
    env.Restore(bytes);
    msrl::ActionBuffer action(env.spec().action);
    for (int t = 0; t < 5; ++t) {
      const msrl::StepResult result = env.Step(action.view());
      if (!std::isfinite(result.reward)) std::abort();
      if (!env.observation().allFinite() || !env.geometry().allFinite()) std::abort();
    }
  } catch (const msrl::UserError&) {
    // refused, or the episode has ended: fine
  }
  return 0;
}
