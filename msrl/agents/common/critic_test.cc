#include "msrl/agents/common/critic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "msrl/env/spec.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kBatch = 10;
constexpr int kObservation = 3;
constexpr int kWidth = 6;  // of the branch

BranchSettings SmallBranch() {
  BranchSettings settings;
  settings.lift = CompactLift();
  settings.features = {.endpoints = false};
  settings.shape = {.width = kWidth, .layers = 2, .layer_norm = false};
  return settings;
}

int FeatureCount() { return MatrixFeatures(CompactLift(), SmallBranch().features).size(); }

// A critic of continuous actions with two heads, or of discrete ones with one.
struct Case {
  const char* name;
  bool discrete = false;
  std::optional<BranchSettings> branch = SmallBranch();

  CriticSizes Sizes() const {
    CriticSizes sizes;
    sizes.observation = kObservation;
    sizes.action = discrete ? 0 : 2;
    sizes.outputs = discrete ? 4 : 1;
    sizes.heads = discrete ? 1 : 2;
    sizes.hidden = {8, 8};
    sizes.batch = kBatch;
    return sizes;
  }
};

std::vector<Case> Cases() {
  std::vector<Case> cases{{.name = "twins"},     {.name = "discrete", .discrete = true},
                          {.name = "without h"}, {.name = "anchored"},
                          {.name = "frozen"},    {.name = "plain", .branch = std::nullopt}};
  cases[2].branch->hidden_input = false;
  cases[3].branch->anchor = 0.3;
  cases[4].branch->trained = false;
  return cases;
}

Eigen::MatrixXf RandomMatrix(Eigen::Index rows, Rng& rng) {
  Eigen::MatrixXf matrix(rows, kBatch);
  for (float& value : Flat(matrix)) value = static_cast<float>(rng.Normal());
  return matrix;
}

// Q_i(o, Z, a) = F(Z) + R_i([h(Z); o; a]) in double.
struct PlainCritic {
  explicit PlainCritic(const Case& which) : sizes(which.Sizes()) {
    const bool sees_hidden = which.branch && which.branch->hidden_input;
    has_branch = which.branch.has_value();
    h = {.sizes = {FeatureCount(), kWidth, sees_hidden ? kWidth : 0}, .last = Relu};
    f = {.sizes = {FeatureCount(), kWidth, kWidth, 1}};
    r = {.sizes = {h.sizes[2] + kObservation + sizes.action, 8, 8, sizes.outputs}};
  }
  // All outputs of all heads for one column.
  Doubles operator()(const Doubles& w, const Doubles& eta, const Doubles& observation,
                     const Doubles& features, const Doubles& action) const {
    Doubles input = Join(observation, action);
    // the hidden layers are the first parameters of the branch
    if (h.sizes[2] > 0) input = Join(h(eta, features), input);
    Doubles q;
    for (int head = 0; head < sizes.heads; ++head) {
      q = Join(q, r(w, input, static_cast<std::size_t>(head)));
    }
    if (has_branch) {
      const double value = f(eta, features)[0];
      for (double& one : q) one += value;
    }
    return q;
  }

  CriticSizes sizes;
  bool has_branch;
  PlainNet h, f, r;
};

struct Batch {
  Batch(const CriticSizes& sizes, Rng& rng)
      : observation(RandomMatrix(kObservation, rng)),
        features(RandomMatrix(FeatureCount(), rng)),
        action(RandomMatrix(sizes.action, rng)) {}
  Eigen::MatrixXf observation, features, action;
};

// d_q . Q, summed over the batch.
double LinearLoss(const PlainCritic& plain, const Doubles& w, const Doubles& eta,
                  const Batch& batch, const Eigen::MatrixXf& d_q) {
  double sum = 0.0;
  for (Eigen::Index b = 0; b < kBatch; ++b) {
    const Doubles q = plain(w, eta, Column(batch.observation, b), Column(batch.features, b),
                            Column(batch.action, b));
    for (std::size_t i = 0; i < q.size(); ++i) sum += d_q(static_cast<Eigen::Index>(i), b) * q[i];
  }
  return sum;
}

Doubles BranchOf(const Critic& critic) {
  return critic.has_branch() ? AsDoubles(critic.branch().network().parameters()) : Doubles();
}
Doubles BranchTargetOf(const Critic& critic) {
  return critic.has_branch() ? AsDoubles(critic.target_branch().network().parameters()) : Doubles();
}

// q may be of the first heads only.
void ExpectValues(const PlainCritic& plain, const Doubles& w, const Doubles& eta,
                  const Batch& batch, const Eigen::MatrixXf& q, const char* what) {
  for (Eigen::Index b = 0; b < kBatch; ++b) {
    Doubles expected = plain(w, eta, Column(batch.observation, b), Column(batch.features, b),
                             Column(batch.action, b));
    expected.resize(static_cast<std::size_t>(q.rows()));
    ExpectNear(Column(q, b), expected, what, 2e-6);
  }
}

