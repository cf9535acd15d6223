// Hostile files and directories, as a user meets them: the real command ends with one line and exit
// code 2, soon and with little memory, and nothing outside of what it was given is touched.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "msrl/core/sanitizers.h"
#include "tests/command_test.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

void Spill(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class AttackTest : public CommandTest {
 protected:
  // Refused on top of what it takes to say the version, in processor time.
  void ExpectCheapMistake(const Arguments& arguments, const std::string& what, int code = 2) {
    Run({"--version"});
    const double seconds = seconds_, megabytes = megabytes_;
    ExpectMistake(arguments, what, code);
#if !defined(MSRL_ADDRESS_SANITIZER)
    EXPECT_LT(seconds_ - seconds, 0.1) << arguments[0];
    EXPECT_LT(megabytes_ - megabytes, 64.0) << arguments[0];
#else
    static_cast<void>(seconds);
    static_cast<void>(megabytes);
#endif
  }
  void Train(const std::string& name, int steps = 200) {
    ASSERT_EQ(Run({"train", "--env", "four-rooms-sparse", "--agent", "random", "--steps",
                   std::to_string(steps), "--run", At(name)}),
              0)
        << Err();
  }
  void Copy(const std::string& from, const std::string& to) const {
    fs::create_directories((folder_ / to).parent_path());
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
  }
};

TEST_F(AttackTest, DeepJsonIsRefused) {
  Train("good");
  const std::string deep = Nested(100'000);
  for (const std::string& text : {deep, R"({"format":"msrl-run","format_version":)" + deep + "}",
                                  std::string(300'000, '{')}) {
    fs::remove_all(folder_ / "bad");
    Copy("good", "bad");
    Spill(folder_ / "bad" / "run.json", text);
    for (const Arguments& command :
         {Arguments{"resume"}, {"eval"}, {"inspect"}, {"library", "show"}}) {
      Arguments words = command;
      words.push_back(At("bad"));
      ExpectCheapMistake(words, "run.json is damaged: values nested deeper than 64");
    }
  }
}

TEST_F(AttackTest, OneBadRunDoesNotEndTheReport) {
  Train("good");
  const std::string deep = Nested(100'000);
  Copy("good", "runs/good");
  int bad = 0;
  for (const char* file : {"run.json", "status.json", "evals.jsonl", "manifest.json"}) {
    for (const std::string& text :
         {deep + "\n", "{\"format\":\"msrl-run\",\"step\":0,\"state\":" + deep +
                           ",\"format_version\":" + deep + "}\n"}) {
      const std::string name = "runs/bad" + std::to_string(++bad);
      Copy("good", name);
      if (std::string(file) != "manifest.json") fs::remove(folder_ / name / "manifest.json");
      Spill(folder_ / name / file, text);
    }
  }
  ASSERT_EQ(Run({"report", At("runs"), "--no-exhibits"}), 0) << Err();
  const std::string out = Slurp(folder_ / "out");
  EXPECT_NE(out.find("8 damaged"), std::string::npos) << out;
  for (int i = 1; i <= bad; ++i) {
    EXPECT_NE(out.find("bad" + std::to_string(i) + ": "), std::string::npos) << out;
  }
}

TEST_F(AttackTest, ARunThatWasChangedByHandIsNamed) {
  Train("runs/a");
  const fs::path evals = folder_ / "runs" / "a" / "evals.jsonl";
  std::string text = Slurp(evals);
  text.replace(text.find("\"mean_length\":"), 14, "\"mean_lengtH\":");
  Spill(evals, text);
  ASSERT_EQ(Run({"report", At("runs"), "--no-exhibits"}), 0) << Err();
  EXPECT_NE(Slurp(folder_ / "out").find("changed after the run had finished: evals.jsonl"),
            std::string::npos)
      << Slurp(folder_ / "out");
  ExpectMistake({"resume", At("runs/a")}, "changed after the run had finished: evals.jsonl");
}

TEST_F(AttackTest, DeepTomlIsRefused) {
  std::string dotted = "a";
  for (int i = 0; i < 300'000; ++i) dotted += ".a";
  Spill(folder_ / "dotted.toml", dotted + " = 1\n");
  Spill(folder_ / "nested.toml", "a = " + Nested(100'000) + "\n");
  ExpectCheapMistake({"sweep", At("dotted.toml"), "--out", At("out-folder")},
                     ":1: more than 16 dots");
  ExpectCheapMistake({"sweep", At("nested.toml"), "--out", At("out-folder")}, ":1: not TOML");
  EXPECT_FALSE(fs::exists(folder_ / "out-folder"));
}

TEST_F(AttackTest, LargeTensorFilesAreRefusedByTheirHeader) {
  Train("good");
  const auto file = [this](const std::string& name, const std::string& header, off_t size) {
    const std::uint64_t length = header.size();
    Spill(folder_ / name, std::string(reinterpret_cast<const char*>(&length), 8) + header);
    ASSERT_EQ(truncate(At(name).c_str(), size), 0);
  };
  const std::string one =
      R"({"a":{"dtype":"U8","shape":[20000000000],"data_offsets":[0,20000000000]}})";
  file("zeros", "", off_t{30} << 30);
  file("right-size", one, static_cast<off_t>(8 + one.size()) + 20'000'000'000);
  std::string many = "{";
  for (int i = 0; i < 120'000; ++i) {
    many += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  file("many", many, static_cast<off_t>(8 + many.size()));
  for (const char* name : {"zeros", "right-size", "many"}) {
    ExpectCheapMistake({"library", "show", At(name)}, name);
    ExpectCheapMistake({"inspect", At(name)}, name);
    const Arguments train{"train",   "--env", "reacher", "--agent", "msrl",
                          "--steps", "10",    "--run",   At("new")};
    for (const char* option : {"--init", "--library"}) {
      Arguments words = train;
      words.insert(words.end(), {option, At(name)});
      ExpectCheapMistake(words, name);
    }
    // as a checkpoint, by its name the newest
    fs::remove_all(folder_ / "bad");
    Copy("good", "bad");
    fs::create_symlink(folder_ / name, folder_ / "bad/checkpoints/step-0000000009999.safetensors");
    EXPECT_EQ(Run({"eval", At("bad"), "--episodes", "1"}), 0) << Err();
    EXPECT_NE(Err().find("trying the one before"), std::string::npos) << Err();
#if !defined(MSRL_ADDRESS_SANITIZER)
    EXPECT_LT(seconds_, 2.0);
#endif
  }
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(AttackTest, WhatIsThereIsNotReplaced) {
  Train("runs/a");
  ASSERT_EQ(Run({"collect", "--out", At("data.h5"), "--episodes", "8", "--targets", "mc"}), 0);
  const std::vector<Arguments> commands{
      {"report", At("runs"), "--no-exhibits", "--json"},
      {"report", At("runs"), "--no-exhibits", "--latex"},
      {"collect", "--episodes", "8", "--targets", "mc", "--out"},
      {"library", "build", "--data", At("data.h5"), "--family", "micro-grid", "--out"},
      {"pretrain", "--episodes", "80", "--set", "target=mc", "--updates", "2", "--rows", "mixed",
       "--set", "width=8", "--set", "batch=4", "--out"}};
  for (const Arguments& command : commands) {
    const auto with = [&command](const std::string& file, bool force) {
      Arguments words = command;
      words.push_back(file);
      if (force) words.emplace_back("--force");
      return words;
    };
    const std::string file = At("result.h5");
    Spill(file, "precious");
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
    ExpectMistake(with(file, false), "result.h5 is there already; --force replaces it");
    EXPECT_EQ(Slurp(file), "precious");
    ASSERT_EQ(Run(with(file, true)), 0) << command[0] << Err();
    EXPECT_NE(Slurp(file), "precious");
    struct stat info {};
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U) << command[0];
    // nor does a folder of work that somebody left make it ours
    if (command[0] == "collect" || command[0] == "pretrain") {
      Spill(file, "precious");
      fs::create_directory(file + ".work");
      ExpectMistake(with(file, false), "result.h5 is there already; --force replaces it");
      EXPECT_EQ(Slurp(file), "precious");
      fs::remove_all(file + ".work");
    }
    // not even by force: a link, a device, a pipe
    Spill(folder_ / "victim", "precious");
    fs::create_symlink(folder_ / "victim", folder_ / "link.h5");
    ASSERT_EQ(mkfifo(At("pipe.h5").c_str(), 0600), 0);
    ExpectMistake(with(At("link.h5"), true), "it is a link");
    ExpectMistake(with(At("pipe.h5"), true), "it is a pipe");
    EXPECT_EQ(Slurp(folder_ / "victim"), "precious");
    EXPECT_TRUE(fs::is_symlink(folder_ / "link.h5"));
    for (const char* left : {"link.h5", "pipe.h5", "result.h5"}) fs::remove(folder_ / left);
  }
  EXPECT_FALSE(fs::exists(folder_ / "result.h5.work"));
}

TEST_F(AttackTest, AFolderOfWorkKeepsWhatOthersPutThere) {
  const Arguments collect{"collect", "--episodes", "8", "--targets", "mc"};
  ASSERT_EQ(Run(With(collect, {"--out", At("data.h5")})), 0) << Err();
  ASSERT_EQ(Run(With(collect, {"--out", At("held.h5"), "--split", "held-out"})), 0) << Err();
  const Arguments pretrain{"pretrain",  "--data", At("data.h5"), "--held-out", At("held.h5"),
                           "--updates", "2",      "--set",       "target=mc"};
  const auto spill = [this](const std::string& work) {
    fs::create_directories(folder_ / work);
    Spill(folder_ / work / "thesis.tex", "years of work");
    Spill(folder_ / work / "mixed-0.safetensors", "an artefact");
  };
  const auto expect_all = [this](const std::string& work) {
    EXPECT_EQ(Slurp(folder_ / work / "thesis.tex"), "years of work");
    EXPECT_EQ(Slurp(folder_ / work / "mixed-0.safetensors"), "an artefact");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / work), fs::directory_iterator()), 2);
  };
  const Arguments small{"--rows", "mixed", "--set", "width=8", "--set", "batch=4"};
  spill("notes");
  ASSERT_EQ(
      Run(With(With(pretrain, small), {"--out", At("b.safetensors"), "--work", At("notes/")})), 0)
      << Err();
  expect_all("notes");
  fs::create_directory_symlink(folder_ / "notes", folder_ / "link");
  ASSERT_EQ(Run(With(With(pretrain, small), {"--out", At("c.safetensors"), "--work", At("link")})),
            0)
      << Err();
  expect_all("notes");
  spill("d.h5.work");
  ASSERT_EQ(Run(With(collect, {"--out", At("d.h5")})), 0) << Err();
  expect_all("d.h5.work");
  // work on something else is not thrown away
  Spill(folder_ / "d.h5.work" / "0123456789abcdef-0.work.h5", "hours of work");
  ExpectMistake(With(collect, {"--out", At("d.h5"), "--force"}),
                "what a collection with other options has done so far");
  EXPECT_EQ(Slurp(folder_ / "d.h5.work" / "0123456789abcdef-0.work.h5"), "hours of work");
  // nor does a folder that is there let a comparison replace its record
  Spill(folder_ / "notes.json", "precious");
  ExpectMistake(With(pretrain, {"--compare", "uvfa", "--set", "windows=1", "--record",
                                At("notes.json"), "--work", At("notes")}),
                "notes.json is there already; --force replaces it");
  EXPECT_EQ(Slurp(folder_ / "notes.json"), "precious");
}

TEST_F(AttackTest, AFilmReplacesOnlyByForce) {
  Spill(folder_ / "film.gif", "precious");
  const Arguments play{"play", "reacher", "--video", At("film.gif"), "--steps",
                       "2",    "--size",  "64x48",   "--sketch"};
  ExpectMistake(play, "film.gif is there already; --force replaces it");
  EXPECT_EQ(Slurp(folder_ / "film.gif"), "precious");
}

TEST_F(AttackTest, RunsAndSweepsAreNotReachedThroughLinks) {
  Train("run");
  Spill(folder_ / "victim", "precious");
  fs::remove(folder_ / "run" / "lock");
  fs::create_symlink("../victim", folder_ / "run" / "lock");
  ExpectMistake({"resume", At("run"), "--steps", "300"}, "lock: it is a link");
  EXPECT_EQ(Slurp(folder_ / "victim"), "precious");
  Spill(folder_ / "small.toml",
        "[sweep]\nname = \"s\"\nseeds = \"1\"\nsteps = 100\n[[env]]\nid = \"four-rooms-sparse\"\n"
        "[[method]]\nname = \"random\"\nagent = \"random\"\n");
  fs::create_directories(folder_ / "outside");
  for (const char* part : {"logs", "four-rooms-sparse"}) {
    fs::remove_all(folder_ / "sweep");
    fs::create_directory(folder_ / "sweep");
    fs::create_symlink("../outside", folder_ / "sweep" / part);
    EXPECT_NE(Run({"sweep", At("small.toml"), "--out", At("sweep")}), 0);
    EXPECT_NE((Err() + Slurp(folder_ / "out")).find("it is a link"), std::string::npos)
        << part << Err();
    EXPECT_TRUE(fs::is_empty(folder_ / "outside")) << part;
  }
}

TEST_F(AttackTest, AnotherCommitIsNotLaundered) {
  Train("run");
  const fs::path file = folder_ / "run" / "run.json";
  auto json = nlohmann::ordered_json::parse(Slurp(file));
  json["commit"] = json["made_by"][0]["commit"] = "0123456789ab";
  Spill(file, json.dump(2));
  fs::remove(folder_ / "run" / "manifest.json");
  const Arguments resume{"resume", At("run"), "--steps", "300"};
  Arguments strict = resume;
  strict.emplace_back("--same-version");
  ExpectMistake(strict, "was made by msrl");
  EXPECT_EQ(nlohmann::ordered_json::parse(Slurp(file)), json);
  ASSERT_EQ(Run(resume), 0) << Err();
  EXPECT_NE(Err().find("was made by msrl"), std::string::npos) << Err();
  const auto after = nlohmann::ordered_json::parse(Slurp(file));
  EXPECT_EQ(after.at("commit"), "0123456789ab");
  ASSERT_EQ(after.at("made_by").size(), 2U);
  EXPECT_EQ(after.at("made_by")[1].at("from_step"), 200);
}

TEST_F(AttackTest, NumbersAndNamesAtTheEdge) {
  Train("runs/a");
  ASSERT_EQ(Run({"collect", "--out", At("data.h5"), "--episodes", "8", "--targets", "mc"}), 0);
  const Arguments build{"library",  "build",      "--data", At("data.h5"),
                        "--family", "micro-grid", "--out",  At("new.safetensors")};
  const auto with = [](Arguments words, const Arguments& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  ExpectMistake(with(build, {"--length", "9223372036854775807"}), "nothing was written");
  ExpectMistake(with(build, {"--seed", "-1"}), "--seed");
  ExpectMistake({"eval", At("runs/a"), "--seed", "-1"}, "--seed");
  EXPECT_FALSE(fs::exists(folder_ / "new.safetensors"));
  const std::string name(250, 'n');
  EXPECT_EQ(Run({"report", At("runs"), "--no-exhibits", "--json", At(name)}), 0) << Err();
  EXPECT_TRUE(fs::exists(folder_ / name));
}

#if !defined(MSRL_ADDRESS_SANITIZER)
TEST_F(AttackTest, TooLittleMemoryIsSaid) {
  Train("good");
  const auto little = [] {
    const struct rlimit limit { std::uint64_t{1} << 30, std::uint64_t{1} << 30 };
    setrlimit(RLIMIT_AS, &limit);
  };
  EXPECT_EQ(Run({"train", "--env", "reacher", "--agent", "sac", "--steps", "10", "--set",
                 "replay_size=100000000", "--run", At("new")},
                little),
            8);
  EXPECT_NE(Err().find("a replay of 100000000 states needs "), std::string::npos) << Err();
  EXPECT_EQ(Run({"train", "--env", "reacher", "--agent", "sac", "--steps", "10", "--set",
                 "hidden_width=8192", "--set", "hidden_layers=16", "--run", At("wide")},
                little),
            8);
  EXPECT_NE(Err().find(" weights needs "), std::string::npos) << Err();
  EXPECT_NE(Err().find(" are available"), std::string::npos) << Err();
}
#endif

}  // namespace
}  // namespace msrl
