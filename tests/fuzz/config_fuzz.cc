// Settings as people type them, key=value: taken or refused in one line, and what was taken reads
// back as itself. The first byte chooses the agent, every line is a setting.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/core/check.h"

namespace {

std::vector<std::string> Texts(const std::vector<msrl::ConfigField>& fields) {
  std::vector<std::string> texts;
  for (const msrl::ConfigField& field : fields) texts.push_back(field.Text());
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const msrl::AgentRegistry& agents = msrl::BuiltinAgents();
  const msrl::AgentEntry& agent = *(agents.begin() + data[0] % agents.size());
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  std::vector<std::string> settings;
  for (std::string line; std::getline(lines, line);) settings.push_back(line);
  try {
    const std::vector<std::string> texts = Texts(agent.options(settings));
    if (Texts(agent.options(texts)) != texts) std::abort();
  } catch (const msrl::UserError& error) {
    if (std::string_view(error.what()).empty()) std::abort();
  }
  return 0;
}
