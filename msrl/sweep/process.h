// Starting other programs.
#ifndef MSRL_SWEEP_PROCESS_H_
#define MSRL_SWEEP_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace msrl {

// Starts a program without a shell and leaves it to run. It has a process group of its own, so that
// Ctrl-C is for the sweep alone, nothing to read, and its output goes to these files. `prepare` is
// called in the new process. Negative, with errno, if there is none.
pid_t StartProcess(std::vector<std::string> words, int out, int err,
                   const std::function<void()>& prepare);

}  // namespace msrl

#endif  // MSRL_SWEEP_PROCESS_H_
