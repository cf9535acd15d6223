// A file as it is.
#ifndef MSRL_TESTING_SLURP_H_
#define MSRL_TESTING_SLURP_H_

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace msrl::testing {

// All of it, "" if it can't be read.
inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_SLURP_H_
