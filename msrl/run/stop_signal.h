// Signals that ask a command to stop; SIGUSR1 is what schedulers send before a limit, SIGHUP comes
// when the terminal is closed.
#ifndef MSRL_RUN_STOP_SIGNAL_H_
#define MSRL_RUN_STOP_SIGNAL_H_

#include <csignal>

namespace msrl {

inline constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

// From now on the signals only set a flag (SIGHUP remains ignored below nohup), and a broken pipe
// or a file-size limit is an error of the write instead of the end of the process.
void InstallStopSignals();
bool StopRequested();

}  // namespace msrl

#endif  // MSRL_RUN_STOP_SIGNAL_H_
