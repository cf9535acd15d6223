#include "msrl/nn/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/testing/tolerance.h"

namespace msrl::internal {
namespace {

using testing::Tol;

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all{&PortableKernels()};
  if (Avx2Kernels() != nullptr) all.push_back(Avx2Kernels());
  if (Avx512Kernels() != nullptr) all.push_back(Avx512Kernels());
  return all;
}

std::vector<float> RandomVector(std::size_t n, Rng& rng) {
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  return values;
}

// A product of random shape, layout and epilogue, edge sizes preferred.
struct RandomGemm {
  explicit RandomGemm(Rng& rng) {
    const auto pick = [&rng](std::initializer_list<int> sizes) {
      return *(sizes.begin() + rng.Index(static_cast<std::int64_t>(sizes.size())));
    };
    g.m = pick({1, 2, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 48, 64, 70, 130});
    g.n = pick({1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25});
    g.k = pick({1, 2, 7, 8, 9, 16, 31, 100, 256, 257, 300});
    a = RandomVector(std::size_t(g.m + 1) * (g.k + 1), rng);
    b = RandomVector(std::size_t(g.n + 1) * (g.k + 1), rng);
    start = RandomVector(std::size_t(g.m + 1) * (g.n + 1), rng);
    bias = RandomVector(g.m, rng);
    gate = RandomVector(start.size(), rng);
    a_transposed = rng.Bernoulli(0.5);
    b_transposed = rng.Bernoulli(0.5);
    c_transposed = rng.Bernoulli(0.2);
    g.a_row = a_transposed ? g.k + 1 : 1;
    g.a_col = a_transposed ? 1 : g.m + 1;
    g.b_row = b_transposed ? g.n + 1 : 1;
    g.b_col = b_transposed ? 1 : g.k + 1;
    g.c_row = c_transposed ? g.n + 1 : 1;
    g.c_col = c_transposed ? 1 : g.m + 1;
    g.accumulate = rng.Bernoulli(0.2);
    if (!g.accumulate && rng.Bernoulli(0.5)) g.bias = bias.data();
    wants_sums = rng.Bernoulli(0.4);
    g.epilogue = static_cast<Epilogue>(rng.Index(3));
    g.a = a.data();
    g.b = b.data();
    g.gate = gate.data();
  }

  void Run(const Kernels& kernels) {
    c = start;
    sums.assign(static_cast<std::size_t>(g.m), 1e9F);
    g.c = c.data();
    g.row_sum = wants_sums ? sums.data() : nullptr;
    kernels.gemm(g);
  }

  GemmArgs g;
  bool a_transposed = false, b_transposed = false, c_transposed = false, wants_sums = false;
  std::vector<float> a, b, start, bias, gate;
  std::vector<float> c, sums;  // of the last run
};

// Every combination of layouts, epilogues and edge sizes, against sums in double.
TEST(KernelsTest, GemmMatchesTheDefinition) {
  Rng rng(1, "gemm");
  for (const Kernels* kernels : AllKernels()) {
    for (int round = 0; round < 400; ++round) {
      RandomGemm product(rng);
      product.Run(*kernels);
      const GemmArgs& g = product.g;
      const std::vector<float>& c = product.c;
      const std::vector<float>& start = product.start;

      std::vector<bool> written(c.size());
      for (int i = 0; i < g.m; ++i) {
        double row_sum = 0.0;
        for (int p = 0; p < g.k; ++p) row_sum += g.a[i * g.a_row + p * g.a_col];
        if (g.row_sum != nullptr) {
          ASSERT_NEAR(product.sums[i], row_sum, Tol(5e-5));
        }
        for (int j = 0; j < g.n; ++j) {
          const auto at = static_cast<std::size_t>(i * g.c_row + j * g.c_col);
          double sum = g.accumulate ? start[at] : g.bias == nullptr ? 0.0 : g.bias[i];
          double largest = std::abs(sum);
          for (int p = 0; p < g.k; ++p) {
            sum += static_cast<double>(g.a[i * g.a_row + p * g.a_col]) *
                   g.b[p * g.b_row + j * g.b_col];
            largest = std::max(largest, std::abs(sum));
          }
          // k roundings of half an ulp at most, of either sign, each of a partial sum
          const double bound = Tol(0x1p-22) * std::sqrt(g.k) * std::max(largest, 1.0);
          if (g.epilogue == Epilogue::kRelu) sum = std::max(sum, 0.0);
          if (g.epilogue == Epilogue::kReluGate && !(g.gate[at] > 0.0F)) sum = 0.0;
          ASSERT_NEAR(c[at], sum, bound)
              << kernels->name << " " << g.m << " x " << g.n << " x " << g.k << " at " << i << ", "
              << j << " layouts " << product.a_transposed << product.b_transposed
              << product.c_transposed;
          written[at] = true;
        }
      }
      for (std::size_t i = 0; i < c.size(); ++i) {
        if (written[i]) continue;
        ASSERT_EQ(c[i], start[i]) << "written outside";
      }
    }
  }
}

// The largest error in units of the last place of the true value.
double LargestUlps(const std::vector<float>& x, const std::vector<float>& y,
                   const std::function<double(double)>& f) {
  double largest = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double truth = f(x[i]);
    const float size = std::abs(static_cast<float>(truth));
    const double ulp = std::max(std::nextafter(size, INFINITY) - size, 1.2e-38F);
    largest = std::max(largest, std::abs(y[i] - truth) / ulp);
  }
  return largest;
}

