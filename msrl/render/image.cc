#include "msrl/render/image.h"

#include <png.h>

#include <charconv>
#include <memory>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kSmallestSide = 16;
constexpr int kLargestSide = 4096;

// libpng's description of an image; frees what libpng attaches to it.
struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image); }
};

}  // namespace

ImageSize ParseImageSize(std::string_view text) {
  ImageSize size;
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, size.width);
  const bool has_x = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  const auto height = std::from_chars(has_x ? width.ptr + 1 : end, end, size.height);
  const auto fits = [](int side) { return kSmallestSide <= side && side <= kLargestSide; };
  if (!has_x || height.ec != std::errc() || height.ptr != end || !fits(size.width) ||
      !fits(size.height)) {
    throw UserError(StrCat("'", text, "' is no size of an image: needs WIDTHxHEIGHT, each from ",
                           kSmallestSide, " to ", kLargestSide, ", such as 640x480"));
  }
  return size;
}

std::string EncodePng(const Image& image) {
  PngImage png;
  png.image.width = static_cast<png_uint_32>(image.size.width);
  png.image.height = static_cast<png_uint_32>(image.size.height);
  png.image.format = PNG_FORMAT_RGB;
  png.image.flags = PNG_IMAGE_FLAG_FAST;  // half the time for a few percent more bytes
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png.image);
  std::string bytes(size, '\0');
  const int ok =
      png_image_write_to_memory(&png.image, bytes.data(), &size, 0, image.rgb.data(), 0, nullptr);
  MSRL_CHECK(ok != 0, "libpng: ", png.image.message);
  bytes.resize(size);
  return bytes;
}

Image DecodePng(std::string_view bytes) {
  PngImage png;
  const auto fail = [&] { throw UserError(StrCat("not a PNG image: ", png.image.message)); };
  if (png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) == 0) fail();
  png.image.format = PNG_FORMAT_RGB;
  if (png.image.width > kLargestSide || png.image.height > kLargestSide) {
    throw UserError("a PNG image of more than 4096 pixels a side");
  }
  Image image({static_cast<int>(png.image.width), static_cast<int>(png.image.height)});
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&png.image, &black, image.rgb.data(), 0, nullptr) == 0) fail();
  return image;
}

}  // namespace msrl
