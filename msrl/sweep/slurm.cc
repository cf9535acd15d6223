#include "msrl/sweep/slurm.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "msrl/core/check.h"
#include "msrl/core/parse.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/json_text.h"
#include "msrl/sweep/process.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using State = TaskEntry::State;

constexpr std::size_t kMaxArray = 1000;  // Slurm's default limit is 1001
constexpr int kMaxSubmissions = 5;       // of one task by one sweep process
constexpr int kMaxRestarts = 50;         // of one task within a job
constexpr std::chrono::seconds kSettling(10);
constexpr std::chrono::milliseconds kShortestPause(1000);
constexpr std::chrono::milliseconds kLongestPause(15000);

// $1 list of tasks, $2 sweep, $3 msrl, $4 most restarts, the rest: options of msrl task.
constexpr std::string_view kJobScript = R"script(#!/bin/bash
# One task of a sweep, written by msrl sweep: job.sh LIST DIR RESTARTS COMMAND [options]
list=$1 dir=$2 restarts=$3
# the id of the last task is also that of the whole array
job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
shift 3
task=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$list")
[ -n "$task" ] || { echo "no line $SLURM_ARRAY_TASK_ID in $list"; exit 2; }
log=$dir/logs/$task.log
mkdir -p "$(dirname "$log")"

# Slurm warns before preemption and time limit; the run then writes its checkpoint
child=
trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null' USR1 TERM
"$@" "$dir" "$task" >>"$log" 2>&1 &
child=$!
# a signal ends the wait, not the child
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done

case $code in
  73) exit 0 ;;  # another process is at it
  75 | 12[89] | 1[3-9][0-9])
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "$restarts" ]; then
      echo "stopped or killed $SLURM_RESTART_COUNT times, last with exit code $code" \
        >"$dir/logs/$task.failed"
      exit "$code"
    fi
    # not if it was cancelled, or if Slurm is putting it back by itself
    [ "$(squeue -h -j "$job" -o %T)" = RUNNING ] || exit "$code"
    echo "$task: exit code $code, back into the queue"
    scontrol requeue "$job" ;;
esac
exit "$code"
)script";

struct CommandResult {
  int code = 0;
  std::string out;
  std::string err;
};

// All that was written to a file in memory, which is gone then.
std::string TakeText(int fd) {
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, size)));
  close(fd);
  return text;
}