TEST(KernelsTest, ElementaryFunctionsAreAccurate) {
  std::vector<float> exp_x;
  std::vector<float> log_x;
  std::vector<float> tanh_x{0.0F, -0.0F, 1e-30F, 100.0F, -100.0F, 0.625F, -0.6250001F};
  for (int i = 0; i <= 100'003; ++i) {
    const double t = i / 100'003.0;
    exp_x.push_back(static_cast<float>(-86.9 + 173.8 * t));
    log_x.push_back(static_cast<float>(std::exp(-80.0 + 160.0 * t)));
    log_x.push_back(static_cast<float>(0.5 + 2.0 * t));
    tanh_x.push_back(static_cast<float>(-12.0 + 24.0 * t));
  }
  for (const Kernels* kernels : AllKernels()) {
    std::vector<float> y(exp_x.size());
    kernels->exp(exp_x.data(), y.data(), y.size());
    EXPECT_LT(LargestUlps(exp_x, y, [](double x) { return std::exp(x); }), 3.0);
    y.resize(log_x.size());
    kernels->log(log_x.data(), y.data(), y.size());
    EXPECT_LT(LargestUlps(log_x, y, [](double x) { return std::log(x); }), 3.0);
    y.resize(tanh_x.size());
    kernels->tanh(tanh_x.data(), y.data(), y.size());
    EXPECT_LT(LargestUlps(tanh_x, y, [](double x) { return std::tanh(x); }), 3.0);
    EXPECT_GT(LargestUlps(tanh_x, y, [](double x) { return std::tanh(x * 1.000001); }), 3.0);
    EXPECT_EQ(y[3], 1.0F);
    EXPECT_EQ(y[4], -1.0F);
  }
}

TEST(KernelsTest, NotANumberIsNotHidden) {
  for (const Kernels* kernels : AllKernels()) {
    const float nan = NAN;
    float y = 0.0F;
    kernels->exp(&nan, &y, 1);
    EXPECT_TRUE(std::isnan(y));
    kernels->tanh(&nan, &y, 1);
    EXPECT_TRUE(std::isnan(y));
  }
}

