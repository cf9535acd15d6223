// The real command in a folder of its own: what it says, how it ends, and what it takes.
#ifndef MSRL_TESTS_COMMAND_TEST_H_
#define MSRL_TESTS_COMMAND_TEST_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "msrl/testing/slurp.h"

namespace msrl {

using ::msrl::testing::Slurp;

using Arguments = std::vector<std::string>;

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Arguments With(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The exit code, or minus the signal; `prepare` runs in the child before the command does.
  int Run(
      const Arguments& arguments, const std::function<void()>& prepare = [] {}) {
    Arguments words{MSRL_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      const int flags = O_WRONLY | O_CREAT | O_TRUNC;
      dup2(open((folder_ / "out").c_str(), flags, 0600), STDOUT_FILENO);
      dup2(open((folder_ / "err").c_str(), flags, 0600), STDERR_FILENO);
      prepare();
      execv(argv[0], argv.data());
      _exit(127);
    }
    int status = 0;
    struct rusage usage {};
    wait4(child, &status, 0, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    megabytes_ = static_cast<double>(usage.ru_maxrss) / 1000.0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string Out() const { return Slurp(folder_ / "out"); }
  std::string Err() const { return Slurp(folder_ / "err"); }
  std::string At(const std::string& name) const { return (folder_ / name).string(); }
  // One short line about it.
  void ExpectMistake(const Arguments& arguments, const std::string& what, int code = 2) {
    EXPECT_EQ(Run(arguments), code) << Err();
    const std::string err = Err();
    EXPECT_NE(err.find(what), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_LT(err.size(), 1000U);
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("msrl_command_" + std::to_string(getpid()) + "_" +
       ::testing::UnitTest::GetInstance()->current_test_info()->name());
  double seconds_ = 0.0, megabytes_ = 0.0;  // of the last command
};

}  // namespace msrl

#endif  // MSRL_TESTS_COMMAND_TEST_H_
