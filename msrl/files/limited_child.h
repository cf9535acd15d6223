// Work on what strangers made, tried out where it can do no harm.
#ifndef MSRL_FILES_LIMITED_CHILD_H_
#define MSRL_FILES_LIMITED_CHILD_H_

#include <cstdint>
#include <functional>
#include <string_view>

namespace msrl {

struct ChildLimits {
  std::uint64_t memory = 0;  // bytes, on top of what the process has
  int seconds = 60;          // of the processor
};

// Calls `work` in a child of this process that can open no file and has only so much memory and
// time. What the child finds wrong (a UserError), and also a crash or a limit that was met, is a
// UserError here that begins with `source`. Nothing of what it does is seen by the caller.
void RequireHarmless(std::string_view source, const ChildLimits& limits,
                     const std::function<void()>& work);

}  // namespace msrl

#endif  // MSRL_FILES_LIMITED_CHILD_H_
