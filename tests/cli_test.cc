// The command line as a user runs it: what it prints, its exit codes, what it leaves on disk.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "msrl/core/segment.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/datasets/trajectory_file.h"
#include "msrl/memory/segment_library.h"
#include "msrl/testing/slurp.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Slurp;

const std::string kExample = std::string(MSRL_SOURCE_DIR) + "/examples/trajectories.jsonl";

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_cli_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& contents) const {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
    return (folder_ / name).string();
  }

  Outcome Run(const std::string& arguments) const {
    const std::string command = std::string(MSRL_BINARY) + " " + arguments + " >" +
                                (folder_ / "out").string() + " 2>" + (folder_ / "err").string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Slurp(folder_ / "out"),
            Slurp(folder_ / "err")};
  }

  // Exit code 2, nothing on stdout, one line on stderr that contains `what`.
  void ExpectUserError(const std::string& arguments, const std::string& what) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  fs::path folder_;
};

TEST_F(CliTest, ListsAreJsonToo) {
  const auto envs = nlohmann::json::parse(Run("envs --json").out);
  EXPECT_GT(envs.size(), 10U);
  const auto hopper = nlohmann::json::parse(Run("envs hopper --json").out);
  EXPECT_EQ(hopper.at("id"), "hopper");
  EXPECT_EQ(hopper.at("observation_size"), 11);
  EXPECT_EQ(hopper.at("discrete"), false);
  EXPECT_NE(std::ranges::find(envs, hopper), envs.end());
  ExpectUserError("envs hopper --json --measure 1", "--measure");
  ExpectUserError("pretrain --updates -1", "--updates");
  ExpectUserError("pretrain --compare uvfa,uvfa", "names 'uvfa' twice");
  const auto agents = nlohmann::json::parse(Run("agents --json").out);
  EXPECT_TRUE(std::ranges::any_of(agents, [](const auto& agent) {
    return agent.at("id") == "msrl" && agent.at("over") == "sac";
  }));
  const auto config = nlohmann::json::parse(Run("config sac --json --set hidden_width=7").out);
  EXPECT_TRUE(std::ranges::any_of(config.at("settings"), [](const auto& field) {
    return field.at("key") == "hidden_width" && field.at("value") == 7;
  }));
}

TEST_F(CliTest, ManyTrajectoriesAreShortened) {
  std::string lines;
  for (int i = 0; i < 12; ++i)
    lines += R"({"x": [[0], [1]], "a": [[0]], "r": [0]})"
             "\n";
  const std::string file = Write("many.jsonl", lines);
  const std::string some = Run("describe " + file).out;
  EXPECT_NE(some.find("trajectory 9\n"), std::string::npos);
  EXPECT_EQ(some.find("trajectory 10\n"), std::string::npos);
  EXPECT_NE(some.find("2 more trajectories not shown; use --all"), std::string::npos);
  EXPECT_NE(Run("describe --all " + file).out.find("trajectory 11\n"), std::string::npos);
}

// 0.1 + 0.2 - 0.3 is 5.6e-17, small numbers of their own stay.
TEST_F(CliTest, RoundingIsShownAsZero) {
  const std::string file = Write(
      "a.jsonl",
      R"({"x": [[0, 0], [0, 1e-20], [0, 3e-20], [0, 6e-20]], "a": [[0], [0], [0]], "r": [0.1, 0.2, -0.3]})");
  const std::string out = Run("describe " + file).out;
  EXPECT_EQ(out.find("e-17"), std::string::npos) << out;
  EXPECT_NE(out.find("e-20"), std::string::npos) << out;
  EXPECT_NE(Run("describe --json " + file).out.find("e-17"), std::string::npos);
}

