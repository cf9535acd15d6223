#include "msrl/run/lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace msrl {
namespace {

namespace fs = std::filesystem;

class LeaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = fs::temp_directory_path() /
            ("msrl_lease_" + std::to_string(getpid()) +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { fs::remove(file_); }
  fs::path file_;
};

TEST_F(LeaseTest, HasOneHolderWhoIsNamed) {
  EXPECT_FALSE(Lease::HolderOf(file_));
  {
    const Lease lease(file_, "it is held by");
    const auto holder = Lease::HolderOf(file_);
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->process, getpid());
    EXPECT_FALSE(holder->since.empty());
    try {
      const Lease second(file_, "it is held by");
      FAIL() << "two holders";
    } catch (const LeaseError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("it is held by process " + std::to_string(getpid()) + " on "), 0U)
          << text;
    }
  }
  EXPECT_FALSE(Lease::HolderOf(file_));
  const Lease again(file_, "it is held by");
}

TEST_F(LeaseTest, EndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Lease lease(file_, "held");
    static_cast<void>(!write(ready[1], "x", 1));
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(Lease::HolderOf(file_)->process, child);
  EXPECT_THROW(Lease(file_, "held"), LeaseError);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(Lease::HolderOf(file_));
  const Lease lease(file_, "held");
  EXPECT_EQ(Lease::HolderOf(file_)->process, getpid());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(LeaseTest, LooksAreNotInTheWay) {
  // many look while one takes and gives back: it always succeeds
  const pid_t looker = fork();
  if (looker == 0) {
    for (;;) static_cast<void>(Lease::HolderOf(file_));
  }
  int taken = 0;
  for (int k = 0; k < 200; ++k) {
    try {
      const Lease lease(file_, "held");
      ++taken;
    } catch (const LeaseError&) {
    }
  }
  kill(looker, SIGKILL);
  waitpid(looker, nullptr, 0);
  EXPECT_EQ(taken, 200);
}

TEST_F(LeaseTest, AForeignFileNamesNobody) {
  std::ofstream(file_) << "not JSON";
  EXPECT_FALSE(Lease::HolderOf(file_));
  EXPECT_EQ(LeaseHolder{}.Describe(), "another process");
}

TEST_F(LeaseTest, AnUnwritablePlaceIsAMistake) {
  EXPECT_THROW(Lease("/proc/none/lock", "held"), UserError);
}

}  // namespace
}  // namespace msrl
