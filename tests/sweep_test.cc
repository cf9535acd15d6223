// Sweeps as a user makes them: the real command, killed, stopped, damaged and grown.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/testing/slurp.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Slurp;
using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

// Twelve short runs, two branches and their data.
constexpr const char* kSpec = R"([sweep]
name = "tiny"
seeds = [100, 101]
eval_episodes = 1
log_every = 50

[settings]
hidden_width = 16
batch_size = 16
random_steps = 50
replay_size = 200

[source]
episodes = 16
held_out_episodes = 8
seed = 100

[[branch]]
name = "shape"
updates = 30
seeds = [1, 2]
settings = { width = 16 }

[[env]]
id = "four-rooms-sparse"
name = "rooms"
steps = 600
eval_every = 200

[[env]]
id = "reacher"
steps = 300
eval_every = 100

[[method]]
name = "random"
agent = "random"

[[method]]
name = "sac"
agent = "sac"

[[method]]
name = "msrl"
agent = "msrl"
init = "shape"
)";
constexpr int kRuns = 12;

class SweepCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_sweep_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
    Write("tiny.toml", kSpec);
  }
  void TearDown() override {
    // a test that failed half-way leaves a sweep, whose workers stop with it
    for (const pid_t child : started_) {
      if (waitpid(child, nullptr, WNOHANG) != 0) continue;
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    std::error_code error;
    WaitFor([&] {
      fs::remove_all(folder_, error);
      return !fs::exists(folder_);
    });
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // `log` keeps what a process that stays in the background says apart from the others.
  pid_t Start(const Arguments& arguments, void (*prepare)() = nullptr,
              const std::string& log = "") const {
    std::vector<std::string> words{MSRL_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = Path(log + "stdout");
    const std::string err = Path(log + "stderr");
    const pid_t child = fork();
    if (child == 0) {
      const int flags = O_WRONLY | O_CREAT | O_TRUNC;
      dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
      dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
      if (prepare != nullptr) prepare();
      execv(argv[0], argv.data());
      _exit(127);
    }
    started_.push_back(child);
    return child;
  }
  // Its exit code, or minus the signal that ended it.
  static int Wait(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int Run(const Arguments& arguments, void (*prepare)() = nullptr) const {
    return Wait(Start(arguments, prepare));
  }
  pid_t StartBehind(const Arguments& arguments) const { return Start(arguments, nullptr, "bg-"); }
  std::string Out() const { return Slurp(folder_ / "stdout"); }
  std::string Err(const std::string& log = "") const { return Slurp(folder_ / (log + "stderr")); }

  Arguments Sweep(const std::string& directory, const Arguments& more = {},
                  const std::string& spec = "tiny.toml") const {
    Arguments arguments{
        "sweep", Path(spec), "--out", Path(directory), "--jobs", "2", "--checkpoint-seconds",
        "0.1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Exit code 2 and one line that says what is wrong.
  void ExpectMistake(const Arguments& arguments, const std::string& what,
                     void (*prepare)() = nullptr) const {
    EXPECT_EQ(Run(arguments, prepare), 2);
    const std::string err = Err();
    EXPECT_NE(err.find(what), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  }

  // Also while files come and go.
  std::vector<fs::path> RunFolders(const std::string& directory) const {
    std::vector<fs::path> runs;
    std::error_code error;
    fs::recursive_directory_iterator entry(folder_ / directory, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (entry->path().filename() == "run.json") {
        runs.push_back(entry->path().parent_path().lexically_relative(folder_ / directory));
      }
    }
    std::sort(runs.begin(), runs.end());
    return runs;
  }
  // Everything that a result is, of all runs and branches: the same bytes.
  void ExpectSameResults(const std::string& a, const std::string& b) const {
    const std::vector<fs::path> runs = RunFolders(a);
    EXPECT_EQ(runs.size(), kRuns);
    EXPECT_EQ(runs, RunFolders(b));
    std::vector<fs::path> files{"source/shape-1.safetensors", "source/shape-1.json",
                                "source/train.h5"};
    for (const fs::path& run : runs) {
      for (const char* file : {"run.json", "config.toml", "metrics.jsonl", "evals.jsonl"}) {
        files.push_back(run / file);
      }
      for (const auto& entry : fs::directory_iterator(folder_ / a / run / "checkpoints")) {
        const std::string name = entry.path().filename().string();
        const std::int64_t steps = run.string().starts_with("rooms") ? 600 : 300;
        if (name.find(std::to_string(steps)) != std::string::npos) {
          files.push_back(run / "checkpoints" / name);
        }
      }
    }
    EXPECT_EQ(files.size(), 3U + 5U * kRuns);
    for (const fs::path& file : files) {
      EXPECT_FALSE(Slurp(folder_ / a / file).empty()) << file;
      EXPECT_TRUE(Slurp(folder_ / a / file) == Slurp(folder_ / b / file)) << file;
    }
  }
  // Processes that have begun to work on a run.
  int Starts(const fs::path& run) const {
    const std::string text = Slurp(folder_ / run / "timing.jsonl");
    int starts = 0;
    for (std::size_t at = text.find("\"start\""); at != std::string::npos;
         at = text.find("\"start\"", at + 1)) {
      ++starts;
    }
    return starts;
  }
  // Processes whose parent this is.
  static std::vector<pid_t> Children(pid_t parent) {
    std::vector<pid_t> children;
    const std::string task = std::to_string(parent);
    std::istringstream in(Slurp("/proc/" + task + "/task/" + task + "/children"));
    for (pid_t child = 0; in >> child;) children.push_back(child);
    return children;
  }
  Json Status(const std::string& directory) const {
    EXPECT_EQ(Run({"status", Path(directory), "--json"}), 0) << Err();
    return Json::parse(Out());
  }
  template <typename Condition>
  static bool WaitFor(const Condition& condition) {
    for (int k = 0; k < 6000; ++k) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  fs::path folder_;
  mutable std::vector<pid_t> started_;
};

TEST_F(SweepCommandTest, KilledWorkersAndSweepsEndTheSame) {
  ASSERT_EQ(Run(Sweep("whole")), 0) << Err();
  EXPECT_NE(Out().find("12 of 12 runs finished"), std::string::npos) << Out();
  for (const fs::path& run : RunFolders("whole")) EXPECT_EQ(Starts("whole" / run), 1) << run;

  Rng rng(1, "kills");
  std::map<std::string, int> starts_when_finished;
  pid_t driver = Start(Sweep("killed"));
  int killed_workers = 0;
  int killed_drivers = 0;
  int code = 0;
  for (int attempt = 0; attempt < 2000; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + rng.Index(250)));
    for (const fs::path& run : RunFolders("killed")) {
      if (Slurp(folder_ / "killed" / run / "status.json").find("finished") == std::string::npos)
        continue;
      starts_when_finished.emplace(run.string(), Starts("killed" / run));
    }
    int status = 0;
    if (waitpid(driver, &status, WNOHANG) == driver) {
      code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      break;
    }
    if (killed_drivers < 3 && rng.Index(4) == 0) {
      kill(driver, SIGKILL);
      ASSERT_EQ(Wait(driver), -SIGKILL);
      ++killed_drivers;
      driver = Start(Sweep("killed"));
      continue;
    }
    const std::vector<pid_t> workers = Children(driver);
    if (killed_workers >= 8 || workers.empty()) continue;
    kill(workers[rng.Index(workers.size())], SIGKILL);
    ++killed_workers;
  }
  ASSERT_EQ(code, 0) << Err();
  EXPECT_GE(killed_workers + killed_drivers, 4);
  ExpectSameResults("whole", "killed");
  // what was finished was left alone
  for (const auto& [run, starts] : starts_when_finished) {
    EXPECT_EQ(Starts("killed/" + run), starts) << run;
  }
  // and so is everything now
  std::map<fs::path, std::string> timing;
  for (const fs::path& run : RunFolders("killed")) {
    timing[run] = Slurp(folder_ / "killed" / run / "timing.jsonl");
  }
  ASSERT_EQ(Run(Sweep("killed")), 0) << Err();
  for (const auto& [run, text] : timing) {
    EXPECT_EQ(Slurp(folder_ / "killed" / run / "timing.jsonl"), text) << run;
  }
}

TEST_F(SweepCommandTest, StopsWithCheckpointsAndGoesOn) {
  const pid_t driver = StartBehind(Sweep("out", {"--only", "env=rooms"}));
  ASSERT_TRUE(WaitFor([&] { return fs::exists(folder_ / "out/rooms/sac/100/status.json"); }));
  kill(driver, SIGTERM);
  EXPECT_EQ(Wait(driver), 75);
  EXPECT_NE(Err("bg-").find("continue with: msrl sweep "), std::string::npos) << Err("bg-");
  EXPECT_NE(Err("bg-").find(" --only env=rooms --checkpoint-seconds 0.1\n"), std::string::npos);
  const Json status = Status("out");
  EXPECT_TRUE(status["driver"].is_null());
  EXPECT_TRUE(status["running"].empty());
  EXPECT_FALSE(status["runs"].contains("killed")) << status;
  EXPECT_EQ(Run(Sweep("out")), 0) << Err();
  EXPECT_EQ(Status("out")["runs"]["finished"], kRuns);
}

TEST_F(SweepCommandTest, WorkersOfAKilledSweepStopByThemselves) {
  const pid_t driver = StartBehind(Sweep("out", {"--only", "method=sac"}));
  std::vector<pid_t> workers;
  ASSERT_TRUE(WaitFor([&] {
    workers = Children(driver);
    return fs::exists(folder_ / "out/rooms/sac/100/status.json") && !workers.empty();
  }));
  kill(driver, SIGKILL);
  Wait(driver);
  for (const pid_t worker : workers) {
    EXPECT_TRUE(WaitFor([&] { return kill(worker, 0) != 0; })) << worker;
  }
  const Json status = Status("out");
  EXPECT_TRUE(status["running"].empty()) << status;
}

TEST_F(SweepCommandTest, OneSweepAtATimeInADirectory) {
  const pid_t driver = StartBehind(Sweep("out"));
  ASSERT_TRUE(WaitFor([&] { return fs::exists(folder_ / "out/rooms/sac/100/status.json"); }));
  ExpectMistake(Sweep("out"), "is being swept already, by process " + std::to_string(driver));
  EXPECT_EQ(Wait(driver), 0);
}

TEST_F(SweepCommandTest, AFailureIsReportedAndTheOthersGoOn) {
  ASSERT_EQ(Run(Sweep("out", {"--only", "method=random"})), 0) << Err();
  fs::create_directories(folder_ / "out/source");
  Write("out/source/train.h5", "no episodes");
  EXPECT_EQ(Run(Sweep("out")), 3) << Err();
  EXPECT_NE(Out().find("failed source/shape-1.safetensors: "), std::string::npos) << Out();
  EXPECT_NE(Out().find("tasks wait for what failed"), std::string::npos) << Out();
  Json status = Status("out");
  EXPECT_EQ(status["runs"]["finished"], 8);
  EXPECT_EQ(status["failed"].size(), 2U);
  // not repeated by itself
  const std::string log = Slurp(folder_ / "out/logs/source/shape-1.safetensors.log");
  EXPECT_EQ(Run(Sweep("out")), 3) << Err();
  EXPECT_EQ(Slurp(folder_ / "out/logs/source/shape-1.safetensors.log"), log);
  // only if asked to
  fs::remove(folder_ / "out/source/train.h5");
  EXPECT_EQ(Run(Sweep("out", {"--retry"})), 0) << Err();
  EXPECT_EQ(Status("out")["runs"]["finished"], kRuns);
}

TEST_F(SweepCommandTest, FailFastStopsAtTheFirstFailure) {
  fs::create_directories(folder_ / "out/source");
  Write("out/source/train.h5", "no episodes");
  EXPECT_EQ(Run(Sweep("out", {"--fail-fast"})), 3) << Err();
  EXPECT_LT(Status("out")["runs"].value("finished", 0), kRuns);
}

TEST_F(SweepCommandTest, DamagedRecordsAreReportedAndTheOthersUsed) {
  ASSERT_EQ(Run(Sweep("out")), 0) << Err();
  Write("out/rooms/sac/100/run.json", "{\"format\": ");
  Write("out/rooms/sac/101/status.json", "half a st");
  EXPECT_EQ(Run(Sweep("out")), 3) << Err();
  EXPECT_NE(Out().find("failed rooms/sac/100: "), std::string::npos) << Out();
  EXPECT_NE(Out().find("is damaged"), std::string::npos) << Out();
  EXPECT_EQ(Slurp(folder_ / "out/rooms/sac/100/run.json"), "{\"format\": ");
  const Json status = Status("out");
  EXPECT_EQ(status["runs"]["finished"], kRuns - 1);
  EXPECT_EQ(status["runs"]["damaged"], 1);
  // and figures that somebody has changed
  const fs::path evals = folder_ / "out/rooms/random/100/evals.jsonl";
  const std::string figures = Slurp(evals);
  std::ofstream(evals, std::ios::app) << ' ';
  EXPECT_EQ(Run(Sweep("out")), 3) << Err();
  EXPECT_NE(Out().find("changed after the run had finished: evals.jsonl"), std::string::npos)
      << Out();
  EXPECT_EQ(Status("out")["runs"]["damaged"], 2);
  std::ofstream(evals) << figures;
  EXPECT_EQ(Status("out")["runs"]["damaged"], 1);
  // its own plan too
  Write("out/sweep.json", "{");
  ExpectMistake(Sweep("out"), "sweep.json is damaged");
  fs::remove(folder_ / "out/sweep.json");
  EXPECT_EQ(Run(Sweep("out")), 3) << Err();
}

TEST_F(SweepCommandTest, MistakesAreSaidBeforeAnythingIsMade) {
  const std::string spec = kSpec;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = spec;
    text.replace(text.find(from), from.size(), to);
    Write("bad.toml", text);
    return Sweep("none", {}, "bad.toml");
  };
  ExpectMistake(with("log_every", "logevery"),
                "bad.toml:5: unknown key 'logevery' in [sweep]; did you mean 'log_every'?");
  ExpectMistake(with("id = \"reacher\"", "id = \"reachr\""), "did you mean 'reacher'?");
  ExpectMistake(with("random_steps = 50", "random_stepz = 50"), "bad.toml:10: ");
  ExpectMistake(Sweep("none", {"--only", "method=sack"}), "did you mean 'sac'?");
  with("init = \"shape\"", "init = \"shape\"\nenvs = [\"reacher\"]");
  ExpectMistake(Sweep("none", {"--only", "method=msrl,env=rooms"}, "bad.toml"), "no such run");
  ExpectMistake(Sweep("none", {"--partition", "long"}), "need --executor slurm");
  ExpectMistake({"sweep", "quik"}, "did you mean 'quick'?");
  ExpectMistake({"sweep", Path("missing.toml")}, "there is no file");
  ExpectMistake({"sweep", Path("tiny.toml"), "--out", "/proc/none/here"}, "cannot make");
  ExpectMistake({"status", Path("none")}, "no sweep in");
  // no sbatch on the path
  ExpectMistake(Sweep("none", {"--executor", "slurm"}), "'sbatch', which is not on the PATH",
                [] { setenv("PATH", "/nonexistent", 1); });
  EXPECT_EQ(Run({"sweep", "--only", "method=sac", "--dry-run", Path("tiny.toml")}), 0) << Err();
  EXPECT_EQ(Run(Sweep("none", {"--dry-run"})), 0) << Err();
  EXPECT_NE(Out().find("12 of 12 runs to do, 5400 steps"), std::string::npos) << Out();
  EXPECT_FALSE(fs::exists(folder_ / "none"));
}

TEST_F(SweepCommandTest, NothingIsOverwritten) {
  Write("file", "precious");
  ExpectMistake(Sweep("file"), "is not a directory");
  fs::create_directory(folder_ / "full");
  Write("full/thesis.txt", "precious");
  ExpectMistake(Sweep("full"), "is not empty and holds no sweep");
  ASSERT_EQ(Run(Sweep("out", {"--only", "method=random"})), 0) << Err();
  const std::string plan = Slurp(folder_ / "out/sweep.json");
  std::string text = kSpec;
  text.replace(text.find("steps = 600"), 11, "steps = 700");
  Write("other.toml", text);
  ExpectMistake(Sweep("out", {}, "other.toml"),
                "environment 'rooms' has steps 600 there, 700 in the file");
  // a run that somebody gave a longer budget
  ASSERT_EQ(Run({"resume", Path("out/rooms/random/100"), "--steps", "650"}), 0) << Err();
  ExpectMistake(Sweep("out"), "holds another run than the sweep wants: steps is 650, not 600");
  EXPECT_EQ(Slurp(folder_ / "out/sweep.json"), plan);
}

TEST_F(SweepCommandTest, GrowsByMoreSeedsAndMethods) {
  ASSERT_EQ(Run(Sweep("out", {"--only", "method=random"})), 0) << Err();
  const std::string timing = Slurp(folder_ / "out/rooms/random/100/timing.jsonl");
  std::string text = kSpec;
  text.replace(text.find("[100, 101]"), 10, "[100, 101, 102]");
  text += "[[method]]\nname = \"still\"\nagent = \"still\"\n";
  Write("more.toml", text);
  ASSERT_EQ(Run(Sweep("out", {"--only", "method=random,method=still"}, "more.toml")), 0) << Err();
  EXPECT_NE(Out().find("12 of 12 runs finished"), std::string::npos) << Out();
  EXPECT_EQ(Slurp(folder_ / "out/rooms/random/100/timing.jsonl"), timing);
}

TEST_F(SweepCommandTest, AMethodStartsWithALibrary) {
  const auto with = [this](const std::string& library, const std::string& more) {
    Write("with.toml", kSpec + ("[[method]]\nname = \"with\"\nagent = \"msrl\"\nlibrary = \"" +
                                library + "\"\n" + more));
    return Sweep("out", {"--only", "method=with"}, "with.toml");
  };
  ASSERT_EQ(Run({"train", "--env", "four-rooms-sparse", "--agent", "msrl", "--steps", "120",
                 "--run", Path("earlier"), "--set", "hidden_width=16", "--set", "batch_size=16",
                 "--set", "random_steps=50", "--set", "replay_size=200"}),
            0)
      << Err();
  const std::string rooms = "envs = [\"rooms\"]\n";
  const std::string place = Path("with.toml") + ":";
  ExpectMistake(with(Path("none"), rooms), place);
  ExpectMistake(with(Path("tiny.toml"), rooms), "tiny.toml: not a safetensors file");
  ExpectMistake(with(Path("earlier"), ""), "method 'with' in 'reacher': ");
  ExpectMistake(with(Path("earlier"), rooms + "settings = { plan = \"off\" }\n"),
                "set plan=library or plan=both");
  EXPECT_FALSE(fs::exists(folder_ / "out"));

  ASSERT_EQ(Run(with(Path("earlier"), rooms)), 0) << Err();
  const Json plan = Json::parse(Slurp(folder_ / "out/sweep.json"));
  const std::string hash = plan.at("methods").at(3).at("library");
  EXPECT_EQ(plan.at("methods").at(3).at("role"), "transfer");
  EXPECT_EQ(plan.at("methods").at(3).at("component"), "segment library");
  const fs::path copy = folder_ / ("out/source/library-" + hash + ".safetensors");
  for (const char* seed : {"100", "101"}) {
    const fs::path run = folder_ / "out/rooms/with" / seed;
    EXPECT_EQ(Json::parse(Slurp(run / "run.json")).at("library"), hash);
    EXPECT_TRUE(Slurp(run / "library.safetensors") == Slurp(copy));
  }
  // the file is the same library as the run
  ASSERT_EQ(Run(with(copy.string(), rooms)), 0) << Err();
  EXPECT_NE(Out().find("2 of 2 runs finished"), std::string::npos) << Out();
  // the earlier run goes on, and its library is another one
  ASSERT_EQ(Run({"resume", Path("earlier"), "--steps", "200"}), 0) << Err();
  ExpectMistake(with(Path("earlier"), rooms), "method 'with' has library \"" + hash + "\" there");
}

TEST_F(SweepCommandTest, OtherCodeIsNotMixedInSilently) {
  ASSERT_EQ(Run(Sweep("out", {"--only", "method=random"})), 0) << Err();
  const fs::path finished = folder_ / "out/rooms/random/100/run.json";
  Json json = Json::parse(Slurp(finished));
  json["commit"] = json["made_by"][0]["commit"] = "0123456789ab";
  std::ofstream(finished) << json.dump(2);
  fs::remove(finished.parent_path() / "manifest.json");
  EXPECT_EQ(Run(Sweep("out", {"--only", "method=random"})), 0) << Err();
  EXPECT_NE(Err().find("1 finished run was made by other code"), std::string::npos) << Err();
  Json status{{"state", "interrupted"}, {"step", 100}, {"steps", 600}};
  std::ofstream(folder_ / "out/rooms/random/100/status.json") << status;
  ExpectMistake(Sweep("out", {"--only", "method=random"}), "or say --any-version");
  EXPECT_EQ(Run(Sweep("out", {"--only", "method=random", "--any-version"})), 0) << Err();
}

TEST_F(SweepCommandTest, ATaskThatSomebodyElseHoldsIsLeftToThem) {
  std::string text = kSpec;
  // long enough to be met at work
  text.replace(text.find("steps = 600"), 11, "steps = 100000000");
  Write("long.toml", text);
  const Arguments arguments =
      Sweep("long", {"--only", "env=rooms,method=random,seed=100"}, "long.toml");
  const pid_t driver = StartBehind(arguments);
  const std::string task = "rooms/random/100";
  ASSERT_TRUE(WaitFor([&] { return fs::exists(folder_ / "long" / task / "status.json"); }));
  EXPECT_EQ(Run({"task", Path("long"), task}), 73);
  EXPECT_NE(Out().find("is being run by process "), std::string::npos) << Out();
  const Json status = Status("long");
  ASSERT_EQ(status["running"].size(), 1U);
  EXPECT_EQ(status["running"][0]["task"], task);
  kill(driver, SIGINT);
  EXPECT_EQ(Wait(driver), 75);
}

// From a file with lists and a search to the best variant, a film of it, and more trials later.
TEST_F(SweepCommandTest, GridsAndSearches) {
  const std::string text = R"([sweep]
name = "tuned"
seeds = [0, 1]
eval_episodes = 1
few_shot = 1.0
[settings]
random_steps = 20
batch_size = 8
[search]
trials = 2
methods = ["td3"]
[search.settings]
gamma = { range = [0.9, 0.99] }
[[env]]
id = "reacher"
steps = 60
eval_every = 30
[[method]]
name = "sac"
agent = "sac"
settings = { hidden_width = [4, 8] }
[[method]]
name = "td3"
agent = "td3"
settings = { hidden_width = 4 }
)";
  Write("tuned.toml", text);
  EXPECT_EQ(Run(Sweep("out", {}, "tuned.toml")), 0) << Err();
  const Arguments methods{"sac-hidden_width-4", "sac-hidden_width-8", "td3-trial-1", "td3-trial-2"};
  for (const std::string& method : methods) {
    EXPECT_TRUE(fs::exists(folder_ / "out/reacher" / method / "1/manifest.json")) << method;
  }
  const Json first = Json::parse(Slurp(folder_ / "out/reacher/td3-trial-1/0/run.json"));
  EXPECT_EQ(Run({"report", Path("out"), "--clips", "--json", Path("report.json")}), 0) << Err();
  const std::string tables = Out();
  EXPECT_NE(tables.find("Best of the variants"), std::string::npos) << tables;
  EXPECT_NE(tables.find("run it on other seeds before you report it"), std::string::npos);
  const Json report = Json::parse(Slurp(folder_ / "report.json"));
  ASSERT_EQ(report["selections"].size(), 2U);
  EXPECT_EQ(report["selections"][0]["of"], "sac");
  EXPECT_EQ(report["selections"][1]["variants"], 2);
  EXPECT_EQ(report["selections"][1]["seeds"], Json::array({0, 1}));
  EXPECT_TRUE(report["selections"][1]["settings"][0].get<std::string>().starts_with("gamma=0.9"));
  ASSERT_EQ(report["clips"].size(), 1U);
  const Json& clip = report["clips"][0];
  EXPECT_EQ(clip["runs"], 8);
  EXPECT_TRUE(clip["gif"].get<std::string>().starts_with("R0lGODlh"));  // GIF89a
  EXPECT_TRUE(clip["first_frame"].get<std::string>().starts_with("iVBORw0KGgo"));
  EXPECT_LT(clip["gif"].get<std::string>().size(), 600'000U);
  EXPECT_EQ(clip["steps"], 50);
  EXPECT_EQ(clip["ended"], true);
  // more trials: what is there stays
  Write("tuned.toml", std::string(text).replace(text.find("trials = 2"), 10, "trials = 3"));
  EXPECT_EQ(Run(Sweep("out", {}, "tuned.toml")), 0) << Err();
  EXPECT_TRUE(fs::exists(folder_ / "out/reacher/td3-trial-3/1/manifest.json"));
  EXPECT_EQ(Json::parse(Slurp(folder_ / "out/reacher/td3-trial-1/0/run.json")), first);
  // an agent of the sweep in a task of one's own choice
  const std::string run = Path("out/reacher/sac-hidden_width-4/0");
  EXPECT_EQ(Run({"play", "reacher-sparse", "--agent", run}), 0) << Err();
  EXPECT_NE(Out().find("reacher-sparse: seed 0, agent sac"), std::string::npos) << Out();
  ExpectMistake({"play", "hopper", "--agent", run}, "was trained in reacher, where it sees");
  ExpectMistake({"play", run, "--agent", run}, "here is a run with its own");
  ExpectMistake({"play", run, "--policy", "still"}, "here its agent plays");
  ExpectMistake({"report", Path("out"), "--clips"}, "give --html FILE too");
}

}  // namespace
}  // namespace msrl
