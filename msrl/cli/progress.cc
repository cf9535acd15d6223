#include "msrl/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace msrl::cli {

ProgressLine::ProgressLine(std::string title)
    : title_(std::move(title)),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

void ProgressLine::Begin(const std::string& title) {
  if (title == title_) return;
  title_ = title;
  start_ = std::chrono::steady_clock::now();
}

void ProgressLine::Show(int done, int total) {
  if (!terminal_ || total <= 0) return;
  constexpr int kWidth = 30;
  const double share = static_cast<double>(done) / total;
  const auto filled = static_cast<std::size_t>(share * kWidth);
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string rest =
      done == 0 ? "" : fmt::format("  about {:.0f} s left", elapsed * (1.0 - share) / share);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f}%  {:.0f} s{}   ", title_, std::string(filled, '='),
             std::string(kWidth - filled, ' '), 100.0 * share, elapsed, done == total ? "" : rest);
  if (done == total) fmt::print(stderr, "\r{:80}\r", "");
  std::fflush(stderr);
}

}  // namespace msrl::cli
