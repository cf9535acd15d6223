#include "msrl/agents/tdmpc/pretrained_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "msrl/agents/tdmpc/tdmpc.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::Archived;
using testing::SmallSpec;
using testing::UserErrorText;

constexpr int kTasks = 3;
const LatentSizes kSizes{.encoder_width = 6,
                         .latent_groups = 2,
                         .model_width = 5,
                         .q_count = 2,
                         .bins = 7,
                         .termination = true,
                         .task_size = 4};

std::vector<Parameters*> PartsOf(LatentModel& model) {
  return {&model.encoder(), &model.dynamics(), &model.values(), &model.policy(), &model.task()};
}

// Heads start at zero, where too much is equal.
std::unique_ptr<LatentModel> Scattered(std::uint64_t seed = 1) {
  auto model = std::make_unique<LatentModel>(SlotModel(kSizes, kTasks), Rng(seed, "init"));
  Rng rng(seed, "scatter");
  for (Parameters* part : PartsOf(*model)) {
    for (float& v : part->values()) v = static_cast<float>(0.7 * rng.Normal());
  }
  return model;
}

Artefact ArtefactOf(LatentModel& model, const LatentSizes& sizes = kSizes) {
  return Artefact::Parse(EncodeModel(model, HeaderOf(sizes, {{"sources", "a,b,c"}})), "model");
}

TEST(PretrainedModel, GoesThroughAFile) {
  const auto model = Scattered();
  const Artefact artefact = ArtefactOf(*model);
  EXPECT_EQ(artefact.header().kind, "tdmpc");
  const auto read = ReadModel(artefact);
  for (std::size_t i = 0; i < PartsOf(*model).size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(PartsOf(*model)[i]->values(), PartsOf(*read)[i]->values())) << i;
  }
  EXPECT_EQ(ArtefactOf(*read).contents(), artefact.contents());
}

// 247 thousand numbers without the ends of episodes, as the baselines' table has it.
TEST(PretrainedModel, HasAsManyNumbersAsItsSizesSay) {
  for (const bool termination : {true, false}) {
    for (const int bins : {0, 7}) {
      LatentSizes sizes = kSizes;
      sizes.termination = termination;
      sizes.bins = bins;
      const LatentModel model(SlotModel(sizes, kTasks), Rng(1, "init"));
      EXPECT_EQ(ParameterCount(sizes, kTasks), static_cast<std::int64_t>(model.parameter_count()));
    }
  }
  EXPECT_EQ(ParameterCount({.termination = false}, 0), 12'864 + 37'056 + 4 * 41'701 + 29'972);
}

TEST(PretrainedModel, WhatIsNotWholeIsRefused) {
  const auto model = Scattered();
  const auto refusal = [&](const ArtefactHeader& header) {
    return UserErrorText([&] { ReadModel(Artefact::Parse(EncodeModel(*model, header), "file")); });
  };
  const ArtefactHeader good = HeaderOf(kSizes, {});
  EXPECT_EQ(refusal(good), "no error");
  for (const auto& [key, text] : good.shape) {
    ArtefactHeader other = good;
    other.shape[key] = key == "termination" ? "0" : std::to_string(std::stoi(text) + 1);
    EXPECT_NE(refusal(other).find("file: its sizes are not those of its tensors"),
              std::string::npos)
        << key << ": " << refusal(other);
    other.shape[key] = "1000000000";
    EXPECT_NE(refusal(other).find(key), std::string::npos) << refusal(other);
    other.shape.erase(key);
    EXPECT_NE(refusal(other).find(key), std::string::npos) << refusal(other);
  }
  ArtefactHeader other = good;
  other.shape["more"] = "1";
  EXPECT_NE(refusal(other).find("more"), std::string::npos);
  other = good;
  other.kind = "dreamer";
  EXPECT_NE(refusal(other).find("not 'tdmpc'"), std::string::npos);
  other = good;
  other.lift = LiftId{7};
  EXPECT_NE(refusal(other).find("was trained with lift"), std::string::npos);
  model->policy().values()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(refusal(good).find("not finite"), std::string::npos);
}

