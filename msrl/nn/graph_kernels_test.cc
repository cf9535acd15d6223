// The versions of the kernels agree, those of AVX2 and AVX-512 in every bit.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "msrl/core/text.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/static_graph.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::RandomMatrix;
using testing::Tol;

// Runs every kernel of both on the same values; they must differ by less than the tolerance, which
// is none where it is 0.
void ExpectAgreement(const internal::GraphKernels& first, const internal::GraphKernels& second,
                     double tolerance) {
  using internal::ConstMatrixView;
  using internal::MatrixView;
  Rng rng(8, "kernels");
  constexpr int kRows = 21;
  constexpr int kColumns = 4;
  const Eigen::MatrixXf a = RandomMatrix(kRows, kColumns, rng).cwiseAbs().array() + 0.1F;
  const Eigen::MatrixXf b = RandomMatrix(kRows, kColumns, rng).cwiseAbs().array() + 0.1F;
  const Eigen::MatrixXf d = RandomMatrix(kRows, kColumns, rng);
  const auto view = [](const Eigen::MatrixXf& m) {
    return ConstMatrixView(m.data(), static_cast<int>(m.rows()), static_cast<int>(m.cols()),
                           m.rows());
  };
  const auto agree = [&](const std::function<void(const internal::GraphKernels&, MatrixView)>& run,
                         const std::string& what) {
    Eigen::MatrixXf one = d;
    Eigen::MatrixXf two = d;
    run(first, {one.data(), kRows, kColumns, kRows});
    run(second, {two.data(), kRows, kColumns, kRows});
    EXPECT_LE((one - two).cwiseAbs().maxCoeff(), tolerance) << what;
    EXPECT_NE(one, d) << what;
  };
  for (int f = 0; f <= static_cast<int>(internal::Unary::kSymexp); ++f) {
    const internal::UnaryFunction u{static_cast<internal::Unary>(f), 0.5F, 0.75F};
    agree([&](const auto& k, MatrixView y) { k.unary(u, view(a), y); }, StrCat("unary ", f));
    agree([&](const auto& k,
              MatrixView y) { k.unary_backward(u, view(a), view(b), view(d), y, true); },
          StrCat("unary backward ", f));
  }
  for (int f = 0; f <= static_cast<int>(internal::Binary::kMax); ++f) {
    const auto binary = static_cast<internal::Binary>(f);
    agree([&](const auto& k, MatrixView y) { k.binary(binary, view(a), view(b), y); },
          StrCat("binary ", f));
    agree(
        [&](const auto& k, MatrixView y) {
          k.binary_backward(binary, view(a), view(b), view(d), y, true, {}, false);
        },
        StrCat("binary backward ", f));
  }
  for (const bool flag : {false, true}) {
    agree([&](const auto& k, MatrixView y) { k.softmax(view(a), 7, flag, y); }, "softmax");
    agree([&](const auto& k,
              MatrixView y) { k.softmax_backward(view(a), 7, flag, view(d), y, true); },
          "softmax backward");
    std::vector<float> points(7);
    for (int i = 0; i < 7; ++i) points[static_cast<std::size_t>(i)] = static_cast<float>(i - 3);
    agree(
        [&](const auto& k, MatrixView y) {
          k.softmax_mean(view(a), 7, points.data(), {y.data, 3, kColumns, kRows},
                         {y.data + 3, 3, kColumns, kRows});
        },
        "softmax mean");
    agree(
        [&](const auto& k, MatrixView y) {
          k.softmax_mean_backward(view(a), 7, flag ? points.data() : nullptr, view(b), view(d),
                                  view(a), y, true);
        },
        "softmax mean backward");
    std::vector<float> moments(2 * kColumns);
    agree(
        [&](const auto& k, MatrixView y) {
          k.normalise(flag, 1e-5F, view(a), b.data(), b.data(), moments.data(), y);
        },
        "norm");
    agree(
        [&](const auto& k, MatrixView y) {
          k.normalise_backward(flag, view(a), b.data(), moments.data(), view(d), nullptr, nullptr,
                               y, true);
        },
        "norm backward");
  }
  // rows between the views' rows: nothing lies together, and nothing else may be written
  constexpr int kWidth = 5;
  Eigen::MatrixXf saved = RandomMatrix(4 * kWidth, kColumns, rng);
  Eigen::MatrixXf d_u(3 * kWidth, kColumns);
  const auto gru = [&](MatrixView y) {
    internal::GruArgs args;
    args.x = {a.data(), 3 * kWidth, kColumns, kRows};
    args.h = {b.data(), kWidth, kColumns, kRows};
    args.saved = {saved.data(), 4 * kWidth, kColumns, 4 * kWidth};
    args.next = {y.data, kWidth, kColumns, kRows};
    args.d_next = {b.data() + kWidth, kWidth, kColumns, kRows};
    args.d_x = {y.data + kWidth, 3 * kWidth, kColumns, kRows};
    args.add_x = true;
    args.d_u = {d_u.data(), 3 * kWidth, kColumns, 3 * kWidth};
    return args;
  };
  const Eigen::MatrixXf before = saved;
  agree(
      [&](const auto& k, MatrixView y) {
        saved = before;
        k.gru(gru(y));
        k.gru_backward(gru(y));
      },
      "gru");
}

TEST(GraphKernelsTest, Avx2AgreesWithThePortable) {
  if (internal::Avx2Kernels() == nullptr) GTEST_SKIP() << "no AVX2";
  ExpectAgreement(internal::Avx2Kernels()->graph, internal::PortableKernels().graph, Tol(2e-5));
}

// So a run may move between processors that have AVX-512 and that do not.
TEST(GraphKernelsTest, Avx512GivesTheBitsOfAvx2) {
  if (internal::Avx512Kernels() == nullptr) GTEST_SKIP() << "no AVX-512";
  ExpectAgreement(internal::Avx512Kernels()->graph, internal::Avx2Kernels()->graph, 0.0);
}

}  // namespace
}  // namespace msrl
