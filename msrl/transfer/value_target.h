// Ways to value a state of a source episode; collect.h says what each is.
#ifndef MSRL_TRANSFER_VALUE_TARGET_H_
#define MSRL_TRANSFER_VALUE_TARGET_H_

#include "msrl/core/enum_names.h"

namespace msrl {

enum class ValueTarget { kMonteCarlo, kExpert, kFitted, kCritic, kRegression };
constexpr auto EnumNames(ValueTarget) {
  return Names("mc", "expert", "fitted", "critic", "regression");
}

}  // namespace msrl

#endif  // MSRL_TRANSFER_VALUE_TARGET_H_
