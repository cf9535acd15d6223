// Work on what strangers made, done where it can do no harm.
#ifndef MSRL_FILES_LIMITED_CHILD_H_
#define MSRL_FILES_LIMITED_CHILD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace msrl {

struct ChildLimits {
  std::uint64_t memory = 0;  // bytes, on top of what the process has
  int seconds = 60;          // of the processor
};

// What `work` returns, called in a child of this process that can open no file, has none of ours,
// has only so much memory and time, and ends with this process. What the child finds wrong (a
// UserError), and also a crash or a limit that was met, is a UserError here that begins with
// `source`. Nothing else of what it does is seen by the caller; a child that the work took over can
// return any bytes, though no more than its memory.
std::string InLimitedChild(std::string_view source, const ChildLimits& limits,
                           const std::function<std::string()>& work);

}  // namespace msrl

#endif  // MSRL_FILES_LIMITED_CHILD_H_
