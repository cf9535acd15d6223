// Commands whose files go wrong: every call fails, is interrupted or is the last one before the
// process dies, and the power goes at any moment. The same command again must end with the same
// bytes. Each command runs in this process, on the file systems of msrl/testing/faulty_files.h.
//
// A few places of each by default; MSRL_FAULTS=all tries every call, and 1,000 losses of power for
// each command (ctest -C Long -L faults).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/builtin/builtin.h"
#include "msrl/cli/main.h"
#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/sanitizers.h"
#include "msrl/core/text.h"
#include "msrl/env/spec.h"
#include "msrl/run/manifest.h"
#include "msrl/testing/faulty_files.h"
#include "msrl/testing/slurp.h"
#include "msrl/testing/small_pretraining.h"
#include "tests/run_results.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Crash;
using ::msrl::testing::Fault;
using ::msrl::testing::FaultyFiles;
using ::msrl::testing::ReadTree;
using ::msrl::testing::RecordedFiles;
using ::msrl::testing::Slurp;
using ::msrl::testing::Tree;
using ::msrl::testing::WriteTree;
using Arguments = std::vector<std::string>;

// They make all of it ten times slower.
#if defined(MSRL_ADDRESS_SANITIZER)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

bool All() {
  const char* wanted = std::getenv("MSRL_FAULTS");
  return wanted != nullptr && std::string(wanted) == "all";
}

const Registries& Everything() {
  static const Registries registries = BuiltinRegistries();
  return registries;
}

// ---- commands in this process ----

// What is written to a stream of the system, for as long as this lives.
class Captured {
 public:
  explicit Captured(std::FILE* stream)
      : stream_(stream), file_(memfd_create("captured", 0)), before_(dup(fileno(stream))) {
    std::fflush(stream_);
    dup2(file_, fileno(stream_));
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    std::fflush(stream_);
    dup2(before_, fileno(stream_));
    close(before_);
    close(file_);
  }
  std::string Text() const {
    std::fflush(stream_);
    return Slurp("/proc/self/fd/" + std::to_string(file_));
  }

 private:
  std::FILE* stream_;
  int file_, before_;
};

struct Outcome {
  int code = 0;  // of a process that crashed: -1
  std::string err;
};

