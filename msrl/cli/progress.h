// What is under way, on stderr. Where stderr is gone, the work goes on.
#ifndef MSRL_CLI_PROGRESS_H_
#define MSRL_CLI_PROGRESS_H_

#include <chrono>
#include <string>
#include <vector>

namespace msrl::cli {

double SecondsSince(std::chrono::steady_clock::time_point start);

// Lines that are redrawn in their place on a terminal, and written one after another elsewhere.
class LiveText {
 public:
  LiveText();
  bool terminal() const { return terminal_; }
  // Whether to show something, so many seconds after the beginning: always on a terminal, elsewhere
  // after 1 s, 2 s, 4 s, ... 60 s, then every minute.
  bool Due(double seconds);
  void Show(const std::vector<std::string>& lines);
  // A line that stays.
  void Say(const std::string& text);
  void Clear();

 private:
  bool terminal_;
  std::size_t shown_ = 0;
  double next_ = 1.0;
};

// One line with a bar, silent where there is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(std::string title);
  // Another title, and a time that starts anew; nothing changes if it is the title already.
  void Begin(const std::string& title);
  // Shows share, elapsed and remaining time; nothing is left of it once done == total.
  void Show(int done, int total);

 private:
  std::string title_;
  LiveText text_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace msrl::cli

#endif  // MSRL_CLI_PROGRESS_H_
