# cmake -DPAGE=<html or empty> -DSOURCE=<.cc to write> -P embed_page.cmake
# An array of bytes: string literals have a limited length.
if(PAGE)
  file(READ ${PAGE} page HEX)
  string(LENGTH "${page}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${page}")
else()
  set(size 0)
  set(bytes "0")
endif()
file(WRITE ${SOURCE} "// Made by embed_page.cmake.
#include \"msrl/report/page_template.h\"

namespace msrl::report {
namespace {

constexpr unsigned char kPage[] = {${bytes}};

}  // namespace

std::string_view PageTemplate() { return {reinterpret_cast<const char*>(kPage), ${size}}; }

}  // namespace msrl::report
")
