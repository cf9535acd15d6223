#include "msrl/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "msrl/core/check.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;

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

TEST_F(AtomicFileTest, AReplacedFileKeepsItsMode) {
  const auto path = folder_ / "file";
  for (const mode_t mode : {0600, 0640, 0666, 0444}) {
    WriteFileAtomically(path, "old");
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    WriteFileAtomically(path, "new");
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode);
  }
}

// Whatever is at the place: nothing is written through it, and it stays.
TEST_F(AtomicFileTest, OnlyRegularFilesAreWritten) {
  const auto victim = folder_ / "victim", link = folder_ / "link", pipe = folder_ / "pipe";
  WriteFileAtomically(victim, "precious");
  std::filesystem::create_symlink("victim", link);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(UserErrorText([&] { WriteFileAtomically(link, "x"); }),
            "cannot write " + link.string() + ": it is a link");
  EXPECT_EQ(UserErrorText([&] { AppendFile(link, 0); }),
            "cannot write " + link.string() + ": it is a link");
  EXPECT_EQ(UserErrorText([&] { WriteFileAtomically(pipe, "x"); }),
            "cannot write " + pipe.string() + ": it is a pipe");
  EXPECT_EQ(UserErrorText([&] { AppendFile(pipe, 0); }),
            "cannot write " + pipe.string() + ": it is a pipe");
  EXPECT_EQ(UserErrorText([&] { ReadWholeFile(pipe, 10); }),
            "cannot read " + pipe.string() + ": it is a pipe");
  EXPECT_EQ(UserErrorText([&] { ReadWholeFile("/dev/zero", 10); }),
            "cannot read /dev/zero: it is a device");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(ReadWholeFile(link, 100), "precious");
  EXPECT_EQ(FileCount(), 3u);
  // a link to nothing makes nothing
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "dangling");
  EXPECT_THROW(WriteFileAtomically(folder_ / "dangling", "x"), UserError);
  EXPECT_THROW(AppendFile(folder_ / "dangling", 0), UserError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

TEST_F(AtomicFileTest, WhatIsThereCanBeProtected) {
  const auto path = folder_ / "file";
  RequireWritable(path, Existing::kRefuse);
  RequireWritable(folder_ / "no" / "folder", Existing::kRefuse);
  WriteFileAtomically(path, "old", Existing::kRefuse);
  const std::string problem = path.string() + " is there already; --force replaces it";
  EXPECT_EQ(UserErrorText([&] { RequireWritable(path, Existing::kRefuse); }), problem);
  EXPECT_EQ(UserErrorText([&] { WriteFileAtomically(path, "new", Existing::kRefuse); }), problem);
  EXPECT_EQ(ReadWholeFile(path, 10), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(AtomicFileTest, NamesMayBeAsLongAsTheSystemAllows) {
  const auto path = folder_ / std::string(255, 'n');
  WriteFileAtomically(path, "x");
  EXPECT_EQ(ReadWholeFile(path, 1), "x");
  EXPECT_THROW(WriteFileAtomically(folder_ / std::string(256, 'n'), "x"), UserError);
}

TEST_F(AtomicFileTest, OnlyOurOwnTemporaryFilesAreRemoved) {
  const Folder folder(folder_);
  const char* kept[] = {".gitignore",    ".msrl-tmp-",       ".msrl-tmp-1", ".msrl-tmp-1-",
                        ".msrl-tmp-x-1", ".run.json.AbCdEf", "msrl-tmp-1-2"};
  for (const char* name : kept) WriteFileAtomically(folder_ / name, "kept");
  WriteFileAtomically(folder_ / ".msrl-tmp-12-0", "left by a process that was killed");
  std::filesystem::create_symlink(".gitignore", folder_ / ".msrl-tmp-12-1");
  std::filesystem::create_directory(folder_ / ".msrl-tmp-12-2");
  folder.RemoveTemporaries();
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".msrl-tmp-12-0"));
  EXPECT_EQ(FileCount(), std::size(kept) + 2);
  for (const char* name : kept) EXPECT_EQ(ReadWholeFile(folder_ / name, 10), "kept") << name;
}

TEST_F(AtomicFileTest, FoldersBelowAreNeverReachedThroughLinks) {
  const auto outside = folder_ / "outside", run = folder_ / "run";
  MakeFolder(outside);
  MakeFolder(run / "real");
  EXPECT_TRUE(std::filesystem::is_directory(run / "real"));
  std::filesystem::create_symlink("../outside", run / "logs");
  WriteFileAtomically(run / "file", "x");
  const Folder folder(run);
  EXPECT_EQ(UserErrorText([&] { folder.Make("logs"); }),
            "cannot write into " + (run / "logs").string() + ": it is a link");
  EXPECT_THROW(folder.Make("logs/deeper"), UserError);
  EXPECT_THROW(folder.Make("file"), UserError);
  EXPECT_TRUE(std::filesystem::is_empty(outside));
  const std::string_view contents = "x";
  folder.Make("real/deep/er").Write("file", std::span(&contents, 1));
  EXPECT_EQ(ReadWholeFile(run / "real" / "deep" / "er" / "file", 1), "x");
  // what the user named may well be a link
  std::filesystem::create_symlink("run", folder_ / "mine");
  WriteFileAtomically(folder_ / "mine" / "other", "x");
  EXPECT_TRUE(std::filesystem::exists(run / "other"));
}

TEST_F(AtomicFileTest, ASparseGiantIsRefusedBeforeItIsRead) {
  const auto path = folder_ / "giant";
  WriteFileAtomically(path, "x");
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_NE(UserErrorText([&] { ReadWholeFile(path, 1 << 20); }).find("more than 1048576 bytes"),
            std::string::npos);
  EXPECT_NE(UserErrorText([&] { ReadWholeFile(path, UINTMAX_MAX); }).find("needs 1099.5 GB"),
            std::string::npos);
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
