#include "msrl/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace msrl::cli {
namespace {

void Write(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

LiveText::LiveText() : terminal_(isatty(STDERR_FILENO) == 1) {}

bool LiveText::Due(double seconds) {
  if (!terminal_ && seconds < next_) return false;
  next_ = seconds < 60.0 ? std::max(1.0, 2.0 * seconds) : seconds + 60.0;
  return true;
}

void LiveText::Show(const std::vector<std::string>& lines) {
  Say(fmt::format("{}", fmt::join(lines, "\n")));
  if (terminal_) shown_ = lines.size();
}

void LiveText::Say(const std::string& text) {
  Clear();
  Write(text + "\n");
}

void LiveText::Clear() {
  for (; shown_ > 0; --shown_) Write("\x1b[A\x1b[2K");
}

ProgressLine::ProgressLine(std::string title)
    : title_(std::move(title)), start_(std::chrono::steady_clock::now()) {}

void ProgressLine::Begin(const std::string& title) {
  if (title == title_) return;
  title_ = title;
  start_ = std::chrono::steady_clock::now();
}

void ProgressLine::Show(int done, int total) {
  if (!text_.terminal() || total <= 0) return;
  if (done == total) return text_.Clear();
  constexpr int kWidth = 30;
  const double share = static_cast<double>(done) / total;
  const auto filled = static_cast<std::size_t>(share * kWidth);
  const double elapsed = SecondsSince(start_);
  const std::string rest =
      done == 0 ? "" : fmt::format("  about {:.0f} s left", elapsed * (1.0 - share) / share);
  text_.Show({fmt::format("{} [{}{}] {:3.0f}%  {:.0f} s{}", title_, std::string(filled, '='),
                          std::string(kWidth - filled, ' '), 100.0 * share, elapsed, rest)});
}

}  // namespace msrl::cli
