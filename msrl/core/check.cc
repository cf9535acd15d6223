#include "msrl/core/check.h"

namespace msrl::internal {

void FailCheck(const char* file, int line, const char* condition, const std::string& message) {
  std::string text = StrCat(file, ":", line, ": check failed: ", condition);
  if (!message.empty()) text += ": " + message;
  throw InvariantError(text);
}

}  // namespace msrl::internal