Outcome Command(const Arguments& arguments, FileSystem& files) {
  Arguments words{"msrl"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const Captured out(stdout), err(stderr);
  const UseFileSystem use(files);
  int code = -1;
  try {
    code = Main(static_cast<int>(words.size()), argv.data(), Everything());
  } catch (const Crash&) {
  }
  return {code, err.Text()};
}

// ---- what is tried ----

struct Job {
  std::string name;
  // What is there before.
  std::function<void(const fs::path& root)> prepare;
  // What to type now: to go on with a run has a command of its own.
  std::function<Arguments(const fs::path& root)> command;
  // All that must be the same in the end.
  std::function<Tree(const fs::path& root)> results;
  bool slow = false;  // tried at fewer places, unless all are

  friend void PrintTo(const Job& job, std::ostream* out) { *out << job.name; }
};

constexpr int kSteps = 60;
// exit codes
constexpr int kRunsFailed = 3;  // of a sweep
constexpr int kNoSpace = 7;

Arguments Train(const AgentEntry& agent, const fs::path& run, int steps) {
  Arguments arguments{"train",
                      "--env",
                      agent.discrete ? "graph-motif" : "four-rooms-sparse",
                      "--agent",
                      agent.id,
                      "--run",
                      run.string(),
                      "--steps",
                      std::to_string(steps),
                      "--eval-every",
                      "30",
                      "--eval-episodes",
                      "1",
                      "--log-every",
                      "20",
                      "--checkpoint-every",
                      "20"};
  for (const std::string& setting : agent.quick) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  return arguments;
}

Arguments Resume(const fs::path& run, int steps) {
  return {"resume", run.string(), "--steps", std::to_string(steps), "--checkpoint-every", "20"};
}

Tree RunResults(const fs::path& run) {
  Tree results;
  for (const char* name : {"run.json", "config.toml", "metrics.jsonl", "evals.jsonl"}) {
    results[name] = Slurp(run / name);
  }
  results[kEventFile] = WithoutTimes(Slurp(run / kEventFile));
  const fs::path checkpoint = NewestCheckpoint(run);
  results[checkpoint.filename().string()] = Slurp(checkpoint);
  results["finished"] =
      fs::exists(run / "manifest.json") && ChangedRecords(run).empty() ? "yes" : "no";
  return results;
}

Job TrainJob(const AgentEntry& agent) {
  std::string name = "Train_" + agent.id;
  std::ranges::replace(name, '-', '_');
  return {name,
          [](const fs::path& root) {
            fs::create_directory(root / "run");
            std::ofstream(root / "run" / ".gitignore") << "*\n";
          },
          [&agent](const fs::path& root) {
            const bool begun = fs::exists(root / "run" / "run.json");
            return begun ? Resume(root / "run", kSteps) : Train(agent, root / "run", kSteps);
          },
          [](const fs::path& root) { return RunResults(root / "run"); }};
}

// A run that is taken up in its middle.
Job ResumeJob(const AgentEntry& agent) {
  Job job = TrainJob(agent);
  job.name = "Resume_" + agent.id;
  const auto prepare = job.prepare;
  job.prepare = [prepare, &agent](const fs::path& root) {
    prepare(root);
    FaultyFiles files;
    MSRL_CHECK_EQ(Command(Train(agent, root / "run", kSteps / 2), files).code, 0);
  };
  job.command = [](const fs::path& root) { return Resume(root / "run", kSteps); };
  return job;
}

Arguments Collect(const fs::path& file, const std::string& split, const std::string& episodes) {
  return {"collect", "--out", file,        "--episodes", episodes,
          "--split", split,   "--sources", "graph-motif"};
}

// With a part that is kept meanwhile.
Job CollectJob() {
  return {"Collect", [](const fs::path&) {},
          [](const fs::path& root) {
            Arguments arguments = Collect(root / "data.h5", "train", "260");
            arguments.insert(arguments.end(), {"--targets", "mc"});
            return arguments;
          },
          [](const fs::path& root) {
            return Tree{{"data.h5", Slurp(root / "data.h5")}};
          }};
}

Job PretrainJob(const PretrainerEntry& entry) {
  const std::string kind = entry.id;
  Arguments small;
  for (const std::string& setting : testing::SmallSettings(entry)) {
    small.insert(small.end(), {"--set", setting});
  }
  for (const ConfigField& field : entry.options({})) {
    if (field.key == "target") small.insert(small.end(), {"--set", "target=mc"});
  }
  std::string name = "Pretrain_" + kind;
  std::ranges::replace(name, '-', '_');
  return {name,
          [](const fs::path& root) {
            FaultyFiles files;
            for (const char* split : {"train", "held-out"}) {
              MSRL_CHECK_EQ(Command(Collect(root / StrCat(split, ".h5"), split, "12"), files).code,
                            0);
            }
          },
          [kind, small](const fs::path& root) {
            Arguments arguments{"pretrain",
                                "--kind",
                                kind,
                                "--data",
                                root / "train.h5",
                                "--held-out",
                                root / "held-out.h5",
                                "--out",
                                root / "branch.safetensors",
                                "--record",
                                root / "record.json",
                                "--updates",
                                "4",
                                "--checkpoint-seconds",
                                "0"};
            arguments.insert(arguments.end(), small.begin(), small.end());
            return arguments;
          },
          [](const fs::path& root) {
            Tree results;
            for (const char* file : {"branch.safetensors", "record.json"}) {
              results[file] = Slurp(root / file);
            }
            return results;
          }};
}

Job LibraryJob() {
  return {"LibraryBuild",
          [](const fs::path& root) {
            FaultyFiles files;
            MSRL_CHECK_EQ(Command(Collect(root / "data.h5", "train", "12"), files).code, 0);
          },
          [](const fs::path& root) -> Arguments {
            return {"library",        "build", "--data",
                    root / "data.h5", "--out", root / "library.safetensors"};
          },
          [](const fs::path& root) {
            return Tree{{"library.safetensors", Slurp(root / "library.safetensors")}};
          }};
}

constexpr const char* kSweep = R"([sweep]
name = "tiny"
seeds = [100, 101]
eval_episodes = 1
log_every = 20

[[env]]
id = "four-rooms-sparse"
steps = 40
eval_every = 20

[[method]]
name = "random"
agent = "random"
)";
constexpr const char* kBranch = R"(
[source]
episodes = 8
held_out_episodes = 4
seed = 100
[[branch]]
name = "shape"
updates = 4
seeds = [1]
settings = { width = 16 }
[[method]]
name = "msrl"
agent = "msrl"
init = "shape"
)";

Arguments Sweep(const fs::path& root) {
  return {"sweep", root / "sweep.toml", "--out", root / "sweep", "--jobs", "2"};
}

// What the sweep itself writes: its workers are processes of their own, whose files are well.
Job SweepJob() {
  return {"Sweep", [](const fs::path& root) { std::ofstream(root / "sweep.toml") << kSweep; },
          Sweep,
          [](const fs::path& root) {
            Tree results{{"sweep.json", Slurp(root / "sweep" / "sweep.json")}};
            for (const char* seed : {"100", "101"}) {
              const fs::path run = fs::path("four-rooms-sparse") / "random" / seed;
              for (const auto& [name, contents] : RunResults(root / "sweep" / run)) {
                results[(run / name).string()] = contents;
              }
            }
            return results;
          },
          /*slow=*/true};
}

