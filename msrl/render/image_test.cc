#include "msrl/render/image.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

void ExpectUserError(const std::function<void()>& call, const std::string& what) {
  const std::string text = testing::UserErrorText(call);
  EXPECT_NE(text.find(what), std::string::npos) << text;
}

Image Gradient(ImageSize size) {
  Image image(size);
  for (std::size_t i = 0; i < image.rgb.size(); ++i) {
    image.rgb[i] = static_cast<std::uint8_t>((i * 7 + i / 50) % 256);
  }
  return image;
}

TEST(Image, SizesAreParsedStrictly) {
  EXPECT_EQ(ParseImageSize("64x48"), (ImageSize{64, 48}));
  for (const char* text :
       {"", "64", "64x", "x48", "64x48x", "64 x48", "-64x48", "8x48", "64x9999"}) {
    ExpectUserError([&] { ParseImageSize(text); }, "is no size of an image");
  }
}

TEST(Image, PngRoundTrip) {
  for (const ImageSize size : {ImageSize{1, 1}, ImageSize{17, 5}, ImageSize{320, 200}}) {
    const Image image = Gradient(size);
    const std::string bytes = EncodePng(image);
    EXPECT_EQ(bytes.substr(0, 4), "\x89PNG");
    EXPECT_EQ(DecodePng(bytes), image);
    Image other = image;
    other.rgb.back() ^= 1;
    EXPECT_FALSE(DecodePng(EncodePng(other)) == image);
  }
}

TEST(Image, DamagedFilesAreRefused) {
  const std::string bytes = EncodePng(Gradient({17, 5}));
  ExpectUserError([&] { DecodePng(""); }, "not a PNG image");
  ExpectUserError([&] { DecodePng("GIF89a"); }, "not a PNG image");
  ExpectUserError([&] { DecodePng(std::string_view(bytes).substr(0, bytes.size() / 2)); },
                  "not a PNG image");
}

}  // namespace
}  // namespace msrl
