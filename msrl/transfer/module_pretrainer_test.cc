#include "msrl/transfer/module_pretrainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"
#include "msrl/transfer/traj2value_pretrainer.h"
#include "msrl/transfer/uvfa_pretrainer.h"

namespace msrl {
namespace {

using testing::UserErrorText;

StoredEpisode EmptyEpisode(const std::string& env, int steps) {
  StoredEpisode episode;
  episode.env = env;
  episode.observations.setZero(1, steps + 1);
  episode.actions.setZero(1, steps);
  episode.rewards.setZero(steps);
  episode.geometry.setZero(kGeometrySize, steps + 1);
  episode.truncated = true;
  episode.values["mc"] = Eigen::VectorXf::Zero(steps + 1);
  return episode;
}

EpisodeFile EmptyFile() {
  EpisodeFile file;
  file.lift_id = CompactLift()->id().ToString();
  return file;
}

// Only the first state shows the cue (+-1, slot 6). A coin that falls in the last step is in no
// state before. What is still to come is 3 cue + coin: who remembers explains 9 parts of 10 of it,
// who looks ahead all.
EpisodeFile Cues(int episodes, std::uint64_t seed) {
  EpisodeFile file = EmptyFile();
  Rng rng(seed, "cues");
  for (int k = 0; k < episodes; ++k) {
    constexpr int kSteps = 10;
    StoredEpisode& episode = file.episodes.emplace_back(EmptyEpisode("cue", kSteps));
    const float cue = rng.Bernoulli(0.5) ? 1.0F : -1.0F;
    const float coin = rng.Bernoulli(0.5) ? 1.0F : -1.0F;
    episode.geometry(6, 0) = cue;
    for (int t = 0; t <= kSteps; ++t) episode.geometry(0, t) = static_cast<float>(rng.Normal());
    episode.rewards[kSteps - 1] = static_cast<double>(coin);
    episode.values["mc"].setConstant(3.0F * cue + coin);
    episode.values["mc"][kSteps] = 3.0F * cue;
  }
  return file;
}

// Straight walks from anywhere to a goal, 0.1 in a step, each step with minus the distance as its
// reward. Goals are to the right of x = 0.2, or to the left.
EpisodeFile Walks(int episodes, bool right, std::uint64_t seed) {
  EpisodeFile file = EmptyFile();
  Rng rng(seed, "walks");
  for (int k = 0; k < episodes; ++k) {
    const auto draw = [&rng] {
      return Eigen::Vector2f(static_cast<float>(rng.Uniform(-1.0, 1.0)),
                             static_cast<float>(rng.Uniform(-1.0, 1.0)));
    };
    Eigen::Vector2f goal = draw();
    while ((goal[0] > 0.2F) != right) goal = draw();
    const Eigen::Vector2f from = draw();
    const int steps = std::max(1, static_cast<int>(std::ceil((goal - from).norm() / 0.1F)));
    StoredEpisode& episode = file.episodes.emplace_back(EmptyEpisode("walk", steps));
    episode.truncated = false;
    episode.terminated = true;
    for (int t = 0; t <= steps; ++t) {
      const Eigen::Vector2f at =
          from + (goal - from) * (static_cast<float>(t) / static_cast<float>(steps));
      episode.geometry.col(t).head(2) = at;
      episode.geometry.col(t).segment(2, 2) = goal - at;
      if (t > 0) episode.rewards[t - 1] = -static_cast<double>((goal - at).norm());
    }
    for (int t = steps - 1; t >= 0; --t) {
      episode.values["mc"][t] =
          static_cast<float>(episode.rewards[t]) + 0.99F * episode.values["mc"][t + 1];
    }
  }
  return file;
}

template <typename PretrainerOf>
PretrainResult Train(const typename PretrainerOf::Config& config, const EpisodeFile& train,
                     const EpisodeFile& held_out) {
  const PretrainerOf pretrainer(config, train, held_out);
  PretrainJob job;
  job.sources = {train.episodes.front().env};
  job.seed = 1;
  const std::unique_ptr<Pretraining> training = pretrainer.Start(job);
  while (training->done() < training->total()) training->Advance();
  return training->Finish();
}

template <typename PretrainerOf>
typename PretrainerOf::Config SmallConfig(int updates, ModuleControl control) {
  typename PretrainerOf::Config config;
  config.target = ValueTarget::kMonteCarlo;
  config.control = control;
  config.updates = updates;
  config.learning_rate = 2e-3;
  config.validation_windows = 1000;
  return config;
}

template <typename PretrainerOf>
class PretrainContext : public ::testing::Test {
 protected:
  static typename PretrainerOf::Config Small(int updates, ModuleControl control) {
    auto config = SmallConfig<PretrainerOf>(updates, control);
    if constexpr (std::is_same_v<PretrainerOf, Traj2ValueRnnPretrainer>) {
      config.shape = {.token_width = 24, .memory_width = 24, .head_width = 24};
    } else if constexpr (std::is_same_v<PretrainerOf, SubgraphGnnPretrainer>) {
      config.shape = {.node_width = 24, .layers = 3, .head_width = 24};
    } else {
      config.shape = {.head_size = 8, .heads = 2, .blocks = 2, .head_width = 24};
    }
    return config;
  }
};
using ContextPretrainers = ::testing::Types<Traj2ValueRnnPretrainer,
                                            Traj2ValueTransformerPretrainer, SubgraphGnnPretrainer>;
TYPED_TEST_SUITE(PretrainContext, ContextPretrainers);

TYPED_TEST(PretrainContext, RemembersAndDoesNotLookAhead) {
  const EpisodeFile train = Cues(600, 1);
  const EpisodeFile held_out = Cues(400, 2);
  const auto figures =
      Train<TypeParam>(this->Small(600, ModuleControl::kNone), train, held_out).figures;
  // coins of training episodes could be learned by heart, a look ahead would know all coins
  EXPECT_GT(figures.at("r2"), 0.8);
  EXPECT_LT(figures.at("r2"), 0.95);
  EXPECT_LT(figures.at("other_context_r2"), 0.3);
  const auto random =
      Train<TypeParam>(this->Small(600, ModuleControl::kRandom), train, held_out).figures;
  EXPECT_LT(random.at("r2"), 0.1);
  const auto shuffled =
      Train<TypeParam>(this->Small(600, ModuleControl::kShuffled), train, held_out).figures;
  EXPECT_LT(shuffled.at("r2"), 0.1);
}

TEST(PretrainUvfa, KnowsValuesOfGoalsThatWereLeftOut) {
  const EpisodeFile train = Walks(500, /*right=*/true, 1);
  const EpisodeFile held_out = Walks(300, /*right=*/false, 2);
  auto config = SmallConfig<UvfaPretrainer>(4000, ModuleControl::kNone);
  config.shape = {.stream_width = 48, .stream_features = 16};
  const auto learned = Train<UvfaPretrainer>(config, train, held_out).figures;
  EXPECT_GT(learned.at("train_r2"), 0.9);
  // no task had a goal on the left; on some of the ways to the right the walks came by there
  EXPECT_GT(learned.at("r2"), 0.75);
  EXPECT_GT(learned.at("rank_correlation"), 0.85);
  EXPECT_GT(learned.at("new_goal_r2"), 0.8);
  config.control = ModuleControl::kShuffled;
  const auto shuffled = Train<UvfaPretrainer>(config, train, held_out).figures;
  EXPECT_LT(shuffled.at("r2"), 0.2);
  EXPECT_LT(shuffled.at("new_goal_r2"), 0.2);
}

// Goals and values in hindsight are those of the closed form.
TEST(PretrainUvfa, HindsightIsTheReturnOfTheDistance) {
  const EpisodeFile file = Walks(5, true, 3);
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  const UvfaTask task({}, set);
  const SourceSequence& sequence = *std::ranges::max_element(
      set.sequences(), {}, [](const SourceSequence& s) { return s.horizon(); });
  const Index reached = sequence.horizon() - 2;
  ASSERT_GT(reached, 6);
  const Eigen::RowVectorXd labels =
      task.DistanceReturns(sequence, 2, 5, sequence.channels.col(reached).head<2>(), reached);
  const auto distance = [&](Index t) {
    return (sequence.channels.col(t).head(2) - sequence.channels.col(reached).head(2))
        .cast<double>()
        .norm();
  };
  for (Index t = 2; t < 7; ++t) {
    double sum = 0.0;
    for (Index k = t; k < reached; ++k) {
      sum -= std::pow(0.99, static_cast<double>(k - t)) * distance(k + 1);
    }
    EXPECT_NEAR(labels[t - 2], sum, 1e-5);
  }
  // here the task's own rewards are such distances, so that the units must be the same
  EXPECT_NEAR(task.scale(0), set.scale(0), 1e-4 * set.scale(0));
}

// A control speaks as loudly as what it is compared with.
TEST(PretrainModules, ControlsHaveTheAmplitudeOfTheLabels) {
  const EpisodeFile train = Cues(200, 1);
  for (const ModuleControl control : {ModuleControl::kRandom, ModuleControl::kShuffled}) {
    auto config = SmallConfig<Traj2ValueRnnPretrainer>(20, control);
    config.shape = {.token_width = 8, .memory_width = 8, .head_width = 8};
    const PretrainResult result = Train<Traj2ValueRnnPretrainer>(config, train, train);
    Rng rng(0, "init");
    Traj2ValueRnn module(config.shape, {}, rng);
    LoadModule(Artefact::Parse(result.artefact, "result"),
               ModuleHeader(Traj2ValueRnn::kKind, config.shape, {}), module);
    const SourceSequences set(train, ValueTarget::kMonteCarlo);
    const SourceSampler sampler(set, set.tasks());
    DrawnWindows drawn(2000);
    Rng draws(4, "windows");
    for (int w = 0; w < drawn.count(); ++w) DrawWindow(sampler, draws, w, drawn);
    const auto deviation = [](const Eigen::RowVectorXf& v) {
      return std::sqrt((v.array() - v.mean()).square().mean());
    };
    const Eigen::RowVectorXf value = ValuesAtEnds(module, drawn);
    const Eigen::RowVectorXf label = LabelsAtEnds(drawn);
    EXPECT_NEAR(deviation(value) / deviation(label), 1.0F, 0.15F);
    EXPECT_NEAR(value.mean(), label.mean(), 0.15F * deviation(label));
  }
}

// What has to be remembered is an action.
TEST(PretrainModules, PermutedActionsMeanOthers) {
  const auto remembered = [](int episodes, std::uint64_t seed) {
    EpisodeFile file = Cues(episodes, seed);
    for (StoredEpisode& episode : file.episodes) {
      episode.actions(0, 0) = episode.geometry(6, 0);
      episode.geometry(6, 0) = 0.0F;
    }
    return file;
  };
  const EpisodeFile train = remembered(600, 1);
  const EpisodeFile held_out = remembered(400, 2);
  const auto train_with = [&](ModuleControl control) {
    auto config = SmallConfig<Traj2ValueRnnPretrainer>(600, control);
    config.shape = {.token_width = 24, .memory_width = 24, .head_width = 24};
    return Train<Traj2ValueRnnPretrainer>(config, train, held_out).figures;
  };
  EXPECT_GT(train_with(ModuleControl::kNone).at("r2"), 0.6);
  const auto permuted = train_with(ModuleControl::kPermuted);
  EXPECT_GT(permuted.at("train_r2"), 0.6);
  EXPECT_LT(permuted.at("r2"), 0.1);
  const std::vector<std::string> settings{"control=permuted"};
  EXPECT_NE(UserErrorText([&] { UvfaPretrainer::Configure(settings); }).find("reads no actions"),
            std::string::npos);
}

TEST(PretrainModules, ContextsAreExchangedAndEndsStay) {
  const EpisodeFile file = Cues(30, 1);
  const SourceSequences set(file, ValueTarget::kMonteCarlo);
  const SourceSampler sampler(set, set.tasks());
  DrawnWindows drawn(200);
  Rng rng(4, "windows");
  for (int w = 0; w < drawn.count(); ++w) DrawWindow(sampler, rng, w, drawn);
  const DrawnWindows mixed = WithOtherContexts(drawn);
  int changed = 0;
  for (int w = 0; w < drawn.count(); ++w) {
    const int states = drawn.states[static_cast<std::size_t>(w)];
    const Index first = static_cast<Index>(w) * ValueModule::kTrainingLength;
    EXPECT_EQ(mixed.channels.col(first + states - 1), drawn.channels.col(first + states - 1));
    if (states > 1) changed += mixed.channels.col(first) != drawn.channels.col(first) ? 1 : 0;
  }
  EXPECT_GT(changed, 100);
  EXPECT_EQ(mixed.label, drawn.label);
}

}  // namespace
}  // namespace msrl