TEST(Critic, ValuesAndUpdatesAreThoseOfTheFormulas) {
  for (const Case& which : Cases()) {
    SCOPED_TRACE(which.name);
    const PlainCritic plain(which);
    Critic critic(which.Sizes(), which.branch);
    Rng rng(1, "critic");
    critic.Init(rng);
    Doubles w = AsDoubles(critic.network().parameters());
    Doubles eta = BranchOf(critic);
    const Doubles source = eta;
    Doubles w_target = w;
    Doubles eta_target = eta;
    PlainAdam w_adam;
    PlainAdam eta_adam;
    constexpr double kRate = 0.01;
    constexpr double kTau = 0.05;
    for (int update = 1; update <= 4; ++update) {
      SCOPED_TRACE(update);
      const Batch batch(which.Sizes(), rng);
      critic.actions() = batch.action;
      // both: neither must disturb the other
      const Eigen::MatrixXf target_q = critic.TargetQ(batch.observation, batch.features);
      ExpectValues(plain, w_target, eta_target, batch, target_q, "target Q");
      const Eigen::MatrixXf q = critic.Q(batch.observation, batch.features);
      ExpectValues(plain, w, eta, batch, q, "Q");

      const Eigen::MatrixXf d_q = RandomMatrix(q.rows(), rng) / kBatch;
      const Doubles w_gradient = NumericGradient(
          w, [&](const Doubles& at) { return LinearLoss(plain, at, eta, batch, d_q); });
      const Doubles eta_gradient = NumericGradient(eta, [&](const Doubles& at) {
        double pull = 0.0;
        for (std::size_t i = 0; i < at.size(); ++i) {
          pull += which.branch->anchor * (at[i] - source[i]) * (at[i] - source[i]);
        }
        return LinearLoss(plain, w, at, batch, d_q) + pull;
      });
      w_adam.Step(w, w_gradient, kRate);
      PlainPolyak(w_target, w, kTau);
      if (which.branch && which.branch->trained) {
        eta_adam.Step(eta, eta_gradient, kRate * which.branch->rate);
        PlainPolyak(eta_target, eta, kTau);
        critic.Learn(d_q, kRate, kTau);
        ExpectNear(Saved(critic, "branch_adam/mean", eta.size()), eta_adam.mean, "branch gradient",
                   2e-6);
      } else {
        critic.Learn(d_q, kRate, kTau);
      }
      ExpectNear(Saved(critic, "critic_adam/mean", w.size()), w_adam.mean, "gradient", 2e-6);
      ExpectNear(AsDoubles(critic.network().parameters()), w, "R");
      ExpectNear(AsDoubles(critic.target_network().parameters()), w_target, "R'");
      ExpectNear(BranchOf(critic), eta, "branch");
      ExpectNear(BranchTargetOf(critic), eta_target, "branch'");
    }
    const bool moved = which.branch && which.branch->trained;
    EXPECT_EQ(BranchOf(critic) != source, moved);
    EXPECT_EQ(BranchTargetOf(critic) != source, moved);
  }
}

TEST(Critic, OtherActionsInTheSameStates) {
  for (const Case& which : Cases()) {
    if (which.discrete) continue;
    SCOPED_TRACE(which.name);
    const PlainCritic plain(which);
    Critic critic(which.Sizes(), which.branch);
    Rng rng(2, "critic");
    critic.Init(rng);
    const Doubles w = AsDoubles(critic.network().parameters());
    const Doubles eta = BranchOf(critic);
    Batch batch(which.Sizes(), rng);
    critic.actions() = batch.action;
    critic.Q(batch.observation, batch.features);
    batch.action = RandomMatrix(2, rng);
    critic.actions() = batch.action;
    ExpectValues(plain, w, eta, batch, critic.QOfActions({.first = 0, .count = 2}), "Q");

    const Eigen::MatrixXf d_q = RandomMatrix(2, rng);
    Eigen::MatrixXf d_action(2, kBatch);
    critic.ActionGradient(d_q, d_action);
    const auto gradient = [&](const Eigen::MatrixXf& d_q_of_heads) {
      Eigen::MatrixXf expected(2, kBatch);
      for (Eigen::Index b = 0; b < kBatch; ++b) {
        const Doubles numeric =
            NumericGradient(Column(batch.action, b), [&](const Doubles& action) {
              const Doubles q =
                  plain(w, eta, Column(batch.observation, b), Column(batch.features, b), action);
              return d_q_of_heads(0, b) * q[0] + d_q_of_heads(1, b) * q[1];
            });
        for (Eigen::Index i = 0; i < 2; ++i) {
          expected(i, b) = static_cast<float>(numeric[static_cast<std::size_t>(i)]);
        }
      }
      return expected;
    };
    EXPECT_LT((d_action - gradient(d_q)).cwiseAbs().maxCoeff(), Tol(2e-6));

    // one head alone, as TD3 asks
    const Eigen::MatrixXf second = critic.QOfActions({.first = 1, .count = 1});
    critic.ActionGradient(d_q.row(1), d_action);
    Eigen::MatrixXf of_second = d_q;
    of_second.row(0).setZero();
    EXPECT_LT((d_action - gradient(of_second)).cwiseAbs().maxCoeff(), Tol(2e-6));
    for (Eigen::Index b = 0; b < kBatch; ++b) {
      EXPECT_NEAR(second(0, b),
                  plain(w, eta, Column(batch.observation, b), Column(batch.features, b),
                        Column(batch.action, b))[1],
                  Tol(2e-6));
    }
  }
}

