#include "msrl/sweep/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "msrl/run/stop_signal.h"

namespace msrl {

pid_t StartProcess(std::vector<std::string> words, int out, int err,
                   const std::function<void()>& prepare) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // a signal between fork and exec would only set a flag of ours that exec forgets
  sigset_t stops;
  sigset_t before;
  sigemptyset(&stops);
  for (const int signal : kStopSignals) sigaddset(&stops, signal);
  pthread_sigmask(SIG_BLOCK, &stops, &before);
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : kStopSignals) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      // what nohup ignores stays ignored
      if (action.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    prepare();
    setpgid(0, 0);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return child;
}

}  // namespace msrl