TEST_F(CliTest, HelpAndVersion) {
  for (const char* arguments : {"", "--help"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find("describe"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("Start here"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(Run("--version").out.find("msrl "), 0u);
}

TEST_F(CliTest, DescribePrintsHorizonBlocksPatternsAndMatrix) {
  const Outcome outcome = Run("describe " + kExample);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text :
       {"trajectory corridor\n  horizon 4", "block norms", "xi_delta[0,1]", "end points recovered",
        "path-telescoping           holds", "trajectory standing-start\n  horizon 0"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  }
}

TEST_F(CliTest, JsonHoldsTheMatrixAndThePatterns) {
  const TrajectoryFile file = ReadTrajectories(kExample);
  for (const char* kind : {"full", "compact", "compact-no-action", "compact-no-reward",
                           "compact-effort", "compact-squares"}) {
    const Outcome outcome = Run("describe --json --lift " + std::string(kind) + " " + kExample);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto lift = Lift::Make({LiftKindFromName(kind), file.d, file.q, {}});
    std::istringstream lines(outcome.out);
    std::string line;
    std::size_t count = 0;
    for (; std::getline(lines, line); ++count) {
      const nlohmann::json object = nlohmann::json::parse(line);
      const SegmentMatrix expected = Describe(lift, file.trajectories[count].segment);
      EXPECT_EQ(object["horizon"], expected.Horizon());
      EXPECT_EQ(object["lift"], kind);
      EXPECT_EQ(object["labels"].size(), static_cast<std::size_t>(lift->m()));
      ASSERT_EQ(object["matrix"].size(), static_cast<std::size_t>(lift->m() * lift->m()));
      for (Index i = 0; i < lift->m(); ++i) {
        for (Index j = 0; j < lift->m(); ++j) {
          EXPECT_EQ(object["matrix"][static_cast<std::size_t>(i * lift->m() + j)].get<double>(),
                    expected(i, j));
        }
      }
      EXPECT_TRUE(object["patterns"]["path-telescoping"]["holds"].get<bool>());
    }
    EXPECT_EQ(count, file.trajectories.size());
  }
}

TEST_F(CliTest, PatternsTellTheExamplesApart) {
  std::istringstream lines(Run("describe --json " + kExample).out);
  std::string line;
  std::map<std::string, nlohmann::json> by_name;
  while (std::getline(lines, line)) {
    const nlohmann::json object = nlohmann::json::parse(line);
    by_name[object["name"]] = object["patterns"];
  }
  const auto holds = [&](const char* name, const char* pattern) {
    return by_name.at(name).at(pattern).at("holds").get<bool>();
  };
  EXPECT_FALSE(holds("corridor", "cycle-skewness"));
  EXPECT_TRUE(holds("square-loop", "cycle-skewness"));
  EXPECT_FALSE(holds("square-loop", "geometric-reversal-parity"));
  EXPECT_TRUE(holds("there-and-back", "geometric-reversal-parity"));
  EXPECT_FALSE(holds("there-and-back", "reversal-parity"));
  EXPECT_TRUE(holds("corridor", "action-partition"));
}

TEST_F(CliTest, CsvAndJsonLinesAgree) {
  const std::string csv = Write("walk.csv", "episode,t,x0,a0,r\nw,0,0.5,1,2\nw,1,1.5,,\n");
  const std::string json =
      Write("walk.jsonl", "{\"name\":\"w\",\"x\":[[0.5],[1.5]],\"a\":[[1]],\"r\":[2]}\n");
  EXPECT_EQ(Run("describe --json " + csv).out, Run("describe --json " + json).out);
}

TEST_F(CliTest, NpyHoldsAllMatrices) {
  const fs::path npy = folder_ / "m.npy";
  const Outcome outcome = Run("describe --npy " + npy.string() + " " + kExample);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string bytes = Slurp(npy);
  EXPECT_NE(bytes.find("'shape': (5, 22, 22, )"), std::string::npos);
  EXPECT_EQ(bytes.size() % 64, (5u * 22 * 22 * 8) % 64);
}

TEST_F(CliTest, MistakesAreOneLineAndExitCodeTwo) {
  ExpectUserError("descrbe x", "did you mean 'describe'?");
  ExpectUserError("describe --liftt full " + kExample, "did you mean '--lift'?");
  ExpectUserError("describe --lift ful " + kExample, "did you mean 'full'?");
  ExpectUserError("describe", "FILE is required (see msrl describe --help)");
  ExpectUserError("train --env reacher --agent sac --steps 1e5 --learning-rate 3",
                  "unknown option '--learning-rate'; settings are given as --set "
                  "learning_rate=VALUE (see msrl train --help)");
  ExpectUserError("train --env reacher --agent SAC --steps 1e5", "did you mean 'sac'?");
  ExpectUserError("describe missing.jsonl", "missing.jsonl: No such file or directory");
  ExpectUserError("describe " + Write("a.txt", "x"), "cannot tell the format");
  ExpectUserError("describe " + Write("empty.jsonl", ""), "no trajectory in it");
  ExpectUserError("describe " + Write("cut.jsonl", "{\"x\": [[0, 1], [2"), "cut.jsonl:1: ");
  ExpectUserError("describe " + Write("nan.csv", "episode,t,x0,a0,r\ne,0,nan,0,0\ne,1,1,,\n"),
                  "trajectory e: step 0: x[0] is nan");
  ExpectUserError("describe " + Write("inf.csv", "episode,t,x0,a0,r\ne,0,1,-inf,0\ne,1,1,,\n"),
                  "trajectory e: step 0: a[0] is -inf");
  ExpectUserError("describe " + Write("huge.jsonl", "{\"x\": [[0],[1]], \"r\": [1e200]}"),
                  "reward is 1e+200");
  ExpectUserError("describe " + Write("dim.jsonl",
                                      "{\"x\": [[0],[1]], \"r\": [1]}\n"
                                      "{\"x\": [[0,0],[1,1]], \"r\": [1]}\n"),
                  "dim.jsonl:2: x has 2 columns");
}

TEST_F(CliTest, ABadTrajectoryLeavesNoOutputFile) {
  const std::string bad = Write("bad.jsonl",
                                "{\"x\": [[0],[1]], \"r\": [1]}\n"
                                "{\"x\": [[0],[1]], \"r\": [1e300]}\n");
  const fs::path npy = folder_ / "m.npy";
  ExpectUserError("describe --json --npy " + npy.string() + " " + bad, "trajectory 1");
  EXPECT_FALSE(fs::exists(npy));
}

TEST_F(CliTest, EnvsListsAndShowsEnvironments) {
  const Outcome list = Run("envs");
  EXPECT_EQ(list.exit_code, 0);
  for (const char* id : {"graph-motif", "micro-grid", "point-rooms", "dubins-reacher",
                         "four-rooms-sparse", "four-rooms-dense"}) {
    EXPECT_NE(list.out.find(id), std::string::npos) << id;
  }
  const Outcome one = Run("envs micro-grid --set width=5");
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_NE(one.out.find("split"), std::string::npos);
  ExpectUserError("envs micro-gird", "did you mean 'micro-grid'?");
  ExpectUserError("envs micro-grid --set widht=5", "did you mean 'width'?");
  ExpectUserError("envs micro-grid --set width=50", "width");
  ExpectUserError("envs micro-grid --set width=wide", "needs a whole number, got 'wide'");
  ExpectUserError("envs graph-motif --set motif=cicle", "needs one of");
}

TEST_F(CliTest, DiagnoseWritesRowsAndPictures) {
  const fs::path figures = folder_ / "figures";
  const fs::path record = folder_ / "diagnose.json";
  const Outcome outcome =
      Run("diagnose --json --figures " + figures.string() + " --record " + record.string() +
          " --set seeds=1 --set queries=20 --set first_seed=0");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Slurp(record), outcome.out);
  EXPECT_EQ(outcome.err, "");  // no progress line where there is no terminal
  const nlohmann::json rows = nlohmann::json::parse(outcome.out).at("rows");
  std::map<std::string, double> paper;
  for (const nlohmann::json& row : rows) {
    for (const char* key :
         {"env", "diagnostic", "score", "std", "additive_error", "weaker", "paper"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    if (row["headline"].get<bool>()) {
      EXPECT_TRUE(row["weaker"].contains("occupancy"));
      paper[row["env"]] = row["paper"];
    }
  }
  const std::map<std::string, double> expected{{"graph-motif", 0.939},
                                               {"micro-grid", 0.889},
                                               {"point-rooms", 0.867},
                                               {"dubins-reacher", 0.833}};
  EXPECT_EQ(paper, expected);
  EXPECT_TRUE(fs::exists(figures / "micro-grid.svg"));
  ExpectUserError("diagnose graph-motiv", "did you mean 'graph-motif'?");
  ExpectUserError("diagnose --set quries=3", "did you mean 'queries'?");
  ExpectUserError("diagnose --set queries=3", "must be 20 to 100000, got 3");
}

TEST_F(CliTest, PlayWritesFrames) {
  const fs::path frames = folder_ / "frames";
  const Outcome outcome =
      Run("play hopper --steps 4 --fps 125 --size 64x48 --seed 3 --video " + frames.string() + "/");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* text :
       {"steps    4\n", "return   ", "success  not defined", "frames   5 (64x48"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in " << outcome.out;
  }
  for (int i = 0; i < 5; ++i) {
    const std::string bytes = Slurp(frames / ("frame_0000" + std::to_string(i) + ".png"));
    EXPECT_EQ(bytes.substr(0, 4), "\x89PNG") << i;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(frames), fs::directory_iterator()), 5);
  // the same episode without a camera
  const Outcome unseen = Run("play hopper --steps 4 --seed 3");
  EXPECT_EQ(unseen.exit_code, 0);
  EXPECT_EQ(outcome.out.find(unseen.out), 0u) << unseen.out;
  const Outcome expert = Run("play four-rooms-sparse --policy expert --seed 1 --steps 90");
  EXPECT_NE(expert.out.find("success  yes"), std::string::npos) << expert.out;
}

TEST_F(CliTest, PlayWithoutOpenGlSaysSoAndSketches) {
  const fs::path frames = folder_ / "frames";
  const std::string arguments = " --steps 1 --fps 125 --size 64x48 --video " + frames.string();
  setenv("MUJOCO_GL", "disable", 1);
  const Outcome outcome = Run("play hopper" + arguments);
  fs::remove_all(frames);
  const Outcome wanted = Run("play hopper --sketch" + arguments);
  unsetenv("MUJOCO_GL");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err,
            "msrl: no off-screen rendering here (MUJOCO_GL=disable): drawing a sketch instead\n");
  EXPECT_NE(outcome.out.find("sketch"), std::string::npos) << outcome.out;
  EXPECT_EQ(wanted.err, "");
  EXPECT_EQ(wanted.out, outcome.out);
}

TEST_F(CliTest, PlayNamesMistakes) {
  ExpectUserError("play hoper --video x.mp4", "did you mean 'hopper'?");
  ExpectUserError("play hopper --policy expert", "expert");
  ExpectUserError("play hopper --policy clever", "clever");
  ExpectUserError("play hopper --size 64", "is no size of an image");
  ExpectUserError("play hopper --steps 0", "--steps");
  ExpectUserError("play hopper --video " + Write("a.txt", "x"), "ends in .mp4");
  ExpectUserError("play hopper --video " + (folder_ / "missing" / "a.mp4").string(),
                  "No such file or directory");
  const std::string path = std::getenv("PATH");
  const fs::path video = folder_ / "a.mp4";
  setenv("PATH", folder_.c_str(), 1);  // std::system finds /bin/sh without it
  ExpectUserError("play hopper --video " + video.string(), "it needs ffmpeg; install it");
  setenv("PATH", path.c_str(), 1);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().filename().string().find("a.mp4"), std::string::npos) << entry.path();
  }
}

TEST_F(CliTest, AFullDiskIsReported) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const std::string command =
      std::string(MSRL_BINARY) + " describe " + kExample + " >/dev/full 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(CliTest, CollectsDescribesAndPretrains) {
  const std::string train = (folder_ / "train.h5").string();
  const std::string held_out = (folder_ / "held-out.h5").string();
  const std::string branch = (folder_ / "branch.safetensors").string();
  const Outcome collected = Run("collect --out " + train + " --episodes 40 --seed 3");
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  EXPECT_NE(collected.out.find("contents "), std::string::npos) << collected.out;
  EXPECT_EQ(Run("collect --out " + held_out + " --episodes 40 --seed 3").out.substr(0, 200),
            collected.out.substr(0, 200));
  EXPECT_EQ(Run("collect --force --out " + held_out + " --episodes 20 --split held-out").exit_code,
            0);

  const Outcome described = Run("describe " + train + " --lift compact --json");
  ASSERT_EQ(described.exit_code, 0) << described.err;
  EXPECT_EQ(std::count(described.out.begin(), described.out.end(), '\n'), 40);
  const auto line = nlohmann::json::parse(described.out.substr(0, described.out.find('\n')));
  EXPECT_EQ(line["d"], 8);
  EXPECT_EQ(line["q"], 10);

  const std::string data = " --data " + train + " --held-out " + held_out;
  const Outcome outcome =
      Run("pretrain" + data + " --updates 20 --seeds 2 --first-seed 7 --json --record " +
          (folder_ / "pretrain.json").string() + " --out " + branch);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Slurp(folder_ / "pretrain.json"), outcome.out);
  const auto report = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(report["rows"].size(), 5u);
  for (const auto& row : report["rows"]) {
    for (const char* key : {"train_error", "validation_error", "rank_correlation",
                            "centred_rank_correlation", "difference_correlation"}) {
      EXPECT_TRUE(row[key].is_number()) << key;
      EXPECT_TRUE(row[std::string(key) + "_std"].is_number()) << key;
    }
    EXPECT_TRUE(row["paper"].is_object());
  }
  EXPECT_EQ(report["rows"][4]["source"], "mixed");
  EXPECT_EQ(report["rows"][4]["paper"]["rank_correlation"], 0.933);
  EXPECT_TRUE(fs::exists(folder_ / "branch-7.safetensors"));
  EXPECT_TRUE(fs::exists(folder_ / "branch-8.safetensors"));

  for (const char* control :
       {"shuffled", "unaligned", "last-state", "observation-only", "identity"}) {
    const Outcome controlled = Run("pretrain" + data + " --rows mixed --updates 2 --control " +
                                   control + " --objective shape");
    EXPECT_EQ(controlled.exit_code, 0) << controlled.err;
    EXPECT_NE(controlled.out.find(control), std::string::npos);
  }

  // what such a branch has to offer
  const std::string probe = "probe four-rooms-sparse " +
                            (folder_ / "branch-7.safetensors").string() +
                            " --steps 300 --episodes 1 --candidates 2 --horizon 1";
  const Outcome probed = Run(probe);
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  for (const char* text : {"F follows progress", "amplitude", "branch+rewards", "distance"}) {
    EXPECT_NE(probed.out.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(Run(probe).out, probed.out);
  ExpectUserError(probe + " --horizon 0", "horizon");
  ExpectUserError("probe four-rooms-sparse " + train, train);
  ExpectUserError("probe nowhere " + branch, "nowhere");
}

TEST_F(CliTest, CriticValuesAndAblatedLiftsGoFromPretrainingToTraining) {
  const std::string train = (folder_ / "train.h5").string();
  const std::string held_out = (folder_ / "held-out.h5").string();
  const std::string collect =
      "collect --episodes 4 --targets critic --critic-steps 100 --sources micro-grid --out ";
  ASSERT_EQ(Run(collect + train).exit_code, 0);
  ASSERT_EQ(Run(collect + held_out + " --split held-out").exit_code, 0);
  const std::string pretrain = "pretrain --set target=critic --set width=8 --updates 2 --data " +
                               train + " --held-out " + held_out + " --out ";
  const std::string start = "train --env four-rooms-sparse --agent msrl --steps 20 --init ";
  const auto path = [&](const std::string& name) { return (folder_ / name).string(); };
  for (const std::string lift : {"compact-no-action", "compact-no-reward"}) {
    const std::string branch = path(lift + ".safetensors");
    const Outcome made = Run(pretrain + branch + " --set lift=" + lift);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_NE(made.out.find("target critic, lift " + lift), std::string::npos) << made.out;
    const Outcome taken = Run(start + branch + " --set lift=" + lift + " --run " + path(lift));
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    ExpectUserError(start + branch + " --run " + path("refused"), "(" + lift + ")");
    EXPECT_FALSE(fs::exists(path("refused")));
  }
  const std::string whole = path("compact.safetensors");
  ASSERT_EQ(Run(pretrain + whole).exit_code, 0);
  ExpectUserError(start + whole + " --set lift=compact-no-action --run " + path("refused"),
                  "(compact)");
  ExpectUserError(pretrain + whole + " --set lift=full", "lift");
  ExpectUserError("collect --targets critic --critic-steps 0 --out " + train, "critic_steps");
  const Outcome own =
      Run("pretrain --set target=critic --critic-steps 50 --episodes 16 --updates 1");
  EXPECT_EQ(own.exit_code, 0) << own.err;
}

TEST_F(CliTest, PretrainingMistakes) {
  const std::string train = (folder_ / "train.h5").string();
  ASSERT_EQ(Run("collect --out " + train + " --episodes 4 --targets mc").exit_code, 0);
  ExpectUserError("collect --out " + (folder_ / "a.txt").string(), ".h5");
  ExpectUserError("collect --out " + train, "is there already; --force replaces it");
  ExpectUserError("collect --force --out " + train + " --sources micro-gird", "did you mean");
  EXPECT_FALSE(fs::exists(train + ".work"));
  ExpectUserError("pretrain --data " + train, "--held-out");
  ExpectUserError("pretrain --set target=mc --data " + train + " --held-out " + train, "split");
  ExpectUserError("pretrain --control nonsense", "nonsense");
  ExpectUserError("pretrain --objective other", "other");
  ExpectUserError("pretrain --set wdth=3", "did you mean");
  ExpectUserError("pretrain --episodes 4 --rows mixd", "did you mean");
  ExpectUserError("pretrain --set oracle=both --out b.safetensors", "oracle");
  const std::string damaged = Write("damaged.h5", Slurp(train).substr(0, 5000));
  ExpectUserError("describe " + damaged, "damaged");

  // a number that is none, in a file as another program may write it: without our checksum
  const Eigen::MatrixXf geometry = ReadEpisodes(train).episodes.back().geometry;
  std::string bytes = Slurp(train).substr(512);
  const std::string_view column(reinterpret_cast<const char*>(geometry.col(1).data()),
                                sizeof(float) * static_cast<std::size_t>(geometry.rows()));
  const std::size_t at = bytes.find(column);
  ASSERT_NE(at, std::string::npos);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  bytes.replace(at, sizeof bad, reinterpret_cast<const char*>(&bad), sizeof bad);
  const std::string nan = Write("nan.h5", bytes);
  ExpectUserError("pretrain --data " + nan + " --held-out " + nan, "a number is not finite");
  ExpectUserError("pretrain --set target=mc --data " + train + " --held-out " + nan,
                  "a number is not finite");
}

TEST_F(CliTest, LibrariesAreBuiltMinedAndShown) {
  const std::string data = (folder_ / "data.h5").string();
  const std::string library = (folder_ / "library.safetensors").string();
  ASSERT_EQ(Run("collect --targets mc --episodes 40 --seed 3 --out " + data).exit_code, 0);
  const std::string from = " --data " + data + " --out " + library;
  const Outcome built = Run("library build --family micro-grid --length 2 --stride 2" + from);
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_NE(built.out.find("from 10 episodes of micro-grid"), std::string::npos) << built.out;
  const std::string first_bytes = Slurp(library);
  Run("library build --force --family micro-grid --length 2 --stride 2" + from);
  EXPECT_EQ(Slurp(library), first_bytes);

  const auto shown = nlohmann::json::parse(Run("library show --json " + library).out);
  EXPECT_EQ(shown["family"], "micro-grid");
  EXPECT_EQ(shown["policy"], "fifo");
  EXPECT_EQ(shown["envs"]["micro-grid"], shown["segments"]);
  EXPECT_EQ(shown["lengths"]["2"], shown["segments"]);
  EXPECT_GT(shown["segments"], 20);
  EXPECT_EQ(shown["episodes"], 10);
  EXPECT_LE(shown["reward_sum"]["q25"], shown["reward_sum"]["median"]);
  EXPECT_TRUE(shown["most_reused"].empty());
  EXPECT_NE(Run("library show " + library).out.find("length 2"), std::string::npos);

  const Outcome near = Run("library nearest --json -k 3 --slot 5 " + library);
  ASSERT_EQ(near.exit_code, 0) << near.err;
  const auto list = nlohmann::json::parse(near.out);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["distance"], 0.0);
  EXPECT_LE(list[1]["distance"], list[2]["distance"]);
  std::string context;
  for (const auto& number : list[0]["context"]) {
    context += (context.empty() ? "" : ", ") + number.dump();
  }
  EXPECT_EQ(Run("library nearest --json -k 3 --context '" + context + "' " + library).out,
            near.out);
  EXPECT_NE(Run("library nearest --slot 5 " + library).out.find("head action"), std::string::npos);

  const Outcome mined = Run(
      "library mine --force --json --family graph-motif --length 2,3 --radius 2 --min-episodes 2" +
      from);
  ASSERT_EQ(mined.exit_code, 0) << mined.err;
  const auto motifs = nlohmann::json::parse(mined.out);
  ASSERT_FALSE(motifs.empty());
  for (const auto& motif : motifs) EXPECT_GE(motif["episodes"], 2);
  EXPECT_EQ(nlohmann::json::parse(Run("library show --json " + library).out)["segments"],
            motifs.size());
  const Outcome best =
      Run("library build --force --family graph-motif --best 0.3 --policy by-value" + from);
  EXPECT_NE(best.out.find("from 3 episodes"), std::string::npos) << best.out;
}

