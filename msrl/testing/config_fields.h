// That every listed setting keeps to its range: what registries run over all their entries.
#ifndef MSRL_TESTING_CONFIG_FIELDS_H_
#define MSRL_TESTING_CONFIG_FIELDS_H_

#include <functional>
#include <string>
#include <vector>

#include "msrl/core/config.h"

namespace msrl::testing {

// `apply` takes one "key=value" and returns the fields afterwards (none if it can't). For each
// field the values at the borders and all choices are accepted and read back, while values beyond,
// NaN and unknown choices are refused with a UserError about the key. What `apply` refuses for the
// sake of another setting does not count.
void ExpectRangesHold(
    const std::string& what, const std::vector<ConfigField>& fields,
    const std::function<std::vector<ConfigField>(const std::string& assignment)>& apply);

}  // namespace msrl::testing

#endif  // MSRL_TESTING_CONFIG_FIELDS_H_
