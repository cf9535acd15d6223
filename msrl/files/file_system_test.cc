#include "msrl/files/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "msrl/files/atomic_file.h"
#include "msrl/testing/faulty_files.h"
#include "msrl/testing/slurp.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;
using ::msrl::testing::Crash;
using ::msrl::testing::Fault;
using ::msrl::testing::FaultyFiles;
using ::msrl::testing::RecordedFiles;
using ::msrl::testing::Slurp;
using ::msrl::testing::Tree;

class FileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Calls `work` with each of its calls going wrong once, and `check` afterwards.
  template <typename Work, typename Check>
  int AtEveryCall(Fault fault, const Work& work, const Check& check) {
    for (int at = 0;; ++at) {
      SCOPED_TRACE("call " + std::to_string(at));
      FaultyFiles files(fault, at);
      bool failed = false;
      {
        const UseFileSystem use(files);
        try {
          work();
        } catch (const UserError&) {
          failed = true;
        } catch (const Crash&) {
          failed = true;
        }
      }
      check(failed);
      if (!files.met()) return at;
    }
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("msrl_file_system_" + std::to_string(getpid()) + "_" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

const std::string kOld(3000, 'o');
const std::string kNew(5000, 'n');

// Whoever makes room should know how much.
TEST_F(FileSystemTest, AFullDiskSaysHowManyBytesAreNeeded) {
  const fs::path file = folder_ / "file";
  const std::string contents(12'345, 'x');
  int said = 0;
  const auto expect_said = [&said](std::string_view bytes, const auto& write) {
    try {
      write();
    } catch (const StorageError& error) {
      EXPECT_NE(std::string_view(error.what()).find(bytes), std::string::npos) << error.what();
      EXPECT_NE(std::string_view(error.what()).find("No space left"), std::string::npos);
      ++said;
    }
  };
  FaultyFiles full(Fault::kNoSpace, 1, FaultyFiles::Duration::kFromThenOn);
  AppendFile grown(folder_ / "grown", 0);
  const UseFileSystem use(full);
  expect_said("", [&] { WriteFileAtomically(file, contents); });
  expect_said("(12345 bytes are needed)", [&] { WriteFileAtomically(file, contents); });
  expect_said("(7 bytes are needed)", [&] { grown.Append("a line\n"); });
  EXPECT_EQ(said, 3);
}

TEST_F(FileSystemTest, AFileIsOldOrNewWhereverACallFails) {
  const fs::path file = folder_ / "file";
  for (const Fault fault : {Fault::kNoSpace, Fault::kIoError, Fault::kCrash}) {
    WriteFileAtomically(file, kOld);
    const int calls = AtEveryCall(
        fault, [&] { WriteFileAtomically(file, kNew); },
        [&](bool failed) {
          const std::string now = Slurp(file);
          EXPECT_TRUE(now == kNew || (failed && now == kOld));
          EXPECT_TRUE(fault == Fault::kCrash || Folder(folder_).Names().size() == 1);
          Folder(folder_).RemoveTemporaries();
          WriteFileAtomically(file, kOld);
        });
    EXPECT_GE(calls, fault == Fault::kIoError ? 10 : 5);
  }
}

TEST_F(FileSystemTest, ShortAndInterruptedCallsAreNotNoticed) {
  const fs::path file = folder_ / "below" / "file.work.h5";
  for (const Fault fault : {Fault::kShort, Fault::kInterrupted}) {
    AtEveryCall(
        fault,
        [&] {
          MakeFolder(file.parent_path());
          WriteFileAtomically(file, kNew);
          EXPECT_EQ(ReadWholeFile(file, 10'000), kNew);
          AppendFile grown(folder_ / "grown", 0);
          grown.Append("first ");
          grown.Append("second");
          grown.Sync();
          EXPECT_EQ(ReadWholeFile(folder_ / "grown", 100), "first second");
          RemoveWorkFolder(file.parent_path());
        },
        [&](bool failed) {
          EXPECT_FALSE(failed);
          EXPECT_FALSE(fs::exists(file.parent_path()));
        });
  }
}

TEST_F(FileSystemTest, AFailedAppendLeavesTheFileAsItWas) {
  const fs::path file = folder_ / "grown";
  AtEveryCall(
      Fault::kNoSpace,
      [&] {
        fs::remove(file);
        AppendFile grown(file, 0);
        grown.Append("a line\n");
        try {
          grown.Append("another line\n");
        } catch (const StorageError&) {
          EXPECT_EQ(Slurp(file), "a line\n");
          throw;
        }
      },
      [](bool) {});
}

TEST_F(FileSystemTest, AFileIsOldOrNewAfterPowerLoss) {
  WriteFileAtomically(folder_ / "file", kOld);
  RecordedFiles files(folder_);
  {
    const UseFileSystem use(files);
    WriteFileAtomically(folder_ / "file", kNew);
  }
  Rng rng(1, "power");
  int old = 0;
  constexpr int kSchedules = 10'000;
  for (int i = 0; i < kSchedules; ++i) {
    const auto changes = static_cast<std::int64_t>(files.changes());
    const auto count = static_cast<std::size_t>(rng.Index(changes + 1));
    const Tree disk = files.AfterPowerLoss(count, rng.Uniform(), rng);
    const std::string& now = *disk.at("file");
    ASSERT_TRUE(now == kOld || now == kNew);
    old += now == kOld;
    ASSERT_TRUE(now == kNew || count < files.changes());  // it was said to be there
  }
  EXPECT_GT(old, 0);
  EXPECT_LT(old, kSchedules);
}

// The simulation can tell: without the flush of contents or of names, files are torn or lost.
TEST_F(FileSystemTest, AWriterThatForgetsToFlushIsFoundOut) {
  for (const bool flushes_contents : {false, true}) {
    SetUp();
    RecordedFiles files(folder_);
    {
      const UseFileSystem use(files);
      const Folder folder(folder_);
      const FileDescriptor file = folder.OpenForUpdate("temporary");
      Files().Write(file.get(), kNew.data(), kNew.size(), 0);
      if (flushes_contents) Files().Sync(file.get());
      folder.Rename("temporary", "file");
      if (!flushes_contents) Files().Sync(folder.fd());
    }
    Rng rng(1, "power");
    int lost = 0, torn = 0;
    for (int i = 0; i < 200; ++i) {
      const Tree disk = files.AfterPowerLoss(files.changes(), 0.5, rng);
      const auto file = disk.find("file");
      lost += file == disk.end();
      torn += file != disk.end() && *file->second != kNew;
    }
    EXPECT_EQ(lost > 0, flushes_contents);
    EXPECT_EQ(torn > 0, !flushes_contents);
  }
}

TEST_F(FileSystemTest, NewFoldersReachTheDiskWithTheirParents) {
  RecordedFiles files(folder_);
  {
    const UseFileSystem use(files);
    MakeFolder(folder_ / "a" / "b");
    const std::string_view contents = kNew;
    Folder(folder_).Make("a/c/d").Write("file", std::span(&contents, 1));
  }
  Rng rng(1, "power");
  const Tree disk = files.AfterPowerLoss(files.changes(), /*arrives=*/0.0, rng);
  EXPECT_TRUE(disk.contains("a/b"));
  ASSERT_TRUE(disk.contains("a/c/d/file"));
  EXPECT_EQ(disk.at("a/c/d/file"), kNew);
}

TEST_F(FileSystemTest, OnlyWorkIsRemovedFromAFolderOfWork) {
  const fs::path work = folder_ / "work";
  MakeFolder(work / "of others.work.h5");
  for (const char* ours : {"lock", "a-0.work.h5", "mixed-0.work.safetensors", ".msrl-tmp-1-2"}) {
    WriteFileAtomically(work / ours, kNew);
  }
  for (const char* theirs : {"thesis.tex", "mixed-0.safetensors", "a.h5"}) {
    WriteFileAtomically(work / theirs, kNew);
  }
  fs::create_directory_symlink(work, folder_ / "link");
  RemoveWorkFolder(folder_ / "link");
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(work)) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"of others.work.h5", "thesis.tex", "mixed-0.safetensors",
                                         "a.h5"}));
  RemoveWorkFolder(work);
  EXPECT_TRUE(fs::exists(work / "thesis.tex"));
  for (const std::string& name : left) fs::remove(work / name);
  RemoveWorkFolder(work);
  EXPECT_FALSE(fs::exists(work));
  RemoveWorkFolder(work);
}

}  // namespace
}  // namespace msrl