// ---- an agent that starts from one ----

const EnvSpec kSpec = [] {
  EnvSpec spec = SmallSpec(ActionKind::kContinuous, 2);
  spec.action_code = {4, 1};
  return spec;
}();

TdMpcConfig AgentConfig() {
  TdMpcConfig config;
  for (const std::string& setting : SettingsForModel(HeaderOf(kSizes, {}))) {
    SetField(config, setting);
  }
  config.batch_size = 4;
  config.replay_size = 200;
  config.random_steps = 60;
  config.first_updates = 0;
  config.mppi = {.horizon = 2, .samples = 6, .policy_samples = 2, .elites = 3};
  return config;
}

// What a source model says of x, code and task, from one state on.
class Oracle {
 public:
  explicit Oracle(LatentModel& model) {
    constexpr auto kFrozen = ParameterUse::kFrozen;
    x_ = graph_.Input(kStateChannels, 1);
    code_ = graph_.Input(kActionCodeSize, 1);
    task_ = graph_.Input(1, 1);
    const LatentModel::Context context{.task = model.Task(graph_, task_, kFrozen), .mask = {}};
    const Node z = model.Encode(graph_, x_, context, kFrozen);
    const Node in = model.Input(graph_, z, code_, context);
    reward_ = model.Decode(graph_, model.Reward(graph_, in, kFrozen));
    mode_ = model.Act(graph_, z, graph_.Input(kActionCodeSize, 1), context, kFrozen).mode;
    graph_.Finish();
  }
  double Reward(const Eigen::VectorXf& x, const Eigen::VectorXf& code, int task) {
    Run(x, code, task);
    return graph_.value(reward_)(0, 0);
  }
  Eigen::VectorXf Mode(const Eigen::VectorXf& x, int task) {
    Run(x, Eigen::VectorXf::Zero(kActionCodeSize), task);
    return graph_.value(mode_).col(0);
  }

 private:
  void Run(const Eigen::VectorXf& x, const Eigen::VectorXf& code, int task) {
    graph_.input(x_) = x;
    graph_.input(code_) = code;
    graph_.input(task_)(0, 0) = static_cast<float>(task);
    graph_.Forward();
  }

  StaticGraph graph_;
  Node x_, code_, task_, reward_, mode_;
};

EnvView ViewOf(const Eigen::VectorXd& values) { return {values.data(), values.size()}; }

// Steps of an episode that never ends, with whatever reward.
class Walk {
 public:
  explicit Walk(TdMpc& agent) : agent_(agent), carry_(agent.MakeCarry()) { Move(); }

  // What the model sees of the present state: slots 0 to 5 are alive from the first state on.
  Eigen::VectorXf x() const {
    Eigen::VectorXf x(kStateChannels);
    x << geometry_.cast<float>(), (geometry_.array() != 0.0).cast<float>();
    return x;
  }
  Eigen::VectorXf code() const {
    Eigen::VectorXf code = Eigen::VectorXf::Zero(kActionCodeSize);
    code[4] = static_cast<float>(action_.values()[0]);
    code[1] = static_cast<float>(action_.values()[1]);
    return code;
  }
  std::vector<double> Act(ActMode mode) {
    agent_.Act({{ViewOf(observation_), ViewOf(geometry_), matrix_, step_}, *carry_, rng_, action_},
               mode);
    return {action_.values().begin(), action_.values().end()};
  }
  void Step(double reward) {
    const Eigen::VectorXd observation = observation_;
    const Eigen::VectorXd geometry = geometry_;
    Move();
    agent_.Observe({.before = {ViewOf(observation), ViewOf(geometry), matrix_, step_},
                    .action = action_.view(),
                    .action_code = {},
                    .reward = reward,
                    .scaled_reward = reward,
                    .psi = {},
                    .after = {ViewOf(observation_), ViewOf(geometry_), matrix_, step_ + 1}},
                   *carry_);
    agent_.Update();
    ++step_;
  }

