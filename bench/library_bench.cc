// Adding to and searching the segment library. Contexts are the geometry of source episodes, played
// by behaviours from anti-expert to expert; queries are states of episodes that are not in the
// library. MSRL_LIBRARY_ENTRIES sets how many segments the indexed library has (20,000; the figure
// we promise is for 1,000,000, which takes minutes to build).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/ratio_main.h"
#include "msrl/core/rng.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"
#include "msrl/memory/segment_library.h"

namespace msrl::bench {
namespace {

using Context = std::array<float, kGeometrySize>;

constexpr int kNeighbours = 8;
constexpr std::size_t kQueries = 1024;  // a power of two: the index wraps by a mask

// States in the order in which they were met.
std::vector<Context> PlayedContexts(const std::string& id, std::size_t count, std::uint64_t seed) {
  const auto env = MakeEnv(id);
  Rng rng(seed, "bench");
  std::vector<Context> contexts;
  while (contexts.size() < count) {
    env->Reset(++seed);
    Behaviour behaviour = MakeBehaviour(*env, rng);
    for (bool ended = false; !ended && contexts.size() < count;) {
      const EnvView geometry = env->geometry();
      Context context;
      for (int i = 0; i < kGeometrySize; ++i)
        context[static_cast<std::size_t>(i)] = static_cast<float>(geometry[i]);
      contexts.push_back(context);
      const StepResult result = env->Step(behaviour.Act());
      ended = result.terminated || result.truncated;
    }
  }
  return contexts;
}

SegmentLibraryConfig LibraryConfig(std::int64_t capacity) {
  SegmentLibraryConfig config;
  config.capacity = capacity;
  config.lift = CompactLift();
  config.action_size = 1;
  config.observation_size = 8;
  config.discrete = true;
  return config;
}

// A segment of the compact lift with four actions.
class Segments {
 public:
  explicit Segments(std::vector<Context> contexts) : contexts_(std::move(contexts)) {
    psi_[psi_.size() - 1] = 1.0;
  }
  SegmentView operator[](std::size_t i) {
    action_ = static_cast<float>(i % 4);
    SegmentView view;
    view.psi = {psi_.data(), static_cast<std::size_t>(psi_.size())};
    view.head_action = {&action_, 1};
    view.context = contexts_[i % contexts_.size()];
    view.tail_observation = tail_;
    view.tail_geometry = tail_;
    return view;
  }

 private:
  std::vector<Context> contexts_;
  Eigen::VectorXd psi_ = Eigen::VectorXd::Zero(CompactLift()->m());
  Context tail_{};
  float action_ = 0.0F;
};

std::unique_ptr<SegmentLibrary> Filled(const std::string& env, const SegmentLibraryConfig& config,
                                       std::int64_t adds) {
  auto library = std::make_unique<SegmentLibrary>(config);
  Segments segments(PlayedContexts(env, static_cast<std::size_t>(adds), 0));
  Rng rng(0, "library");
  for (std::int64_t i = 0; i < adds; ++i) library->Add(segments[static_cast<std::size_t>(i)], rng);
  return library;
}

void Search(benchmark::State& state, const SegmentLibrary& library, const std::string& env,
            QueryOptions options) {
  const std::vector<Context> queries = PlayedContexts(env, 50 * kQueries, 1'000'000'000);
  options.k = kNeighbours;
  const auto query = [&](std::size_t i) -> const Context& {
    return queries[50 * (i & (kQueries - 1))];
  };
  std::array<Neighbour, kNeighbours> out;
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(library.Query(query(next++), options, out));
  // once more, against the truth; a neighbour as near as the last true one counts
  int wanted = 0;
  int found = 0;
  for (std::size_t i = 0; i < kQueries; i += 4) {
    std::array<Neighbour, kNeighbours> truth;
    const int true_count = library.QueryExactly(query(i), options, truth);
    const int count = library.Query(query(i), options, out);
    wanted += true_count;
    for (int j = 0; j < count; ++j) {
      found += out[static_cast<std::size_t>(j)].distance <=
               truth[static_cast<std::size_t>(true_count - 1)].distance;
    }
  }
  state.counters["recall"] = wanted == 0 ? 1.0 : static_cast<double>(found) / wanted;
  state.counters["entries"] = static_cast<double>(library.size());
}

const float kAction = 1.0F;
const QueryOptions kAny;
const QueryOptions kWithAction{.k = 0, .radius = 0.5F, .head_action = {&kAction, 1}};

void Exact(benchmark::State& state, const std::string& env, const QueryOptions& options) {
  static std::map<std::string, std::unique_ptr<SegmentLibrary>> libraries;
  auto& library = libraries[env];
  if (library == nullptr) library = Filled(env, LibraryConfig(5000), 12'000);
  Search(state, *library, env, options);
}
BENCHMARK_CAPTURE(Exact, point_rooms, "point-rooms", kAny)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Exact, point_rooms_action, "point-rooms", kWithAction)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Exact, micro_grid, "micro-grid", kAny)->Unit(benchmark::kMicrosecond);

std::int64_t IndexedEntries() {
  const char* const text = std::getenv("MSRL_LIBRARY_ENTRIES");
  return text == nullptr ? 20'000 : std::max<std::int64_t>(1000, std::atoll(text));
}

void Indexed(benchmark::State& state, const std::string& env, const QueryOptions& options,
             bool replaced) {
  static std::map<std::pair<std::string, bool>, std::unique_ptr<SegmentLibrary>> libraries;
  auto& library = libraries[{env, replaced}];
  if (library == nullptr) {
    const std::int64_t entries = IndexedEntries();
    SegmentLibraryConfig config = LibraryConfig(entries);
    config.exact_limit = std::min(config.exact_limit, entries / 20);
    library = Filled(env, config, replaced ? entries + entries / 2 : entries);
  }
  Search(state, *library, env, options);
}
BENCHMARK_CAPTURE(Indexed, point_rooms, "point-rooms", kAny, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Indexed, point_rooms_action, "point-rooms", kWithAction, false)
    ->Unit(benchmark::kMicrosecond);
// half of the segments have been replaced: two graphs
BENCHMARK_CAPTURE(Indexed, dubins_replaced, "dubins-reacher", kAny, true)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Indexed, micro_grid, "micro-grid", kAny, false)->Unit(benchmark::kMicrosecond);

void Adds(benchmark::State& state, LibraryPolicy policy, std::int64_t exact_limit) {
  SegmentLibraryConfig config = LibraryConfig(5000);
  config.policy = policy;
  config.exact_limit = exact_limit;
  SegmentLibrary library(config);
  Segments segments(PlayedContexts("point-rooms", 50'000, 0));
  Rng rng(0, "library");
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(library.Add(segments[next++], rng));
}
BENCHMARK_CAPTURE(Adds, fifo, LibraryPolicy::kFifo, 5000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Adds, by_value, LibraryPolicy::kByValue, 5000)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Adds, fifo_indexed, LibraryPolicy::kFifo, 100)->Unit(benchmark::kMicrosecond);

}  // namespace

// Times and recalls, not ratios: what is wanted is in bench/README.md.
std::vector<Promise> Promises() { return {}; }

}  // namespace msrl::bench
