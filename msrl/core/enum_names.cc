#include "msrl/core/enum_names.h"

#include <string>
#include <vector>

namespace msrl::internal {

void UnknownName(std::string_view what, std::string_view name,
                 std::span<const std::string_view> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  std::string list;
  for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
  throw UserError(
      StrCat("unknown ", what, " '", name, "'", DidYouMean(name, names), " (", list, ")"));
}

}  // namespace msrl::internal
