#include "msrl/files/limited_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/sanitizers.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;

std::string Child(const std::function<void()>& work) {
  return InLimitedChild("it", {.memory = 50'000'000, .seconds = 1}, [&work] {
    work();
    return "done";
  });
}
std::string Problem(const std::function<void()>& work) {
  return UserErrorText([&work] { Child(work); });
}

TEST(LimitedChild, OnlyWhatIsReturnedComesBack) {
  int done = 0;
  EXPECT_EQ(Child([&done] { ++done; }), "done");
  EXPECT_EQ(done, 0);  // in the child alone
  std::string much(20'000'000, 'x');
  much[12'345'678] = '\0';
  EXPECT_TRUE(InLimitedChild("it", {.memory = 50'000'000}, [&much] { return much; }) == much);
  EXPECT_EQ(InLimitedChild("it", {.memory = 50'000'000}, [] { return ""; }), "");
}

// A lock belongs to all who have the file open: a child would keep that of a parent that is gone.
TEST(LimitedChild, HasNoneOfOurFiles) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_GE(fcntl(file, F_GETFD), 0);
  EXPECT_EQ(Problem([file] {
              if (fcntl(file, F_GETFD) < 0) throw UserError("closed");
            }),
            "closed");
  close(file);
}

TEST(LimitedChild, WhatIsWrongIsToldAsItIs) {
  EXPECT_EQ(Problem([] { throw UserError("it: not for us"); }), "it: not for us");
  const std::string longer(100'000, 'x');
  EXPECT_EQ(Problem([&longer] { throw UserError(longer); }), longer);
}

TEST(LimitedChild, ACrashIsAnError) {
  EXPECT_NE(Problem([] { std::raise(SIGSEGV); }).find("crashes"), std::string::npos);
  EXPECT_NE(Problem([] { std::abort(); }).find("crashes"), std::string::npos);
  EXPECT_NE(Problem([] { throw 1; }).find("crashes"), std::string::npos);
}

TEST(LimitedChild, TimeIsLimited) {
  EXPECT_EQ(Problem([] {
              for (volatile bool go = true; go;) {
              }
            }),
            "it: reading it takes more than 1 s");
}

// Whoever took the child over can send for ever.
TEST(LimitedChild, AnswersAreLimited) {
  const std::string much(3'000'000, 'x');
  EXPECT_NE(UserErrorText(
                [&much] { InLimitedChild("it", {.memory = 1'000'000}, [&much] { return much; }); }),
            "no error");
}

#if !defined(MSRL_ADDRESS_SANITIZER)  // which needs more of both
TEST(LimitedChild, MemoryIsLimited) {
  EXPECT_EQ(Child([] { std::vector<char>(20'000'000, 'x'); }), "done");
  EXPECT_EQ(Problem([] { std::vector<char>(200'000'000, 'x'); }),
            "it: reading it takes more than 50 MB of memory");
}

TEST(LimitedChild, NoFileIsOpenedOrWritten) {
  const std::string path = "/tmp/msrl_child_" + std::to_string(getpid());
  Child([&path] {
    if (open(path.c_str(), O_WRONLY | O_CREAT, 0600) >= 0) throw UserError("made a file");
    if (open("/etc/passwd", O_RDONLY) >= 0) throw UserError("read a file");
  });
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}
#endif

}  // namespace
}  // namespace msrl
