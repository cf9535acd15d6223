// Ends the command with an exit code that is no error of the input.
#ifndef MSRL_CLI_EXIT_REQUEST_H_
#define MSRL_CLI_EXIT_REQUEST_H_

namespace msrl::app {

// What scripts and schedulers can rely on (docs/running.md).
inline constexpr int kDefect = 1;
inline constexpr int kUserError = 2;
inline constexpr int kSweepFailures = 3;
inline constexpr int kBadNumber = 6;
inline constexpr int kNoSpace = 7;
inline constexpr int kInterrupted = 75;

// Thrown by a command that has said all it has to say.
struct ExitRequest {
  int code;
};

}  // namespace msrl::app

#endif  // MSRL_CLI_EXIT_REQUEST_H_