// A worker that makes this file of a sweep.
Job TaskJob(const std::string& name, const std::string& file) {
  return {"Task_" + name,
          [](const fs::path& root) {
            std::ofstream(root / "sweep.toml") << kSweep << kBranch;
            FaultyFiles files;
            Arguments sweep = Sweep(root);
            sweep.insert(sweep.end(), {"--only", "method=random"});
            MSRL_CHECK_EQ(Command(sweep, files).code, 0);
            for (const char* data : {"source/train.h5", "source/held-out.h5"}) {
              MSRL_CHECK_EQ(Command({"task", root / "sweep", data}, files).code, 0);
            }
          },
          [file](const fs::path& root) -> Arguments {
            return {"task", root / "sweep", file, "--checkpoint-seconds", "0"};
          },
          [file](const fs::path& root) {
            return Tree{{file, Slurp(root / "sweep" / file)}};
          }};
}

std::vector<Job> Jobs() {
  std::vector<Job> jobs;
  const AgentRegistry& agents = Everything().agents;
  for (const AgentEntry& agent : agents) jobs.push_back(TrainJob(agent));
  jobs.push_back(ResumeJob(agents.Find("dqn")));
  jobs.push_back(CollectJob());
  for (const PretrainerEntry& entry : Everything().pretrainers) jobs.push_back(PretrainJob(entry));
  jobs.push_back(LibraryJob());
  jobs.push_back(SweepJob());
  jobs.push_back(TaskJob("Branch", "source/shape-1.safetensors"));
  return jobs;
}

// ---- the tests ----

