#include "msrl/data/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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

}  // namespace
}  // namespace msrl
