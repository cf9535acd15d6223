#include "msrl/agents/dreamer/pretrained_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "msrl/agents/dreamer/dreamer.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::SmallSpec;
using testing::UserErrorText;

const WorldShape kShape{
    .deter = 6, .blocks = 2, .stoch = 3, .classes = 4, .hidden = 5, .units = 7, .layers = 2};

std::unique_ptr<SlotWorld> Fresh(const WorldShape& shape) {
  Rng rng(1, "init");
  return std::make_unique<SlotWorld>(shape, rng);
}

std::unique_ptr<SlotWorld> Scattered() {
  auto world = Fresh(kShape);
  Rng rng(1, "scatter");
  for (float& v : world->world.values()) v = static_cast<float>(0.7 * rng.Normal());
  return world;
}

Artefact ArtefactOf(SlotWorld& world) {
  return Artefact::Parse(EncodeWorld(world, WorldHeader(kShape, {{"sources", "a,b,c"}})), "world");
}

bool Equal(std::span<const float> a, std::span<const float> b) { return std::ranges::equal(a, b); }

TEST(PretrainedWorld, GoesThroughAFile) {
  const auto world = Scattered();
  const Artefact artefact = ArtefactOf(*world);
  EXPECT_EQ(artefact.header().kind, "dreamer");
  const auto read = ReadWorld(artefact);
  EXPECT_TRUE(Equal(read->world.values(), world->world.values()));
  EXPECT_EQ(ArtefactOf(*read).contents(), artefact.contents());
}

// 220 thousand numbers, as the baselines' table has it.
TEST(PretrainedWorld, HasAsManyNumbersAsItsSizesSay) {
  for (const int layers : {1, 2, 3}) {
    WorldShape shape = kShape;
    shape.layers = layers;
    EXPECT_EQ(ParameterCount(shape), static_cast<std::int64_t>(Fresh(shape)->world.size()));
  }
  EXPECT_EQ(ParameterCount(WorldShape{}), 18'944 + 74'816 + 28'096 + 30'976 + 42'504 + 24'961);
  EXPECT_EQ(ParameterCount(WorldShape{.units = 112}), 182'536 + 21'841);
}

TEST(PretrainedWorld, WhatIsNotWholeIsRefused) {
  const auto world = Scattered();
  const auto refusal = [&](const ArtefactHeader& header) {
    return UserErrorText([&] { ReadWorld(Artefact::Parse(EncodeWorld(*world, header), "file")); });
  };
  const ArtefactHeader good = WorldHeader(kShape, {});
  EXPECT_EQ(refusal(good), "no error");
  for (const auto& [key, text] : good.shape) {
    ArtefactHeader other = good;
    // 6 numbers in 3 blocks, and one more of all others
    other.shape[key] = key == "deter" ? "8" : std::to_string(std::stoi(text) + 1);
    EXPECT_NE(refusal(other).find("file: its sizes are not those of its tensors"),
              std::string::npos)
        << key << ": " << refusal(other);
    other.shape[key] = "1000000000";
    EXPECT_NE(refusal(other).find(key), std::string::npos) << refusal(other);
    other.shape.erase(key);
    EXPECT_NE(refusal(other).find(key), std::string::npos) << refusal(other);
  }
  ArtefactHeader other = good;
  other.shape["blocks"] = "4";
  EXPECT_NE(refusal(other).find("'blocks' does not divide 'deter'"), std::string::npos);
  other = good;
  other.shape["more"] = "1";
  EXPECT_NE(refusal(other).find("more"), std::string::npos);
  other = good;
  other.kind = "tdmpc";
  EXPECT_NE(refusal(other).find("not 'dreamer'"), std::string::npos);
  other = good;
  other.lift = LiftId{7};
  EXPECT_NE(refusal(other).find("was trained with lift"), std::string::npos);
  world->world.values()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(refusal(good).find("not finite"), std::string::npos);
}

// ---- an agent that starts from one ----

const EnvSpec kSpec = SmallSpec(ActionKind::kContinuous, 2);

DreamerConfig AgentConfig() {
  DreamerConfig config;
  for (const std::string& setting : SettingsForWorld(WorldHeader(kShape, {}))) {
    SetField(config, setting);
  }
  config.sequences = 3;
  config.sequence_length = 6;
  config.start_steps = 3;
  config.horizon = 3;
  config.replay_size = 200;
  config.random_steps = 20;
  config.first_updates = 1;
  config.train_ratio = 6;
  return config;
}

// Steps of an episode that never ends.
class Walk {
 public:
  explicit Walk(Dreamer& agent) : agent_(agent), carry_(agent.MakeCarry()) { Move(); }

  // The most likely action, if the task's own observation were another by `shift`, and the slots by
  // `slot_shift`. Nothing of it is remembered.
  std::vector<double> Likely(double shift, double slot_shift) {
    const Eigen::VectorXd observation = observation_.array() + shift;
    Eigen::VectorXd geometry = geometry_;
    geometry.head(6).array() += slot_shift;
    const std::unique_ptr<Carry> carry = agent_.MakeCarry();
    ActionBuffer action(kSpec.action);
    agent_.Act({{View(observation), View(geometry), matrix_, 0}, *carry, rng_, action},
               ActMode::kEvaluate);
    return {action.values().begin(), action.values().end()};
  }
  void Step() {
    agent_.Act({{View(observation_), View(geometry_), matrix_, step_}, *carry_, rng_, action_},
               ActMode::kExplore);
    const Eigen::VectorXd observation = observation_;
    const Eigen::VectorXd geometry = geometry_;
    Move();
    agent_.Observe({.before = {View(observation), View(geometry), matrix_, step_},
                    .action = action_.view(),
                    .action_code = {},
                    .reward = observation[0],
                    .scaled_reward = observation[0],
                    .psi = {},
                    .after = {View(observation_), View(geometry_), matrix_, step_ + 1}},
                   *carry_);
    agent_.Update();
    ++step_;
  }

