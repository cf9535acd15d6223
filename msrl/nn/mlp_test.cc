#include "msrl/nn/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::RandomMatrix;
using testing::Slope;
using testing::Tol;
using testing::UserErrorText;

double Apply(Activation f, double x) {
  switch (f) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kElu:
      return x > 0.0 ? x : std::expm1(x);
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
  }
  return NAN;
}

// The same network in double, written from the names and shapes of its tensors.
Eigen::MatrixXd Reference(const Mlp& mlp, const std::vector<double>& parameters,
                          const Eigen::MatrixXd& input) {
  const MlpSpec& spec = mlp.spec();
  Eigen::MatrixXd output(spec.output * spec.members, input.cols());
  std::size_t next = 0;
  const auto take = [&](const std::string& end) {
    const NamedTensor& tensor = mlp.tensors().at(next++);
    EXPECT_TRUE(tensor.name.ends_with(end)) << tensor.name;
    return Eigen::Map<const Eigen::MatrixXd>(parameters.data() + tensor.offset, tensor.rows,
                                             tensor.columns);
  };
  for (int k = 0; k < spec.members; ++k) {
    Eigen::MatrixXd x = input.rows() == spec.input
                            ? input
                            : Eigen::MatrixXd(input.middleRows(k * spec.input, spec.input));
    for (std::size_t l = 0; l <= spec.hidden.size(); ++l) {
      const bool last = l == spec.hidden.size();
      const Eigen::MatrixXd weight = take("weight");
      x = (weight * x).colwise() + Eigen::VectorXd(take("bias"));
      if (spec.layer_norm && !last) {
        const Eigen::VectorXd scale = take("norm.weight");
        const Eigen::VectorXd shift = take("norm.bias");
        for (auto column : x.colwise()) {
          const double mean = column.mean();
          const double variance = (column.array() - mean).square().mean();
          column = ((column.array() - mean) / std::sqrt(variance + 1e-5)).matrix();
          column = column.cwiseProduct(scale) + shift;
        }
      }
      const Activation f = last ? spec.output_activation : spec.activation;
      x = x.unaryExpr([f](double v) { return Apply(f, v); });
    }
    output.middleRows(k * spec.output, spec.output) = x;
  }
  return output;
}

struct Case {
  std::string name;
  MlpSpec spec;
  bool own_inputs = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class MlpGradientTest : public ::testing::TestWithParam<Case> {};

TEST_P(MlpGradientTest, MatchesCentralDifferences) {
  const MlpSpec& spec = GetParam().spec;
  const int batch = 5;
  Rng rng(1, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  for (const NamedTensor& tensor : mlp.tensors()) {
    if (tensor.name.find("norm") == std::string::npos) continue;
    for (std::size_t i = 0; i < tensor.size(); ++i) {
      mlp.parameters()[tensor.offset + i] += static_cast<float>(0.3 * rng.Normal());
    }
  }
  const int rows = spec.input * (GetParam().own_inputs ? spec.members : 1);
  const Eigen::MatrixXf input = RandomMatrix(rows, batch, rng);
  const Eigen::MatrixXf d_output = RandomMatrix(spec.output * spec.members, batch, rng);

  MlpTape tape(spec, batch + 2);
  const Eigen::MatrixXf output = mlp.Forward(input, tape);
  std::vector<float> gradients(mlp.parameter_count(), 1e9F);
  Eigen::MatrixXf d_input(rows, batch);
  mlp.Backward(d_output, tape, gradients, 0, d_input);

  std::vector<double> p(mlp.parameters().begin(), mlp.parameters().end());
  Eigen::MatrixXd x = input.cast<double>();
  const Eigen::MatrixXd reference = Reference(mlp, p, x);
  EXPECT_LT((output.cast<double>() - reference).cwiseAbs().maxCoeff(), Tol(2e-6));
  const auto loss = [&] {
    return Reference(mlp, p, x).cwiseProduct(d_output.cast<double>()).sum();
  };
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double slope = Slope(p[i], loss);
    ASSERT_NEAR(gradients[i], slope, Tol(2e-5) * (1.0 + std::abs(slope))) << "parameter " << i;
  }
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const double slope = Slope(x.data()[i], loss);
    ASSERT_NEAR(d_input.data()[i], slope, Tol(2e-5) * (1.0 + std::abs(slope))) << "input " << i;
  }