// As an agent that keeps a library would have saved it.
TEST_F(CliTest, LibraryOfARunIsShown) {
  const fs::path run = folder_ / "run";
  ASSERT_EQ(Run("train --env four-rooms-sparse --agent random --steps 50 --run " + run.string())
                .exit_code,
            0);
  const std::string data = (folder_ / "data.h5").string();
  const std::string path = (folder_ / "library.safetensors").string();
  ASSERT_EQ(Run("collect --targets mc --episodes 4 --out " + data).exit_code, 0);
  ASSERT_EQ(Run("library build --family micro-grid --data " + data + " --out " + path).exit_code,
            0);
  SegmentLibrary library = SegmentLibrary::LoadFile(path);
  library.NoteUse(3);
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    const TensorFile file = TensorFile::Read(entry.path());
    TensorFileBuilder builder;
    for (const auto& [key, value] : file.metadata()) {
      if (key != "msrl_xxh64") builder.SetMetadata(key, value);
    }
    for (const TensorInfo& info : file.tensors()) {
      if (info.type == TensorType::kU8)
        builder.Add(info.name, file.U8(info.name, info.shape), info.shape);
      if (info.type == TensorType::kI64)
        builder.Add(info.name, file.I64(info.name, info.shape), info.shape);
      if (info.type == TensorType::kF32)
        builder.Add(info.name, file.F32(info.name, info.shape), info.shape);
      if (info.type == TensorType::kF64)
        builder.Add(info.name, file.F64(info.name, info.shape), info.shape);
    }
    Archive(builder).Child("agent").Child("library").Save(library);
    builder.Write(entry.path());
  }
  const Outcome shown = Run("library show --json " + run.string());
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["segments"], library.size());
  EXPECT_EQ(json["most_reused"][0]["slot"], 3);
  EXPECT_EQ(json["most_reused"][0]["uses"], 1);
  EXPECT_EQ(Run("library nearest --json -k 1 --slot 2 " + run.string()).out,
            Run("library nearest --json -k 1 --slot 2 " + path).out);
}