// So a run may move between processors that have AVX-512 and that do not.
TEST(KernelsTest, Avx512GivesTheBitsOfAvx2) {
  if (Avx512Kernels() == nullptr) GTEST_SKIP() << "no AVX-512 here";
  Rng rng(3, "gemm");
  for (int round = 0; round < 2000; ++round) {
    RandomGemm product(rng);
    product.Run(*Avx2Kernels());
    const std::vector<float> c = product.c;
    const std::vector<float> sums = product.sums;
    product.Run(*Avx512Kernels());
    ASSERT_EQ(product.c, c) << product.g.m << " x " << product.g.n << " x " << product.g.k;
    ASSERT_EQ(product.sums, sums);
  }
  const std::vector<float> x = RandomVector(1003, rng);
  EXPECT_EQ(Avx512Kernels()->sum_of_squares(x.data(), x.size()),
            Avx2Kernels()->sum_of_squares(x.data(), x.size()));
  // every length of what is left behind full vectors
  for (std::size_t n = 64; n <= 80; ++n) {
    const auto same = [&](const auto& run) {
      std::vector<float> y[2] = {x, x};
      run(*Avx2Kernels(), y[0].data());
      run(*Avx512Kernels(), y[1].data());
      EXPECT_EQ(y[0], y[1]);
      EXPECT_NE(y[0], x);
    };
    for (const Activation f : {Activation::kRelu, Activation::kTanh, Activation::kElu,
                               Activation::kSilu, Activation::kMish}) {
      same([&](const Kernels& k, float* y) { k.activate(f, x.data() + 1, y, n); });
      same([&](const Kernels& k, float* y) { k.activate_backward(f, x.data() + 1, y, n); });
    }
    same([&](const Kernels& k, float* y) { k.exp(x.data(), y, n); });
    same([&](const Kernels& k, float* y) { k.tanh(x.data(), y, n); });
    same([&](const Kernels& k, float* y) {
      k.exp(x.data(), y, n);
      k.log(y, y, n);
    });
    same([&](const Kernels& k, float* y) { k.polyak(y, x.data() + 1, 0.1F, n); });
    same([&](const Kernels& k, float* y) {
      std::vector<float> mean = x;
      std::vector<float> variance(x.size(), 0.25F);
      std::vector<float> target = x;
      k.adam({n, y, x.data() + 1, mean.data(), variance.data(), target.data(), 0.1F, 1.0F, 0.1F,
              0.001F, 3e-4F, 1.5F, 1e-8F, 0.999F});
      k.laprop({n, y, x.data() + 1, mean.data(), variance.data(), 1.0F, 0.1F, 0.001F, 3e-4F, 1.5F,
                1e-8F});
      for (std::size_t i = 0; i < n; ++i) y[i] += mean[i] + variance[i] + target[i];
    });
  }
}

TEST(KernelsTest, InstructionSetsAgree) {
  if (Avx2Kernels() == nullptr) GTEST_SKIP() << "no AVX2 here";
  EXPECT_EQ(&ActiveKernels(), AllKernels().back());
  Rng rng(2, "kernels");
  const std::vector<float> x = RandomVector(1003, rng);
  for (const Activation f : {Activation::kIdentity, Activation::kRelu, Activation::kTanh,
                             Activation::kElu, Activation::kSilu, Activation::kMish}) {
    std::vector<float> h[2] = {x, x};
    std::vector<float> d[2] = {x, x};
    for (int k = 0; k < 2; ++k) {
      const Kernels& kernels = *AllKernels()[k];
      kernels.activate(f, x.data(), h[k].data(), x.size());
      kernels.activate_backward(f, h[0].data(), d[k].data(), x.size());
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(h[0][i], h[1][i], Tol(1e-6));
      ASSERT_NEAR(d[0][i], d[1][i], Tol(1e-6));
    }
  }
  EXPECT_NEAR(PortableKernels().sum_of_squares(x.data(), x.size()),
              Avx2Kernels()->sum_of_squares(x.data(), x.size()), Tol(1e-3));
  std::vector<std::uint32_t> words(160);
  for (std::uint32_t& word : words) word = rng.NextU32();
  words[0] = 0;
  words[1] = 0xffffffffU;
  words[9] = 0x80000000U;
  std::vector<float> normals[2] = {std::vector<float>(160), std::vector<float>(160)};
  for (int k = 0; k < 2; ++k) AllKernels()[k]->normals(words.data(), normals[k].data(), 10);
  for (std::size_t i = 0; i < 160; ++i) ASSERT_NEAR(normals[0][i], normals[1][i], Tol(1e-5));
  EXPECT_GT(std::hypot(normals[0][0], normals[0][8]), 6.6);
}

}  // namespace
}  // namespace msrl::internal
