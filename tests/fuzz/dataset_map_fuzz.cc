// Any text is a map of a dataset, which can be applied, or an error of one line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/transfer/dataset_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const msrl::DatasetMap map = msrl::ParseDatasetMap(text, "input");
    if (map.env.empty() || map.action_low.size() != map.action_high.size()) std::abort();
    const int entries = map.geometry.MinObservationSize();
    if (entries < 100 && !map.geometry.Apply(Eigen::MatrixXf::Ones(entries, 1)).allFinite()) {
      std::abort();
    }
  } catch (const msrl::UserError& error) {
    const std::string_view what = error.what();
    if (!what.starts_with("input:") || what.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
