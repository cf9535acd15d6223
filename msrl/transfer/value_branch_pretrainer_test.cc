#include "msrl/transfer/value_branch_pretrainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/env/spec.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/config_fields.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/source_critic.h"
#include "msrl/value/value_branch.h"

namespace msrl {
namespace {

using testing::Tol;
using testing::UserErrorText;

const EpisodeFile& Episodes(const std::string& split) {
  const auto collect = [](const std::string& which) {
    CollectOptions options;
    options.episodes = 160;
    options.split = *EnumFromName<Split>(which);
    options.targets = {ValueTarget::kMonteCarlo, ValueTarget::kExpert};
    return Collect(options, BuiltinEnvs(), BuiltinAgents());
  };
  static const EpisodeFile train = collect("train");
  static const EpisodeFile held_out = collect("held-out");
  return split == "train" ? train : held_out;
}

PretrainConfig Quick(const char* objective) {
  PretrainConfig config = PretrainConfig::For(objective);
  config.target = ValueTarget::kExpert;
  config.updates = 400;
  config.width = 32;
  config.batch = 64;
  return config;
}

struct Trained {
  ValueBranch branch;
  PretrainFigures figures;
  std::string artefact;
};

Trained Train(const ValueBranchPretrainer& pretrainer, const std::vector<std::string>& sources,
              std::uint64_t seed) {
  const PretrainJob job{.sources = sources, .seed = seed, .made = {}};
  const PretrainResult result = RunPretraining(pretrainer, job, {}).value();
  return {ValueBranch::From(Artefact::Parse(result.artefact, "result"), {}, Alignment::kUnaligned),
          result.figures, result.artefact};
}

Trained Train(const PretrainConfig& config, std::uint64_t seed = 0) {
  return Train({config, Episodes("train"), Episodes("held-out")}, SourceFamilies(BuiltinEnvs()),
               seed);
}

TEST(PrefixSet, ColumnsAreTheFeaturesOfTheirPrefixes) {
  PretrainConfig config = Quick("paper");
  const EpisodeFile& file = Episodes("train");
  const PrefixSet set = MakePrefixSet(file, TrainingPrefixes(config));
  ASSERT_EQ(set.pairs(), 160 * config.pairs_per_episode);
  const MatrixFeatures map(CompactLift());
  std::vector<float> expected(static_cast<std::size_t>(map.size()));
  bool starts = false;
  for (std::size_t i = 0; i < set.value.size(); i += 37) {
    const StoredEpisode& e = file.episodes[static_cast<std::size_t>(set.episode[i])];
    const Index t = set.steps[i];
    starts = starts || t == 0;
    EXPECT_EQ(set.value[i], e.values.at("expert")[t]);
    SegmentMatrix z(CompactLift());
    Eigen::VectorXd psi(z.dim());
    const Segment segment = ToSegment(e, file.action_code_size);
    for (Index k = 0; k < t; ++k) {
      CompactLift()->Apply(segment.x.col(k), segment.a.col(k), segment.r[k], segment.x.col(k + 1),
                           psi);
      z.AddStep(psi);
    }
    map.Compute(z, expected);
    EXPECT_EQ(set.features.col(static_cast<Index>(i)),
              Eigen::Map<Eigen::VectorXf>(expected.data(), map.size()));
    EXPECT_NEAR(set.episode_mean[i], e.values.at("expert").cast<double>().mean(), Tol(1e-3));
  }
  for (std::size_t i = 0; i < set.value.size(); i += 2) {
    EXPECT_EQ(set.episode[i], set.episode[i + 1]);
    EXPECT_LT(set.steps[i], set.steps[i + 1]);
    EXPECT_LE(set.steps[i + 1] - set.steps[i], 26);
  }
  const PrefixSet validation = MakePrefixSet(file, ValidationPrefixes(config));
  EXPECT_GE(*std::min_element(validation.steps.begin(), validation.steps.end()), 1);
}

TEST(PrefixSet, ControlsSeeSomethingElse) {
  PretrainConfig config = Quick("paper");
  const EpisodeFile& file = Episodes("train");
  const PrefixSet plain = MakePrefixSet(file, TrainingPrefixes(config));
  config.control = PretrainControl::kUnaligned;
  const PrefixSet unaligned = MakePrefixSet(file, TrainingPrefixes(config));
  EXPECT_EQ(plain.value, unaligned.value);
  EXPECT_NE(plain.features, unaligned.features);
  EXPECT_FALSE(UnalignedLift()->id() == CompactLift()->id());
  config.control = PretrainControl::kLastState;
  const PrefixSet last = MakePrefixSet(file, TrainingPrefixes(config));
  const MatrixFeatures map(CompactLift());
  for (std::size_t i = 0; i < last.value.size(); i += 101) {
    const StoredEpisode& e = file.episodes[static_cast<std::size_t>(last.episode[i])];
    Eigen::VectorXf expected = Eigen::VectorXf::Zero(map.size());
    expected.segment(map.last_state_begin(), kGeometrySize) = 3.0F * e.geometry.col(last.steps[i]);
    EXPECT_LT((last.features.col(static_cast<Index>(i)) - expected).cwiseAbs().maxCoeff(),
              Tol(1e-5));
  }
  config.control = PretrainControl::kObservationOnly;
  const PrefixSet state = MakePrefixSet(file, TrainingPrefixes(config));
  EXPECT_EQ(state.features, last.features.middleRows(map.last_state_begin(), kGeometrySize));
  config.control = PretrainControl::kIdentity;
  const PrefixSet told = MakePrefixSet(file, TrainingPrefixes(config));
  EXPECT_EQ(told.features.topRows(map.size()), plain.features);
  ASSERT_EQ(told.features.rows(), map.size() + 4);
  for (std::size_t i = 0; i < told.value.size(); ++i) {
    const auto family = told.features.col(static_cast<Index>(i)).tail(4);
    EXPECT_EQ(family[told.source[i]], 1.0F);
    EXPECT_EQ(family.sum(), 1.0F);
  }
}

TEST(PrefixSet, SegmentsBeginWithinTheEpisode) {
  PretrainConfig config = Quick("paper");
  config.segments = 0.5;
  const EpisodeFile& file = Episodes("train");
  const PrefixSet set = MakePrefixSet(file, TrainingPrefixes(config));
  const MatrixFeatures map(CompactLift());
  std::vector<float> expected(static_cast<std::size_t>(map.size()));
  int later = 0;
  for (std::size_t i = 0; i < set.value.size(); ++i) {
    // the two of a pair begin together
    const Index begin = set.time[i] - set.steps[i];
    EXPECT_EQ(begin, set.time[i ^ 1] - set.steps[i ^ 1]);
    later += begin > 0 ? 1 : 0;
    if (i % 37 != 0) continue;
    const StoredEpisode& e = file.episodes[static_cast<std::size_t>(set.episode[i])];
    EXPECT_EQ(set.value[i], e.values.at("expert")[set.time[i]]);
    const Segment whole = ToSegment(e, file.action_code_size);
    const Index steps = set.steps[i];
    const Segment part{.x = whole.x.middleCols(begin, steps + 1),
                       .a = whole.a.middleCols(begin, steps),
                       .r = whole.r.segment(begin, steps)};
    map.Compute(Describe(CompactLift(), part), expected);
    const Eigen::Map<const Eigen::VectorXf> exact(expected.data(), map.size());
    EXPECT_LT((set.features.col(static_cast<Index>(i)) - exact).cwiseAbs().maxCoeff(), Tol(1e-4));
  }
  const double share = static_cast<double>(later) / static_cast<double>(set.value.size());
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.5);
  // validation is on what agents have
  const PrefixSet validation = MakePrefixSet(file, ValidationPrefixes(config));
  EXPECT_EQ(validation.time, validation.steps);
}

// The columns of the ablations are those of the whole lift without the features of the block.
TEST(PrefixSet, AblationsLackTheirBlockAndNothingElse) {
  PretrainConfig config = Quick("paper");
  const EpisodeFile& file = Episodes("train");
  for (const FeatureSet features : {FeatureSet::kSelectedEndpoints, FeatureSet::kAll}) {
    config.features = features;
    config.lift = LiftKind::kCompact;
    const PrefixSet whole = MakePrefixSet(file, TrainingPrefixes(config));
    const auto options = MatrixFeatureOptions::Of(features);
    const std::vector<std::string> whole_names = MatrixFeatures(CompactLift(), options).Names();
    for (const auto& [kind, block] : {std::pair(LiftKind::kCompactNoAction, "a["),
                                      std::pair(LiftKind::kCompactNoReward, "r")}) {
      config.lift = kind;
      const PrefixSet set = MakePrefixSet(file, TrainingPrefixes(config));
      const Lift::Ptr lift = CompactLift(kind);
      const std::vector<std::string> names = MatrixFeatures(lift, options).Names();
      std::vector<Index> rows;
      std::vector<std::string> kept;
      for (std::size_t i = 0; i < whole_names.size(); ++i) {
        const std::string& feature = whole_names[i];
        const std::size_t times = feature.find('*');
        const bool product = times != std::string::npos;
        if (product && (feature.starts_with(block) || feature.substr(times + 1).starts_with(block)))
          continue;
        rows.push_back(static_cast<Index>(i));
        kept.push_back(feature);
      }
      EXPECT_EQ(names, kept) << EnumName(kind);
      EXPECT_EQ(set.features, whole.features(rows, Eigen::all)) << EnumName(kind);
      EXPECT_EQ(set.value, whole.value);
    }
  }
}

TEST(Pretrain, LearnsValuesOfNewInstances) {
  const Trained result = Train(Quick("paper"));
  EXPECT_GT(result.figures.at("rank_correlation"), 0.5);
  EXPECT_LT(result.figures.at("validation_error"), 0.9);
  EXPECT_LT(result.figures.at("train_error"), 0.7);
  EXPECT_EQ(result.branch.info().made.at("target"), "expert");

  PretrainConfig shuffled = Quick("paper");
  shuffled.control = PretrainControl::kShuffled;
  EXPECT_LT(std::abs(Train(shuffled).figures.at("rank_correlation")), 0.35);
}

// On the training instances: a few hundred are too few for the shape of new ones.
TEST(Pretrain, ShapeFollowsTheEpisodeAndNotItsLevel) {
  const auto train_on_itself = [](const char* objective, std::uint64_t seed) {
    PretrainConfig config = Quick(objective);
    config.updates = 2000;
    const PrefixSet set = MakePrefixSet(Episodes("train"), TrainingPrefixes(config));
    return Train({config, set, set}, set.sources, seed).figures;
  };
  PretrainFigures paper = train_on_itself("paper", 0);
  double difference = 0.0;
  for (const std::uint64_t seed : {0, 1, 2}) {
    PretrainFigures shape = train_on_itself("shape", seed);
    EXPECT_GT(shape["centred_rank_correlation"], paper["centred_rank_correlation"] + 0.1) << seed;
    EXPECT_LT(shape["rank_correlation"], paper["rank_correlation"] - 0.3) << seed;
    difference += shape["difference_correlation"] / 3;
  }
  // single seeds are between 0.11 and 0.29
  EXPECT_GT(difference, 0.1);
}

TEST(Pretrain, BranchesOfAblationsHaveTheirOwnLift) {
  for (const LiftKind own : {LiftKind::kCompactNoAction, LiftKind::kCompactNoReward}) {
    const std::string_view name = EnumName(own);
    PretrainConfig config = Quick("paper");
    config.lift = own;
    const Trained result = Train(config);
    EXPECT_LT(result.figures.at("train_error"), 0.7) << name;
    const Lift::Ptr lift = CompactLift(own);
    EXPECT_EQ(result.branch.info().lift_kind, name);
    EXPECT_EQ(result.branch.info().lift, lift->id());
    EXPECT_EQ(result.branch.feature_count(), MatrixFeatures(lift).size());
    const Artefact file = Artefact::Parse(result.artefact, "file");
    const auto parse = [&](LiftKind kind) {
      return UserErrorText([&] { ValueBranch::From(file, CompactLift(kind)->id()); });
    };
    EXPECT_EQ(parse(lift->kind()), "no error");
    EXPECT_NE(parse(LiftKind::kCompact).find(StrCat("(", name, ")")), std::string::npos);
    config.updates = 1;
    config.control = PretrainControl::kUnaligned;
    const BranchInfo unaligned = Train(config).branch.info();
    EXPECT_EQ(unaligned.lift, UnalignedLift(lift->kind())->id());
    EXPECT_FALSE(unaligned.lift == lift->id());
    EXPECT_FALSE(unaligned.lift == UnalignedLift()->id());
    config.control = PretrainControl::kLastState;
    EXPECT_EQ(Train(config).branch.info().lift, lift->id());
  }
}

TEST(Pretrain, OutputIsInValueUnits) {
  PretrainConfig config = Quick("paper");
  const PrefixSet train = MakePrefixSet(Episodes("train"), TrainingPrefixes(config));
  const Trained result = Train({config, train, train}, train.sources, 0);
  MlpTape tape(result.branch.spec(), static_cast<int>(train.features.cols()));
  const auto f = result.branch.Forward(train.features, tape);
  double sum = 0.0;
  for (const float v : train.value) sum += v;
  const double mean = sum / static_cast<double>(train.value.size());
  double variance = 0.0;
  for (const float v : train.value) variance += (v - mean) * (v - mean);
  const double deviation = std::sqrt(variance / static_cast<double>(train.value.size()));
  EXPECT_NEAR(f.mean(), mean, 0.3 * deviation);
  EXPECT_GT(deviation, 5.0);
}

TEST(Pretrain, IsRepeatable) {
  PretrainConfig config = Quick("shape");
  config.updates = 50;
  const Trained a = Train(config, 3);
  EXPECT_EQ(a.artefact, Train(config, 3).artefact);
  EXPECT_NE(a.artefact, Train(config, 4).artefact);
}

TEST(Pretrain, NeverActiveInputsAreSilent) {
  PretrainConfig config = Quick("paper");
  config.updates = 20;
  const Trained result = Train(config);
  const std::vector<std::string> names = MatrixFeatures(CompactLift()).Names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    // no source has more than five actions
    if (names[i] == "a[9]*a[9]") {
      EXPECT_EQ(result.branch.active()[i], 0);
    }
    if (names[i] == "xT[0]") {
      EXPECT_EQ(result.branch.active()[i], 1);
    }
  }
  config.silence = false;
  EXPECT_EQ(Train(config).branch.active()[5], 1);
}

