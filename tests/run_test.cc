// Runs as a user makes them: the real command, killed, stopped and damaged. Loops over all agents.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/core/rng.h"
#include "msrl/env/spec.h"
#include "msrl/env_list/env_list.h"
#include "msrl/files/atomic_file.h"
#include "msrl/testing/slurp.h"
#include "msrl/value/value_branch.h"
#include "tests/run_results.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Slurp;
using Arguments = std::vector<std::string>;

// One per kind of action, and one of MuJoCo's for those that learn.
const std::vector<std::string> kEnvs{"graph-motif", "four-rooms-sparse", "reacher"};

struct AgentInEnv {
  std::string agent, env;
  friend void PrintTo(const AgentInEnv& value, std::ostream* out) {
    *out << value.agent << " in " << value.env;
  }
};

std::vector<AgentInEnv> AgentsInEnvs() {
  std::vector<AgentInEnv> all;
  for (const AgentEntry& entry : BuiltinAgents()) {
    for (const std::string& env : kEnvs) {
      const bool discrete = MakeEnv(env)->spec().action.kind == ActionKind::kDiscrete;
      if (discrete ? !entry.discrete : !entry.continuous) continue;
      if (env == "reacher" && entry.quick.empty()) continue;
      all.push_back({entry.id, env});
    }
  }
  return all;
}

class RunCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = fs::temp_directory_path() / ("msrl_runs_" + std::to_string(getpid()) + "_" + name);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Starts the command; `prepare` runs in the child.
  pid_t Start(const Arguments& arguments, void (*prepare)() = nullptr) const {
    std::vector<std::string> words{MSRL_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out = (folder_ / "out").string();
    const std::string err = (folder_ / "err").string();
    const pid_t child = fork();
    if (child == 0) {
      const int flags = O_WRONLY | O_CREAT | O_TRUNC;
      dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
      dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
      if (prepare != nullptr) prepare();
      execv(argv[0], argv.data());
      _exit(127);
    }
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
  std::string Out() const { return Slurp(folder_ / "out"); }
  std::string Err() const { return Slurp(folder_ / "err"); }
  std::string Dir(const std::string& name) const { return (folder_ / name).string(); }

  // Learners get fewer steps: theirs take longer.
  static std::int64_t Steps(const std::string& agent) {
    return BuiltinAgents().Find(agent).quick.empty() ? kSteps : kSteps / 10;
  }
  Arguments Train(const std::string& env, const std::string& agent, std::int64_t steps,
                  const std::string& name, const std::string& seed = "3",
                  const std::string& checkpoint_every = "") const {
    const std::int64_t all = Steps(agent);
    Arguments arguments{"train", "--env", env, "--agent", agent, "--seed", seed};
    const auto add = [&arguments](const std::string& option, const std::string& value) {
      arguments.insert(arguments.end(), {option, value});
    };
    add("--run", Dir(name));
    add("--steps", std::to_string(steps));
    add("--eval-every", std::to_string(all / 10));
    add("--eval-episodes", "2");
    add("--log-every", std::to_string(all / 30));
    add("--checkpoint-every",
        checkpoint_every.empty() ? std::to_string(all / 20) : checkpoint_every);
    for (const std::string& setting : BuiltinAgents().Find(agent).quick) add("--set", setting);
    return arguments;
  }
  fs::path NewestCheckpoint(const std::string& name) const {
    return msrl::NewestCheckpoint(folder_ / name);
  }
  void ExpectSameResults(const std::string& a, const std::string& b) const {
    for (const char* file : {"metrics.jsonl", "evals.jsonl"}) {
      EXPECT_FALSE(Slurp(folder_ / a / file).empty());
      EXPECT_TRUE(Slurp(folder_ / a / file) == Slurp(folder_ / b / file)) << file;
    }
    EXPECT_EQ(WithoutTimes(Slurp(folder_ / a / kEventFile)),
              WithoutTimes(Slurp(folder_ / b / kEventFile)));
    EXPECT_EQ(NewestCheckpoint(a).filename(), NewestCheckpoint(b).filename());
    EXPECT_TRUE(Slurp(NewestCheckpoint(a)) == Slurp(NewestCheckpoint(b))) << "checkpoints differ";
  }
  // Exit code 2 and one line that says what is wrong.
  void ExpectMistake(const Arguments& arguments, const std::string& what) const {
    EXPECT_EQ(Run(arguments), 2);
    const std::string err = Err();
    EXPECT_NE(err.find(what), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
  }
  // A branch with random weights that fits the quick settings.
  std::string WriteBranch(const std::string& name, LiftId lift = CompactLift()->id()) const {
    BranchInfo info;
    info.lift = lift;
    ValueBranch branch(MatrixFeatures(CompactLift()).size(), {.width = 16}, info);
    Rng rng(5, "branch");
    branch.Init(rng);
    WriteFileAtomically(folder_ / name, branch.Encode());
    return Dir(name);
  }
  static Arguments With(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  // Starts a run and kills it before its first checkpoint.
  void KillEarly(const Arguments& arguments, const std::string& name) const {
    const pid_t child = Start(arguments);
    const auto started = std::chrono::steady_clock::now();
    while (!fs::exists(folder_ / name / "status.json")) {
      ASSERT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(60)) << Err();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, SIGKILL);
    ASSERT_EQ(Wait(child), -SIGKILL) << Err();
    ASSERT_TRUE(NewestCheckpoint(name).empty());
  }
  template <typename Check>
  void ForAllAgents(const Check& check) const {
    for (const auto& [agent, env] : AgentsInEnvs()) {
      SCOPED_TRACE(agent + " in " + env);
      check(agent, env);
    }
  }

  static constexpr std::int64_t kSteps = 20'000;
  static constexpr const char* kOnceOnly = "60m";  // at the end
  fs::path folder_;
};

// A test of its own for each: under the sanitizers all together would take minutes.
class RunOfAgentTest : public RunCommandTest, public ::testing::WithParamInterface<AgentInEnv> {};

TEST_P(RunOfAgentTest, KilledAtRandomMomentsItEndsTheSame) {
  const auto& [agent, env] = GetParam();
  Rng rng(1, "kills " + agent + env);
  const std::int64_t steps = Steps(agent);
  ASSERT_EQ(Run(Train(env, agent, steps, "whole", "3", kOnceOnly)), 0) << Err();
  // half the budget, then the whole, in many processes
  pid_t child = Start(Train(env, agent, steps / 2, "killed"));
  // at first less than the quickest agent needs for all of it
  double longest = 8.0;
  int kills = 0;
  for (int attempt = 0;; ++attempt) {
    ASSERT_LT(attempt, 200);
    std::this_thread::sleep_for(
        std::chrono::duration<double, std::milli>(rng.Uniform(1.0, longest)));
    kill(child, SIGKILL);
    const int code = Wait(child);
    if (code == 0) break;
    ASSERT_EQ(code, -SIGKILL) << Err();
    ++kills;
    longest *= 1.2;
    if (!fs::exists(folder_ / "killed" / "run.json")) {
      child = Start(Train(env, agent, steps / 2, "killed"));
    } else {
      child = Start({"resume", Dir("killed"), "--checkpoint-every", std::to_string(steps / 20)});
    }
  }
  ASSERT_EQ(Run({"resume", Dir("killed"), "--steps", std::to_string(steps)}), 0) << Err();
  ExpectSameResults("whole", "killed");
  EXPECT_GE(kills, 1);
}

INSTANTIATE_TEST_SUITE_P(All, RunOfAgentTest, ::testing::ValuesIn(AgentsInEnvs()),
                         [](const auto& test) {
                           std::string name = test.param.agent + "_in_" + test.param.env;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_F(RunCommandTest, EqualSeedsEqualFiles) {
  ForAllAgents([&](const std::string& agent, const std::string& env) {
    const std::string tag = agent + env;
    ASSERT_EQ(Run(Train(env, agent, 1000, "a" + tag, "3", kOnceOnly)), 0) << Err();
    ASSERT_EQ(Run(Train(env, agent, 1000, "b" + tag, "3", kOnceOnly)), 0) << Err();
    ASSERT_EQ(Run(Train(env, agent, 1000, "c" + tag, "4", kOnceOnly)), 0) << Err();
    ExpectSameResults("a" + tag, "b" + tag);
    EXPECT_NE(Slurp(NewestCheckpoint("a" + tag)), Slurp(NewestCheckpoint("c" + tag)));
  });
}

TEST_F(RunCommandTest, ALearningRateThatIsFarTooHighIsFoundOut) {
  ForAllAgents([&](const std::string& agent, const std::string& env) {
    for (const ConfigField& field : BuiltinAgents().Find(agent).options({})) {
      // a temperature may be 0 for ever, which is a number
      if (!field.key.ends_with("learning_rate") || field.key == "alpha_learning_rate") continue;
      SCOPED_TRACE(field.key);
      const std::string name = agent + env + field.key;
      Arguments arguments = Train(env, agent, 2000, name);
      arguments.insert(arguments.end(), {"--set", field.key + "=1e30"});
      EXPECT_EQ(Run(arguments), 6) << Err();
      const std::string err = Err();
      EXPECT_TRUE(
          std::regex_search(err, std::regex("step [0-9]+: [a-z ]+(\\[[0-9]+\\])? is -?(nan|inf)")))
          << err;
      // one complaint; agents may have told something before
      const std::regex complaint("(^|\n)msrl: ");
      EXPECT_EQ(std::distance(std::sregex_iterator(err.begin(), err.end(), complaint),
                              std::sregex_iterator()),
                1)
          << err;
      const auto status = nlohmann::json::parse(Slurp(folder_ / name / "status.json"));
      EXPECT_EQ(status.at("state"), "failed");
      EXPECT_EQ(Run({"replay", Dir(name)}), 0) << Err();
      EXPECT_NE(Slurp(folder_ / "out").find("bit for bit"), std::string::npos);
    }
  });
}

TEST_F(RunCommandTest, SignalsStopWithACheckpoint) {
  ASSERT_EQ(Run(Train("graph-motif", "random", kSteps, "whole")), 0);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    const std::string name = "signal" + std::to_string(signal);
    // a long run, so that the signal comes in the middle
    const pid_t child = Start(Train("graph-motif", "random", 2'000'000'000, name));
    const auto started = std::chrono::steady_clock::now();
    while (!fs::exists(folder_ / name / "status.json")) {
      ASSERT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(60));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(child, signal);
    kill(child, signal);  // twice, as impatient people do
    EXPECT_EQ(Wait(child), 75);
    EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(70));
    EXPECT_NE(Err().find("continue with: msrl resume " + Dir(name)), std::string::npos) << Err();
    const auto status = nlohmann::json::parse(Slurp(folder_ / name / "status.json"));
    EXPECT_EQ(status.at("state"), "interrupted");
    if (status.at("step") < kSteps) {
      EXPECT_EQ(Run({"resume", Dir(name), "--steps", std::to_string(kSteps)}), 0) << Err();
      ExpectSameResults("whole", name);
    }
  }
}

TEST_F(RunCommandTest, AClosedPipeDoesNotStopTraining) {
  const std::string command = std::string("{ ") + MSRL_BINARY +
                              " train --env graph-motif --agent random --steps 20000 --run " +
                              Dir("a") + "; echo $? >" + Dir("code") + "; } 2>&1 | true";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const auto started = std::chrono::steady_clock::now();
  std::string state;
  while (state != "finished" &&
         std::chrono::steady_clock::now() - started < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::string text = Slurp(folder_ / "a" / "status.json");
    if (nlohmann::json::accept(text)) state = nlohmann::json::parse(text).at("state");
  }
  EXPECT_EQ(state, "finished");
  while (Slurp(folder_ / "code").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(Slurp(folder_ / "code"), "2\n");  // the last line could not be said
}

TEST_F(RunCommandTest, AFullDiskIsSaidAndTheRunGoesOnLater) {
  ASSERT_EQ(Run(Train("graph-motif", "random", kSteps, "whole")), 0);
  const auto little_space = [] {
    struct rlimit limit {};
    limit.rlim_cur = limit.rlim_max = 3000;
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  EXPECT_EQ(Run(Train("graph-motif", "random", kSteps, "a"), little_space), 7);
  EXPECT_NE(Err().find("File too large ("), std::string::npos) << Err();
  EXPECT_NE(Err().find(" bytes are needed)"), std::string::npos) << Err();
  EXPECT_EQ(Run({"resume", Dir("a")}), 0) << Err();
  ExpectSameResults("whole", "a");
}

TEST_F(RunCommandTest, ADamagedCheckpointIsSaidInOneLine) {
  ASSERT_EQ(Run(Train("graph-motif", "random", kSteps, "whole")), 0);
  ASSERT_EQ(Run(Train("graph-motif", "random", kSteps, "a")), 0);
  fs::resize_file(NewestCheckpoint("a"), 500);
  EXPECT_EQ(Run({"resume", Dir("a")}), 0);
  EXPECT_NE(Err().find("trying the one before\n"), std::string::npos) << Err();
  ExpectSameResults("whole", "a");
}

TEST_F(RunCommandTest, FinishedRunsAndMistakes) {
  ASSERT_EQ(Run(Train("graph-motif", "random", 1000, "a")), 0);
  EXPECT_EQ(Run({"resume", Dir("a")}), 0);
  EXPECT_NE(Out().find("has finished its 1000 steps"), std::string::npos) << Out();

  const auto mistake = [&](const Arguments& arguments, const std::string& what) {
    ExpectMistake(arguments, what);
  };
  mistake(Train("graph-motif", "random", 1000, "a"), "resume " + Dir("a"));
  mistake(Train("graph-motiv", "random", 1000, "b"), "did you mean 'graph-motif'?");
  mistake({"train", "--env", "graph-motif", "--agent", "randm", "--steps", "9", "--run", Dir("b")},
          "did you mean 'random'?");
  mistake(Train("graph-motif", "random", 0, "b"), "setting 'steps' must be 1 to");
  Arguments arguments = Train("graph-motif", "random", 1000, "b");
  arguments.insert(arguments.end(), {"--set", "rate=1"});
  mistake(arguments, "unknown setting 'rate'");
  mistake({"resume", Dir("b")}, "no run in");
  mistake({"eval", Dir("b")}, "no run in");
  EXPECT_FALSE(fs::exists(folder_ / "b"));
}

TEST_F(RunCommandTest, ARunFromABranchStandsAlone) {
  for (const char* agent : {"msrl", "msrl-td3", "msrl-dqn"}) {
    SCOPED_TRACE(agent);
    const std::string env = agent == std::string("msrl-dqn") ? "graph-motif" : "four-rooms-sparse";
    const std::string branch = WriteBranch("branch.safetensors");
    const std::string contents = Slurp(branch);
    const auto name = [&](const char* kind) { return std::string(kind) + agent; };
    const auto train = [&](const std::string& run, std::int64_t steps) {
      return With(Train(env, agent, steps, run, "3", kOnceOnly), {"--init", branch});
    };
    ASSERT_EQ(Run(train(name("whole"), Steps(agent))), 0) << Err();
    EXPECT_TRUE(Slurp(folder_ / name("whole") / "init.safetensors") == contents);
    EXPECT_NE(Err().find("transfer predictor over "), std::string::npos) << Err();
    // the branch matters
    ASSERT_EQ(Run(Train(env, agent, Steps(agent), name("scratch"), "3", kOnceOnly)), 0) << Err();
    EXPECT_FALSE(fs::exists(folder_ / name("scratch") / "init.safetensors"));
    EXPECT_NE(Slurp(NewestCheckpoint(name("whole"))), Slurp(NewestCheckpoint(name("scratch"))));

    // killed before anything was kept, and the file is gone; a long run, so that it comes in time
    KillEarly(train(name("killed"), 2'000'000'000), name("killed"));
    KillEarly(train(name("changed"), 2'000'000'000), name("changed"));
    fs::remove(branch);
    ASSERT_EQ(Run({"resume", Dir(name("killed")), "--steps", std::to_string(Steps(agent))}), 0)
        << Err();
    ExpectSameResults(name("whole"), name("killed"));

    // another copy is not what the run was made with
    std::ofstream(folder_ / name("changed") / "init.safetensors", std::ios::app) << "x";
    ExpectMistake({"resume", Dir(name("changed"))}, "is not what the run was made with");
    fs::remove(folder_ / name("changed") / "init.safetensors");
    ExpectMistake({"resume", Dir(name("changed"))}, "init.safetensors");
    EXPECT_TRUE(NewestCheckpoint(name("changed")).empty());

    // once learning is kept, the copy is no longer asked for
    fs::remove(folder_ / name("whole") / "init.safetensors");
    EXPECT_EQ(Run({"resume", Dir(name("whole")), "--steps", std::to_string(Steps(agent) + 50)}), 0)
        << Err();
  }
}

TEST_F(RunCommandTest, ARunWithAGoalReadingGoesOn) {
  const std::string reading = Dir("reading.safetensors");
  ASSERT_EQ(Run({"pretrain", "--kind", "goal-reading", "--episodes", "200", "--updates", "20",
                 "--rows", "mixed", "--set", "width=8", "--out", reading}),
            0)
      << Err();
  const auto train = [&](const std::string& run, std::int64_t steps) {
    Arguments arguments = Train("arena-dense", "msrl", steps, run, "3", kOnceOnly);
    *(std::ranges::find(arguments, "--eval-every") + 1) = "50";  // at the end of either
    return With(arguments, {"--env-set", "hidden=goal", "--init", reading, "--set", "plan=model"});
  };
  ASSERT_EQ(Run(train("whole", 400)), 0) << Err();
  ASSERT_EQ(Run(train("part", 250)), 0) << Err();  // ends inside an episode
  fs::remove(folder_ / "part" / "init.safetensors");
  ASSERT_EQ(Run({"resume", Dir("part"), "--steps", "400"}), 0) << Err();
  EXPECT_EQ(Slurp(NewestCheckpoint("whole")), Slurp(NewestCheckpoint("part")));
  EXPECT_EQ(Run({"eval", Dir("part"), "--episodes", "2"}), 0) << Err();
  ExpectMistake(With(Train("arena-dense", "msrl", 400, "blind", "3", kOnceOnly),
                     {"--set", "sight=reading", "--set", "plan=off"}),
                "needs a goal reading");
}

TEST_F(RunCommandTest, ARunFromALatentModelGoesOn) {
  const std::string model = Dir("model.safetensors");
  ASSERT_EQ(Run({"pretrain",
                 "--kind",
                 "tdmpc",
                 "--episodes",
                 "80",
                 "--updates",
                 "20",
                 "--rows",
                 "mixed",
                 "--set",
                 "encoder_width=8",
                 "--set",
                 "latent_groups=1",
                 "--set",
                 "model_width=8",
                 "--set",
                 "bins=11",
                 "--set",
                 "batch=8",
                 "--out",
                 model}),
            0)
      << Err();
  ASSERT_EQ(Run({"inspect", model}), 0) << Err();
  EXPECT_NE(Out().find("tdmpc"), std::string::npos) << Out();
  const auto train = [&](const std::string& run, std::int64_t steps, const Arguments& more) {
    Arguments arguments = Train("reacher", "tdmpc", steps, run, "3", kOnceOnly);
    *(std::ranges::find(arguments, "--eval-every") + 1) = "50";  // at the end of either
    // what the model fixes is left to it
    for (auto set = arguments.begin();
         (set = std::ranges::find(arguments, "--set")) != arguments.end();) {
      set = arguments.erase(set, set + 2);
    }
    return With(arguments,
                With({"--init", model, "--set", "batch_size=8", "--set", "random_steps=60", "--set",
                      "first_updates=5", "--set", "plan_samples=16", "--set",
                      "plan_policy_samples=4", "--set", "plan_elites=4"},
                     more));
  };
  ASSERT_EQ(Run(train("whole", 150, {})), 0) << Err();
  EXPECT_NE(Err().find("is nearest by its rewards"), std::string::npos) << Err();
  // in the random steps, where the source is not yet chosen, and later
  for (const std::int64_t first : {50, 100}) {
    const std::string name = StrCat("part", first);
    ASSERT_EQ(Run(train(name, first, {})), 0) << Err();
    fs::remove(folder_ / name / "init.safetensors");
    ASSERT_EQ(Run({"resume", Dir(name), "--steps", "150"}), 0) << Err();
    EXPECT_TRUE(Slurp(NewestCheckpoint("whole")) == Slurp(NewestCheckpoint(name))) << first;
  }
  for (const char* variant : {"copy=dynamics", "frozen=true"}) {
    ASSERT_EQ(Run(train(variant, 150, {"--set", variant})), 0) << Err();
    EXPECT_FALSE(Slurp(NewestCheckpoint("whole")) == Slurp(NewestCheckpoint(variant))) << variant;
  }
  EXPECT_EQ(Run({"eval", Dir("whole"), "--episodes", "2"}), 0) << Err();
  ExpectMistake(train("wide", 150, {"--set", "model_width=16"}), "'model_width' is 8");
  ExpectMistake(train("blind", 150, {"--set", "aligned=false"}), "set aligned=true");
  ExpectMistake(With(Train("reacher", "sac", 150, "sac"), {"--init", model}),
                "takes no tdmpc over; these do: tdmpc");
  EXPECT_FALSE(fs::exists(folder_ / "wide"));
}

TEST_F(RunCommandTest, ARunFromAWorldModelGoesOn) {
  const std::string world = Dir("world.safetensors");
  ASSERT_EQ(Run({"pretrain",    "--kind",    "dreamer",
                 "--episodes",  "80",        "--updates",
                 "10",          "--rows",    "mixed",
                 "--set",       "deter=8",   "--set",
                 "blocks=2",    "--set",     "stoch=2",
                 "--set",       "classes=3", "--set",
                 "hidden=8",    "--set",     "units=8",
                 "--set",       "layers=1",  "--set",
                 "sequences=4", "--set",     "sequence_length=8",
                 "--out",       world}),
            0)
      << Err();
  ASSERT_EQ(Run({"inspect", world}), 0) << Err();
  EXPECT_NE(Out().find("dreamer"), std::string::npos) << Out();
  const auto train = [&](const std::string& run, std::int64_t steps, const Arguments& more) {
    return With({"train",
                 "--env",
                 "reacher",
                 "--agent",
                 "dreamer",
                 "--steps",
                 std::to_string(steps),
                 "--run",
                 Dir(run),
                 "--seed",
                 "3",
                 "--eval-every",
                 "50",
                 "--eval-episodes",
                 "1",
                 "--init",
                 world,
                 "--set",
                 "sequences=3",
                 "--set",
                 "sequence_length=6",
                 "--set",
                 "start_steps=3",
                 "--set",
                 "horizon=3",
                 "--set",
                 "random_steps=40",
                 "--set",
                 "first_updates=2",
                 "--set",
                 "train_ratio=6"},
                more);
  };
  ASSERT_EQ(Run(train("whole", 150, {})), 0) << Err();
  // where the world model learns slowly, and later
  for (const std::int64_t first : {50, 100}) {
    const std::string name = StrCat("part", first);
    ASSERT_EQ(Run(train(name, first, {})), 0) << Err();
    fs::remove(folder_ / name / "init.safetensors");
    ASSERT_EQ(Run({"resume", Dir(name), "--steps", "150"}), 0) << Err();
    EXPECT_TRUE(Slurp(NewestCheckpoint("whole")) == Slurp(NewestCheckpoint(name))) << first;
  }
  ASSERT_EQ(Run(train("frozen", 150, {"--set", "frozen=true"})), 0) << Err();
  EXPECT_FALSE(Slurp(NewestCheckpoint("whole")) == Slurp(NewestCheckpoint("frozen")));
  EXPECT_EQ(Run({"eval", Dir("whole"), "--episodes", "2"}), 0) << Err();
  ExpectMistake(train("wide", 150, {"--set", "units=16"}), "'units' is 8");
  ExpectMistake(train("blind", 150, {"--set", "aligned=false"}), "set aligned=true");
  ExpectMistake(With(Train("reacher", "sac", 150, "sac"), {"--init", world}),
                "takes no dreamer over; these do: dreamer");
  EXPECT_FALSE(fs::exists(folder_ / "wide"));
}

// All kinds on the same episodes.
TEST_F(RunCommandTest, KindsOfPretrainingAreCompared) {
  const auto compare = [&](const Arguments& more) {
    return With({"pretrain", "--episodes", "80", "--updates", "5", "--set", "target=mc", "--set",
                 "validation_windows=64", "--set", "uvfa.stream_width=16"},
                more);
  };
  ASSERT_EQ(Run(compare({"--compare", "uvfa,dreamer", "--record", Dir("two.json")})), 0) << Err();
  const std::string table = Out();
  for (const char* text :
       {"uvfa", "dreamer", "numbers", "open loop, slots", "R2, new goals", " -"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << "\n" << table;
  }
  EXPECT_FALSE(fs::exists(Dir("two.json.work")));
  const std::string record = Slurp(folder_ / "two.json");
  EXPECT_NE(record.find("\"stream_width\": 16"), std::string::npos) << record;
  EXPECT_NE(record.find("\"updates\": 5"), std::string::npos) << record;
  // the figures of each are those of the kind alone
  ASSERT_EQ(Run({"pretrain", "--kind", "dreamer", "--episodes", "80", "--updates", "5", "--rows",
                 "mixed", "--set", "target=mc", "--json"}),
            0)
      << Err();
  const std::string alone = Out();
  const std::size_t figure = alone.find("\"open_loop_x\"");
  ASSERT_NE(figure, std::string::npos);
  EXPECT_NE(record.find(alone.substr(figure, alone.find('\n', figure) - figure)),
            std::string::npos);
  ExpectMistake(compare({"--compare", "uvfa,dremer"}), "did you mean 'dreamer'?");
  ExpectMistake(compare({"--compare", "uvfa", "--set", "units=8"}),
                "no kind that is compared has the option 'units'");
  ExpectMistake(compare({"--compare", "uvfa", "--out", Dir("x")}), "--compare has no --out");
  ExpectMistake(compare({"--compare", "uvfa,dreamer", "--record", Dir("two.json")}), "--force");
}

TEST_F(RunCommandTest, BranchesThatDoNotFitAreRefused) {
  const std::string branch = WriteBranch("branch.safetensors");
  const std::string foreign = WriteBranch("foreign.safetensors", LiftId{12345});
  std::ofstream(folder_ / "cut.safetensors", std::ios::binary) << Slurp(branch).substr(0, 3000);
  const auto train = [&](const std::string& agent, const Arguments& more) {
    return With(Train("four-rooms-sparse", agent, 200, "a"), more);
  };
  ExpectMistake(train("msrl", {"--init", foreign}),
                foreign + ": the value-branch was trained with lift");
  ExpectMistake(train("msrl", {"--init", Dir("cut.safetensors")}), "cut.safetensors");
  ExpectMistake(train("msrl", {"--init", Dir("none.safetensors")}), "No such file");
  ExpectMistake(train("msrl", {"--init", branch, "--set", "branch_width=8"}), "of width 16");
  ExpectMistake(train("msrl", {"--init", branch, "--set", "matrix=false", "--set", "plan=off"}),
                "without the matrix");
  ExpectMistake(train("msrl", {"--unaligned"}), "--unaligned says how to take --init");
  for (const char* agent : {"sac", "td3", "ppo", "random"}) {
    ExpectMistake(train(agent, {"--init", branch}),
                  "takes no value-branch over; these do: msrl, msrl-td3, msrl-dqn");
  }
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  EXPECT_EQ(Run(train("msrl", {"--init", foreign, "--unaligned"})), 0) << Err();
}

TEST_F(RunCommandTest, ARunWithALibraryStandsAlone) {
  const auto quick = [this](const std::string& agent, std::int64_t steps, const std::string& run) {
    const std::string env = agent == "msrl-dqn" ? "graph-motif" : "four-rooms-sparse";
    return With(Train(env, agent, steps, run, "3", kOnceOnly), {"--set", "library_size=400"});
  };
  for (const std::string agent : {"msrl", "msrl-dqn"}) {
    SCOPED_TRACE(agent);
    const auto name = [&](const char* kind) { return std::string(kind) + agent; };
    ASSERT_EQ(Run(quick(agent, 150, name("earlier"))), 0) << Err();
    const auto train = [&](const std::string& run, std::int64_t steps) {
      return With(quick(agent, steps, run), {"--library", Dir(name("earlier"))});
    };
    ASSERT_EQ(Run(train(name("whole"), Steps(agent))), 0) << Err();
    const std::string copy = "library.safetensors";
    EXPECT_TRUE(fs::exists(folder_ / name("whole") / copy));
    // the segments matter
    ASSERT_EQ(Run(quick(agent, Steps(agent), name("without"))), 0) << Err();
    EXPECT_FALSE(fs::exists(folder_ / name("without") / copy));
    EXPECT_NE(Slurp(NewestCheckpoint(name("whole"))), Slurp(NewestCheckpoint(name("without"))));

    // killed before anything was kept, and the earlier run is gone
    KillEarly(train(name("killed"), 2'000'000'000), name("killed"));
    KillEarly(train(name("changed"), 2'000'000'000), name("changed"));
    fs::remove_all(folder_ / name("earlier"));
    ASSERT_EQ(Run({"resume", Dir(name("killed")), "--steps", std::to_string(Steps(agent))}), 0)
        << Err();
    ExpectSameResults(name("whole"), name("killed"));
    std::ofstream(folder_ / name("changed") / copy, std::ios::app) << "x";
    ExpectMistake({"resume", Dir(name("changed"))}, "is not what the run was made with");

    // once steps are kept, the copy is no longer asked for; and it is a library of its own
    fs::rename(folder_ / name("whole") / copy, folder_ / name("copy"));
    EXPECT_EQ(Run({"resume", Dir(name("whole")), "--steps", std::to_string(Steps(agent) + 50)}), 0)
        << Err();
    EXPECT_EQ(Run(With(quick(agent, 120, name("file")), {"--library", Dir(name("copy"))})), 0)
        << Err();
  }
}

TEST_F(RunCommandTest, LibrariesThatDoNotFitAreRefused) {
  ASSERT_EQ(Run(Train("four-rooms-sparse", "msrl", 120, "rooms")), 0) << Err();
  ASSERT_EQ(Run(Train("four-rooms-sparse", "sac", 120, "none")), 0) << Err();
  ASSERT_EQ(
      Run(With(Train("four-rooms-sparse", "msrl", 120, "long"), {"--set", "segment_steps=3"})), 0)
      << Err();
  const std::string branch = WriteBranch("branch.safetensors");
  const auto refused = [&](const std::string& env, const std::string& agent,
                           const std::string& library, const Arguments& more,
                           const std::string& what) {
    ExpectMistake(With(With(Train(env, agent, 200, "a"), {"--library", library}), more), what);
  };
  const std::string rooms = "four-rooms-sparse";
  refused("reacher", "msrl", Dir("rooms"), {}, "segments of 'four-rooms' don't fit 'reacher'");
  refused(rooms, "msrl", Dir("rooms"), {"--set", "lift=compact-no-action"},
          "make a library with this lift");
  refused(rooms, "msrl", Dir("rooms"), {"--set", "plan=off"}, "set plan=library or plan=both");
  refused(rooms, "msrl", Dir("rooms"), {"--set", "plan=model"}, "set plan=library or plan=both");
  refused(rooms, "msrl", Dir("rooms"), {"--set", "lookahead=off"}, "set lookahead=training");
  refused(rooms, "msrl", Dir("long"), {}, "set segment_steps=3");
  refused(rooms, "sac", Dir("rooms"), {}, "plans with no library of segments");
  refused(rooms, "msrl", Dir("none"), {}, "keeps no segment library");
  refused(rooms, "msrl", branch, {}, "not a segment library");
  refused(rooms, "msrl", Dir("missing"), {}, "No such file");
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  EXPECT_EQ(Run(With(Train(rooms, "msrl", 120, "b"),
                     {"--library", Dir("long"), "--set", "segment_steps=4"})),
            0)
      << Err();
}

TEST_F(RunCommandTest, ARunWithSettingsOfAnotherVersionSaysWhatToDo) {
  ASSERT_EQ(Run(Train("four-rooms-sparse", "msrl", 60, "old")), 0) << Err();
  const fs::path file = folder_ / "old" / "run.json";
  std::string text = Slurp(file);
  const std::size_t place = text.find("\"beta\"");
  ASSERT_NE(place, std::string::npos);
  text.replace(place, 6, "\"bygone\"");
  std::ofstream(file) << text;
  fs::remove(folder_ / "old" / "manifest.json");
  ExpectMistake({"resume", Dir("old")}, "unknown setting 'bygone'");
  EXPECT_NE(Err().find("finish the run with the msrl that began it"), std::string::npos) << Err();
}

TEST_F(RunCommandTest, PretrainingThatIsKilledEndsWithTheSameFile) {
  const std::map<std::string, Arguments> kinds{
      {"value-branch", {"--set", "width=8", "--set", "batch=16", "--set", "target=mc"}},
      {"tdmpc",
       {"--set", "encoder_width=8", "--set", "latent_groups=1", "--set", "model_width=8", "--set",
        "bins=11", "--set", "batch=8", "--set", "target=mc"}},
      {"dreamer",
       {"--set", "deter=8", "--set", "blocks=2", "--set", "stoch=2", "--set", "classes=3", "--set",
        "hidden=8", "--set", "units=8", "--set", "sequences=4", "--set", "sequence_length=8",
        "--set", "target=mc"}}};
  const auto pretrain = [&](const std::string& kind, const std::string& out,
                            const char* updates = "150") {
    return With({"pretrain", "--kind", kind, "--episodes", "600", "--updates", updates, "--rows",
                 "mixed", "--seeds", "2", "--out", Dir(out), "--checkpoint-seconds", "0", "--json"},
                kinds.at(kind));
  };
  auto started = std::chrono::steady_clock::now();
  for (const auto& [kind, settings] : kinds) {
    SCOPED_TRACE(kind);
    started = std::chrono::steady_clock::now();
    ASSERT_EQ(Run(pretrain(kind, kind + "-whole.safetensors")), 0) << Err();
    const std::string figures = Out();
    EXPECT_FALSE(fs::exists(folder_ / (kind + "-whole.safetensors.work")));
    const fs::path work = folder_ / (kind + "-killed.safetensors.work");
    const fs::path last = folder_ / (kind + "-killed-1.safetensors");
    int kills = 0;
    // later and later, so that it gets somewhere and ends
    for (auto wait = std::chrono::milliseconds(20);; wait = wait * 5 / 4) {
      ASSERT_LT(std::chrono::steady_clock::now() - started, std::chrono::minutes(4)) << Err();
      const pid_t child = Start(pretrain(kind, kind + "-killed.safetensors"));
      std::this_thread::sleep_for(wait);
      kill(child, kills % 3 == 2 ? SIGTERM : SIGKILL);
      const int code = Wait(child);
      // a signal before it listens ends it, later it stops by itself
      ASSERT_TRUE(code == 0 || code == 75 || code == -SIGKILL || code == -SIGTERM) << code << Err();
      // it may also be killed with everything done, before it could say so
      if (code == 0 || (fs::exists(last) && !fs::exists(work))) break;
      ++kills;
    }
    EXPECT_GT(kills, 3);
    EXPECT_EQ(Out(), figures);
    for (const char* seed : {"-0", "-1"}) {
      const std::string whole = Slurp(folder_ / StrCat(kind, "-whole", seed, ".safetensors"));
      EXPECT_FALSE(whole.empty());
      EXPECT_TRUE(Slurp(folder_ / StrCat(kind, "-killed", seed, ".safetensors")) == whole) << seed;
    }
    EXPECT_FALSE(fs::exists(work));
  }

  // other options do not go on with it
  const pid_t child = Start(pretrain("value-branch", "other.safetensors", "1000000"));
  while (!fs::exists(folder_ / "other.safetensors.work/mixed-0.work.safetensors")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_LT(std::chrono::steady_clock::now() - started, std::chrono::minutes(4)) << Err();
  }
  kill(child, SIGKILL);
  Wait(child);
  ExpectMistake(
      With(pretrain("value-branch", "other.safetensors", "1000000"), {"--set", "width=9"}),
      "remove it to begin anew");
}

TEST_F(RunCommandTest, InspectShowsWhatTheCriticMakesOfMatrices) {
  for (const char* agent : {"msrl", "msrl-td3", "msrl-dqn"}) {
    SCOPED_TRACE(agent);
    const bool discrete = agent == std::string("msrl-dqn");
    const std::string env = discrete ? "graph-motif" : "four-rooms-sparse";
    // a library that keeps what it used, and a policy that is often overruled
    Arguments eager{"--set", "library_size=500", "--set", "margin=0"};
    if (discrete) eager.insert(eager.end(), {"--set", "epsilon_steps=100"});
    ASSERT_EQ(Run(With(Train(env, agent, 400, agent), eager)), 0) << Err();
    const std::string checkpoint = Slurp(NewestCheckpoint(agent));
    ASSERT_EQ(Run({"inspect", Dir(agent)}), 0) << Err();
    EXPECT_EQ(Err(), "");
    const std::string text = Out();
    for (const char* part :
         {"local gradient W", "x*dx", "largest entries", "slope of the first-order error",
          "slope of the additivity error", "value-null directions", "library: 400 of 500 segments",
          "obstruction proxy: ready", "after the warm-up"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
    }
    ASSERT_EQ(Run({"inspect", Dir(agent), "--json", "--episodes", "8", "--states", "60"}), 0);
    const std::string first = Out();
    const auto json = nlohmann::json::parse(first);
    EXPECT_EQ(json.at("steps"), 400);
    EXPECT_LE(json.at("states"), 60);
    double shares = 0.0;
    for (const auto& block : json.at("gradient").at("blocks")) {
      shares += block.at("share").get<double>();
    }
    EXPECT_NEAR(shares, 1.0, 1e-9);
    EXPECT_EQ(json.at("gradient").at("largest").size(), 10u);
    // errors vanish faster than the increment
    for (const char* error : {"first_order", "additivity"}) {
      EXPECT_GT(json.at(error).at("slope_median"), 1.5) << error;
      EXPECT_EQ(json.at(error).at("median_errors").size(), 10u);
    }
    EXPECT_GT(json.at("null").at("null_share"), 0.5);
    EXPECT_EQ(json.at("library").at("offered"), 400);
    EXPECT_GT(json.at("library").at("uses"), 0);
    EXPECT_TRUE(json.at("last_metrics").contains("transfer/predictor"));
    // the same again, and nothing has changed
    ASSERT_EQ(Run({"inspect", Dir(agent), "--json", "--episodes", "8", "--states", "60"}), 0);
    EXPECT_EQ(Out(), first);
    EXPECT_TRUE(Slurp(NewestCheckpoint(agent)) == checkpoint);
  }
  const auto without = [&](const std::string& name, const Arguments& more) {
    EXPECT_EQ(Run(With(Train("four-rooms-sparse", "msrl", 200, name), more)), 0) << Err();
  };
  without("no-library", {"--set", "plan=off"});
  ASSERT_EQ(Run({"inspect", Dir("no-library"), "--json"}), 0) << Err();
  EXPECT_FALSE(nlohmann::json::parse(Out()).contains("library"));

  without("no-matrix", {"--set", "matrix=false", "--set", "plan=library"});
  ExpectMistake({"inspect", Dir("no-matrix")}, "the critic of 'msrl' does not see the matrix");
  ASSERT_EQ(Run(Train("four-rooms-sparse", "sac", 200, "sac")), 0) << Err();
  ExpectMistake({"inspect", Dir("sac")}, "the critic of 'sac' does not see the matrix");
  ExpectMistake({"inspect", Dir("nothing")}, "no run in");
  KillEarly(Train("four-rooms-sparse", "msrl", 2'000'000'000, "early", "3", kOnceOnly), "early");
  ExpectMistake({"inspect", Dir("early")}, "has no checkpoint yet");
}

TEST_F(RunCommandTest, EvalAgentsAndConfig) {
  ASSERT_EQ(Run(Train("four-rooms-sparse", "still", 500, "a")), 0);
  ASSERT_EQ(Run({"eval", Dir("a"), "--episodes", "3", "--json"}), 0) << Err();
  const auto json = nlohmann::json::parse(Out());
  EXPECT_EQ(json.at("returns").size(), 3u);
  EXPECT_EQ(json.at("mean_return"), 0.0);  // who stands still reaches nothing
  EXPECT_EQ(Run({"agents"}), 0);
  for (const AgentEntry& entry : BuiltinAgents()) {
    EXPECT_NE(Out().find(entry.id), std::string::npos);
    if (!entry.over.empty()) {
      EXPECT_NE(Out().find("over " + entry.over), std::string::npos);
    }
    for (const std::string& kind : entry.takes) {
      EXPECT_NE(Out().find("takes " + kind), std::string::npos);
    }
  }
  EXPECT_EQ(Run({"config", "random"}), 0);
  EXPECT_NE(Out().find("[agent]"), std::string::npos);
}

TEST_F(RunCommandTest, PoliciesAreExportedOrTheReasonIsTold) {
  ASSERT_EQ(Run(Train("four-rooms-sparse", "sac", 200, "a")), 0) << Err();
  const std::string header = (folder_ / "policy.h").string();
  ASSERT_EQ(Run({"export", Dir("a"), "--header", header, "--name", "go"}), 0) << Err();
  EXPECT_NE(Out().find("sac in four-rooms-sparse"), std::string::npos) << Out();
  EXPECT_NE(Slurp(header).find("void go(const float* observation, float* action)"),
            std::string::npos);
  ExpectMistake({"export", Dir("a"), "--header", header}, "--force");
  EXPECT_EQ(Run({"export", Dir("a"), "--header", header, "--force"}), 0) << Err();
  ExpectMistake({"export", Dir("a")}, "--header FILE");
  ExpectMistake({"export", Dir("b"), "--header", header}, "no run in");
  ASSERT_EQ(Run(Train("four-rooms-sparse", "random", 200, "b")), 0) << Err();
  ExpectMistake({"export", Dir("b"), "--onnx", header}, "agent 'random' cannot be exported: it");
}

TEST_F(RunCommandTest, EveryAgentHasAPageWithItsSettingsAndMetrics) {
  ForAllAgents([&](const std::string& agent, const std::string& env) {
    const AgentEntry& entry = BuiltinAgents().Find(agent);
    const auto read = [](const std::string& name) {
      return Slurp(fs::path(MSRL_SOURCE_DIR) / "docs/agents" / (name + ".md"));
    };
    // an agent over a base has a page that sends the reader to the base's
    const std::map<std::string, std::string> bases{
        {"msrl", "sac"}, {"msrl-td3", "td3"}, {"msrl-dqn", "dqn"}};
    const auto base = bases.find(agent);
    std::string page = base != bases.end() ? read("msrl") + read(base->second)
                                           : read(entry.quick.empty() ? "fixed" : agent);
    // transfer baselines share a host, whose page has its settings and metrics
    if (page.find("(host.md)") != std::string::npos) page += read("host");
    const auto mentions = [&page](const std::string& name) {
      return page.find("`" + name + "`") != std::string::npos;
    };
    EXPECT_TRUE(mentions(agent) || page.starts_with("# " + agent + ":")) << agent;
    for (const ConfigField& field : entry.options({}))
      EXPECT_TRUE(mentions(field.key)) << field.key;
    ASSERT_EQ(Run(Train(env, agent, 500, "a-" + agent + env)), 0) << Err();
    std::ifstream lines(folder_ / ("a-" + agent + env) / "metrics.jsonl");
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      for (const auto& [name, value] : json.items()) {
        if (name == "step" || name.starts_with("train/")) continue;
        EXPECT_TRUE(mentions(name)) << name;
      }
    }
  });
}

}  // namespace
}  // namespace msrl
