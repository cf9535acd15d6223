// What every listed agent promises.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/registry.h"
#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::Archived;
using ::msrl::testing::Unarchive;

// One env per kind of action.
const std::vector<std::string> kEnvs{"graph-motif", "four-rooms-sparse"};

bool Fits(const AgentEntry& entry, const EnvSpec& spec) {
  return spec.action.kind == ActionKind::kDiscrete ? entry.discrete : entry.continuous;
}

class NullSink : public MetricSink {
 public:
  void Add(std::string_view, double value) override { EXPECT_TRUE(std::isfinite(value)); }
};

// An agent in its environment, without files.
class Loop {
 public:
  Loop(const AgentEntry& entry, const std::string& env_id, std::uint64_t seed)
      : env_(MakeEnv(env_id)),
        agent_(MakeAgent(entry, env_->spec(), entry.quick, seed)),
        tracker_(env_->spec(), CompactLift(agent_->lift_kind())),
        resets_(seed, "env"),
        policy_(seed, "policy"),
        action_(env_->spec().action) {
    Restart();
  }

  void Train(int steps) {
    for (int t = 0; t < steps; ++t) {
      if (Step(ActMode::kExplore)) Restart();
    }
  }
  // Returns whether the episode ended.
  bool Step(ActMode mode) {
    agent_->Act(tracker_.situation(), mode, policy_, action_);
    for (const double value : action_.values()) actions_ += StrCat(value, " ");
    actions_ += StrCat(action_.index(), ";");
    StepResult result = env_->Step(action_.view());
    result.reward = reward_.value_or(result.reward);
    const Experience experience = tracker_.Advance(action_.view(), result, *env_);
    if (mode == ActMode::kExplore) {
      agent_->Observe(experience);
      agent_->Update();
    }
    return result.terminated || result.truncated;
  }
  std::string State() const { return Archived(*agent_); }
  void Restart() {
    env_->Reset(resets_.NextU64());
    tracker_.Begin(*env_);
  }

  std::unique_ptr<Env> env_;
  std::unique_ptr<Agent> agent_;
  EpisodeTracker tracker_;
  Rng resets_, policy_;
  ActionBuffer action_;
  std::string actions_;
  std::optional<double> reward_;  // instead of the environment's
};

template <typename Check>
void ForAll(const Check& check) {
  for (const AgentEntry& entry : Agents()) {
    for (const std::string& id : kEnvs) {
      if (!Fits(entry, MakeEnv(id)->spec())) continue;
      SCOPED_TRACE(entry.id + " in " + id);
      check(entry, id);
    }
  }
}

TEST(AgentContract, EqualSeedsMakeEqualRuns) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop a(entry, id, 1);
    Loop b(entry, id, 1);
    Loop c(entry, id, 2);
    a.Train(300);
    b.Train(300);
    c.Train(300);
    EXPECT_EQ(a.actions_, b.actions_);
    EXPECT_EQ(a.State(), b.State());
    EXPECT_EQ(a.actions_ == c.actions_, entry.id == "still");
    EXPECT_EQ(a.State() == c.State(), a.agent_->parameter_count() == 0);
  });
}

TEST(AgentContract, EvaluationLeavesTrainingAlone) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop loop(entry, id, 1);
    loop.Train(100);
    const std::string before = loop.State();
    Loop other(entry, id, 7);
    std::swap(loop.agent_, other.agent_);
    for (int t = 0; t < 200; ++t) {
      if (other.Step(ActMode::kEvaluate)) other.Restart();
    }
    std::swap(loop.agent_, other.agent_);
    EXPECT_EQ(loop.State(), before);
  });
}

TEST(AgentContract, ALoadedAgentGoesOnBitForBit) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop loop(entry, id, 1);
    loop.Train(150);
    const std::string saved = loop.State();
    auto copy = MakeAgent(entry, loop.env_->spec(), entry.quick, /*seed=*/99);
    Unarchive(saved, *copy);
    Loop again(entry, id, 1);
    again.Train(150);
    again.agent_ = std::move(copy);
    EXPECT_EQ(again.State(), saved);
    loop.Train(150);
    again.Train(150);
    EXPECT_EQ(again.actions_, loop.actions_);
    EXPECT_EQ(again.State(), loop.State());
  });
}

TEST(AgentContract, DefaultsAndQuickSettingsExist) {
  for (const AgentEntry& entry : Agents()) {
    EXPECT_FALSE(entry.description.empty());
    EXPECT_TRUE(entry.discrete || entry.continuous) << entry.id;
    EXPECT_EQ(entry.options({}).size(), entry.options(entry.quick).size());
    for (const ConfigField& field : entry.options({})) EXPECT_FALSE(field.meaning.empty());
  }
}

TEST(AgentContract, MetricsAreFiniteAndActionsFit) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop loop(entry, id, 1);
    loop.Train(200);
    NullSink sink;
    loop.agent_->DrainMetrics(sink);
    for (const double value : loop.action_.values()) EXPECT_LE(std::abs(value), 1.0);
    EXPECT_GE(loop.agent_->parameter_count(), 0);
  });
}

TEST(AgentContract, BadRewardsAreRunErrors) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    // no number, too large for a matrix, too large for a float
    for (const double reward : {std::nan(""), 1e200, 1e60}) {
      SCOPED_TRACE(reward);
      Loop loop(entry, id, 1);
      loop.Train(100);
      loop.reward_ = reward;
      const bool learns = loop.agent_->parameter_count() > 0;
      if (reward == 1e60 && !learns) {
        loop.Train(100);
      } else {
        EXPECT_THROW(loop.Train(100), RunError);
      }
    }
  });
}

TEST(AgentContract, ActObserveAndUpdateDoNotAllocate) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop loop(entry, id, 1);
    loop.Train(200);
    std::int64_t act = 0;
    std::int64_t observe = 0;
    std::int64_t update = 0;
    const auto count = [](std::int64_t& sum, const auto& call) {
      const std::int64_t before = AllocationCount();
      call();
      sum += AllocationCount() - before;
    };
    const std::string before = loop.State();
    // long enough for a whole rollout and for the replay to turn around
    for (int t = 0; t < 150; ++t) {
      count(act, [&] {
        const Situation now = loop.tracker_.situation();
        loop.agent_->Act(now, ActMode::kEvaluate, loop.policy_, loop.action_);
        loop.agent_->Act(now, ActMode::kExplore, loop.policy_, loop.action_);
      });
      const StepResult result = loop.env_->Step(loop.action_.view());
      const Experience seen = loop.tracker_.Advance(loop.action_.view(), result, *loop.env_);
      count(observe, [&] { loop.agent_->Observe(seen); });
      count(update, [&] { loop.agent_->Update(); });
      if (result.terminated || result.truncated) loop.Restart();
    }
    EXPECT_EQ(act, 0);
    EXPECT_EQ(observe, 0);
    EXPECT_EQ(update, 0);
    EXPECT_EQ(loop.State() != before, loop.agent_->parameter_count() > 0);
  });
}

}  // namespace
}  // namespace msrl
