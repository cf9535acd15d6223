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

std::string Problem(const std::function<void()>& work) {
  return UserErrorText([&] { RequireHarmless("it", {.memory = 50'000'000, .seconds = 1}, work); });
}

TEST(LimitedChild, GoodWorkIsGood) {
  int done = 0;
  RequireHarmless("it", {.memory = 50'000'000}, [&done] { ++done; });
  EXPECT_EQ(done, 0);  // in the child alone
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

#if !defined(MSRL_ADDRESS_SANITIZER)  // which needs more of both
TEST(LimitedChild, MemoryIsLimited) {
  RequireHarmless("it", {.memory = 50'000'000}, [] { std::vector<char>(20'000'000, 'x'); });
  EXPECT_EQ(Problem([] { std::vector<char>(200'000'000, 'x'); }),
            "it: reading it takes more than 50 MB of memory");
}

TEST(LimitedChild, NoFileIsOpenedOrWritten) {
  const std::string path = "/tmp/msrl_child_" + std::to_string(getpid());
  RequireHarmless("it", {.memory = 50'000'000}, [&path] {
    if (open(path.c_str(), O_WRONLY | O_CREAT, 0600) >= 0) throw UserError("made a file");
    if (open("/etc/passwd", O_RDONLY) >= 0) throw UserError("read a file");
  });
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}
#endif

}  // namespace
}  // namespace msrl
