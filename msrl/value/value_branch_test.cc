#include "msrl/value/value_branch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "msrl/files/safetensors.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::Tol;
using testing::UserErrorText;

constexpr LiftId kLift{0x1234};

ValueBranch Example(bool layer_norm = true) {
  BranchInfo info;
  info.lift = kLift;
  info.made = {{"sources", "graph-motif,point-rooms"}, {"dataset", "0123456789abcdef"}};
  ValueBranch branch(7, {.width = 9, .layers = 2, .layer_norm = layer_norm}, info);
  Rng rng(3, "init");
  branch.Init(rng);
  return branch;
}

Eigen::MatrixXf Batch(int columns) {
  Rng rng(4, "batch");
  Eigen::MatrixXf x(7, columns);
  for (float& v : x.reshaped()) v = static_cast<float>(rng.Normal());
  return x;
}

ValueBranch Parse(std::string_view bytes, LiftId lift = kLift,
                  Alignment alignment = Alignment::kAligned) {
  return ValueBranch::From(Artefact::Parse(std::string(bytes), "test"), lift, alignment);
}

TEST(ValueBranch, OutputIsLinearInTheHiddenLayer) {
  for (const bool norm : {false, true}) {
    const ValueBranch branch = Example(norm);
    const Eigen::MatrixXf x = Batch(5);
    MlpTape tape(branch.spec(), 8);
    const Eigen::MatrixXf f = branch.Forward(x, tape);
    const Eigen::MatrixXf h = branch.Hidden(tape);
    ASSERT_EQ(h.rows(), 9);
    ASSERT_EQ(h.cols(), 5);
    EXPECT_GE(h.minCoeff(), 0.0F);
    const auto& tensors = branch.network().tensors();
    const NamedTensor& weight = tensors[tensors.size() - 2];
    const Eigen::Map<const Eigen::RowVectorXf> w(
        branch.network().parameters().data() + weight.offset, 9);
    const float b = branch.network().parameters()[tensors.back().offset];
    EXPECT_LT(((w * h).array() + b - f.array()).abs().maxCoeff(), Tol(1e-5));
  }
}

// L = sum of c F + <C, h>
TEST(ValueBranch, GradientThroughBothOutputs) {
  for (const bool norm : {false, true}) {
    ValueBranch branch = Example(norm);
    const Eigen::MatrixXf x = Batch(4);
    Rng rng(5, "weights");
    Eigen::MatrixXf d_f(1, 4);
    Eigen::MatrixXf d_h(9, 4);
    for (float& v : d_f.reshaped()) v = static_cast<float>(rng.Normal());
    for (float& v : d_h.reshaped()) v = static_cast<float>(rng.Normal());
    MlpTape tape(branch.spec(), 4);
    const auto loss = [&] {
      const auto f = branch.Forward(x, tape);
      return static_cast<double>((f.cwiseProduct(d_f)).sum()) +
             static_cast<double>(branch.Hidden(tape).cwiseProduct(d_h).sum());
    };
    loss();
    std::vector<float> gradients(branch.network().parameter_count());
    branch.Backward(d_f, d_h, tape, gradients);
    const auto parameters = branch.network().parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const float kept = parameters[i];
      const float step = 1e-3F;
      parameters[i] = kept + step;
      const double up = loss();
      parameters[i] = kept - step;
      const double down = loss();
      parameters[i] = kept;
      // kinks of the activation within the step are rare and small
      EXPECT_NEAR(gradients[i], (up - down) / (2.0 * step),
                  Tol(2e-2) * (1.0 + std::abs(gradients[i])))
          << i;
    }
    // without the hidden part it is another gradient
    std::vector<float> alone(gradients.size());
    loss();
    branch.Backward(d_f, tape, alone);
    double gap = 0.0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      gap = std::max(gap, static_cast<double>(std::abs(alone[i] - gradients[i])));
    }
    EXPECT_GT(gap, 0.1);
  }
}

