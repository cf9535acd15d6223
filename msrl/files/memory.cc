#include "msrl/files/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

namespace msrl {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
// less than this is not worth asking the system
constexpr std::uint64_t kSmall = std::uint64_t{1} << 24;

// The number after `key` in a file of lines "key number", in the file's unit.
std::uint64_t NumberIn(const std::string& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::uint64_t number = 0;
    return std::sscanf(line.c_str() + key.size(), "%lu", &number) == 1 ? number : kUnknown;
  }
  return kUnknown;
}

std::uint64_t LeftOf(std::uint64_t limit, std::uint64_t used) {
  return limit == kUnknown || used == kUnknown ? kUnknown : limit - std::min(limit, used);
}

// Its own and those that it is part of: "0::/a/b" in /proc/self/cgroup.
std::uint64_t LeftInControlGroup() {
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line) && !line.starts_with("0::/")) {
  }
  if (!line.starts_with("0::/")) return kUnknown;
  std::uint64_t left = kUnknown;
  for (std::string group = line.substr(3);; group.resize(group.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + group;
    // "max" is no number
    left = std::min(left, LeftOf(NumberIn(folder + "/memory.max", ""),
                                 NumberIn(folder + "/memory.current", "")));
    if (group.rfind('/') == std::string::npos) return left;
  }
}

std::uint64_t LeftOfOwnLimit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const std::uint64_t used = NumberIn("/proc/self/status", "VmSize:");
  return LeftOf(limit.rlim_cur, used == kUnknown ? 0 : 1024 * used);
}

std::string Amount(std::uint64_t bytes) {
  const double mega = static_cast<double>(bytes) / 1e6;
  char text[32];
  std::snprintf(text, sizeof text, mega < 1000.0 ? "%.0f MB" : "%.1f GB",
                mega < 1000.0 ? mega : mega / 1000.0);
  return text;
}

}  // namespace

std::uint64_t AvailableMemory() {
  const std::uint64_t machine = NumberIn("/proc/meminfo", "MemAvailable:");
  return std::min(
      {machine == kUnknown ? kUnknown : 1024 * machine, LeftInControlGroup(), LeftOfOwnLimit()});
}

void RequireMemory(std::uint64_t bytes, std::string_view what) {
  if (bytes < kSmall) return;
  const std::uint64_t available = AvailableMemory();
  if (bytes <= available) return;
  throw MemoryError(
      StrCat(what, " needs ", Amount(bytes), " of memory, ", Amount(available), " are available"));
}

}  // namespace msrl