 private:
  void Move() {
    for (double& v : observation_) v = rng_.Normal();
    for (double& v : geometry_.head(6)) v = rng_.Normal();
  }

  TdMpc& agent_;
  std::unique_ptr<Carry> carry_;
  Rng rng_{3, "walk"};
  int step_ = 0;
  Eigen::VectorXd observation_ = Eigen::Vector3d::Zero();
  Eigen::VectorXd geometry_ = Eigen::VectorXd::Zero(kGeometrySize);
  SegmentMatrix matrix_{CompactLift()};
  ActionBuffer action_{kSpec.action};
};

// The task's own observation and heads add nothing at first, whatever they see.
TEST(PretrainedModel, TheAgentDoesWhatTheModelDid) {
  const auto source = Scattered();
  source->task_vectors().colwise() = source->task_vectors().col(0).eval();  // one task
  TdMpcConfig config = AgentConfig();
  config.plan = false;
  TdMpc agent(kSpec, config, 5);
  agent.Initialise(ArtefactOf(*source));
  Oracle oracle(*source);
  Walk walk(agent);
  for (int t = 0; t < 5; ++t) {
    const Eigen::VectorXf mode = oracle.Mode(walk.x(), 0);
    const std::vector<double> got = walk.Act(ActMode::kEvaluate);
    EXPECT_NEAR(got[0], mode[4], 1e-6);
    EXPECT_NEAR(got[1], mode[1], 1e-6);
    EXPECT_GT(std::abs(got[0] - got[1]), 1e-4);
    walk.Step(0.0);
  }
  // and does not from the first update on
  config.random_steps = 1;
  config.first_updates = 20;
  TdMpc learned(kSpec, config, 5);
  learned.Initialise(ArtefactOf(*source));
  Walk later(learned);
  later.Act(ActMode::kEvaluate);
  later.Step(1.0);
  const auto native = learned.model().native().values();
  EXPECT_TRUE(std::ranges::any_of(native.last(16), [](float v) { return v != 0.0F; }));
}

TEST(PretrainedModel, WhatIsCopiedAndWhatIsNew) {
  const auto source = Scattered();
  const Artefact artefact = ArtefactOf(*source);
  const auto equal = [](Parameters& a, Parameters& b) {
    return std::ranges::equal(a.values(), b.values());
  };
  for (const ModelCopy copy : EnumValues<ModelCopy>()) {
    SCOPED_TRACE(EnumName(copy));
    const bool all = copy == ModelCopy::kAll;
    TdMpcConfig config = AgentConfig();
    config.copy = copy;
    TdMpc agent(kSpec, config, 5);
    TdMpc fresh(kSpec, config, 5);
    agent.Initialise(artefact);
    LatentModel& model = agent.model();
    EXPECT_TRUE(equal(model.encoder(), source->encoder()));
    EXPECT_EQ(equal(model.dynamics(), source->dynamics()), all);
    for (const NamedTensor& tensor : source->dynamics().tensors()) {
      const auto part = [&](Parameters& of) {
        return of.values().subspan(tensor.offset, tensor.size());
      };
      const bool copied = all || tensor.name.starts_with("dynamics");
      EXPECT_TRUE(std::ranges::equal(part(model.dynamics()),
                                     part(copied ? source->dynamics() : fresh.model().dynamics())))
          << tensor.name;
    }
    LatentModel& rest = all ? *source : fresh.model();
    EXPECT_TRUE(equal(model.values(), rest.values()));
    EXPECT_TRUE(equal(model.policy(), rest.policy()));
    EXPECT_TRUE(std::ranges::equal(model.values().target(), rest.values().values()));
    // nothing of how it was learned
    EXPECT_EQ(agent.scale(), 1.0);
    for (Parameters* part : PartsOf(model)) {
      EXPECT_EQ(part->adam().step_count(), 0);
      EXPECT_TRUE(std::ranges::all_of(part->adam().variance(), [](float v) { return v == 0.0F; }));
    }
    const Eigen::VectorXf mean = source->task_vectors().rowwise().mean();
    EXPECT_TRUE(model.task_vectors().col(0).isApprox(mean));
  }
}