TEST(ValueBranch, PassesDoNotAllocate) {
  const ValueBranch branch = Example();
  const Eigen::MatrixXf x = Batch(4);
  const Eigen::MatrixXf d_f = Eigen::MatrixXf::Ones(1, 4);
  const Eigen::MatrixXf d_h = Eigen::MatrixXf::Ones(9, 4);
  MlpTape tape(branch.spec(), 4);
  std::vector<float> gradients(branch.network().parameter_count());
  const std::int64_t before = AllocationCount();
  branch.Forward(x, tape);
  branch.Backward(d_f, d_h, tape, gradients);
  EXPECT_EQ(AllocationCount(), before);
}

TEST(ValueBranch, RescaleAndSilence) {
  ValueBranch branch = Example();
  Eigen::MatrixXf x = Batch(3);
  MlpTape tape(branch.spec(), 4);
  const Eigen::MatrixXf f = branch.Forward(x, tape);
  branch.Rescale(3.0, -2.0);
  const Eigen::MatrixXf scaled = branch.Forward(x, tape);
  EXPECT_LT((scaled.array() - (3.0F * f.array() - 2.0F)).abs().maxCoeff(), Tol(1e-5));

  branch.Silence({1, 1, 0, 1, 1, 1, 1});
  const Eigen::MatrixXf silent = branch.Forward(x, tape);
  EXPECT_NE(silent, scaled);
  x.row(2).setConstant(100.0F);
  EXPECT_EQ(Eigen::MatrixXf(branch.Forward(x, tape)), silent);
  x.row(1).setConstant(100.0F);
  EXPECT_NE(Eigen::MatrixXf(branch.Forward(x, tape)), silent);
}

TEST(ValueBranch, WithRestFixed) {
  for (const bool norm : {false, true}) {
    ValueBranch branch = Example(norm);
    branch.Silence({1, 0, 1, 1, 1, 1, 1});
    Eigen::MatrixXf x = Batch(3);
    const std::vector<float> rest{0.5F, -2.0F};
    x.row(5).setConstant(rest[0]);
    x.row(6).setConstant(rest[1]);
    MlpTape tape(branch.spec(), 4);
    const Eigen::MatrixXf f = branch.Forward(x, tape);
    const ValueBranch fixed = branch.WithRestFixed(rest);
    ASSERT_EQ(fixed.feature_count(), 5);
    EXPECT_EQ(fixed.active(), (std::vector<std::uint8_t>{1, 0, 1, 1, 1}));
    EXPECT_EQ(fixed.info(), branch.info());
    MlpTape fixed_tape(fixed.spec(), 4);
    const Eigen::MatrixXf same = fixed.Forward(x.topRows(5), fixed_tape);
    EXPECT_LT((same - f).cwiseAbs().maxCoeff(), Tol(1e-5));
    const Eigen::MatrixXf other =
        branch.WithRestFixed(std::vector<float>{0.0F, 0.0F}).Forward(x.topRows(5), fixed_tape);
    EXPECT_GT((other - f).cwiseAbs().maxCoeff(), 1e-2);
  }
}

TEST(ValueBranch, FileKeepsEverything) {
  ValueBranch branch = Example();
  branch.Silence({1, 0, 1, 1, 1, 1, 1});
  const Artefact file = Artefact::Parse(branch.Encode(), "file");
  EXPECT_EQ(file.parameter_count(), std::ssize(branch.network().parameters()));
  const ValueBranch again = ValueBranch::From(file, kLift);
  EXPECT_EQ(again.info(), branch.info());
  EXPECT_EQ(again.shape(), branch.shape());
  EXPECT_EQ(again.active(), branch.active());
  EXPECT_TRUE(std::equal(again.network().parameters().begin(), again.network().parameters().end(),
                         branch.network().parameters().begin(),
                         branch.network().parameters().end()));
}

