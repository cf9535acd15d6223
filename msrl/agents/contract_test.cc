// What every listed agent promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/registry.h"
#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/config_fields.h"

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

class FiniteSink : public MetricSink {
 public:
  void Add(std::string_view name, double value) override {
    EXPECT_TRUE(std::isfinite(value)) << name;
    EXPECT_TRUE(names.emplace(name).second) << name << " comes twice";
  }
  std::set<std::string> names;
};

// An agent in its environment, without files.
class Loop {
 public:
  Loop(const AgentEntry& entry, const std::string& env_id, std::uint64_t seed)
      : Loop(MakeAgent(entry, MakeEnv(env_id)->spec(), entry.quick, seed), env_id, seed) {}
  // Another episode of an agent.
  Loop(std::shared_ptr<Agent> agent, const std::string& env_id, std::uint64_t seed)
      : env_(MakeEnv(env_id)),
        agent_(std::move(agent)),
        tracker_(env_->spec(), *agent_),
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
  // A step without learning.
  void Play() {
    if (Step(ActMode::kEvaluate)) Restart();
  }
  // Returns whether the episode ended.
  bool Step(ActMode mode) {
    agent_->Act(tracker_.turn(policy_, action_), mode);
    Note(action_);
    StepResult result = env_->Step(action_.view());
    result.reward = reward_.value_or(result.reward);
    story_ += StrCat(result.reward, " ", env_->observation().sum(), ";");
    const Experience experience = tracker_.Advance(action_.view(), result, *env_);
    if (mode == ActMode::kExplore) {
      if (between_) between_();
      agent_->Observe(experience, tracker_.carry());
      agent_->Update();
    }
    return result.terminated || result.truncated;
  }
  std::string AgentState() const { return Archived(*agent_); }
  // Of the agent and of the episode.
  std::string State() const { return Archived(*this); }
  void Visit(const Archive& state) {
    agent_->Visit(state.Child("agent"));
    tracker_.Visit(state.Child("tracker"), *env_);
  }
  // Goes on from there: the agent, the episode, and what is drawn.
  void Load(const std::string& bytes, const Loop& other) {
    env_->Restore(other.env_->Snapshot());
    Unarchive(bytes, *this);
    resets_ = other.resets_;
    policy_ = other.policy_;
  }
  void Note(const ActionBuffer& action) {
    const ActionSpec& spec = env_->spec().action;
    for (const double value : action.values()) {
      EXPECT_LE(std::abs(value), 1.0);
      actions_ += StrCat(value, " ");
    }
    EXPECT_TRUE(spec.kind == ActionKind::kContinuous ||
                (action.index() >= 0 && action.index() < spec.size));
    actions_ += StrCat(action.index(), ";");
  }
  void Restart() {
    env_->Reset(resets_.NextU64());
    tracker_.Begin(*env_);
  }

  std::unique_ptr<Env> env_;
  std::shared_ptr<Agent> agent_;
  EpisodeTracker tracker_;
  Rng resets_, policy_;
  ActionBuffer action_;
  std::string actions_;
  std::string story_;              // what the environment answered
  std::optional<double> reward_;   // instead of the environment's
  std::function<void()> between_;  // called between Act and Observe
};

bool HasSetting(const AgentEntry& entry, std::string_view key) {
  return std::ranges::any_of(entry.options({}),
                             [key](const ConfigField& field) { return field.key == key; });
}

// As it is, over what all tasks share, taught by a model's plans and with hindsight if it has them.
std::vector<AgentEntry> Variants(const AgentEntry& entry, const EnvSpec& spec) {
  std::vector<AgentEntry> variants{entry};
  if (spec.action.kind == ActionKind::kContinuous && HasSetting(entry, "distil")) {
    AgentEntry taught = entry;
    taught.quick.insert(taught.quick.end(), {"plan=model", "distil=0.5"});
    variants.push_back(std::move(taught));
  }
  if (HasSetting(entry, "aligned")) {
    AgentEntry aligned = entry;
    aligned.quick.emplace_back("aligned=true");
    variants.push_back(std::move(aligned));
  }
  if (spec.goal_task == nullptr || !HasSetting(entry, "her")) return variants;
  AgentEntry hindsight = entry;
  hindsight.quick.emplace_back("her=3");
  if (HasSetting(entry, "matrix")) {
    hindsight.quick.insert(hindsight.quick.end(), {"matrix=false", "plan=off"});
  }
  try {
    MakeAgent(hindsight, spec, hindsight.quick, 0);
    variants.push_back(std::move(hindsight));
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("her: ")) << error.what();
  }
  return variants;
}

