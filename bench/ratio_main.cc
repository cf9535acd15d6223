#include "bench/ratio_main.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>

namespace {

// Keeps the median time of every benchmark, in seconds per iteration: processor time, which others
// on the machine disturb less, unless the benchmark asks for real time.
class RatioReporter : public benchmark::ConsoleReporter {
 public:
  RatioReporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.aggregate_name != "median") continue;
      const std::string& arguments = run.run_name.args;
      const std::string name =
          run.run_name.function_name + (arguments.empty() ? "" : "/" + arguments);
      const bool is_real = run.run_name.time_type == "real_time";
      medians_[name] = (is_real ? run.GetAdjustedRealTime() : run.GetAdjustedCPUTime()) /
                       benchmark::GetTimeUnitMultiplier(run.time_unit);
      if (const auto ratio = run.counters.find("ratio"); ratio != run.counters.end()) {
        ratios_[name] = ratio->second;
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

  // 0 if it did not run.
  double Ratio(const std::string& name) const {
    const auto entry = ratios_.find(name);
    return entry == ratios_.end() ? 0.0 : entry->second;
  }
  double Median(const std::string& name) const {
    const auto entry = medians_.find(name);
    return entry == medians_.end() ? 0.0 : entry->second;
  }

 private:
  std::map<std::string, double> medians_;
  std::map<std::string, double> ratios_;
};

}  // namespace

int main(int argc, char** argv) {
  // our defaults come first, so that the caller's flags win
  std::vector<std::string> defaults{
      "", "--benchmark_repetitions=9", "--benchmark_enable_random_interleaving=true",
      "--benchmark_min_time=0.05", "--benchmark_display_aggregates_only=true"};
  std::vector<char*> arguments{argv[0]};
  for (std::size_t i = 1; i < defaults.size(); ++i) arguments.push_back(defaults[i].data());
  for (int i = 1; i < argc; ++i) arguments.push_back(argv[i]);
  auto count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);

  if (msrl::bench::Promises().empty()) return 0;
  std::printf("\n%-64s %9s %9s\n", "ratio of median processor times", "measured", "promised");
  for (const msrl::bench::Promise& promise : msrl::bench::Promises()) {
    double ratio = reporter.Ratio(promise.fast);
    if (!promise.slow.empty()) {
      const double fast = reporter.Median(promise.fast);
      ratio = fast == 0.0 ? 0.0 : promise.factor * reporter.Median(promise.slow) / fast;
    }
    if (ratio == 0.0) continue;
    std::printf("%-64s %9.2f %9.2f %s\n", promise.what.c_str(), ratio, promise.at_least,
                ratio >= promise.at_least ? "met" : "NOT MET");
  }
  return 0;
}