// The vector is that of the source whose rewards are nearest to those of the random steps.
TEST(PretrainedModel, TheNearestSourceIsFoundByItsRewards) {
  std::set<int> met;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto source = Scattered(seed);
    TdMpc agent(kSpec, AgentConfig(), 5);
    agent.Initialise(ArtefactOf(*source));
    Oracle oracle(*source);
    Walk walk(agent);
    Rng rng(seed, "rewards");
    std::vector<double> rewards;
    std::vector<std::array<double, kTasks>> told;
    for (int t = 0; t < 60; ++t) {
      walk.Act(ActMode::kExplore);
      auto& all = told.emplace_back();
      for (int k = 0; k < kTasks; ++k) {
        all[static_cast<std::size_t>(k)] = oracle.Reward(walk.x(), walk.code(), k);
      }
      rewards.push_back(0.3 * rng.Normal());
      walk.Step(rewards.back());
    }
    EXPECT_NE(agent.reward_unit(), 1.0);
    std::array<double, kTasks> errors{};
    for (std::size_t t = 0; t < rewards.size(); ++t) {
      for (std::size_t k = 0; k < kTasks; ++k) {
        const double e = told[t][k] - rewards[t] / agent.reward_unit();
        errors[k] += e * e;
      }
    }
    const auto nearest = static_cast<int>(std::ranges::min_element(errors) - errors.begin());
    met.insert(nearest);
    EXPECT_EQ(agent.model().task_vectors().col(0), source->task_vectors().col(nearest)) << seed;
    EXPECT_NE(agent.TakeNotice().find(StrCat("of the sources a,b,c number ", nearest + 1)),
              std::string::npos);
    EXPECT_EQ(agent.TakeNotice(), "");
  }
  EXPECT_GT(met.size(), 1u);  // not always the same one
}

// Saved while the source is not yet chosen.
TEST(PretrainedModel, KnownTasksAreKept) {
  const auto source = Scattered();
  TdMpc agent(kSpec, AgentConfig(), 5);
  agent.Initialise(ArtefactOf(*source));
  TdMpc loaded(kSpec, AgentConfig(), 5);
  testing::Unarchive(Archived(agent), loaded);
  for (TdMpc* each : {&agent, &loaded}) {
    Walk walk(*each);
    for (int t = 0; t < 60; ++t) {
      walk.Act(ActMode::kExplore);
      walk.Step(t % 7);
    }
  }
  EXPECT_TRUE(Archived(agent) == Archived(loaded));
  TdMpc other(kSpec, AgentConfig(), 5);
  EXPECT_FALSE(Archived(other) == Archived(loaded));
}

TEST(PretrainedModel, AnAgentThatDoesNotFitSaysWhy) {
  const auto source = Scattered();
  const auto refusal = [&](TdMpcConfig config) {
    return UserErrorText([&] { TdMpc(kSpec, config, 1).Initialise(ArtefactOf(*source)); });
  };
  EXPECT_EQ(refusal(AgentConfig()), "no error");
  TdMpcConfig config = AgentConfig();
  config.aligned = false;
  EXPECT_NE(refusal(config).find("set aligned=true"), std::string::npos);
  config = AgentConfig();
  config.model_width = 9;
  EXPECT_EQ(refusal(config), "model: 'model_width' is 5, the agent's is 9");
  EnvSpec wide = SmallSpec(ActionKind::kContinuous, 11);
  EXPECT_NE(UserErrorText([&] { TdMpc(wide, AgentConfig(), 1); }).find("don't fit into a code"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
