// What a hostile file may cost whoever refuses it.
#ifndef MSRL_TESTING_CHEAP_REFUSAL_H_
#define MSRL_TESTING_CHEAP_REFUSAL_H_

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <string>

#include "msrl/core/sanitizers.h"
#include "msrl/testing/user_error.h"

namespace msrl::testing {

// The text of the UserError that f() throws, within the limits of docs/reliability.md: 100 ms of
// the processor, which others may keep busy, and 64 MB. They are limits of the program that people
// run; the sanitizers take many times both.
template <typename F>
std::string CheapRefusal(const F& f) {
  const auto peak_kilobytes = [] {
    struct rusage usage {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  [[maybe_unused]] const auto memory = peak_kilobytes();
  [[maybe_unused]] const std::clock_t start = std::clock();
  std::string text = UserErrorText(f);
#if !defined(MSRL_ADDRESS_SANITIZER)
  EXPECT_LT(1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 100.0);
  EXPECT_LT(peak_kilobytes() - memory, 64'000);
#endif
  return text;
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_CHEAP_REFUSAL_H_