// Told the family while it learns; the artefact is a branch like any other.
TEST(Pretrain, TheIdentityIsFixedInTheArtefact) {
  PretrainConfig config = Quick("paper");
  config.control = PretrainControl::kIdentity;
  const Trained none = Train(config);
  EXPECT_EQ(none.branch.feature_count(), MatrixFeatures(CompactLift()).size());
  EXPECT_EQ(none.branch.info().made.at("control"), "identity");
  config.target_family = "point-rooms";
  const Trained chosen = Train(config);
  EXPECT_EQ(chosen.figures, none.figures);
  EXPECT_NE(chosen.artefact, none.artefact);
  // an F that takes every prefix for one of its family errs less there than one that knows none
  const PrefixSet set = MakePrefixSet(Episodes("train"), TrainingPrefixes(config));
  const auto error = [&](const ValueBranch& branch) {
    MlpTape tape(branch.spec(), 1);
    double squares = 0.0;
    for (std::size_t i = 0; i < set.value.size(); ++i) {
      if (set.sources[static_cast<std::size_t>(set.source[i])] != "point-rooms") continue;
      const auto input = set.features.col(static_cast<Index>(i)).head(set.matrix_features);
      const float e = branch.Forward(input, tape)(0, 0) - set.value[i];
      squares += static_cast<double>(e) * e;
    }
    return squares;
  };
  EXPECT_LT(error(chosen.branch), error(none.branch));
}

