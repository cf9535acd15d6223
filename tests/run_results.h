// What of a run depends on nothing but its settings.
#ifndef MSRL_TESTS_RUN_RESULTS_H_
#define MSRL_TESTS_RUN_RESULTS_H_

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

namespace msrl {

inline constexpr const char* kEventFile = "events.out.tfevents.0.msrl";

// TensorBoard's file without its time stamps and checksums.
inline std::string WithoutTimes(std::string events) {
  std::string rest;
  while (events.size() >= 16) {
    std::uint64_t length = 0;
    std::copy_n(events.data(), 8, reinterpret_cast<char*>(&length));
    if (length < 9 || length > events.size() - 16) break;  // torn
    rest += events.substr(12 + 9, length - 9);
    events.erase(0, 16 + length);
  }
  return rest + events;
}

// Empty if there is none.
inline std::filesystem::path NewestCheckpoint(const std::filesystem::path& run) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) {
    if (entry.path().filename().string().starts_with("step-")) {
      newest = std::max(newest, entry.path());
    }
  }
  return newest;
}

}  // namespace msrl

#endif  // MSRL_TESTS_RUN_RESULTS_H_
