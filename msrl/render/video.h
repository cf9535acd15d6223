// Pictures one after the other, into an .mp4 or .gif file or as PNG files.
#ifndef MSRL_RENDER_VIDEO_H_
#define MSRL_RENDER_VIDEO_H_

#include <filesystem>
#include <memory>

#include "msrl/files/atomic_file.h"
#include "msrl/render/image.h"

namespace msrl {

class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  // UserError if it cannot be written.
  virtual void Add(const Image& image) = 0;
  // Completes the output. UserError if that fails.
  virtual void Finish() = 0;
  int frames() const { return frames_; }

 protected:
  int frames_ = 0;
};

// "*.mp4", "*.gif": made by the program ffmpeg, under a temporary name (hidden, beside `path`) that
// Finish renames; without Finish nothing is left. Sides of an .mp4 must be even.
// A folder (it exists, ends in '/' or has no extension): frame_00000.png and so on, each written
// whole; made if it is missing.
// UserError that says what to do: another extension, no ffmpeg, a folder that cannot be written or
// holds frames already, a film that is there and may not be replaced.
std::unique_ptr<VideoWriter> MakeVideoWriter(const std::filesystem::path& path, ImageSize size,
                                             double frames_per_second,
                                             Existing existing = Existing::kReplace);

}  // namespace msrl

#endif  // MSRL_RENDER_VIDEO_H_
