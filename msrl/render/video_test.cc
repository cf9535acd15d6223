#include "msrl/render/video.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "msrl/files/atomic_file.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

namespace fs = std::filesystem;

void ExpectUserError(const std::function<void()>& call, const std::string& what) {
  const std::string text = testing::UserErrorText(call);
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

class VideoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("msrl_video_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::ptrdiff_t Files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  static bool HasFfmpeg() { return std::system("ffmpeg -version >/dev/null 2>&1") == 0; }

  fs::path folder_;
  Image image_ = Image({32, 16});
};

TEST_F(VideoTest, FramesAreNumbered) {
  const fs::path frames = folder_ / "a" / "b";
  const auto writer = MakeVideoWriter(frames, image_.size, 10);
  writer->Add(image_);
  image_.rgb[0] = 9;
  writer->Add(image_);
  writer->Finish();
  EXPECT_EQ(writer->frames(), 2);
  EXPECT_EQ(DecodePng(ReadWholeFile(frames / "frame_00001.png", 1 << 20)), image_);
  EXPECT_FALSE(DecodePng(ReadWholeFile(frames / "frame_00000.png", 1 << 20)) == image_);
  ExpectUserError([&] { MakeVideoWriter(frames, image_.size, 10); }, "holds frames already");
}

TEST_F(VideoTest, Mp4AppearsWholeOrNotAtAll) {
  if (!HasFfmpeg()) GTEST_SKIP() << "no ffmpeg";
  const fs::path path = folder_ / "it's $HOME; a.mp4";
  {
    const auto abandoned = MakeVideoWriter(path, image_.size, 10);
    abandoned->Add(image_);
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_EQ(Files(), 0);
  const auto writer = MakeVideoWriter(path, image_.size, 31.25);
  for (int i = 0; i < 5; ++i) writer->Add(image_);
  EXPECT_FALSE(fs::exists(path));
  writer->Finish();
  EXPECT_EQ(Files(), 1);
  EXPECT_EQ(ReadWholeFile(path, 1 << 20).substr(4, 4), "ftyp");
}

TEST_F(VideoTest, GifsMayHaveAnySize) {
  if (!HasFfmpeg()) GTEST_SKIP() << "no ffmpeg";
  Image odd({31, 15});
  const fs::path path = folder_ / "a.gif";
  const auto writer = MakeVideoWriter(path, odd.size, 10);
  for (int i = 0; i < 5; ++i) {
    odd.rgb[3] = static_cast<std::uint8_t>(50 * i);
    writer->Add(odd);
  }
  writer->Finish();
  EXPECT_EQ(Files(), 1);
  const std::string bytes = ReadWholeFile(path, 1 << 20);
  EXPECT_EQ(bytes.substr(0, 6), "GIF89a");
  // width and height, little end first
  EXPECT_EQ(bytes.substr(6, 4), std::string("\x1f\0\x0f\0", 4));
  EXPECT_NE(bytes.find("NETSCAPE2.0"), std::string::npos);  // it repeats
}

TEST_F(VideoTest, MistakesAreNamed) {
  ExpectUserError([&] { MakeVideoWriter(folder_ / "a.avi", image_.size, 10); }, "ends in .mp4");
  ExpectUserError([&] { MakeVideoWriter(folder_ / "a.mp4", {31, 16}, 10); }, "must be even");
  ExpectUserError([&] { MakeVideoWriter(folder_ / "no" / "a.mp4", image_.size, 10); },
                  "No such file or directory");
  WriteFileAtomically(folder_ / "file", "x");
  ExpectUserError([&] { MakeVideoWriter(folder_ / "file", image_.size, 10); },
                  "cannot make the folder");
}

TEST_F(VideoTest, AFailingFfmpegIsReported) {
  // in its place: one that reads nothing
  WriteFileAtomically(folder_ / "ffmpeg", "#!/bin/sh\necho no such codec >&2\nexit 3\n");
  fs::permissions(folder_ / "ffmpeg", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder_.string() + ":" + path).c_str(), 1);
  const auto writer = MakeVideoWriter(folder_ / "a.mp4", image_.size, 10);
  setenv("PATH", path.c_str(), 1);
  ExpectUserError(
      [&] {
        for (int i = 0; i < 10000; ++i) writer->Add(image_);
        writer->Finish();
      },
      "ffmpeg: no such codec");
  EXPECT_FALSE(fs::exists(folder_ / "a.mp4"));
}

}  // namespace
}  // namespace msrl