class FaultTest : public ::testing::TestWithParam<Job> {
 protected:
  void SetUp() override {
    WriteTree(root_, {{"notes.txt", "of the user"}});
    job_.prepare(root_);
    before_ = ReadTree(root_);
    // undisturbed
    FaultyFiles files;
    const Outcome outcome = Command(job_.command(root_), files);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    wanted_ = job_.results(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // How often this fault can meet the command.
  std::int64_t CountCalls(Fault fault) {
    WriteTree(root_, before_);
    FaultyFiles files(fault, std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(Command(job_.command(root_), files).code, 0);
    RecordProperty(StrCat("calls_of_fault_", static_cast<int>(fault)), StrCat(files.calls()));
    return files.calls();
  }
  // All of them, or a few that are spread over the whole.
  std::vector<std::int64_t> Places(std::int64_t calls, std::int64_t few) const {
    std::vector<std::int64_t> places;
    const bool slow = job_.slow || kSanitized;
    const std::int64_t count = All() ? calls : std::min(calls, slow ? few / 2 : few);
    for (std::int64_t i = 0; i < count; ++i) places.push_back((2 * i + 1) * calls / (2 * count));
    return places;
  }

  // The same command again, on files that are well: it ends with what was wanted. Many faults leave
  // the same files; how it goes on from there is tried once.
  void ExpectGoesOn() {
    static std::set<std::uint64_t> tried;  // of all jobs and tests of this process
    if (!tried.insert(StableHash(job_.name + Fingerprint(ReadTree(root_)))).second) return;
    FaultyFiles files;
    const Outcome again = Command(job_.command(root_), files);
    const bool there = again.code == 2 && again.err.find("is there already") != std::string::npos;
    EXPECT_TRUE(again.code == 0 || there) << again.code << ": " << again.err;
    ExpectWanted();
  }
  // Equal for equal files, but for the times in them. Where writes were lost, there are zeros.
  static std::string Fingerprint(const Tree& tree) {
    std::string all;
    for (const auto& [name, contents] : tree) {
      const std::string file = fs::path(name).filename();
      const std::string& text = contents.value_or("(folder)");
      const auto count = [&text](char what) { return std::ranges::count(text, what); };
      all += name + "\n";
      if (file == "lock" || file == "status.json") {
        all += StrCat(text.size(), " ", count('\0'), "\n");
      } else if (file == "timing.jsonl") {
        all += StrCat(count('\n'), " ", count('\0'), text.ends_with('\n'), "\n");
      } else {
        all += (file == kEventFile ? WithoutTimes(text) : text) + "\n";
      }
    }
    return all;
  }
  void ExpectWanted() {
    const Tree got = job_.results(root_);
    for (const auto& [name, contents] : wanted_) {
      const auto found = got.find(name);
      ASSERT_NE(found, got.end()) << name;
      EXPECT_TRUE(found->second == contents) << name << " differs";
    }
    // what others put there is as it was
    for (const auto& [name, contents] : before_) {
      if (name != "notes.txt" && !name.ends_with(".gitignore") && !name.ends_with(".h5")) continue;
      EXPECT_TRUE(Slurp(root_ / name) == contents) << name << " was changed";
    }
  }
  void ExpectOneLine(const std::string& err) {
    std::istringstream lines(err);
    int complaints = 0;
    for (std::string line; std::getline(lines, line);) complaints += line.starts_with("msrl: ");
    EXPECT_EQ(complaints, 1) << err;
    EXPECT_NE(err.find(root_.string()), std::string::npos) << err;
  }

  const Job& job_ = GetParam();
  const fs::path root_ =
      fs::temp_directory_path() / StrCat("msrl_faults_", getpid(), "_", job_.name);
  Tree before_, wanted_;
};

TEST_P(FaultTest, ACallThatFailsIsSaidAndTheCommandGoesOnLater) {
  using Duration = FaultyFiles::Duration;
  for (const auto& [fault, duration] :
       {std::pair(Fault::kNoSpace, Duration::kOnce), std::pair(Fault::kIoError, Duration::kOnce),
        std::pair(Fault::kNoSpace, Duration::kFromThenOn)}) {
    int failures = 0;
    for (const std::int64_t at : Places(CountCalls(fault), 5)) {
      SCOPED_TRACE(StrCat("fault ", static_cast<int>(fault), " at call ", at));
      WriteTree(root_, before_);
      FaultyFiles files(fault, at, duration);
      const Outcome outcome = Command(job_.command(root_), files);
      EXPECT_TRUE(files.met());
      if (outcome.code == 0) {
        ExpectWanted();  // it did not matter
      } else {
        ++failures;
        if (outcome.code == kRunsFailed) {
          // the sweep could not read what its worker had done
          EXPECT_NE(outcome.err.find(" failed: "), std::string::npos) << outcome.err;
        } else {
          EXPECT_EQ(outcome.code, kNoSpace) << outcome.err;
          ExpectOneLine(outcome.err);
        }
        ExpectGoesOn();
      }
      if (HasFailure()) return;
    }
    EXPECT_GT(failures, 0);
  }
}

TEST_P(FaultTest, ShortAndInterruptedCallsChangeNothing) {
  for (const Fault fault : {Fault::kShort, Fault::kInterrupted}) {
    for (const std::int64_t at : Places(CountCalls(fault), 3)) {
      SCOPED_TRACE(StrCat("fault ", static_cast<int>(fault), " at call ", at));
      WriteTree(root_, before_);
      FaultyFiles files(fault, at);
      const Outcome outcome = Command(job_.command(root_), files);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_TRUE(files.met());
      ExpectWanted();
      if (HasFailure()) return;
    }
  }
}

TEST_P(FaultTest, AfterACrashTheCommandGoesOn) {
  for (const std::int64_t at : Places(CountCalls(Fault::kCrash), 8)) {
    SCOPED_TRACE(StrCat("crash at call ", at));
    WriteTree(root_, before_);
    FaultyFiles files(Fault::kCrash, at);
    Command(job_.command(root_), files);
    EXPECT_TRUE(files.met());
    ExpectGoesOn();
    if (HasFailure()) return;
  }
}

TEST_P(FaultTest, AfterALossOfPowerTheCommandGoesOn) {
  WriteTree(root_, before_);
  RecordedFiles files(root_);
  ASSERT_EQ(Command(job_.command(root_), files).code, 0);
  Rng rng(1, "power " + job_.name);
  std::set<std::uint64_t> disks;
  const int schedules = All() ? (job_.slow ? 100 : 1000) : (job_.slow || kSanitized ? 5 : 20);
  for (int i = 0; i < schedules; ++i) {
    const auto count =
        static_cast<std::size_t>(rng.Index(static_cast<std::int64_t>(files.changes()) + 1));
    const double arrives = rng.Index(4) == 0 ? 0.0 : rng.Uniform();
    const Tree disk = files.AfterPowerLoss(count, arrives, rng);
    disks.insert(StableHash(Fingerprint(disk)));
    SCOPED_TRACE(StrCat("schedule ", i, ": power lost after change ", count));
    WriteTree(root_, disk);
    ExpectGoesOn();
    if (HasFailure()) return;
  }
  RecordProperty("disks", static_cast<int>(disks.size()));
  EXPECT_GT(disks.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest, ::testing::ValuesIn(Jobs()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace msrl

// A sweep starts the program that it is part of.
int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "task") {
    return msrl::Main(argc, argv, msrl::BuiltinRegistries());
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