template <typename Check>
void ForAll(const Check& check) {
  for (const AgentEntry& entry : BuiltinAgents()) {
    for (const std::string& id : kEnvs) {
      const EnvSpec spec = MakeEnv(id)->spec();
      if (!Fits(entry, spec)) continue;
      for (const AgentEntry& variant : Variants(entry, spec)) {
        const bool changed = variant.quick.size() > entry.quick.size();
        SCOPED_TRACE(
            StrCat(variant.id, " in ", id, changed ? " with " + variant.quick.back() : ""));
        check(variant, id);
      }
    }
  }
}

TEST(AgentContract, SomeHaveHindsightOrAreTaughtOrAligned) {
  int with = 0;
  int taught = 0;
  int aligned = 0;
  ForAll([&](const AgentEntry& entry, const std::string&) {
    with += static_cast<int>(std::ranges::count(entry.quick, "her=3"));
    taught += static_cast<int>(std::ranges::count(entry.quick, "distil=0.5"));
    aligned += static_cast<int>(std::ranges::count(entry.quick, "aligned=true"));
  });
  EXPECT_EQ(with, 4);  // two, and the matrix over each
  EXPECT_EQ(taught, 2);
  EXPECT_GT(aligned, 0);
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
    EXPECT_TRUE(a.State() == b.State());
    EXPECT_EQ(a.actions_ == c.actions_, entry.id == "still");
    EXPECT_EQ(a.AgentState() == c.AgentState(), a.agent_->parameter_count() == 0);
  });
}

// Another episode of evaluation on the same agent, between every Act and its Observe.
TEST(AgentContract, EvaluationInTheMiddleOfAnEpisodeChangesNothing) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop alone(entry, id, 1);
    Loop watched(entry, id, 1);
    Loop evaluation(watched.agent_, id, 7);
    watched.between_ = [&] { evaluation.Play(); };
    alone.Train(300);
    watched.Train(300);
    EXPECT_EQ(watched.actions_, alone.actions_);
    EXPECT_TRUE(watched.State() == alone.State());
  });
}

// Some episodes of one agent after training, a step of each in turn or one after the other.
TEST(AgentContract, InterleavedEpisodesEqualSeparateOnes) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    constexpr std::size_t kEpisodes = 3;
    constexpr int kSteps = 60;
    Loop loop(entry, id, 1);
    loop.Train(150);
    const auto play = [&](bool interleaved) {
      std::vector<Loop> episodes;
      for (std::size_t e = 0; e < kEpisodes; ++e) episodes.emplace_back(loop.agent_, id, 10 + e);
      for (int t = 0; interleaved && t < kSteps; ++t) {
        for (Loop& episode : episodes) episode.Play();
      }
      for (Loop& episode : episodes) {
        for (int t = 0; !interleaved && t < kSteps; ++t) episode.Play();
      }
      std::vector<std::string> stories;
      for (const Loop& e : episodes) stories.push_back(e.actions_ + e.story_ + e.State());
      return stories;
    };
    const std::vector<std::string> separate = play(false);
    EXPECT_TRUE(play(true) == separate);
    EXPECT_TRUE(separate[0] != separate[1]);  // equal episodes would prove nothing
  });
}

