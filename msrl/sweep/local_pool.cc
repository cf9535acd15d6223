#include "msrl/sweep/local_pool.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"
#include "msrl/run/stop_signal.h"

namespace msrl {
namespace {

using Clock = std::chrono::steady_clock;
using State = TaskEntry::State;

constexpr std::chrono::milliseconds kPoll(20);
constexpr std::chrono::milliseconds kShowEvery(500);
constexpr std::chrono::seconds kLeasePause(2);
constexpr std::chrono::seconds kPatience(60);
// Deaths in a row without a step further: a crash repeats itself, a kill comes from outside.
constexpr int kMaxCrashes = 3;
constexpr int kMaxKills = 20;

bool IsCrash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGILL ||
         signal == SIGFPE;
}

class Pool {
 public:
  Pool(Ledger& ledger, const PoolOptions& options) : ledger_(ledger), options_(options) {}

  SweepOutcome Run() {
    while (!ledger_.Ended()) {
      if (options_.stop && options_.stop()) {
        StopAll();
        return SweepOutcome::kInterrupted;
      }
      if (give_up_) {
        StopAll();
        return SweepOutcome::kFailures;
      }
      Reap();
      StartWhatIsReady();
      Show();
      std::this_thread::sleep_for(kPoll);
    }
    return OutcomeOf(ledger_);
  }

 private:
  void Say(const std::string& text) const {
    if (options_.say) options_.say(text);
  }

  void Show() {
    const Clock::time_point now = Clock::now();
    if (now - shown_ < kShowEvery) return;
    shown_ = now;
    for (TaskEntry& entry : ledger_.entries()) {
      if (entry.state == State::kRunning) ledger_.ReadProgress(entry);
      // whoever was at it may have ended
      if (entry.state == State::kElsewhere && now >= entry.not_before) {
        ledger_.Read(entry);
        entry.not_before = now + kLeasePause;
      }
    }
    if (options_.show) options_.show(ledger_);
  }

  void StartWhatIsReady() {
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < ledger_.entries().size(); ++i) {
      if (std::ssize(children_) >= options_.jobs) return;
      TaskEntry& entry = ledger_.entries()[i];
      if (!ledger_.Ready(entry) || now < entry.not_before) continue;
      // somebody may have finished or begun it since we looked
      ledger_.Read(entry);
      if (entry.state == State::kFailed) entry.state = State::kWaiting;  // it is a retry
      if (entry.state == State::kWaiting) Start(i);
    }
  }

  void Start(std::size_t index) {
    TaskEntry& entry = ledger_.entries()[index];
    const std::filesystem::path log = ledger_.directory().LogOf(entry.task.path);
    MakeFolder(log.parent_path());
    std::vector<std::string> words = options_.worker;
    for (const std::string& word :
         {ledger_.directory().path().string(), entry.task.path, std::string("--checkpoint-seconds"),
          StrCat(options_.checkpoint_seconds)}) {
      words.push_back(word);
    }
    if (options_.any_version) words.emplace_back("--any-version");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out < 0) {
      throw UserError(StrCat("cannot write ", log.string(), ": ", std::strerror(errno)));
    }
    const pid_t parent = getpid();
    // a signal between fork and exec would only set a flag of ours that exec forgets
    sigset_t stops;
    sigset_t before;
    sigemptyset(&stops);
    for (const int signal : kStopSignals) sigaddset(&stops, signal);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    const pid_t child = fork();
    if (child == 0) {
      for (const int signal : kStopSignals) std::signal(signal, SIG_DFL);
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      // a worker outlives its sweep only as long as its checkpoint takes
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(kTaskInterrupted);
      setpgid(0, 0);  // Ctrl-C is for the sweep, which passes it on
      const int null = open("/dev/null", O_RDONLY);
      dup2(null, STDIN_FILENO);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    close(out);
    if (child < 0) throw UserError(StrCat("cannot start a process: ", std::strerror(errno)));
    entry.state = State::kRunning;
    entry.started = Clock::now();
    children_[child] = index;
  }

  void Reap() {
    for (auto child = children_.begin(); child != children_.end();) {
      int status = 0;
      if (waitpid(child->first, &status, WNOHANG) != child->first) {
        ++child;
        continue;
      }
      Ended(ledger_.entries()[child->second], status);
      child = children_.erase(child);
    }
  }

  void Ended(TaskEntry& entry, int status) {
    const std::string& path = entry.task.path;
    ledger_.Read(entry);
    if (entry.state == State::kDone) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kTaskLeased) {
      entry.state = State::kWaiting;
      entry.not_before = Clock::now() + kLeasePause;
      return;
    }
    if (WIFSIGNALED(status) || WEXITSTATUS(status) == kTaskInterrupted) {
      // its lock goes with the process, which has gone: nobody is at it
      if (entry.record.step > entry.step_at_death) entry.deaths = 0;
      entry.step_at_death = std::max(entry.step_at_death, entry.record.step);
      ++entry.deaths;
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      if (entry.deaths < (IsCrash(signal) ? kMaxCrashes : kMaxKills)) {
        if (!give_up_ && (!options_.stop || !options_.stop())) {
          Say(signal == 0 ? StrCat(path, " was stopped; it goes on")
                          : StrCat(path, " was killed by signal ", signal, "; it goes on"));
        }
        if (entry.state != State::kElsewhere) entry.state = State::kWaiting;
        return;
      }
      Fail(entry, StrCat("its process was ended by signal ", signal, " ", entry.deaths,
                         " times without coming further"));
      return;
    }
    if (WEXITSTATUS(status) == 0) {
      Fail(entry, "its process ended without a result");
      return;
    }
    // the task has recorded why, unless it could not
    const std::string recorded = entry.message;
    const std::string last = ledger_.directory().LastLogLine(path);
    if (WEXITSTATUS(status) == kTaskNoSpace) give_up_ = true;
    Fail(entry, !recorded.empty() ? recorded
                : !last.empty()   ? last
                                  : StrCat("exit code ", WEXITSTATUS(status)));
  }

  void Fail(TaskEntry& entry, const std::string& message) {
    entry.state = State::kFailed;
    entry.message = message;
    if (!ledger_.directory().FailureOf(entry.task.path)) {
      ledger_.directory().RecordFailure(entry.task.path, message);
    }
    Say(StrCat(entry.task.path, " failed: ", message));
    if (options_.fail_fast) give_up_ = true;
  }

  // Every worker writes its checkpoint.
  void StopAll() {
    for (const auto& [child, index] : children_) kill(child, SIGTERM);
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (!children_.empty()) {
      Reap();
      if (Clock::now() > deadline) {
        for (const auto& [child, index] : children_) kill(child, SIGKILL);
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  Ledger& ledger_;
  const PoolOptions& options_;
  std::map<pid_t, std::size_t> children_;  // and the task that each is at
  Clock::time_point shown_;
  bool give_up_ = false;
};

}  // namespace

SweepOutcome OutcomeOf(const Ledger& ledger) {
  const auto done = [](const TaskEntry& entry) {
    return !entry.wanted || entry.state == State::kDone;
  };
  return std::all_of(ledger.entries().begin(), ledger.entries().end(), done)
             ? SweepOutcome::kFinished
             : SweepOutcome::kFailures;
}

SweepOutcome RunLocally(Ledger& ledger, const PoolOptions& options) {
  MSRL_CHECK(!options.worker.empty());
  return Pool(ledger, options).Run();
}

}  // namespace msrl
