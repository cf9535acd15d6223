// main() of every benchmark: runs the benchmarks several times in interleaved order and then prints
// the promised ratios of medians. Absolute times depend on the machine and its load; ratios within
// one run much less. Times are those of the processor: everything measured runs on one thread, and
// other programs may use the machine.
#ifndef BENCH_RATIO_MAIN_H_
#define BENCH_RATIO_MAIN_H_

#include <string>
#include <vector>

namespace msrl::bench {

// factor * time(slow) / time(fast) should be at least `at_least`. Without `slow` it is the counter
// "ratio" of the benchmark `fast`, which then measures both sides in turn: for differences smaller
// than what a shared machine changes within a minute.
struct Promise {
  std::string what;
  std::string slow;  // benchmark names
  std::string fast;
  double at_least;
  double factor = 1.0;
};

// Each benchmark program defines its list.
std::vector<Promise> Promises();

}  // namespace msrl::bench

#endif  // BENCH_RATIO_MAIN_H_
