// One line of progress on stderr: redrawn on a terminal, silent elsewhere.
#ifndef MSRL_CLI_PROGRESS_H_
#define MSRL_CLI_PROGRESS_H_

#include <chrono>
#include <string>

namespace msrl::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string title);
  // Another title, and a time that starts anew; nothing changes if it is the title already.
  void Begin(const std::string& title);
  // Shows share, elapsed and remaining time; a new line once done == total.
  void Show(int done, int total);

 private:
  std::string title_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace msrl::cli

#endif  // MSRL_CLI_PROGRESS_H_
