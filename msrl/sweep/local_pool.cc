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
#include "msrl/sweep/process.h"

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
      const bool stop = options_.stop();
      if (stop || give_up_) {
        StopAll();
        return stop ? SweepOutcome::kInterrupted : SweepOutcome::kFailures;
      }
      Reap();
      StartWhatIsReady();
      Show();
      std::this_thread::sleep_for(kPoll);
    }
    return OutcomeOf(ledger_);
  }

 private:
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
    options_.show(ledger_);
  }

  void StartWhatIsReady() {
    const Clock::time_point now = Clock::now();
    for (TaskEntry& entry : ledger_.entries()) {
      if (std::ssize(children_) >= options_.jobs) return;
      if (!ledger_.Ready(entry) || now < entry.not_before) continue;
      // somebody may have finished or begun it since we looked
      ledger_.Read(entry);
      if (entry.state == State::kFailed) entry.state = State::kWaiting;  // it is a retry
      if (entry.state == State::kWaiting) Start(entry);
    }
  }

  void Start(TaskEntry& entry) {
    const SweepDirectory& directory = ledger_.directory();
    const std::filesystem::path log = directory.LogOf(entry.task.path);
    const Folder folder = directory.Make(log.parent_path().lexically_relative(directory.path()));
    std::vector<std::string> words = options_.WorkerCommand();
    words.push_back(directory.path().string());
    words.push_back(entry.task.path);
    const FileDescriptor file = folder.OpenForUpdate(log.filename().string());
    const int out = file.get();
    fcntl(out, F_SETFL, O_APPEND);
    const pid_t child = StartProcess(std::move(words), out, out, [parent = getpid()] {
      // a worker outlives its sweep only as long as its checkpoint takes
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(kTaskInterrupted);
    });
    if (child < 0) throw UserError(StrCat("cannot start a process: ", std::strerror(errno)));
    entry.state = State::kRunning;
    entry.started = Clock::now();
    children_[child] = &entry;
  }

  void Reap() {
    std::erase_if(children_, [this](const auto& child) {
      int status = 0;
      const bool ended = waitpid(child.first, &status, WNOHANG) == child.first;
      if (ended) Ended(*child.second, status);
      return ended;
    });
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
        if (!give_up_ && !options_.stop()) {
          options_.say(signal == 0
                           ? StrCat(path, " was stopped; it continues")
                           : StrCat(path, " was killed by signal ", signal, "; it continues"));
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
    options_.say(StrCat(entry.task.path, " failed: ", message));
    if (options_.fail_fast) give_up_ = true;
  }

  // Every worker writes its checkpoint.
  void StopAll() {
    for (const auto& [child, entry] : children_) kill(child, SIGTERM);
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (!children_.empty()) {
      Reap();
      if (Clock::now() > deadline) {
        for (const auto& [child, entry] : children_) kill(child, SIGKILL);
      }
      std::this_thread::sleep_for(kPoll);
    }
  }

  Ledger& ledger_;
  const PoolOptions& options_;
  std::map<pid_t, TaskEntry*> children_;  // and the task that each is at
  Clock::time_point shown_;
  bool give_up_ = false;
};

}  // namespace

std::vector<std::string> PoolOptions::WorkerCommand() const {
  std::vector<std::string> words = worker;
  words.emplace_back("--checkpoint-seconds");
  words.push_back(StrCat(checkpoint_seconds));
  if (any_version) words.emplace_back("--any-version");
  return words;
}

SweepOutcome OutcomeOf(const Ledger& ledger) {
  const bool done = std::ranges::all_of(ledger.entries(), [](const TaskEntry& entry) {
    return !entry.wanted || entry.state == State::kDone;
  });
  return done ? SweepOutcome::kFinished : SweepOutcome::kFailures;
}

SweepOutcome RunLocally(Ledger& ledger, const PoolOptions& options) {
  MSRL_CHECK(!options.worker.empty());
  return Pool(ledger, options).Run();
}

}  // namespace msrl
