#include "msrl/run/lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>

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
  EXPECT_FALSE(Lease::HolderOf(file_, LeaseOf::kFile));
  {
    const Lease lease(file_, "it is held by", LeaseOf::kFile);
    const auto holder = Lease::HolderOf(file_, LeaseOf::kFile);
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->process, getpid());
    EXPECT_FALSE(holder->since.empty());
    try {
      const Lease second(file_, "it is held by", LeaseOf::kFile);
      FAIL() << "two holders";
    } catch (const LeaseError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("it is held by process " + std::to_string(getpid()) + " on "), 0U)
          << text;
    }
  }
  EXPECT_FALSE(Lease::HolderOf(file_, LeaseOf::kFile));
  const Lease again(file_, "it is held by", LeaseOf::kFile);
}

TEST_F(LeaseTest, EndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Lease lease(file_, "held", LeaseOf::kFile);
    static_cast<void>(!write(ready[1], "x", 1));
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(Lease::HolderOf(file_, LeaseOf::kFile)->process, child);
  EXPECT_THROW(Lease(file_, "held", LeaseOf::kFile), LeaseError);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(Lease::HolderOf(file_, LeaseOf::kFile));
  const Lease lease(file_, "held", LeaseOf::kFile);
  EXPECT_EQ(Lease::HolderOf(file_, LeaseOf::kFile)->process, getpid());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(LeaseTest, LooksAreNotInTheWay) {
  // many look while one takes and gives back: it always succeeds
  const pid_t looker = fork();
  if (looker == 0) {
    for (;;) static_cast<void>(Lease::HolderOf(file_, LeaseOf::kFile));
  }
  int taken = 0;
  for (int k = 0; k < 200; ++k) {
    try {
      const Lease lease(file_, "held", LeaseOf::kFile);
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
  EXPECT_FALSE(Lease::HolderOf(file_, LeaseOf::kFile));
  EXPECT_EQ(LeaseHolder{}.Describe(), "another process");
}

TEST_F(LeaseTest, AnUnwritablePlaceIsAMistake) {
  EXPECT_THROW(Lease("/proc/none/lock", "held", LeaseOf::kFile), UserError);
}

class FolderLeaseTest : public LeaseTest {
 protected:
  void SetUp() override {
    LeaseTest::SetUp();
    fs::create_directory(file_);
    lock_ = file_ / "lock";
  }
  void TearDown() override { fs::remove_all(file_); }
  fs::path lock_;
};

TEST_F(FolderLeaseTest, RemovingTheFileLetsNobodyIn) {
  std::optional<Lease> lease(std::in_place, lock_, "held by", LeaseOf::kFolder);
  EXPECT_EQ(Lease::HolderOf(lock_, LeaseOf::kFolder)->process, getpid());
  fs::remove(lock_);
  EXPECT_THROW(Lease(lock_, "held by", LeaseOf::kFolder), LeaseError);
  EXPECT_THROW(Lease(lock_, "held by", LeaseOf::kFolder), LeaseError);  // with a new file there
  ASSERT_TRUE(Lease::HolderOf(lock_, LeaseOf::kFolder));
  EXPECT_EQ(Lease::HolderOf(lock_, LeaseOf::kFolder)->Describe(), "another process");
  lease->RequireHeld();
  lease.reset();
  EXPECT_FALSE(Lease::HolderOf(lock_, LeaseOf::kFolder));
  const Lease next(lock_, "held by", LeaseOf::kFolder);
}

// As where folders cannot be locked: the one before notices.
TEST_F(FolderLeaseTest, WithoutALockedFolderTheHolderNotices) {
  const Lease lease(lock_, "held by", LeaseOf::kFile);
  lease.RequireHeld();
  fs::remove(lock_);
  EXPECT_THROW(lease.RequireHeld(), LeaseError);
  const Lease second(lock_, "held by", LeaseOf::kFile);
  second.RequireHeld();
  EXPECT_THROW(lease.RequireHeld(), LeaseError);
}

TEST_F(FolderLeaseTest, ALinkIsRefusedAndItsTargetUntouched) {
  const fs::path victim = file_ / "victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink("victim", lock_);
  for (const LeaseOf of : {LeaseOf::kFile, LeaseOf::kFolder}) {
    try {
      const Lease lease(lock_, "held by", of);
      FAIL() << "locked through a link";
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), "cannot write " + lock_.string() + ": it is a link");
    }
    EXPECT_FALSE(Lease::HolderOf(lock_, of));
  }
  EXPECT_EQ(fs::file_size(victim), 8U);
}

}  // namespace
}  // namespace msrl
