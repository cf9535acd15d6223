#include <benchmark/benchmark.h>
#include <cblas.h>

#include <Eigen/Core>
#include <vector>

#include "bench/ratio_main.h"
#include "msrl/core/gauge.h"
#include "msrl/core/gluing.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

extern "C" void openblas_set_num_threads(int threads);

namespace msrl::bench {
namespace {

Eigen::MatrixXd RandomMatrix(Index rows, Index columns) {
  Rng rng(0, "bench");
  Eigen::MatrixXd matrix(rows, columns);
  for (double& value : matrix.reshaped()) value = rng.Normal();
  return matrix;
}

Lift::Ptr PaperCompact() { return Lift::Make({LiftKind::kCompact, 8, 10, {}}); }  // m = 28
Lift::Ptr PaperFull() { return Lift::Make({LiftKind::kFull, 8, 10, {}}); }        // m = 178

// ---- one step, m = 28 ----

void StepPacked(benchmark::State& state) {
  SegmentMatrix matrix(PaperCompact());
  const Eigen::VectorXd psi = RandomMatrix(matrix.dim(), 1);
  for (auto _ : state) {
    matrix.AddStep(psi);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(StepPacked);

void StepEigenDense(benchmark::State& state) {
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(28, 28);
  const Eigen::VectorXd psi = RandomMatrix(28, 1);
  for (auto _ : state) {
    matrix += psi * psi.transpose();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(StepEigenDense);

void StepEigenDenseNoAlias(benchmark::State& state) {
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(28, 28);
  const Eigen::VectorXd psi = RandomMatrix(28, 1);
  for (auto _ : state) {
    matrix.noalias() += psi * psi.transpose();
    benchmark::ClobberMemory();
  }
}
BENCHMARK(StepEigenDenseNoAlias);

void LiftAndStep(benchmark::State& state) {
  const Lift::Ptr lift = PaperCompact();
  SegmentMatrix matrix(lift);
  const Eigen::MatrixXd x = RandomMatrix(8, 2);
  const Eigen::VectorXd a = RandomMatrix(10, 1);
  Eigen::VectorXd psi(lift->m());
  for (auto _ : state) {
    lift->Apply(x.col(0), a, 0.5, x.col(1), psi);
    matrix.AddStep(psi);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(LiftAndStep);

// ---- a whole segment, T = 1000, m = 178 ----

void SegmentBatched(benchmark::State& state) {
  SegmentMatrix matrix(PaperFull());
  const Eigen::MatrixXd psi = RandomMatrix(matrix.dim(), 1000);
  for (auto _ : state) {
    matrix.AddSteps(psi);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(SegmentBatched)->Unit(benchmark::kMicrosecond);

void SegmentBlasDsyrk(benchmark::State& state) {
  openblas_set_num_threads(1);
  constexpr int kDim = 178;
  const Eigen::MatrixXd psi = RandomMatrix(kDim, 1000);
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(kDim, kDim);
  for (auto _ : state) {
    cblas_dsyrk(CblasColMajor, CblasUpper, CblasNoTrans, kDim, 1000, 1.0, psi.data(), kDim, 1.0,
                matrix.data(), kDim);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(SegmentBlasDsyrk)->Unit(benchmark::kMicrosecond);

void SegmentEigenRankUpdate(benchmark::State& state) {
  const Eigen::MatrixXd psi = RandomMatrix(178, 1000);
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(178, 178);
  for (auto _ : state) {
    matrix.selfadjointView<Eigen::Upper>().rankUpdate(psi);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(SegmentEigenRankUpdate)->Unit(benchmark::kMicrosecond);

void SegmentStepByStep(benchmark::State& state) {
  SegmentMatrix matrix(PaperFull());
  const Eigen::MatrixXd psi = RandomMatrix(matrix.dim(), 1000);
  for (auto _ : state) {
    for (Index t = 0; t < psi.cols(); ++t) matrix.AddStep(psi.col(t));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(SegmentStepByStep)->Unit(benchmark::kMicrosecond);

// ---- gluing K overlapping windows, m = 28: planned and summed from stored matrices ----

void GlueWindows(benchmark::State& state) {
  const Index count = state.range(0);
  const Lift::Ptr lift = PaperCompact();
  std::vector<Interval> cover;
  for (Index k = 0; k < count; ++k) cover.push_back({4 * k, 4 * k + 6});
  const Index horizon = cover.back().end;
  SegmentMatrix piece(lift);
  piece.AddSteps(RandomMatrix(lift->m(), 6));
  const IntervalGluing plan = PlanIntervalGluing(cover, horizon);
  const std::vector<SegmentMatrix> pieces(plan.pieces.size(), piece);
  const std::vector<SegmentMatrix> overlaps(plan.overlaps.size(), piece);
  for (auto _ : state) {
    benchmark::DoNotOptimize(GlueIntervals(PlanIntervalGluing(cover, horizon), pieces, overlaps));
  }
}
BENCHMARK(GlueWindows)->Arg(125)->Arg(250)->Arg(500)->Arg(1000)->Unit(benchmark::kMicrosecond);

// ---- the rest, for the record ----

void GaugeFull(benchmark::State& state) {
  SegmentMatrix matrix(PaperFull());
  matrix.AddSteps(RandomMatrix(matrix.dim(), 400));
  const Gauge gauge{RandomMatrix(8, 8), RandomMatrix(10, 10)};
  for (auto _ : state) benchmark::DoNotOptimize(ApplyGauge(matrix, gauge));
}
BENCHMARK(GaugeFull)->Unit(benchmark::kMicrosecond);

void Distance28(benchmark::State& state) {
  SegmentMatrix a(PaperCompact());
  SegmentMatrix b(PaperCompact());
  a.AddSteps(RandomMatrix(28, 50));
  b.AddSteps(RandomMatrix(28, 60));
  for (auto _ : state) benchmark::DoNotOptimize(a.Distance(b));
}
BENCHMARK(Distance28);

}  // namespace

std::vector<Promise> Promises() {
  return {{"packed step vs Eigen M += psi psi^T, m=28", "StepEigenDense", "StepPacked", 2.0},
          {"packed step vs Eigen M.noalias() += psi psi^T, m=28", "StepEigenDenseNoAlias",
           "StepPacked", 2.0},
          {"speed of batched accumulation vs BLAS dsyrk, T=1000 m=178", "SegmentBlasDsyrk",
           "SegmentBatched", 0.8},
          {"gluing is linear: 8 * time of 125 windows / time of 1000", "GlueWindows/125",
           "GlueWindows/1000", 0.8, 8.0}};
}

}  // namespace msrl::bench