// msrl 0.1: pretrain --episodes 8 --updates 5 --set width=4 --set layers=1 --set target=mc
//           --objective shape --first-seed 7 --rows mixed
TEST(ValueBranch, FilesOfVersionOneAreRead) {
  const Artefact file = Artefact::Read(MSRL_VALUE_TESTDATA "/branch-0.1.safetensors");
  const ValueBranch branch = ValueBranch::From(file, file.header().lift);
  EXPECT_EQ(branch.shape(), (BranchShape{.width = 4, .layers = 1}));
  EXPECT_EQ(std::to_string(branch.feature_count()), file.header().Shape("feature_count"));
  EXPECT_EQ(file.header().Made("dataset"), "c935339efec0f2e8");
  EXPECT_EQ(file.header().Made("seed"), "7");
  EXPECT_GT(std::count(branch.active().begin(), branch.active().end(), 0), 0);
  // and written as today's
  const Artefact again = Artefact::Parse(branch.Encode(), "again");
  EXPECT_EQ(again.header(), file.header());
  const auto weight = [&](const Artefact& artefact) {
    return artefact.tensors().F32("layers.0.weight", {branch.feature_count(), 4});
  };
  EXPECT_TRUE(std::ranges::equal(weight(again), weight(file)));
}

TEST(ValueBranch, AnotherLiftOnlyIfSaidAloud) {
  const std::string bytes = Example().Encode();
  const std::string error = UserErrorText([&] { Parse(bytes, LiftId{5}); });
  EXPECT_NE(error.find("unaligned"), std::string::npos) << error;
  EXPECT_EQ(Parse(bytes, LiftId{5}, Alignment::kUnaligned).info().lift, kLift);
}

TEST(ValueBranch, RefusesWhatIsNoBranch) {
  EXPECT_NE(UserErrorText([] { Parse("nonsense"); }), "no error");
  const std::string good = Example().Encode();
  for (const std::size_t size : {good.size() - 1, good.size() / 2, std::size_t{20}}) {
    EXPECT_NE(UserErrorText([&] { Parse(std::string_view(good).substr(0, size)); }), "no error");
  }
  // a value that is not finite
  ValueBranch broken = Example();
  broken.network().parameters()[3] = NAN;
  EXPECT_NE(UserErrorText([&] { Parse(broken.Encode()); }).find("not finite"), std::string::npos);
  // entries that are missing, unknown or wrong
  const auto change = [&](const std::string& key, const std::string& value) {
    const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(good)), "good");
    TensorFileBuilder builder;
    for (const auto& [k, v] : file.metadata()) {
      if (k != key) builder.SetMetadata(k, v);
    }
    if (!value.empty()) builder.SetMetadata(key, value);
    for (const TensorInfo& info : file.tensors()) {
      if (info.type == TensorType::kF32) {
        builder.Add(info.name, file.F32(info.name, info.shape), info.shape);
      } else {
        builder.Add(info.name, file.U8(info.name, info.shape), info.shape);
      }
    }
    return UserErrorText([&] { Parse(builder.Encode()); });
  };
  EXPECT_EQ(change("made.seed", "7"), "no error");
  EXPECT_NE(change("kind", "successor-features").find("not 'value-branch'"), std::string::npos);
  for (const char* key : {"shape.features", "shape.width", "shape.layers", "shape.layer_norm"}) {
    EXPECT_NE(change(key, ""), "no error") << key;
    EXPECT_NE(change(key, "x"), "no error") << key;
  }
  EXPECT_NE(change("shape.width", "10").find("shape"), std::string::npos);
  EXPECT_NE(change("shape.layers", "1").find("tensors"), std::string::npos);
  EXPECT_NE(change("shape.surprise", "1").find("surprise"), std::string::npos);
  EXPECT_NE(UserErrorText([] { ValueBranch(7, {.width = 0}, {}); }), "no error");
}

}  // namespace
}  // namespace msrl
