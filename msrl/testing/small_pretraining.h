// Settings with which any kind of pretraining goes through everything quickly.
#ifndef MSRL_TESTING_SMALL_PRETRAINING_H_
#define MSRL_TESTING_SMALL_PRETRAINING_H_

#include <string>
#include <vector>

#include "msrl/core/text.h"
#include "msrl/transfer/pretrainer.h"

namespace msrl::testing {

// `key=value` for those of its options that make networks and batches small.
inline std::vector<std::string> SmallSettings(const PretrainerEntry& entry) {
  std::vector<std::string> settings;
  for (const ConfigField& field : entry.options({})) {
    const std::string& key = field.key;
    if (key.ends_with("width") || key == "deter" || key == "hidden" || key == "units") {
      settings.push_back(StrCat(key, "=16"));
    } else if (key == "batch" || key.ends_with("windows")) {
      settings.push_back(StrCat(key, "=8"));
    }
  }
  return settings;
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_SMALL_PRETRAINING_H_