// Runs a command without a shell and takes all that it prints.
CommandResult Execute(const std::vector<std::string>& words) {
  const int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
  // or squeue cuts long lists of indices
  const auto prepare = [] { setenv("SLURM_BITSTR_LEN", "0", 1); };
  const pid_t child = out < 0 || err < 0 ? -1 : StartProcess(words, out, err, prepare);
  if (child < 0) throw UserError(StrCat("cannot start ", words[0], ": ", std::strerror(errno)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, TakeText(out), TakeText(err)};
}

// Empty where it cannot be read: it is for people alone.
Json ReadJobs(const fs::path& file) {
  if (!fs::exists(file)) return Json::array();
  const auto jobs = TryParseJson<Json>(ReadWholeFile(file, 1 << 26));
  return jobs && jobs->is_array() ? *jobs : Json::array();
}

// Data first, then branches, then runs; runs that start from nothing need not wait.
int StageOf(const SweepTask& task) {
  if (task.kind == SweepTask::Kind::kBranch) return 1;
  return task.is_run() && !task.needs.empty() ? 2 : 0;
}

class SlurmDriver {
 public:
  SlurmDriver(Ledger& ledger, const SlurmOptions& options)
      : ledger_(ledger),
        options_(options),
        root_(fs::absolute(ledger.directory().path())),
        folder_(root_ / "slurm"),
        prefix_(StrCat("msrl-", Hex(StableHash(fs::weakly_canonical(root_).string())).substr(0, 8),
                       "-")) {
    ledger.directory().Make("slurm");
    WriteFileAtomically(folder_ / "job.sh", kJobScript);
    for (std::size_t i = 0; i < ledger_.entries().size(); ++i) {
      by_path_[ledger_.entries()[i].task.path] = i;
    }
    ReadLists();
  }

  SweepOutcome Run() {
    std::chrono::milliseconds pause = kShortestPause;
    for (;;) {
      const bool asked = Look();
      const bool changed = asked && SubmitWhatIsReady();
      options_.pool.show(ledger_);
      if (ledger_.Ended()) return OutcomeOf(ledger_);
      if (options_.pool.fail_fast && new_failure_) {
        // by name: ids may be given again
        for (const std::string& name : jobs_in_queue_) Execute({"scancel", "--name=" + name});
        return SweepOutcome::kFailures;
      }
      pause = changed ? kShortestPause : std::min(kLongestPause, pause * 3 / 2);
      for (Clock::time_point until = Clock::now() + pause; Clock::now() < until;) {
        if (options_.pool.stop()) return SweepOutcome::kInterrupted;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
  }

 private:
  void SayFailed(const TaskEntry& entry) {
    new_failure_ = true;
    options_.pool.say(StrCat(entry.task.path, " failed: ", entry.message));
  }
  fs::path ListFile(int number) const { return folder_ / StrCat("tasks-", number, ".txt"); }

  // A job's name tells which list its indices are of, also if we were killed right after sbatch.
  void ReadLists() {
    for (next_list_ = 1; fs::exists(ListFile(next_list_)); ++next_list_) {
      std::istringstream in(ReadWholeFile(ListFile(next_list_), 1 << 26));
      std::vector<std::string>& tasks = lists_[StrCat(prefix_, next_list_)];
      for (std::string line; std::getline(in, line);) tasks.push_back(line);
    }
  }

  // What is in the queue, what has left it. False if Slurm does not answer.
  bool Look() {
    const CommandResult queue = Execute({"squeue", "--json"});
    std::map<std::string, QueuedIndices> jobs;
    try {
      if (queue.code != 0) throw UserError(LastLine(queue.err));
      jobs = ParseQueue(queue.out, prefix_);
    } catch (const UserError& error) {
      if (!silent_)
        options_.pool.say(StrCat("squeue does not answer (", error.what(), "); trying again"));
      silent_ = true;
      return false;
    }
    silent_ = false;
    in_queue_.clear();
    jobs_in_queue_.clear();
    std::set<std::size_t> running;
    for (const auto& [name, indices] : jobs) {
      const auto list = lists_.find(name);
      if (list == lists_.end()) continue;
      jobs_in_queue_.insert(name);
      const auto add = [&](const std::vector<int>& numbers, bool at_work) {
        for (const int index : numbers) {
          if (index < 0 || index >= std::ssize(list->second)) continue;
          const auto found = by_path_.find(list->second[static_cast<std::size_t>(index)]);
          if (found == by_path_.end()) continue;
          in_queue_.insert(found->second);
          submitted_.insert(found->second);  // if not by us, then by a sweep before
          if (at_work) running.insert(found->second);
        }
      };
      add(indices.waiting, false);
      add(indices.running, true);
    }
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < ledger_.entries().size(); ++i) {
      TaskEntry& entry = ledger_.entries()[i];
      if (entry.state == State::kDone || (entry.state == State::kFailed && !submitted_.contains(i)))
        continue;
      const bool retried = entry.state == State::kWaiting && !submitted_.contains(i);
      ledger_.Read(entry);
      if (entry.state == State::kDone) continue;
      if (in_queue_.contains(i)) {
        // what the disk says of a failure may be of the time before
        entry.state = running.contains(i) ? State::kRunning : State::kWaiting;
        continue;
      }
      if (entry.state == State::kFailed && retried) entry.state = State::kWaiting;
      if (submitted_.contains(i) && now < settled_) {
        // it takes a moment until squeue shows a job; a failure may still be the old one
        entry.state = State::kWaiting;
        in_queue_.insert(i);
      }
      if (entry.state == State::kFailed) {
        submitted_.erase(i);
        SayFailed(entry);
      }
    }
    return true;
  }

  bool SubmitWhatIsReady() {
    // a stage goes as one array: it waits until all that comes before it is settled
    int open_stage = 2;
    for (const TaskEntry& entry : ledger_.entries()) {
      if (ledger_.Open(entry) && !entry.task.is_run()) {
        open_stage = std::min(open_stage, StageOf(entry.task));
      }
    }
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < ledger_.entries().size(); ++i) {
      TaskEntry& entry = ledger_.entries()[i];
      if (in_queue_.contains(i) || !ledger_.Ready(entry) || StageOf(entry.task) > open_stage) {
        continue;
      }
      if (++submissions_[i] > kMaxSubmissions) {
        entry.state = State::kFailed;
        entry.message = StrCat("Slurm has lost it ", kMaxSubmissions, " times");
        ledger_.directory().RecordFailure(entry.task.path, entry.message);
        SayFailed(entry);
        continue;
      }
      ready.push_back(i);
      if (ready.size() == kMaxArray) break;
    }
    if (!ready.empty()) Submit(ready);
    return !ready.empty();
  }

  void Submit(const std::vector<std::size_t>& tasks) {
    std::string list;
    const std::string name = StrCat(prefix_, next_list_);
    for (const std::size_t i : tasks) {
      list += ledger_.entries()[i].task.path + "\n";
      lists_[name].push_back(ledger_.entries()[i].task.path);
    }
    const fs::path file = ListFile(next_list_++);
    WriteFileAtomically(file, list);
    std::string array = StrCat("--array=0-", tasks.size() - 1);
    if (options_.pool.jobs > 0) array += StrCat("%", options_.pool.jobs);
    std::vector<std::string> words{
        "sbatch",     "--requeue",        "--open-mode=append", "--signal=B:USR1@60",
        "--ntasks=1", "--cpus-per-task=1"};
    words.insert(words.end(), options_.sbatch_options.begin(), options_.sbatch_options.end());
    // by what comes after the user's options we know our jobs
    for (const std::string& word :
         {std::string("--parsable"), array, "--job-name=" + name,
          "--output=" + (folder_ / "%A_%a.out").string(), (folder_ / "job.sh").string(),
          file.string(), root_.string(), std::to_string(kMaxRestarts)}) {
      words.push_back(word);
    }
    // the nodes have the same file system, so the same program
    const std::vector<std::string> worker = options_.pool.WorkerCommand();
    words.insert(words.end(), worker.begin(), worker.end());
    const CommandResult result = Execute(words);
    if (result.code != 0) {
      throw UserError(StrCat("sbatch refused the job: ", LastLine(result.err)));
    }
    const std::string job = LastLine(result.out);
    Record(job.substr(0, job.find(';')), file, tasks.size());
    for (const std::size_t i : tasks) {
      submitted_.insert(i);
      in_queue_.insert(i);
    }
    jobs_in_queue_.insert(name);
    settled_ = Clock::now() + kSettling;
    options_.pool.say(
        StrCat("submitted ", tasks.size(), " task", tasks.size() == 1 ? "" : "s", " as job ", job));
  }

  void Record(const std::string& job, const fs::path& list, std::size_t tasks) const {
    const fs::path file = folder_ / "jobs.json";
    Json jobs = ReadJobs(file);
    jobs.push_back({{"job", job}, {"list", list.filename().string()}, {"tasks", tasks}});
    WriteFileAtomically(file, jobs.dump(1) + "\n");
  }

  Ledger& ledger_;
  const SlurmOptions& options_;
  fs::path root_;
  fs::path folder_;
  std::string prefix_;  // of job names: one for each directory
  std::map<std::string, std::size_t> by_path_;
  std::map<std::string, std::vector<std::string>> lists_;  // by job name
  int next_list_ = 1;
  std::set<std::size_t> in_queue_;
  std::set<std::string> jobs_in_queue_;
  std::set<std::size_t> submitted_;  // and not yet known to have ended
  std::map<std::size_t, int> submissions_;
  Clock::time_point settled_;
  bool silent_ = false;
  bool new_failure_ = false;
};

bool OnPath(const char* program) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return false;
  const std::vector<std::string_view> folders = SplitAt(path, ':');
  return std::ranges::any_of(folders, [program](std::string_view folder) {
    return access((fs::path(folder) / program).c_str(), X_OK) == 0;
  });
}

}  // namespace