// More turns than one batch holds, of episodes at different places.
TEST(AgentContract, ABatchOfTurnsEqualsSingleOnes) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    constexpr std::size_t kTurns = 70;
    for (const ActMode mode : {ActMode::kExplore, ActMode::kEvaluate}) {
      std::vector<std::string> actions[2];
      std::string states[2];
      for (const bool batched : {false, true}) {
        Loop loop(entry, id, 1);
        loop.Train(150);
        std::vector<Loop> episodes;
        for (std::size_t e = 0; e < kTurns; ++e) {
          Loop& episode = episodes.emplace_back(loop.agent_, id, 10 + e);
          for (std::size_t t = 0; t < e % 5; ++t) episode.Play();
        }
        std::vector<Turn> turns;
        for (Loop& episode : episodes) {
          turns.push_back(episode.tracker_.turn(episode.policy_, episode.action_));
        }
        if (batched) {
          loop.agent_->Act(turns, mode);
        } else {
          for (const Turn& turn : turns) loop.agent_->Act(turn, mode);
        }
        for (Loop& episode : episodes) {
          episode.Note(episode.action_);
          actions[batched].push_back(episode.actions_ + StrCat(episode.policy_.NextU64()));
        }
        states[batched] = loop.State();
      }
      EXPECT_TRUE(actions[0] == actions[1]);
      EXPECT_TRUE(states[0] == states[1]);
    }
  });
}

TEST(AgentContract, ALoadedAgentGoesOnBitForBit) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop loop(entry, id, 1);
    loop.Train(153);
    ASSERT_GT(loop.tracker_.steps(), 0);  // within an episode
    const std::string saved = loop.State();
    Loop again(entry, id, 99);
    again.Load(saved, loop);
    EXPECT_TRUE(again.State() == saved);
    loop.actions_.clear();
    loop.Train(150);
    again.Train(150);
    EXPECT_EQ(again.actions_, loop.actions_);
    EXPECT_TRUE(again.State() == loop.State());
  });
}

TEST(AgentContract, DefaultsAndQuickSettingsExist) {
  for (const AgentEntry& entry : BuiltinAgents()) {
    EXPECT_FALSE(entry.description.empty());
    EXPECT_TRUE(entry.discrete || entry.continuous) << entry.id;
    EXPECT_EQ(entry.options({}).size(), entry.options(entry.quick).size());
    for (const ConfigField& field : entry.options({})) EXPECT_FALSE(field.meaning.empty());
  }
}

TEST(AgentContract, SettingsKeepToTheirRanges) {
  for (const AgentEntry& entry : BuiltinAgents()) {
    testing::ExpectRangesHold(entry.id, entry.options({}), [&](const std::string& assignment) {
      return entry.options(std::span(&assignment, 1));
    });
  }
}

TEST(AgentContract, MetricsAreFiniteAndActionsFit) {
  ForAll([](const AgentEntry& entry, const std::string& id) {
    Loop loop(entry, id, 1);
    loop.Train(200);  // looks at every action
    FiniteSink sink;
    loop.agent_->DrainMetrics(sink);
    const bool learns = !entry.quick.empty();
    EXPECT_EQ(loop.agent_->parameter_count() > 0, learns);
    EXPECT_EQ(!sink.names.empty(), learns);
    EXPECT_EQ(
        std::ranges::any_of(sink.names, [](const auto& name) { return name.starts_with("loss/"); }),
        learns);
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
    const std::string before = loop.AgentState();
    // long enough for a whole rollout and for the replay to turn around
    for (int t = 0; t < 150; ++t) {
      count(act, [&] {
        const Turn turn = loop.tracker_.turn(loop.policy_, loop.action_);
        loop.agent_->Act(turn, ActMode::kEvaluate);
        loop.agent_->Act(turn, ActMode::kExplore);
      });
      const StepResult result = loop.env_->Step(loop.action_.view());
      const Experience seen = loop.tracker_.Advance(loop.action_.view(), result, *loop.env_);
      count(observe, [&] { loop.agent_->Observe(seen, loop.tracker_.carry()); });
      count(update, [&] { loop.agent_->Update(); });
      if (result.terminated || result.truncated) loop.Restart();
    }
    EXPECT_EQ(act, 0);
    EXPECT_EQ(observe, 0);
    EXPECT_EQ(update, 0);
    EXPECT_EQ(loop.AgentState() != before, loop.agent_->parameter_count() > 0);
  });
}

}  // namespace
}  // namespace msrl