TEST(Pretrain, ObservationOnlyHasNoMatrix) {
  PretrainConfig config = Quick("paper");
  config.updates = 1;
  config.control = PretrainControl::kObservationOnly;
  const Trained result = Train(config);
  EXPECT_EQ(result.branch.feature_count(), kGeometrySize);
  EXPECT_EQ(result.branch.info().features.Name(), "state");
}

TEST(Pretrain, OptionsKeepToTheirRanges) {
  for (const PretrainerEntry& entry : BuiltinPretrainers()) {
    testing::ExpectRangesHold(entry.id, entry.options({}), [&](const std::string& assignment) {
      return entry.options(std::span(&assignment, 1));
    });
  }
  const auto check = [](const std::string& what, const auto& defaults) {
    testing::ExpectRangesHold(what, ListFields(defaults), [&](const std::string& assignment) {
      auto config = defaults;
      SetField(config, assignment);
      return ListFields(RequireInRange(config));
    });
  };
  check("collect", CollectOptions{});
  check("critic", CriticValueOptions{});
}

TEST(Pretrain, Mistakes) {
  const auto error = [](auto change) {
    PretrainConfig config = Quick("paper");
    config.updates = 1;
    change(config);
    return UserErrorText([&] { Train(config); });
  };
  EXPECT_EQ(error([](PretrainConfig&) {}), "no error");
  EXPECT_NE(error([](PretrainConfig& c) { c.target = ValueTarget::kFitted; }).find("--targets"),
            std::string::npos);
  EXPECT_NE(error([](PretrainConfig& c) { c.batch = 3; }), "no error");
  EXPECT_NE(error([](PretrainConfig& c) { c.learning_rate = 0.0; }), "no error");
  EXPECT_NE(error([](PretrainConfig& c) { c.width = 0; }), "no error");
  EXPECT_NE(error([](PretrainConfig& c) {
              c.control = PretrainControl::kLastState;
              c.features = FeatureSet::kSelected;
            }),
            "no error");
  EXPECT_NE(error([](PretrainConfig& c) { c.target_family = "point-rooms"; }), "no error");
  EXPECT_NE(error([](PretrainConfig& c) {
              c.control = PretrainControl::kIdentity;
              c.target_family = "point-room";
            }).find("point-rooms"),
            std::string::npos);
  EXPECT_NE(UserErrorText([] { PretrainConfig::For("shpe"); }), "no error");
  PretrainConfig config = Quick("paper");
  const PrefixSet train = MakePrefixSet(Episodes("train"), TrainingPrefixes(config));
  const std::vector<std::string> other = {"four-rooms-dense"};
  EXPECT_NE(UserErrorText([&] { Train({config, train, train}, other, 0); }), "no error");
}

