// Pictures in memory and as PNG files.
#ifndef MSRL_RENDER_IMAGE_H_
#define MSRL_RENDER_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msrl {

struct ImageSize {
  int width = 640;
  int height = 480;
  bool operator==(const ImageSize&) const = default;
};

// "640x480". UserError unless both are between 16 and 4096.
ImageSize ParseImageSize(std::string_view text);

// Three bytes (red, green, blue) per pixel, row by row from the top.
struct Image {
  ImageSize size{0, 0};
  std::vector<std::uint8_t> rgb;

  Image() = default;
  // Black.
  explicit Image(ImageSize image_size)
      : size(image_size), rgb(3 * static_cast<std::size_t>(size.width) * size.height) {}

  // The red byte of a pixel; green and blue follow.
  std::uint8_t* At(int x, int y) { return rgb.data() + Offset(x, y); }
  const std::uint8_t* At(int x, int y) const { return rgb.data() + Offset(x, y); }
  std::size_t Offset(int x, int y) const {
    return 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(size.width) +
                static_cast<std::size_t>(x));
  }
  bool operator==(const Image&) const = default;
};

// The bytes of a PNG file.
std::string EncodePng(const Image& image);

// UserError if the bytes are not a PNG file. Transparency is lost.
Image DecodePng(std::string_view bytes);

}  // namespace msrl

#endif  // MSRL_RENDER_IMAGE_H_
