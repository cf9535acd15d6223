#include "msrl/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "msrl/core/check.h"

namespace msrl {
namespace {

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("msrl_atomic_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::size_t FileCount() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(AtomicFileTest, WritesAndReplaces) {
  const auto path = folder_ / "result";
  WriteFileAtomically(path, "one");
  WriteFileAtomically(path, std::string(3'000'000, 'x'));
  EXPECT_EQ(ReadWholeFile(path, 1u << 30), std::string(3'000'000, 'x'));
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, FailureLeavesTheOldFileAndNothingElse) {
  const auto path = folder_ / "result";
  std::filesystem::create_directory(path);  // cannot be replaced by a file
  EXPECT_THROW(WriteFileAtomically(path, "new"), UserError);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, MissingFolderIsNamed) {
  try {
    WriteFileAtomically(folder_ / "no" / "file", "x");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos);
  }
}

TEST_F(AtomicFileTest, ReadRefusesTooMuchAndMissing) {
  const auto path = folder_ / "file";
  WriteFileAtomically(path, "12345");
  EXPECT_EQ(ReadWholeFile(path, 5), "12345");
  EXPECT_THROW(ReadWholeFile(path, 4), UserError);
  EXPECT_THROW(ReadWholeFile(folder_ / "none", 4), UserError);
  EXPECT_THROW(ReadWholeFile(folder_, 4), UserError);
}

TEST_F(AtomicFileTest, ResultHasOrdinaryPermissions) {
  const auto path = folder_ / "file";
  WriteFileAtomically(path, "x");
  const mode_t mask = umask(0);
  umask(mask);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(AtomicFileTest, AppendFileCutsAndGrows) {
  const auto path = folder_ / "log";
  {
    AppendFile file(path, 0);
    file.Append("one\n");
    file.Append("two\n");
    file.Sync();
    EXPECT_EQ(file.size(), 8u);
  }
  {
    AppendFile file(path, 4);
    file.Append("three\n");
  }
  EXPECT_EQ(ReadWholeFile(path, 100), "one\nthree\n");
  EXPECT_THROW(AppendFile(path, 11), UserError);
  EXPECT_EQ(ReadWholeFile(path, 100), "one\nthree\n");
}

// A limit on the file size acts like a full disk: a write stops in the middle.
TEST_F(AtomicFileTest, AFullDiskLeavesWhatWasThere) {
  const auto path = folder_ / "result";
  const auto log = folder_ / "log";
  WriteFileAtomically(path, "old");
  AppendFile file(log, 0);
  file.Append(std::string(1000, 'a'));

  struct rlimit old_limit {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  struct rlimit limit = old_limit;
  limit.rlim_cur = 1500;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(WriteFileAtomically(path, std::string(5000, 'x')), StorageError);
  EXPECT_THROW(file.Append(std::string(1000, 'b')), StorageError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(ReadWholeFile(path, 100), "old");
  EXPECT_EQ(ReadWholeFile(log, 10'000), std::string(1000, 'a'));
  EXPECT_EQ(FileCount(), 2u);
  file.Append("c");
  EXPECT_EQ(ReadWholeFile(log, 10'000), std::string(1000, 'a') + "c");
}

}  // namespace
}  // namespace msrl