void RequireSlurm() {
  for (const char* program : {"sbatch", "squeue", "scontrol", "scancel"}) {
    if (OnPath(program)) continue;
    throw UserError(StrCat("--executor slurm needs Slurm's '", program,
                           "', which is not on the PATH; run this on a node of the cluster, or "
                           "without --executor"));
  }
}

std::vector<int> ParseArrayIndices(std::string_view text) {
  std::vector<int> indices;
  if (text.empty()) return indices;
  for (const std::string_view part : SplitAt(text.substr(0, text.find('%')), ',')) {
    const std::size_t dash = part.find('-');
    const std::string_view rest = part.substr(dash + 1);  // "LAST" or "LAST:STEP"; npos + 1 is 0
    const std::size_t colon = rest.find(':');
    const auto first = ParseNumber<int>(part.substr(0, dash));
    const auto last = ParseNumber<int>(rest.substr(0, colon));
    const auto step =
        colon == std::string_view::npos ? 1 : ParseNumber<int>(rest.substr(colon + 1)).value_or(0);
    if (!first || !last || *first < 0 || *last < *first || *last - *first > 10'000'000 ||
        step < 1) {
      throw UserError(StrCat("'", text, "' are no indices of a job array"));
    }
    for (int k = *first; k <= *last; k += step) indices.push_back(k);
  }
  return indices;
}