  // a second pass over the same tape, and parts of it
  std::vector<float> again(mlp.parameter_count());
  mlp.Backward(d_output, tape, again);
  EXPECT_EQ(again, gradients);
  const int blocks = rows / spec.input;
  Eigen::MatrixXf some(2 * blocks, batch);
  mlp.InputGradient(d_output, tape, 1, some);
  for (int k = 0; k < blocks; ++k) {
    const auto whole = d_input.middleRows(k * spec.input + 1, 2);
    EXPECT_LT((some.middleRows(2 * k, 2) - whole).cwiseAbs().maxCoeff(), Tol(1e-6));
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Activation f : {Activation::kIdentity, Activation::kRelu, Activation::kTanh,
                             Activation::kElu, Activation::kSilu, Activation::kMish}) {
    for (const bool norm : {false, true}) {
      const std::string name{ActivationName(f)};
      cases.push_back(
          {name + (norm ? "_norm" : ""),
           {.input = 5, .hidden = {18, 9}, .output = 3, .activation = f, .layer_norm = norm}});
    }
  }
  cases.push_back({"linear", {.input = 4, .hidden = {}, .output = 2}});
  cases.push_back(
      {"tanh_output",
       {.input = 3, .hidden = {16}, .output = 5, .output_activation = Activation::kTanh}});
  cases.push_back({"twins", {.input = 6, .hidden = {17, 20}, .output = 1, .members = 2}});
  cases.push_back({"own_inputs",
                   {.input = 3,
                    .hidden = {8, 33},
                    .output = 2,
                    .activation = Activation::kSilu,
                    .output_activation = Activation::kTanh,
                    .layer_norm = true,
                    .members = 3},
                   true});
  cases.push_back({"deep", {.input = 3, .hidden = {4, 5, 6, 7}, .output = 17}});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, MlpGradientTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

TEST(MlpTest, WideLayersMatchTheReference) {
  // more than one pass of 256 over the depth, padded columns
  const MlpSpec spec{.input = 300, .hidden = {256, 384}, .output = 2, .members = 2};
  Rng rng(2, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  MlpTape tape(spec, 13);
  const Eigen::MatrixXf input = RandomMatrix(300, 13, rng);
  const Eigen::MatrixXf output = mlp.Forward(input, tape);
  const std::vector<double> p(mlp.parameters().begin(), mlp.parameters().end());
  EXPECT_LT((output.cast<double>() - Reference(mlp, p, input.cast<double>())).norm(), Tol(1e-5));
}

TEST(MlpTest, ColumnsDontDependOnEachOther) {
  const MlpSpec spec{.input = 5, .hidden = {64, 64}, .output = 3};
  Rng rng(3, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  MlpTape tape(spec, 20);
  MlpTape one(spec, 1);
  const Eigen::MatrixXf input = RandomMatrix(5, 20, rng);
  const Eigen::MatrixXf all = mlp.Forward(input, tape);
  for (int b = 0; b < 20; ++b) {
    EXPECT_LT((mlp.Forward(input.col(b), one) - all.col(b)).norm(), Tol(1e-6));
  }
}

// Inputs that are zero in the whole batch take no part: the network is the smaller one without
// them.
TEST(MlpTest, ZeroInputsAreLeftOut) {
  const MlpSpec spec{.input = 40,
                     .hidden = {48, 16},
                     .output = 3,
                     .activation = Activation::kTanh,
                     .layer_norm = true,
                     .members = 2};
  MlpSpec small_spec = spec;
  small_spec.input = 14;
  constexpr int kBatch = 21;
  const auto live = [](int i) { return i % 3 == 1 || i == 39; };
  Rng rng(6, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  Mlp small(small_spec);
  Eigen::MatrixXf input = RandomMatrix(40, kBatch, rng);
  Eigen::MatrixXf small_input(14, kBatch);
  std::vector<std::size_t> place;  // of the small network's parameters
  for (int member = 0; member < 2; ++member) {
    for (std::size_t t = 0; t < mlp.tensors().size() / 2; ++t) {
      const NamedTensor& tensor = mlp.tensors()[member * mlp.tensors().size() / 2 + t];
      for (int c = 0; c < tensor.columns; ++c) {
        if (t == 0 && !live(c)) continue;
        for (int r = 0; r < tensor.rows; ++r) place.push_back(tensor.offset + c * tensor.rows + r);
      }
    }
  }
  ASSERT_EQ(place.size(), small.parameter_count());
  for (std::size_t i = 0; i < place.size(); ++i) small.parameters()[i] = mlp.parameters()[place[i]];
  for (int i = 0, next = 0; i < 40; ++i) {
    if (live(i)) {
      small_input.row(next++) = input.row(i);
    } else {
      input.row(i).setConstant(i % 2 == 0 ? 0.0F : -0.0F);
    }
  }

  MlpTape tape(spec, kBatch);
  MlpTape small_tape(small_spec, kBatch);
  EXPECT_EQ(mlp.Forward(input, tape), small.Forward(small_input, small_tape));
  const Eigen::MatrixXf d_output = RandomMatrix(6, kBatch, rng);
  std::vector<float> gradients(mlp.parameter_count(), 1.0F);
  std::vector<float> small_gradients(small.parameter_count());
  mlp.Backward(d_output, tape, gradients);
  small.Backward(d_output, small_tape, small_gradients);
  std::vector<float> expected(gradients.size(), 0.0F);
  for (std::size_t i = 0; i < place.size(); ++i) expected[place[i]] = small_gradients[i];
  EXPECT_EQ(gradients, expected);

  // added to what is there
  MlpFunction(spec).Backward(mlp.parameters(), d_output, tape,
                             {.parameters = gradients, .add_parameters = true});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_NEAR(gradients[i], 2.0F * expected[i], Tol(1e-5));
  }

  // one number in one sample is enough to count, a bad one too
  input(0, kBatch - 1) = 1.0F;
  EXPECT_NE(mlp.Forward(input, tape).col(kBatch - 1),
            small.Forward(small_input, small_tape).col(kBatch - 1));
  input(0, kBatch - 1) = NAN;
  EXPECT_TRUE(std::isnan(mlp.Forward(input, tape)(0, kBatch - 1)));
}

TEST(MlpTest, MembersAloneAreAsInTheEnsemble) {
  const MlpSpec spec{.input = 4, .hidden = {32, 32}, .output = 2, .members = 3};
  Rng rng(4, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  MlpTape tape(spec, 10);
  const Eigen::MatrixXf input = RandomMatrix(4, 10, rng);
  const Eigen::MatrixXf d_output = RandomMatrix(6, 10, rng);
  const Eigen::MatrixXf all = mlp.Forward(input, tape);
  std::vector<float> gradients(mlp.parameter_count());
  mlp.Backward(d_output, tape, gradients);

  const Eigen::MatrixXf one = mlp.Forward(input, tape, {1, 1});
  EXPECT_EQ(one, all.middleRows(2, 2));
  EXPECT_NE(one, all.middleRows(0, 2));
  std::vector<float> part(mlp.parameter_count(), 1.0F);
  mlp.Backward(d_output.middleRows(2, 2), tape, part);
  const std::size_t size = mlp.parameter_count() / 3;
  for (std::size_t i = 0; i < part.size(); ++i) {
    EXPECT_EQ(part[i], i / size == 1 ? gradients[i] : 0.0F);
  }
}

TEST(MlpTest, AllocatesNothingAfterConstruction) {
  const MlpSpec spec{
      .input = 35, .hidden = {128, 64}, .output = 1, .layer_norm = true, .members = 2};
  Rng rng(5, "mlp");
  Mlp mlp(spec);
  mlp.Init(rng);
  MlpTape tape(spec, 100);
  const Eigen::MatrixXf input = RandomMatrix(40, 100, rng);
  const Eigen::MatrixXf d_output = RandomMatrix(2, 100, rng);
  std::vector<float> gradients(mlp.parameter_count());
  Eigen::MatrixXf d_input(8, 100);
  const std::int64_t before = AllocationCount();
  mlp.Forward(input.topRows(35), tape);
  mlp.Backward(d_output, tape, gradients, 27, d_input);
  mlp.Forward(input.topRows(35), tape, {0, 1});
  mlp.InputGradient(d_output.topRows(1), tape, 27, d_input);
  EXPECT_EQ(AllocationCount(), before);
  const Eigen::MatrixXf counted = input.topRows(35);
  EXPECT_GT(AllocationCount(), before);
}

TEST(MlpTest, NamesShapesAndOffsets) {
  const Mlp mlp({.input = 3, .hidden = {4}, .output = 2, .layer_norm = true, .members = 2});
  const std::vector<NamedTensor> expected{
      {"members.0.layers.0.weight", 4, 3, 0},       {"members.0.layers.0.bias", 4, 1, 12},
      {"members.0.layers.0.norm.weight", 4, 1, 16}, {"members.0.layers.0.norm.bias", 4, 1, 20},
      {"members.0.layers.1.weight", 2, 4, 24},      {"members.0.layers.1.bias", 2, 1, 32},
      {"members.1.layers.0.weight", 4, 3, 34},      {"members.1.layers.0.bias", 4, 1, 46},
      {"members.1.layers.0.norm.weight", 4, 1, 50}, {"members.1.layers.0.norm.bias", 4, 1, 54},
      {"members.1.layers.1.weight", 2, 4, 58},      {"members.1.layers.1.bias", 2, 1, 66}};
  EXPECT_EQ(mlp.tensors(), expected);
  EXPECT_EQ(mlp.parameter_count(), 68U);
  EXPECT_EQ(Mlp({.input = 3, .hidden = {}, .output = 2}).tensors()[0].name, "layers.0.weight");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mlp.parameters().data()) % 64, 0U);
  EXPECT_EQ(mlp.parameters()[16], 1.0F);
  EXPECT_EQ(mlp.parameters()[50], 1.0F);
  EXPECT_EQ(mlp.parameters()[20], 0.0F);
}

TEST(MlpTest, UniformInitHasPyTorchsBounds) {
  Rng rng(6, "init");
  Mlp mlp({.input = 100, .hidden = {400}, .output = 50});
  mlp.Init(rng, {.last_scale = 0.1});
  const double bounds[] = {0.1, 0.1, 0.005, 0.005};
  for (std::size_t t = 0; t < 4; ++t) {
    const NamedTensor& tensor = mlp.tensors()[t];
    const Eigen::Map<const Eigen::ArrayXf> w(mlp.parameters().data() + tensor.offset,
                                             static_cast<Eigen::Index>(tensor.size()));
    EXPECT_LE(w.abs().maxCoeff(), bounds[t]);
    EXPECT_GT(w.abs().maxCoeff(), 0.9 * bounds[t]);
    if (t % 2 == 1) continue;
    EXPECT_NEAR(w.mean(), 0.0, 0.03 * bounds[t]);
    EXPECT_NEAR(w.square().mean(), bounds[t] * bounds[t] / 3.0, 0.03 * bounds[t] * bounds[t]);
  }
}

TEST(MlpTest, OrthogonalInit) {
  Rng rng(7, "init");
  Mlp mlp({.input = 10, .hidden = {30}, .output = 4, .members = 2});
  mlp.Init(rng, {.kind = InitKind::kOrthogonal, .last_scale = 0.01});
  const auto matrix = [&](std::size_t t) {
    const NamedTensor& tensor = mlp.tensors()[t];
    return Eigen::MatrixXf(Eigen::Map<const Eigen::MatrixXf>(
        mlp.parameters().data() + tensor.offset, tensor.rows, tensor.columns));
  };
  const Eigen::MatrixXf first = matrix(0);
  EXPECT_LT((first.transpose() * first - 2.0F * Eigen::MatrixXf::Identity(10, 10)).norm(),
            Tol(1e-5));
  const Eigen::MatrixXf last = matrix(2);
  EXPECT_LT((last * last.transpose() - 1e-4F * Eigen::MatrixXf::Identity(4, 4)).norm(), Tol(1e-9));
  EXPECT_EQ(matrix(1).norm(), 0.0F);
  EXPECT_GT((matrix(4) - first).norm(), 0.1F);  // members differ
}

TEST(MlpTest, SameSeedSameNetworkSameResults) {
  const MlpSpec spec{.input = 5, .hidden = {64, 64}, .output = 3};
  const auto run = [&](std::uint64_t seed) {
    Rng rng(seed, "mlp");
    Mlp mlp(spec);
    mlp.Init(rng);
    MlpTape tape(spec, 20);
    const Eigen::MatrixXf input = RandomMatrix(5, 20, rng);
    const Eigen::MatrixXf output = mlp.Forward(input, tape);
    std::vector<float> gradients(mlp.parameter_count());
    mlp.Backward(output, tape, gradients);
    return gradients;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(MlpTest, RefusesWhatCantBe) {
  EXPECT_NE(UserErrorText([] { Mlp({.input = 0, .hidden = {}, .output = 1}); }).find("input is 0"),
            std::string::npos);
  EXPECT_THROW(Mlp({.input = 1, .hidden = {4, -1}, .output = 1}), UserError);
  EXPECT_THROW(Mlp({.input = 1, .hidden = {}, .output = 0}), UserError);
  EXPECT_THROW(Mlp({.input = 1, .hidden = {}, .output = 1, .members = 0}), UserError);
  EXPECT_THROW(Mlp({.input = 1, .hidden = {}, .output = 1, .output_activation = Activation::kSilu}),
               UserError);
  EXPECT_THROW(ParseActivation("gelu"), UserError);
  EXPECT_EQ(ParseActivation("silu"), Activation::kSilu);
  EXPECT_EQ(ParseActivation("mish"), Activation::kMish);

  const MlpSpec spec{.input = 2, .hidden = {3}, .output = 1, .members = 2};
  const Mlp mlp(spec);
  MlpTape tape(spec, 4);
  std::vector<float> gradients(mlp.parameter_count());
  const auto matrix = [](int rows, int columns) { return Eigen::MatrixXf(rows, columns); };
  EXPECT_THROW(mlp.Forward(matrix(2, 5), tape), InvariantError);
  EXPECT_THROW(mlp.Forward(matrix(3, 4), tape), InvariantError);
  EXPECT_THROW(mlp.Forward(Eigen::MatrixXf::Zero(2, 4), tape, {1, 2}), InvariantError);
  mlp.Forward(Eigen::MatrixXf::Zero(2, 4), tape);
  EXPECT_THROW(mlp.Backward(matrix(1, 4), tape, gradients), InvariantError);
  EXPECT_THROW(mlp.Backward(matrix(2, 3), tape, gradients), InvariantError);
  EXPECT_THROW(mlp.Backward(matrix(2, 4), tape, std::span(gradients).first(3)), InvariantError);
  Eigen::MatrixXf d_input(2, 4);
  EXPECT_THROW(mlp.InputGradient(Eigen::MatrixXf::Zero(2, 4), tape, 1, d_input), InvariantError);
  MlpTape other({.input = 2, .hidden = {3, 3}, .output = 1}, 4);
  EXPECT_THROW(mlp.Forward(Eigen::MatrixXf::Zero(2, 4), other, {0, 1}), InvariantError);
}

}  // namespace
}  // namespace msrl