TEST_F(CliTest, LibraryMistakes) {
  const std::string data = (folder_ / "data.h5").string();
  const std::string library = (folder_ / "library.safetensors").string();
  ASSERT_EQ(Run("collect --targets mc --episodes 8 --out " + data).exit_code, 0);
  const std::string from = " --data " + data + " --out " + library;
  ExpectUserError("library", "library needs a command");
  ExpectUserError("library shwo x", "did you mean 'show'?");
  ExpectUserError("library build" + from, "choose one with --family");
  ExpectUserError("library build --family micro-gird" + from, "did you mean 'micro-grid'?");
  ExpectUserError("library build --family micro-grid --polcy fifo" + from,
                  "did you mean '--policy'?");
  ExpectUserError("library build --family micro-grid --policy lifo" + from, "lifo");
  ExpectUserError("library build --family micro-grid --length 0" + from, "length");
  ExpectUserError("library build --family micro-grid --capacity 0" + from, "0 segments");
  ExpectUserError("library mine --family micro-grid --radius=-1" + from, "radius");
  EXPECT_FALSE(fs::exists(library));
  ASSERT_EQ(Run("library build --family micro-grid" + from).exit_code, 0);
  ExpectUserError("library nearest " + library, "--slot N or --context");
  ExpectUserError("library nearest --slot 100000 " + library, "is empty");
  ExpectUserError("library nearest --context 1,2 " + library, "2 numbers");
  ExpectUserError("library nearest --context 1,x " + library, "'1,x'");
  ExpectUserError("library show " + Write("cut.safetensors", Slurp(library).substr(0, 3000)),
                  "cut.safetensors");
  ExpectUserError("library show " + data, "data.h5");
  ExpectUserError("library show " + folder_.string(), folder_.string());
  const std::string run = (folder_ / "run").string();
  ASSERT_EQ(Run("train --env four-rooms-sparse --agent random --steps 50 --run " + run).exit_code,
            0);
  ExpectUserError("library show " + run, "'random' keeps no segment library");
}

}  // namespace
}  // namespace msrl
