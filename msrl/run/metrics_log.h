// The growing files of a run: metrics.jsonl, evals.jsonl, timing.jsonl and TensorBoard's.
#ifndef MSRL_RUN_METRICS_LOG_H_
#define MSRL_RUN_METRICS_LOG_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "msrl/agents/metrics.h"
#include "msrl/files/atomic_file.h"
#include "msrl/files/state.h"
#include "msrl/run/evaluate.h"

namespace msrl {

using Scalars = std::vector<std::pair<std::string, double>>;

// Bytes of the files that are cut when a run is taken up again.
struct LogSizes {
  std::int64_t metrics = 0;
  std::int64_t evals = 0;
  std::int64_t events = 0;

  void Visit(const Archive& state);
};

// What to do where a file is shorter than it was when the checkpoint was made.
enum class LostLines { kRefuse, kGoOnWithout };

// What is written depends on the run alone, with two exceptions that hold all wall-clock times:
// timing.jsonl and the time stamps of TensorBoard's file.
class MetricsLog {
 public:
  // Cuts the files to these sizes; if lines were lost, to the last whole one. TensorBoard's file
  // then begins anew: a record that is cut makes all after it unreadable.
  MetricsLog(const std::filesystem::path& folder, const LogSizes& sizes,
             LostLines lost = LostLines::kRefuse);
  // UserError that names a file that is shorter and what can be done.
  static void RequireLines(const std::filesystem::path& folder, const LogSizes& sizes);

  // RunError that names the metric, if a value is not finite.
  void Metrics(std::int64_t step, const Scalars& scalars);
  void Evaluation(std::int64_t step, const EvalResult& result, const EnvSpec& spec);
  // A line of timing.jsonl: when a process began, and how fast it is.
  void Started(std::int64_t step);
  // `steps` and `seconds` are this process's; the seconds of its evaluations are among them.
  void Speed(std::int64_t step, std::int64_t steps, double seconds, double evaluation_seconds);

  // Brings all to the disk; how long the files are.
  LogSizes Sync();

 private:
  AppendFile metrics_;
  AppendFile evals_;
  AppendFile events_;
  AppendFile timing_;
};

}  // namespace msrl

#endif  // MSRL_RUN_METRICS_LOG_H_
