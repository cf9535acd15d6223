#include "msrl/render/video.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/files/atomic_file.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks for it

namespace msrl {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Reset(-1); }
  int get() const { return fd_; }
  void Reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

// What ffmpeg is told about its output.
std::vector<std::string> OutputWords(bool gif) {
  // 256 colours that are chosen for this very film, which repeats
  constexpr const char* kColours =
      "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=none";
  if (gif) return {"-filter_complex", kColours, "-loop", "0", "-f", "gif"};
  // yuv420p is what every player knows
  return {"-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4"};
}

class FfmpegWriter : public VideoWriter {
 public:
  FfmpegWriter(fs::path path, ImageSize size, double frames_per_second)
      : path_(std::move(path)), size_(size) {
    if (!IsGif() && (size.width % 2 != 0 || size.height % 2 != 0)) {
      throw UserError(StrCat("cannot write ", path_.string(), ": sides of ", size.width, "x",
                             size.height, " must be even in an .mp4 file"));
    }
    if (fs::is_directory(path_)) Fail("it is a folder");
    try {
      MakeTemporary();
      Start(frames_per_second);
    } catch (...) {
      Abandon();
      throw;
    }
  }
  FfmpegWriter(const FfmpegWriter&) = delete;
  FfmpegWriter& operator=(const FfmpegWriter&) = delete;
  ~FfmpegWriter() override { Abandon(); }

  void Add(const Image& image) override {
    MSRL_CHECK(image.size == size_, "an image of another size");
    const auto* bytes = image.rgb.data();
    std::size_t left = image.rgb.size();
    while (left > 0) {
      // a socket and not a pipe, because its writer can ask for no signal if the reader is gone
      const ssize_t count = send(to_ffmpeg_.get(), bytes, left, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        Wait();
        Fail(StrCat("ffmpeg: ", Complaint()));
      }
      bytes += count;
      left -= static_cast<std::size_t>(count);
    }
    ++frames_;
  }

  void Finish() override {
    to_ffmpeg_.Reset(-1);
    const int status = Wait();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail(StrCat("ffmpeg: ", Complaint()));
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) Fail(std::strerror(errno));
    temporary_.clear();
  }

 private:
  bool IsGif() const { return path_.extension() == ".gif"; }

  [[noreturn]] void Fail(const std::string& why) const {
    throw UserError(StrCat("cannot write ", path_.string(), ": ", why));
  }

  void MakeTemporary() {
    const fs::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
    temporary_ = (folder / ("." + path_.filename().string() + ".XXXXXX")).string();
    const FileDescriptor file(mkostemp(temporary_.data(), O_CLOEXEC));
    if (file.get() < 0) {
      temporary_.clear();
      Fail(std::strerror(errno));
    }
    // mkstemp makes private files; a result should have the usual permissions
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(file.get(), 0666 & ~mask) != 0) Fail(std::strerror(errno));
  }

  void Start(double frames_per_second) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      Fail(std::strerror(errno));
    }
    to_ffmpeg_.Reset(ends[0]);
    const FileDescriptor from_us(ends[1]);
    complaints_.Reset(memfd_create("ffmpeg", MFD_CLOEXEC));
    if (complaints_.get() < 0) Fail(std::strerror(errno));

    std::vector<std::string> words = {"ffmpeg",
                                      "-nostdin",
                                      "-loglevel",
                                      "error",
                                      "-y",
                                      "-f",
                                      "rawvideo",
                                      "-pixel_format",
                                      "rgb24",
                                      "-video_size",
                                      StrCat(size_.width, "x", size_.height),
                                      "-framerate",
                                      StrCat(frames_per_second),
                                      "-i",
                                      "pipe:0"};
    const std::vector<std::string> output = OutputWords(IsGif());
    words.insert(words.end(), output.begin(), output.end());
    words.push_back("file:" + temporary_);  // a name with a colon is no protocol
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, from_us.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, complaints_.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, complaints_.get(), STDERR_FILENO);
    const int error =
        posix_spawnp(&process_, "ffmpeg", &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      process_ = -1;
      Fail(error == ENOENT ? "it needs ffmpeg; install it (Debian: ffmpeg), or give a folder for "
                             "PNG frames, such as --video frames/"
                           : StrCat("ffmpeg: ", std::strerror(error)));
    }
  }

  // The exit status of ffmpeg; 0 if there is none.
  int Wait() {
    int status = 0;
    if (process_ > 0) {
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
      }
    }
    process_ = -1;
    return status;
  }

  // The first line of what ffmpeg has said.
  std::string Complaint() const {
    std::array<char, 400> text{};
    const ssize_t count = pread(complaints_.get(), text.data(), text.size() - 1, 0);
    const std::string said(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
    const std::string line = said.substr(0, said.find('\n'));
    return line.empty() ? "it failed and did not say why" : line;
  }

  void Abandon() {
    to_ffmpeg_.Reset(-1);
    Wait();
    if (!temporary_.empty()) unlink(temporary_.c_str());
    temporary_.clear();
  }

  fs::path path_;
  ImageSize size_;
  std::string temporary_;  // empty: there is none
  FileDescriptor to_ffmpeg_;
  FileDescriptor complaints_;
  pid_t process_ = -1;
};

class FrameWriter : public VideoWriter {
 public:
  explicit FrameWriter(fs::path folder) : folder_(std::move(folder)) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (!fs::is_directory(folder_)) {
      throw UserError(StrCat("cannot make the folder ", folder_.string(), ": ",
                             error ? error.message() : "a file is in its place"));
    }
    if (fs::exists(NameOf(0))) {
      throw UserError(
          StrCat(folder_.string(), " holds frames already: delete them, or choose another folder"));
    }
  }
  void Add(const Image& image) override {
    WriteFileAtomically(NameOf(frames_), EncodePng(image));
    ++frames_;
  }
  void Finish() override {}

 private:
  fs::path NameOf(int frame) const {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "frame_%05d.png", frame);
    return folder_ / name.data();
  }

  fs::path folder_;
};

}  // namespace

std::unique_ptr<VideoWriter> MakeVideoWriter(const std::filesystem::path& path, ImageSize size,
                                             double frames_per_second, Existing existing) {
  MSRL_CHECK(frames_per_second > 0.0, frames_per_second, " frames per second");
  if (path.extension() == ".mp4" || path.extension() == ".gif") {
    RequireWritable(path, existing);
    return std::make_unique<FfmpegWriter>(path, size, frames_per_second);
  }
  if (path.empty() || (path.has_extension() && !fs::is_directory(path))) {
    throw UserError(
        StrCat("cannot write '", path.string(),
               "': needs a name that ends in .mp4 or .gif, or a folder for PNG frames"));
  }
  return std::make_unique<FrameWriter>(path);
}

}  // namespace msrl
