#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "msrl/core/check.h"
#include "msrl/diagnose/diagnostic.h"

namespace msrl {
namespace {

const SeedOutcome& Find(const FamilyOutcome& outcome, const std::string& diagnostic) {
  const auto found = std::find_if(outcome.diagnostics.begin(), outcome.diagnostics.end(),
                                  [&](const SeedOutcome& o) { return o.diagnostic == diagnostic; });
  MSRL_CHECK(found != outcome.diagnostics.end(), "no diagnostic '", diagnostic, "'");
  return *found;
}

class DiagnoseMicroGridTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    DiagnoseConfig config;
    config.queries = 60;
    outcome_ = DiagnoseMicroGrid(config, 0, LiftKind::kFull);
    again_ = DiagnoseMicroGrid(config, 0, LiftKind::kFull);
    compact_ = DiagnoseMicroGrid(config, 0, LiftKind::kCompact);
  }
  static FamilyOutcome outcome_;
  static FamilyOutcome again_;
  static FamilyOutcome compact_;
};

FamilyOutcome DiagnoseMicroGridTest::outcome_;
FamilyOutcome DiagnoseMicroGridTest::again_;
FamilyOutcome DiagnoseMicroGridTest::compact_;

TEST_F(DiagnoseMicroGridTest, ObstructionTellsInvalidCompositionsWhereWeakerDescriptorsFail) {
  const SeedOutcome& headline = Find(outcome_, "invalid-composition detection");
  EXPECT_TRUE(headline.headline);
  EXPECT_EQ(headline.metric, "AUROC");
  EXPECT_GT(headline.score, 0.89);
  for (const std::string name : {"occupancy", "without displacement", "chance"}) {
    const auto weaker = std::find_if(headline.weaker.begin(), headline.weaker.end(),
                                     [&](const auto& w) { return w.first == name; });
    ASSERT_NE(weaker, headline.weaker.end()) << name;
    EXPECT_GE(headline.score, weaker->second + 0.15) << name;
  }
}

TEST_F(DiagnoseMicroGridTest, NoRealizableCompositionIsCertified) {
  for (const FamilyOutcome& outcome : {outcome_, compact_}) {
    EXPECT_EQ(Find(outcome, "false certificates").score, 0.0);
    EXPECT_EQ(Find(outcome, "graph-motif false certificates").score, 0.0);
  }
}

TEST_F(DiagnoseMicroGridTest, WhatIsNotCertifiedHasTheTransitionsOfALegalWalk) {
  const double certified = Find(outcome_, "blocked compositions certified").score;
  const double same = Find(outcome_, "blocked with the multiset of a legal walk").score;
  EXPECT_GT(certified, 0.5);
  EXPECT_GT(same, 0.0);
  EXPECT_DOUBLE_EQ(certified + same, 1.0);
}

TEST_F(DiagnoseMicroGridTest, LearnedProxyNeedsTheObservation) {
  const SeedOutcome& proxy = Find(outcome_, "learned obstruction proxy");
  EXPECT_GT(proxy.score, 0.8);
  EXPECT_GT(proxy.score, proxy.weaker.front().second + 0.1);
}

TEST_F(DiagnoseMicroGridTest, GluingAndAdditionAreExactToRounding) {
  EXPECT_LT(Find(outcome_, "gluing error").score, 1e-12);
  EXPECT_LT(outcome_.additive_error, 1e-12);
}

TEST_F(DiagnoseMicroGridTest, SameSeedSameFigures) {
  ASSERT_EQ(outcome_.diagnostics.size(), again_.diagnostics.size());
  for (std::size_t i = 0; i < outcome_.diagnostics.size(); ++i) {
    EXPECT_EQ(outcome_.diagnostics[i].score, again_.diagnostics[i].score);
    EXPECT_EQ(outcome_.diagnostics[i].weaker, again_.diagnostics[i].weaker);
  }
}

}  // namespace
}  // namespace msrl