TEST(Pretrain, TheObjectiveBringsItsDefaults) {
  const auto configure = [](std::vector<std::string> settings) {
    return ValueBranchPretrainer::Configure(settings);
  };
  EXPECT_EQ(configure({}).difference, 0.0);
  EXPECT_EQ(configure({"objective=shape"}).difference, 100.0);
  // whatever the order
  EXPECT_EQ(configure({"difference=3", "objective=shape", "width=8"}).difference, 3.0);
  EXPECT_EQ(configure({"difference=3", "objective=shape", "width=8"}).target, ValueTarget::kExpert);
}

TEST(Pretrain, ThePapersFigures) {
  const auto paper = [](const std::string& source, const char* column) {
    return ValueBranchPretrainer::Paper(source, column);
  };
  ASSERT_TRUE(paper("mixed", "rank_correlation").has_value());
  EXPECT_EQ(paper("mixed", "rank_correlation")->mean, 0.933);
  for (const char* family : {"graph-motif", "micro-grid", "point-rooms", "dubins-reacher"}) {
    for (const char* column : {"train_error", "validation_error", "rank_correlation"}) {
      EXPECT_TRUE(paper(family, column)) << family << " " << column;
    }
  }
  EXPECT_FALSE(paper("mixed", "difference_correlation"));
  EXPECT_FALSE(paper("hopper", "train_error"));
}

}  // namespace
}  // namespace msrl