// What acting asks is the same value, and asking it in between does not disturb an update.
TEST(Critic, AskingNowDisturbsNoUpdate) {
  for (const Case& which : Cases()) {
    SCOPED_TRACE(which.name);
    Critic asked(which.Sizes(), which.branch);
    Rng rng(3, "critic");
    asked.Init(rng);
    Critic other = asked;
    const Batch batch(which.Sizes(), rng);
    const Batch now(which.Sizes(), rng);
    const Eigen::MatrixXf d_q = RandomMatrix(which.discrete ? 4 : 2, rng);
    for (Critic* critic : {&asked, &other}) {
      critic->actions() = batch.action;
      critic->Q(batch.observation, batch.features);
      if (critic == &asked) {
        ExpectValues(PlainCritic(which), AsDoubles(critic->network().parameters()),
                     BranchOf(*critic), now,
                     critic->QNow(now.observation, now.features, now.action), "Q now");
      }
      critic->Learn(d_q, 0.01, 0.1);
    }
    EXPECT_EQ(AsDoubles(asked.network().parameters()), AsDoubles(other.network().parameters()));
    EXPECT_EQ(BranchOf(asked), BranchOf(other));
  }
}

TEST(Critic, TargetsFollowOnlyIfTold) {
  for (const Case& which : Cases()) {
    SCOPED_TRACE(which.name);
    Critic critic(which.Sizes(), which.branch);
    Rng rng(4, "critic");
    critic.Init(rng);
    const Doubles w = AsDoubles(critic.network().parameters());
    const Doubles eta = BranchOf(critic);
    const Batch batch(which.Sizes(), rng);
    critic.actions() = batch.action;
    critic.Q(batch.observation, batch.features);
    critic.Learn(RandomMatrix(which.discrete ? 4 : 2, rng), 0.01, /*tau=*/0.0);
    EXPECT_NE(AsDoubles(critic.network().parameters()), w);
    EXPECT_EQ(AsDoubles(critic.target_network().parameters()), w);
    EXPECT_EQ(BranchTargetOf(critic), eta);
  }
}

ValueBranch OtherBranch(const BranchShape& shape, const MatrixFeatureOptions& features) {
  BranchInfo info;
  info.lift = CompactLift()->id();
  info.features = features;
  ValueBranch branch(MatrixFeatures(CompactLift(), features).size(), shape, info);
  Rng rng(9, "other");
  branch.Init(rng);
  return branch;
}

TEST(Critic, ABranchIsTakenOver) {
  Case which{.name = "taken over"};
  which.branch->residual_scale = 0.0;
  which.branch->anchor = 0.1;
  Critic critic(which.Sizes(), which.branch);
  Rng rng(5, "critic");
  critic.Init(rng);
  const ValueBranch source = OtherBranch(which.branch->shape, which.branch->features);
  critic.InitBranch(source);
  const Doubles eta = AsDoubles(source.network().parameters());
  EXPECT_EQ(BranchOf(critic), eta);
  EXPECT_EQ(BranchTargetOf(critic), eta);
  EXPECT_EQ(Saved(critic, "branch_source", eta.size()), eta);
  // without a residual the critic is the branch
  const Batch batch(which.Sizes(), rng);
  critic.actions() = batch.action;
  const Eigen::MatrixXf q = critic.Q(batch.observation, batch.features);
  MlpTape tape(source.spec(), kBatch);
  const Eigen::MatrixXf f = source.Forward(batch.features, tape);
  EXPECT_GT(f.cwiseAbs().maxCoeff(), 0.01F);
  EXPECT_TRUE(q.row(0) == f && q.row(1) == f);
  EXPECT_TRUE(critic.TargetQ(batch.observation, batch.features) == q);
}

TEST(Critic, ABranchOfAnotherShapeIsRefused) {
  Critic critic(Case{.name = ""}.Sizes(), SmallBranch());
  const auto refusal = [&critic](const BranchShape& shape, const MatrixFeatureOptions& features) {
    return UserErrorText([&] { critic.InitBranch(OtherBranch(shape, features)); });
  };
  const BranchShape shape = SmallBranch().shape;
  const MatrixFeatureOptions features = SmallBranch().features;
  EXPECT_EQ(refusal(shape, features), "no error");
  EXPECT_NE(refusal({.width = 7, .layers = 2, .layer_norm = false}, features).find("width 7"),
            std::string::npos);
  EXPECT_NE(refusal({.width = 6, .layers = 1, .layer_norm = false}, features).find("1 layers"),
            std::string::npos);
  EXPECT_NE(refusal({.width = 6, .layers = 2}, features).find("layer norm"), std::string::npos);
  EXPECT_NE(refusal(shape, {}).find("selected+endpoints"), std::string::npos);
}

}  // namespace
}  // namespace msrl