 private:
  static EnvView View(const Eigen::VectorXd& values) { return {values.data(), values.size()}; }
  void Move() {
    for (double& v : observation_) v = rng_.Normal();
    for (double& v : geometry_.head(6)) v = rng_.Normal();
  }

  Dreamer& agent_;
  std::unique_ptr<Carry> carry_;
  Rng rng_{3, "walk"};
  int step_ = 0;
  Eigen::VectorXd observation_ = Eigen::Vector3d::Zero();
  Eigen::VectorXd geometry_ = Eigen::VectorXd::Zero(kGeometrySize);
  SegmentMatrix matrix_{CompactLift()};
  ActionBuffer action_{kSpec.action};
};

TEST(PretrainedWorld, WhatIsCopiedAndWhatIsNew) {
  const auto source = Scattered();
  Dreamer agent(kSpec, AgentConfig(), 5);
  Dreamer fresh(kSpec, AgentConfig(), 5);
  agent.Initialise(ArtefactOf(*source));
  EXPECT_TRUE(Equal(agent.world().values(), source->world.values()));
  EXPECT_FALSE(Equal(agent.world().values(), fresh.world().values()));
  // rewards, actor, the branch for the own observation; critics
  EXPECT_TRUE(Equal(agent.model().values(), fresh.model().values()));
  EXPECT_TRUE(Equal(agent.critic().values(), fresh.critic().values()));
  EXPECT_TRUE(Equal(agent.critic().target(), fresh.critic().target()));
  // nothing of how it was learned
  EXPECT_EQ(agent.world().laprop().step_count(), 0);
  for (const NamedTensor& tensor : agent.world().tensors()) {
    EXPECT_FALSE(tensor.name.starts_with("reward") || tensor.name.starts_with("actor"))
        << tensor.name;
  }
}

// The task's own observation adds nothing at first, whatever it is, and learns to.
TEST(PretrainedWorld, TheOwnObservationChangesNothingAtFirst) {
  const auto source = Scattered();
  Dreamer agent(kSpec, AgentConfig(), 5);
  agent.Initialise(ArtefactOf(*source));
  const auto part = [&](const std::string& name) {
    const auto& tensors = agent.model().tensors();
    const auto tensor = std::ranges::find(tensors, name, &NamedTensor::name);
    return agent.model().values().subspan(tensor->offset, tensor->size());
  };
  // an actor that hears what it is told
  Rng rng(2, "actor");
  const auto scatter = [&](const std::string& name) {
    for (float& v : part(name)) v = static_cast<float>(3.0 * rng.Normal());
  };
  scatter("actor.output.weight");
  Walk walk(agent);
  const std::vector<double> before = walk.Likely(0.0, 0.0);
  EXPECT_EQ(before, walk.Likely(3.0, 0.0));
  EXPECT_NE(before, walk.Likely(0.0, 3.0));
  for (int t = 0; t < 30; ++t) walk.Step();
  EXPECT_TRUE(std::ranges::any_of(part("native.output.weight"), [](float v) { return v != 0.0F; }));
  // not zero: it has a say
  scatter("native.output.weight");
  EXPECT_NE(walk.Likely(-3.0, 0.0), walk.Likely(3.0, 0.0));
}

TEST(PretrainedWorld, ItLearnsSlowlyAtFirstAndNotAtAllIfFrozen) {
  const auto source = Scattered();
  const auto after = [&](int steps, double early_rate, bool frozen) {
    DreamerConfig config = AgentConfig();
    config.early_rate = early_rate;
    config.frozen = frozen;
    Dreamer agent(kSpec, config, 5);
    agent.Initialise(ArtefactOf(*source));
    const std::vector<float> heads(agent.model().values().begin(), agent.model().values().end());
    Walk walk(agent);
    for (int t = 0; t < steps; ++t) walk.Step();
    EXPECT_FALSE(Equal(agent.model().values(), heads));  // they learn in any case
    return std::vector<float>(agent.world().values().begin(), agent.world().values().end());
  };
  const auto moved = [&](const std::vector<float>& values) {
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += std::abs(values[i] - source->world.values()[i]);
    }
    return sum;
  };
  // twice 20 random steps
  EXPECT_EQ(moved(after(39, 0.0, false)), 0.0);
  EXPECT_GT(moved(after(45, 0.0, false)), 0.0);
  EXPECT_GT(moved(after(39, 0.1, false)), 0.0);
  EXPECT_LT(moved(after(39, 0.1, false)), 0.5 * moved(after(39, 1.0, false)));
  EXPECT_EQ(moved(after(60, 1.0, true)), 0.0);
}

TEST(PretrainedWorld, AnAgentThatDoesNotFitSaysWhy) {
  const auto source = Scattered();
  const auto refusal = [&](const DreamerConfig& config) {
    return UserErrorText([&] { Dreamer(kSpec, config, 1).Initialise(ArtefactOf(*source)); });
  };
  EXPECT_EQ(refusal(AgentConfig()), "no error");
  DreamerConfig config = AgentConfig();
  config.aligned = false;
  EXPECT_NE(refusal(config).find("set aligned=true"), std::string::npos);
  config = AgentConfig();
  config.units = 9;
  EXPECT_EQ(refusal(config), "world: 'units' is 7, the agent's is 9");
}

}  // namespace
}  // namespace msrl
