// Signals that ask a run to stop: SIGINT, SIGTERM and SIGUSR1 (what schedulers send before a
// limit).
#ifndef MSRL_RUN_STOP_SIGNAL_H_
#define MSRL_RUN_STOP_SIGNAL_H_

namespace msrl {

// From now on the signals only set a flag, and a broken pipe or a file-size limit is an error of
// the write instead of the end of the process.
void InstallStopSignals();
bool StopRequested();

}  // namespace msrl

#endif  // MSRL_RUN_STOP_SIGNAL_H_
