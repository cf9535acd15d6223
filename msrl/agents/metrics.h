// Figures of merit on their way to the log.
#ifndef MSRL_AGENTS_METRICS_H_
#define MSRL_AGENTS_METRICS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/files/state.h"

namespace msrl {

class MetricSink {
 public:
  virtual ~MetricSink() = default;
  // Names are "group/name", e.g. "loss/critic".
  virtual void Add(std::string_view name, double value) = 0;
};

// Running means under fixed names; part of a checkpoint, so that a log line that spans an
// interruption is the same.
class MetricMeans {
 public:
  explicit MetricMeans(std::vector<std::string> names);

  // `which` counts the names given above. No allocation.
  void Add(std::size_t which, double value);
  // Hands out the means of what has values, then starts anew.
  void Drain(MetricSink& sink);

  void Visit(const Archive& state);

 private:
  std::vector<std::string> names_;
  std::vector<double> sums_;
  std::vector<std::int64_t> counts_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_METRICS_H_
