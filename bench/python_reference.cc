// What bench/python/compare measures the Python package against, in processor time:
//   python_reference describe                microseconds of a dense matrix of 1,000 steps
//   python_reference batch ENV SIZE ROUNDS   environment steps per second of a BatchEnv on one
//                                            thread, 1,000 batches in each round
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/env/batch_env.h"
#include "msrl/env_list/env_list.h"

namespace msrl::bench {
namespace {

constexpr int kDescribed = 100;
constexpr int kBatches = 1000;

double Seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void MeasureDescribe() {
  const Lift::Ptr lift = Lift::Make({.kind = LiftKind::kFull, .d = 8, .q = 10, .slots = {}});
  Rng rng(0, "bench");
  const auto fill = [&rng](Index rows, Index columns) {
    return Eigen::MatrixXd(
        Eigen::MatrixXd::NullaryExpr(rows, columns, [&rng] { return rng.Normal(); }));
  };
  const Segment segment{.x = fill(8, 1001), .a = fill(10, 1000), .r = fill(1000, 1)};
  double sum = Describe(lift, segment).Dense().sum();
  const double begin = Seconds();
  for (int i = 0; i < kDescribed; ++i) sum += Describe(lift, segment).Dense()(0, 0);
  const double seconds = Seconds() - begin;
  std::printf("%.3f %g\n", 1e6 * seconds / kDescribed, sum);
}

void MeasureBatch(const std::string& id, int size, int rounds) {
  std::vector<std::unique_ptr<Env>> envs;
  std::vector<std::uint64_t> seeds;
  for (int i = 0; i < size; ++i) {
    envs.push_back(MakeEnv(id));
    seeds.push_back(static_cast<std::uint64_t>(i));
  }
  BatchEnv batch(std::move(envs), 1);
  Rng rng(0, "bench");
  std::vector<std::vector<ActionBuffer>> actions(
      kBatches, std::vector<ActionBuffer>(seeds.size(), ActionBuffer(batch.spec().action)));
  for (auto& row : actions) {
    for (ActionBuffer& action : row) DrawUniformAction(batch.spec().action, rng, action);
  }
  batch.Reset(seeds);
  const double begin = Seconds();
  for (int round = 0; round < rounds; ++round) {
    for (const auto& row : actions) {
      const auto results = batch.Step(row);
      for (int i = 0; i < size; ++i) {
        const StepResult& result = results[static_cast<std::size_t>(i)];
        if (result.terminated || result.truncated) batch.env(i).Reset(rng.NextU64());
      }
    }
  }
  std::printf("%.1f\n", 1.0 * rounds * kBatches * size / (Seconds() - begin));
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "describe") {
    MeasureDescribe();
  } else if (arguments.size() == 4 && arguments[0] == "batch") {
    MeasureBatch(arguments[1], std::atoi(arguments[2].c_str()), std::atoi(arguments[3].c_str()));
  } else {
    std::fputs("usage: python_reference describe | batch ENV SIZE ROUNDS\n", stderr);
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace msrl::bench

int main(int count, char** arguments) {
  return msrl::bench::Main({arguments + 1, arguments + count});
}