std::map<std::string, QueuedIndices> ParseQueue(std::string_view text, std::string_view prefix) {
  std::map<std::string, QueuedIndices> queue;
  // numbers are plain in older versions, {"set": true, "number": 3} in newer ones
  const auto number = [](const Json& job, const char* key) {
    const auto found = job.find(key);
    if (found == job.end()) return -1;
    if (found->is_number_integer()) return found->get<int>();
    if (found->is_object() && found->value("set", false)) return found->value("number", -1);
    return -1;
  };
  try {
    const auto document = ParseJson<Json>(text, "squeue --json");
    for (const Json& job : document.at("jobs")) {
      const std::string job_name = job.at("name").get<std::string>();
      if (!job_name.starts_with(prefix)) continue;
      const Json& state = job.at("job_state");
      const std::string name =
          state.is_array() ? state.at(0).get<std::string>() : state.get<std::string>();
      // jobs that have ended stay in the answer for a while
      const bool running = name == "RUNNING" || name == "COMPLETING";
      const bool waiting = name == "PENDING" || name == "CONFIGURING" || name == "SUSPENDED" ||
                           name == "REQUEUED" || name == "REQUEUE_HOLD";
      if (!running && !waiting) continue;
      QueuedIndices& indices = queue[job_name];
      std::vector<int>& list = running ? indices.running : indices.waiting;
      // the tasks of an array that have not begun are one entry
      const auto tasks = job.find("array_task_string");
      if (tasks != job.end() && tasks->is_string() && !tasks->get<std::string>().empty()) {
        const std::vector<int> more = ParseArrayIndices(tasks->get<std::string>());
        list.insert(list.end(), more.begin(), more.end());
      } else if (const int index = number(job, "array_task_id"); index >= 0) {
        list.push_back(index);
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(StrCat("squeue --json: ", error.what()));
  }
  return queue;
}

std::vector<std::string> SubmittedJobs(const SweepDirectory& directory) {
  std::vector<std::string> ids;
  for (const Json& job : ReadJobs(directory.File("slurm/jobs.json"))) {
    if (job.is_object() && job.contains("job") && job["job"].is_string()) {
      ids.push_back(job["job"].get<std::string>());
    }
  }
  return ids;
}

SweepOutcome RunOnSlurm(Ledger& ledger, const SlurmOptions& options) {
  return SlurmDriver(ledger, options).Run();
}

}  // namespace msrl
