#include "msrl/agents/msrl/msrl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/msrl/transfer_predictor.h"
#include "msrl/agents/registry.h"
#include "msrl/agents/sac/sac.h"
#include "msrl/agents/simulator.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/agent_update.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::Archived;
using ::msrl::testing::AsDoubles;
using ::msrl::testing::Doubles;
using ::msrl::testing::Saved;
using ::msrl::testing::Unarchive;
using ::msrl::testing::UserErrorText;
using Settings = std::vector<std::string>;

class Collected : public MetricSink {
 public:
  void Add(std::string_view name, double value) override { values[std::string(name)] = value; }
  std::map<std::string, double> values;
};

// An agent in its environment.
class Play {
 public:
  Play(const std::string& env_id, std::unique_ptr<Agent> agent, std::uint64_t seed = 1)
      : env_(MakeEnv(env_id)),
        agent_(std::move(agent)),
        tracker_(env_->spec(), *agent_),
        resets_(seed, "env"),
        policy_(seed, "policy"),
        action_(env_->spec().action) {
    Restart();
  }
  void Step() {
    Turn turn = tracker_.turn(policy_, action_);
    if (simulator_ != nullptr) simulator_->Follow(*env_);
    turn.simulator = simulator_.get();
    agent_->Act(turn, ActMode::kExplore);
    for (const double value : action_.values()) actions_ += StrCat(value, " ");
    actions_ += StrCat(action_.index(), ";");
    const StepResult result = env_->Step(action_.view());
    agent_->Observe(tracker_.Advance(action_.view(), result, *env_), tracker_.carry());
    agent_->Update();
    if (const std::string notice = agent_->TakeNotice(); !notice.empty()) {
      notices_.push_back(notice);
    }
    if (result.terminated || result.truncated) Restart();
  }
  void Train(int steps) {
    for (int t = 0; t < steps; ++t) Step();
  }

  std::unique_ptr<Env> env_;
  std::unique_ptr<Agent> agent_;
  EpisodeTracker tracker_;
  Rng resets_, policy_;
  ActionBuffer action_;
  std::string actions_;
  std::vector<std::string> notices_;
  std::unique_ptr<Simulator> simulator_;

 private:
  void Restart() {
    env_->Reset(resets_.NextU64());
    tracker_.Begin(*env_);
  }
};

struct Pair {
  const char* id;
  const char* base;
  const char* env;
};
constexpr Pair kPairs[] = {{"msrl", "sac", "four-rooms-sparse"},
                           {"msrl-td3", "td3", "four-rooms-sparse"},
                           {"msrl-dqn", "dqn", "graph-motif"}};

std::unique_ptr<Agent> Make(const std::string& id, const std::string& env,
                            const Settings& settings = {}, std::uint64_t seed = 1) {
  Settings all = BuiltinAgents().Find(id).quick;
  all.insert(all.end(), settings.begin(), settings.end());
  return MakeAgent(BuiltinAgents().Find(id), MakeEnv(env)->spec(), all, seed);
}

// Every number of the base's state is in that of the other, under the same name.
void ExpectSameState(const Agent& base, const Agent& other) {
  const std::string base_bytes = Archived(base);
  const std::string other_bytes = Archived(other);
  const TensorFile a = TensorFile::Parse(std::as_bytes(std::span(base_bytes)), "base");
  const TensorFile b = TensorFile::Parse(std::as_bytes(std::span(other_bytes)), "other");
  for (const TensorInfo& tensor : a.tensors()) {
    const TensorInfo* const found = b.Find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    ASSERT_EQ(found->type, tensor.type) << tensor.name;
    ASSERT_EQ(found->shape, tensor.shape) << tensor.name;
    const auto same = [&](const auto& x, const auto& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end());
    };
    const std::string& name = tensor.name;
    switch (tensor.type) {
      case TensorType::kF32:
        EXPECT_TRUE(same(a.F32(name, tensor.shape), b.F32(name, tensor.shape))) << name;
        break;
      case TensorType::kF64:
        EXPECT_TRUE(same(a.F64(name, tensor.shape), b.F64(name, tensor.shape))) << name;
        break;
      case TensorType::kI64:
        EXPECT_TRUE(same(a.I64(name, tensor.shape), b.I64(name, tensor.shape))) << name;
        break;
      case TensorType::kU8:
        EXPECT_TRUE(same(a.U8(name, tensor.shape), b.U8(name, tensor.shape))) << name;
        break;
    }
  }
  EXPECT_GT(a.tensors().size(), 10u);
}

TEST(Msrl, WithoutMatrixAndLookaheadItIsItsBase) {
  for (const Pair& pair : kPairs) {
    for (const Settings& settings :
         {Settings{"matrix=false", "plan=off"},
          Settings{"matrix=false", "lookahead=off", "plan=library"},
          Settings{"matrix=false", "lookahead=off", "plan=library", "lift=compact-no-action"}}) {
      SCOPED_TRACE(StrCat(pair.id, " ", settings[1]));
      Play base(pair.env, Make(pair.base, pair.env, {}, 5));
      Play other(pair.env, Make(pair.id, pair.env, settings, 5));
      base.Train(300);
      other.Train(300);
      EXPECT_EQ(base.actions_, other.actions_);
      ExpectSameState(*base.agent_, *other.agent_);
      Collected base_metrics, other_metrics;
      base.agent_->DrainMetrics(base_metrics);
      other.agent_->DrainMetrics(other_metrics);
      EXPECT_FALSE(base_metrics.values.empty());
      for (const auto& [name, value] : base_metrics.values) {
        EXPECT_EQ(other_metrics.values.at(name), value) << name;
      }
      EXPECT_TRUE(other.notices_.empty());
      const auto& planner = dynamic_cast<const Msrl&>(*other.agent_).planner();
      EXPECT_EQ(planner.has_value(), settings[1] == "lookahead=off");
      // it was filled all the same
      EXPECT_EQ(planner ? planner->library().size() : 50, 50);
    }
    // settings of the base reach it, and tell
    const std::string setting = pair.base == std::string("dqn") ? "epsilon_steps=1" : "gamma=0.5";
    Play plain(pair.env, Make(pair.base, pair.env, {}, 5));
    Play set(pair.env, Make(pair.base, pair.env, {setting}, 5));
    Play passed_on(pair.env, Make(pair.id, pair.env, {"matrix=false", "plan=off", setting}, 5));
    for (Play* play : {&plain, &set, &passed_on}) play->Train(300);
    EXPECT_EQ(passed_on.actions_, set.actions_) << pair.id;
    EXPECT_NE(passed_on.actions_, plain.actions_) << pair.id;
    // the other side: each part alone makes a difference
    for (Settings settings : {Settings{"plan=off"}, Settings{"plan=model"},
                              Settings{"matrix=false", "plan=library", "margin=0"}}) {
      settings.push_back(setting);
      Play other(pair.env, Make(pair.id, pair.env, settings, 5));
      other.Train(300);
      EXPECT_NE(set.actions_, other.actions_) << pair.id << " " << settings[0];
    }
  }
}

constexpr const char* kEnv = "four-rooms-sparse";

ValueBranch SourceBranch(LiftKind kind = LiftKind::kCompact, int width = 16) {
  BranchInfo info;
  info.lift = CompactLift(kind)->id();
  info.lift_kind = LiftKindName(kind);
  ValueBranch branch(MatrixFeatures(CompactLift(kind)).size(), {.width = width}, info);
  Rng rng(77, "source");
  branch.Init(rng);
  return branch;
}

void Initialise(Agent& agent, const ValueBranch& branch) {
  agent.Initialise(Artefact::Parse(branch.Encode(), "branch.safetensors"));
}

Doubles Parameters(const ValueBranch& branch) { return AsDoubles(branch.network().parameters()); }

const Critic& CriticOf(const Agent& agent) {
  return dynamic_cast<const Msrl&>(agent).base().critic();
}

TEST(Msrl, ABranchIsTakenOver) {
  const ValueBranch source = SourceBranch();
  const Doubles eta = Parameters(source);
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.id);
    // plain
    auto agent = Make(pair.id, pair.env);
    const Doubles random = Parameters(CriticOf(*agent).branch());
    EXPECT_NE(random, eta);
    Initialise(*agent, source);
    EXPECT_EQ(Parameters(CriticOf(*agent).branch()), eta);
    EXPECT_EQ(Parameters(CriticOf(*agent).target_branch()), eta);
    Play play(pair.env, std::move(agent));
    play.Train(120);
    EXPECT_NE(Parameters(CriticOf(*play.agent_).branch()), eta);
    EXPECT_NE(Parameters(CriticOf(*play.agent_).target_branch()), eta);

    // frozen: learning goes on, the branch does not
    auto frozen = Make(pair.id, pair.env, {"init_mode=frozen", "level=false"});
    Initialise(*frozen, source);
    Play with_frozen(pair.env, std::move(frozen));
    const Doubles residual = AsDoubles(CriticOf(*with_frozen.agent_).network().parameters());
    with_frozen.Train(120);
    EXPECT_EQ(Parameters(CriticOf(*with_frozen.agent_).branch()), eta);
    EXPECT_EQ(Parameters(CriticOf(*with_frozen.agent_).target_branch()), eta);
    EXPECT_NE(AsDoubles(CriticOf(*with_frozen.agent_).network().parameters()), residual);

    // it learns for some steps and stays then, through a checkpoint too
    auto at_first = Make(pair.id, pair.env, {"branch_steps=100", "branch_fade=0", "level=false"});
    Initialise(*at_first, source);
    Play for_a_while(pair.env, std::move(at_first));
    for_a_while.Train(101);
    const Doubles learned = Parameters(CriticOf(*for_a_while.agent_).branch());
    EXPECT_NE(learned, eta);
    Unarchive(Archived(*for_a_while.agent_), *for_a_while.agent_);
    for_a_while.Train(50);
    EXPECT_EQ(Parameters(CriticOf(*for_a_while.agent_).branch()), learned);
    EXPECT_EQ(Parameters(CriticOf(*for_a_while.agent_).target_branch()), learned);

    // then it fades, and is gone: the critic is R alone
    auto fading = Make(pair.id, pair.env, {"branch_steps=100", "branch_fade=40", "level=false"});
    Initialise(*fading, source);
    Play fades(pair.env, std::move(fading));
    fades.Train(100);
    const Doubles before = Parameters(CriticOf(*fades.agent_).branch());
    fades.Train(10);
    const Doubles quieter = Parameters(CriticOf(*fades.agent_).branch());
    EXPECT_NEAR(quieter.back(), 0.75 * before.back(), 1e-5);  // the bias of F
    EXPECT_EQ(quieter.front(), before.front());               // h stays
    Unarchive(Archived(*fades.agent_), *fades.agent_);
    fades.Train(30);
    EXPECT_EQ(Parameters(CriticOf(*fades.agent_).branch()).back(), 0.0);
    EXPECT_EQ(Parameters(CriticOf(*fades.agent_).target_branch()).back(), 0.0);
    fades.Train(10);

    // anchored: it stays nearer to its source than without, the stronger the nearer
    double last = 1e30;
    for (const char* anchor : {"0", "0.1", "10"}) {
      auto anchored =
          Make(pair.id, pair.env,
               {"init_mode=anchored", StrCat("anchor=", anchor), "branch_rate=1", "level=false"});
      Initialise(*anchored, source);
      Play held(pair.env, std::move(anchored));
      held.Train(400);
      const Doubles now = Parameters(CriticOf(*held.agent_).branch());
      double distance = 0.0;
      for (std::size_t i = 0; i < eta.size(); ++i) distance += std::pow(now[i] - eta[i], 2);
      EXPECT_LT(distance, 0.7 * last) << anchor;
      EXPECT_GT(distance, 0.0);
      last = distance;
    }

    // random: the same numbers in every layer, in another order; neither the source nor a start
    // from scratch
    auto control = Make(pair.id, pair.env, {"init_mode=random"});
    Initialise(*control, source);
    const ValueBranch& shuffled = CriticOf(*control).branch();
    EXPECT_NE(Parameters(shuffled), random);
    for (const NamedTensor& tensor : source.network().tensors()) {
      const auto part = [&tensor](const Doubles& all) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
        return Doubles(begin, begin + static_cast<std::ptrdiff_t>(tensor.size()));
      };
      Doubles ours = part(Parameters(shuffled)), theirs = part(eta);
      const bool constant = std::ranges::count(theirs, theirs[0]) == std::ssize(theirs);
      EXPECT_EQ(ours == theirs, constant) << tensor.name;
      std::ranges::sort(ours);
      std::ranges::sort(theirs);
      EXPECT_EQ(ours, theirs) << tensor.name;
    }
    auto again = Make(pair.id, pair.env, {"init_mode=random"});
    Initialise(*again, source);
    EXPECT_EQ(Parameters(CriticOf(*again).branch()), Parameters(shuffled));
    // and it is placed as any branch is
    Play placed(pair.env, std::move(control));
    placed.Train(40);
    EXPECT_NE(placed.notices_.at(0).find("in the critic"), std::string::npos);
  }
}

// Without a residual the critic is F(Z) of the file, times the scale.
TEST(Msrl, AtFirstTheCriticIsTheTransferredValue) {
  const ValueBranch source = SourceBranch();
  const EnvSpec spec = MakeEnv(kEnv)->spec();
  for (const double scale : {1.0, 0.25}) {
    MsrlSettings settings;
    settings.branch_width = 16;
    settings.branch_scale = scale;
    settings.residual_scale = 0.0;
    auto base = std::make_unique<Sac>(spec, SacConfig{}, 1, MakeBranchSettings(settings));
    CriticAgent& inside = *base;
    Msrl agent(spec, settings, std::move(base), 0.99, 1);
    Initialise(agent, source);

    Rng rng(1, "inputs");
    const auto random = [&rng](Eigen::Index rows) {
      Eigen::MatrixXf matrix(rows, 8);
      for (float& value : Flat(matrix)) value = static_cast<float>(rng.Normal());
      return matrix;
    };
    const Eigen::MatrixXf features = random(source.feature_count());
    const Eigen::MatrixXf observation = random(spec.observation_size);
    std::vector<float> q(8), v(8);
    inside.ActionValues(observation, features, random(spec.action.size), q);
    inside.StateValues(observation, features, v);
    MlpTape tape(source.spec(), 8);
    const auto f = source.Forward(features, tape);
    for (std::size_t i = 0; i < q.size(); ++i) {
      const double expected = scale * f(0, static_cast<Eigen::Index>(i));
      EXPECT_NEAR(q[i], expected, testing::Tol(1e-6));
      EXPECT_NEAR(v[i], expected, testing::Tol(1e-6));
      EXPECT_GT(std::abs(f(0, static_cast<Eigen::Index>(i))), 1e-4F);
    }
  }
}

TEST(Msrl, BranchesThatDoNotFitAreRefused) {
  const auto refusal = [](const Settings& settings, const ValueBranch& branch) {
    const auto agent = Make("msrl", kEnv, settings);
    return UserErrorText([&] { Initialise(*agent, branch); });
  };
  // the same number of features, another meaning
  ValueBranch foreign = SourceBranch();
  foreign.info().lift.value ^= 1;
  const auto of_lift = [](const ValueBranch& branch) {
    return "the value-branch was trained with lift " + branch.info().lift.ToString();
  };
  EXPECT_NE(refusal({}, foreign).find(of_lift(foreign)), std::string::npos);
  EXPECT_EQ(refusal({"unaligned=true"}, foreign), "no error");
  // a lift with fewer features cannot be taken as another
  const ValueBranch smaller = SourceBranch(LiftKind::kCompactNoAction);
  EXPECT_NE(refusal({}, smaller).find(of_lift(smaller)), std::string::npos);
  EXPECT_NE(refusal({"unaligned=true"}, smaller).find("features"), std::string::npos);
  EXPECT_EQ(refusal({"lift=compact-no-action"}, smaller), "no error");
  EXPECT_NE(refusal({}, SourceBranch(LiftKind::kCompact, 8)).find("width 8"), std::string::npos);
  EXPECT_NE(refusal({"features=selected"}, SourceBranch()).find("'selected'"), std::string::npos);
  EXPECT_NE(refusal({"matrix=false", "plan=off"}, SourceBranch())
                .find("without the matrix there is no branch"),
            std::string::npos);
  EXPECT_NE(refusal({"source=distance"}, SourceBranch()).find("takes nothing over"),
            std::string::npos);
  EXPECT_EQ(UserErrorText([] {
              Make("msrl", kEnv, {"plan=library", "source=distance"});
            }),
            "source=distance: plan=library has no model at the end of whose plans it could stand");
  EXPECT_NE(UserErrorText([] { Make("msrl", kEnv, {"matrix=false"}); }).find("needs matrix=true"),
            std::string::npos);
  for (const char* id : {"sac", "td3", "ppo", "random"}) {
    const auto agent = Make(id, kEnv);
    EXPECT_NE(UserErrorText([&] { Initialise(*agent, SourceBranch()); }), "no error") << id;
  }
}

TEST(Msrl, ImpossibleSettingsAreNamed) {
  for (const char* setting :
       {"beta=-0.1", "neighbours=0", "obstruction_threshold=1.5", "obstruction_threshold=-0.5",
        "branch_rate=-1", "anchor=-1", "branch_width=0", "context_radius=0"}) {
    const std::string text = UserErrorText([&] { Make("msrl", kEnv, {setting}); });
    std::string name(setting);
    name.erase(name.find('='));
    if (name == "branch_width") name = "width";
    EXPECT_NE(text.find(name), std::string::npos) << setting << ": " << text;
  }
  EXPECT_NE(UserErrorText([] { Make("msrl", kEnv, {"init_mode=warm"}); }), "no error");
}

TEST(Msrl, ThePredictorComesOnceAfterTheWarmUp) {
  for (const Pair& pair : kPairs) {
    Play play(pair.env, Make(pair.id, pair.env));  // 40 random steps
    int reported = 0;
    const auto about_transfer = [](const std::string& notice) {
      return notice.starts_with("transfer predictor");
    };
    for (int t = 1; t <= 200; ++t) {
      play.Step();
      EXPECT_EQ(std::ranges::count_if(play.notices_, about_transfer), t < 40 ? 0 : 1) << t;
      Collected metrics;
      play.agent_->DrainMetrics(metrics);
      EXPECT_EQ(metrics.values.contains("transfer/predictor"), t == 40) << t;
      EXPECT_EQ(metrics.values.contains("transfer/amplitude"), t == 40) << t;
      reported += metrics.values.contains("transfer/predictor") ? 1 : 0;
    }
    EXPECT_EQ(reported, 1);
    EXPECT_NE(play.notices_.at(0).find("transfer predictor over "), std::string::npos);
  }
}

TEST(Msrl, ALoudBranchIsScaledDownAfterTheWarmUp) {
  ValueBranch loud = SourceBranch();
  loud.Rescale(1000.0, 0.0);
  const auto amplitude = [](const Agent& agent) {
    const CriticAgent& base = dynamic_cast<const Msrl&>(agent).base();
    return PredictTransfer(base.critic().branch(), base.memory().replay()).amplitude;
  };
  for (const Pair& pair : kPairs) {
    for (const double limit : {0.0, 0.25}) {
      auto agent = Make(pair.id, pair.env, {"init_mode=frozen", StrCat("max_amplitude=", limit)});
      Initialise(*agent, loud);
      Play play(pair.env, std::move(agent));  // 40 random steps
      play.Train(39);
      EXPECT_EQ(Parameters(CriticOf(*play.agent_).branch()), Parameters(loud));
      play.Step();
      const bool scaled = play.notices_.at(0).find("in the critic 0.25") != std::string::npos;
      EXPECT_EQ(scaled, limit > 0.0) << play.notices_.at(0);
      if (limit > 0.0) {
        EXPECT_NEAR(amplitude(*play.agent_), limit, testing::Tol(1e-4));
        EXPECT_EQ(Parameters(CriticOf(*play.agent_).branch()),
                  Parameters(CriticOf(*play.agent_).target_branch()));
      } else {
        EXPECT_GT(amplitude(*play.agent_), 1.0);
      }
    }
  }
}

// Optimism is worth something of its own where episodes end early: a control must have as much.
TEST(Msrl, EveryBranchIsAsLoudAndAsHighAsWanted) {
  const auto placed = [](const Settings& more) {
    Settings settings{"branch_rate=0", "random_steps=200", "replay_size=400", "amplitude=0.5"};
    settings.insert(settings.end(), more.begin(), more.end());
    auto agent = Make("msrl", "hopper", settings);
    Initialise(*agent, SourceBranch());
    Play play("hopper", std::move(agent));
    play.Train(200);
    const CriticAgent& base = dynamic_cast<const Msrl&>(*play.agent_).base();
    return PredictTransfer(base.critic().branch(), base.memory().replay());
  };
  const TransferPredictor own = placed({});
  ASSERT_GT(own.ends, 3);
  EXPECT_NEAR(own.end_value, 0.0, testing::Tol(1e-4));
  EXPECT_NEAR(own.mean, own.height() * own.amplitude, testing::Tol(1e-4));
  const TransferPredictor other = placed({"init_mode=random"});
  EXPECT_GT(std::abs(other.mean - own.mean), 0.02);
  const std::vector<Settings> controls{
      {}, {"init_mode=random"}, {"source=reversed"}, {"source=constant"}};
  for (const Settings& control : controls) {
    Settings settings = control;
    settings.emplace_back("height=2.5");
    const TransferPredictor matched = placed(settings);
    const bool constant = control == Settings{"source=constant"};
    EXPECT_NEAR(matched.amplitude, constant ? 0.0 : 0.5, testing::Tol(1e-4));
    EXPECT_NEAR(matched.mean, 2.5 * 0.5, testing::Tol(1e-4));
  }
  EXPECT_NEAR(placed({"level=false", "height=2.5"}).mean, placed({"level=false"}).mean,
              testing::Tol(1e-6));
}

TEST(Msrl, FuturesAreTriedInASimulator) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.id);
    const auto play = [&](const char* checks, bool lent) {
      Play made(pair.env, Make(pair.id, pair.env, {"plan=library", "beta=2", "margin=0", checks}));
      if (lent) made.simulator_ = std::make_unique<Simulator>(MakeEnv(pair.env));
      made.Train(300);
      return made;
    };
    const Play off = play("simulation_check=0", false);
    EXPECT_FALSE(off.agent_->wants_simulator());
    // without a simulator, as in evaluations, the setting does nothing
    const Play without = play("simulation_check=2", false);
    EXPECT_TRUE(without.agent_->wants_simulator());
    EXPECT_EQ(without.actions_, off.actions_);
    EXPECT_EQ(Archived(*without.agent_), Archived(*off.agent_));

    const Play with = play("simulation_check=2", true);
    EXPECT_NE(with.actions_, off.actions_);
    // DQN acts at random for most of these steps, and plans in the others
    EXPECT_GT(with.simulator_->steps(), std::string(pair.base) == "dqn" ? 5 : 50);
    EXPECT_LE(with.simulator_->steps(), 2 * 260);
    Collected metrics;
    with.agent_->DrainMetrics(metrics);
    EXPECT_GT(metrics.values.at("planner/checked"), 0.0);
    EXPECT_LT(metrics.values.at("planner/checked"), 1.0);
  }
  EXPECT_NE(UserErrorText([] {
              Make("msrl", kEnv, {"simulation_check=1", "segment_steps=2"});
            }).find("simulation_check needs segment_steps=1"),
            std::string::npos);
}

// The contract tests compare loaded agents bit for bit; here is what they compared.
class MsrlLoaded : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(SegmentSteps, MsrlLoaded, ::testing::Values(1, 3));

TEST_P(MsrlLoaded, GoesOnInTheMiddleOfAnEpisode) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.id);
    const auto make = [&pair](std::uint64_t seed) {
      return Make(pair.id, pair.env,
                  {"init_mode=anchored", "library_policy=reservoir", "level=false",
                   StrCat("segment_steps=", GetParam()), StrCat("chain=", GetParam())},
                  seed);
    };
    Play play(pair.env, make(1));
    Initialise(*play.agent_, SourceBranch());
    play.Train(300);
    while (play.tracker_.steps() < 4) play.Step();
    const Planner& planner = *dynamic_cast<const Msrl&>(*play.agent_).planner();
    EXPECT_EQ(planner.library().size(), 50);
    EXPECT_GT(planner.library().offered(), 300 - GetParam());
    EXPECT_GT(planner.proxy().updates(), 2);
    EXPECT_GT(planner.proxy().obstructed_count(), 2);
    EXPECT_GT(planner.proxy().realizable_count(), 2);

    const std::string bytes = Archived(*play.agent_);
    auto loaded = make(99);  // another seed, and never initialised
    Unarchive(bytes, *loaded);
    EXPECT_EQ(Archived(*loaded), bytes);
    EXPECT_EQ(Saved(*loaded, "branch_source", Parameters(SourceBranch()).size()),
              Parameters(SourceBranch()));

    // the same steps with either: what is drawn and played is the loop's
    const std::unique_ptr<Agent> original = std::move(play.agent_);
    const std::vector<std::byte> snapshot = play.env_->Snapshot();
    TensorFileBuilder episode;
    play.tracker_.Visit(Archive(episode), *play.env_);
    const std::string episode_bytes = episode.Encode();
    const TensorFile episode_file =
        TensorFile::Parse(std::as_bytes(std::span(episode_bytes)), "test");
    const Rng policy = play.policy_;
    std::string actions[2];
    std::string states[2];
    for (const int which : {0, 1}) {
      Agent& agent = which == 0 ? *original : *loaded;
      const auto env = MakeEnv(pair.env);
      env->Restore(snapshot);
      EpisodeTracker tracker(env->spec(), agent);
      tracker.Visit(Archive(episode_file), *env);
      Rng draws = policy;
      ActionBuffer action(env->spec().action);
      Rng resets(3, "resets");
      for (int t = 0; t < 100; ++t) {
        agent.Act(tracker.turn(draws, action), ActMode::kExplore);
        for (const double value : action.values()) actions[which] += StrCat(value, " ");
        actions[which] += StrCat(action.index(), ";");
        const StepResult result = env->Step(action.view());
        agent.Observe(tracker.Advance(action.view(), result, *env), tracker.carry());
        agent.Update();
        if (!result.terminated && !result.truncated) continue;
        env->Reset(resets.NextU64());
        tracker.Begin(*env);
      }
      states[which] = Archived(agent);
    }
    EXPECT_EQ(actions[0], actions[1]);
    EXPECT_EQ(states[0], states[1]);
    EXPECT_NE(states[0], bytes);
  }
}

// The policy is taught what the model's plans chose, and nothing else.
TEST(Msrl, PlansAreDistilledIntoThePolicy) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.id);
    const auto refusal = [&](const Settings& settings) {
      return UserErrorText([&] { Make(pair.id, pair.env, settings); });
    };
    EXPECT_EQ(refusal({"plan=library", "distil=1"}),
              "distil: plan=library has no model whose plans could be taught");
    if (pair.base == std::string("dqn")) {
      EXPECT_EQ(refusal({"plan=model", "distil=1"}),
                "distil: with discrete actions there is no policy that could be taught");
      continue;
    }
    const Settings planning{"plan=model", "plan_trials=0", "random_steps=100", "replay_size=1000"};
    Settings taught = planning;
    taught.emplace_back("distil=0.5");
    Play without(pair.env, Make(pair.id, pair.env, planning));
    Play with(pair.env, Make(pair.id, pair.env, taught));
    without.Train(400);
    with.Train(400);
    EXPECT_NE(with.actions_, without.actions_);
    const auto tensor = [&](const Agent& agent) {
      const std::string bytes = Archived(agent);
      const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "agent");
      const TensorInfo* const found = file.Find("memory/lessons/taught");
      std::vector<std::uint8_t> marks;
      if (found != nullptr) {
        const auto values = file.U8(found->name, found->shape);
        marks.assign(values.begin(), values.end());
      }
      return marks;
    };
    EXPECT_TRUE(tensor(*without.agent_).empty());
    const std::vector<std::uint8_t> marks = tensor(*with.agent_);
    const auto lessons = std::ranges::count(marks, 1);
    const auto& agent = dynamic_cast<const Msrl&>(*with.agent_);
    // some choices of the policy stand, and random steps are nobody's choice
    EXPECT_GT(lessons, 20);
    EXPECT_LT(lessons, agent.base().memory().steps() - 20);
    EXPECT_EQ(std::count(marks.begin(), marks.begin() + 100, 1), 0);
  }
}

TEST(Msrl, StartsWithSegmentsOfAnEarlierRun) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.id);
    Play earlier(pair.env, Make(pair.id, pair.env, {}, 3));
    earlier.Train(200);
    const auto library_of = [](const Agent& agent) -> const SegmentLibrary& {
      return dynamic_cast<const Msrl&>(agent).planner()->library();
    };
    const SegmentLibrary& theirs = library_of(*earlier.agent_);

    const Settings loud{"library_size=400", "plan=library", "margin=0", "beta=2"};
    auto agent = Make(pair.id, pair.env, loud);
    agent->TakeSegments(theirs, "earlier");
    const SegmentLibrary& library = library_of(*agent);
    EXPECT_EQ(library.size(), theirs.size());
    std::int64_t last = 0;
    for (std::int64_t slot = 0; slot < library.size(); ++slot) {
      last = std::max(last, library.episode(slot));
    }
    Play with(pair.env, std::move(agent));
    Play without(pair.env, Make(pair.id, pair.env, loud));
    with.Train(300);
    without.Train(300);
    // new segments come on top, as episodes of their own
    EXPECT_EQ(library.size(), theirs.size() + 300);
    EXPECT_GT(library.episode(theirs.size()), last);
    // and what is played is another thing; an agent that still explores much shows it late
    with.Train(600);
    without.Train(600);
    EXPECT_TRUE(with.actions_ != without.actions_);

    const auto refusal = [&](const Settings& settings) {
      const auto refuses = Make(pair.id, pair.env, settings);
      return UserErrorText([&] { refuses->TakeSegments(theirs, "earlier"); });
    };
    EXPECT_EQ(refusal({}), "no error");
    EXPECT_NE(refusal({"plan=model"}).find("plan=model asks no library"), std::string::npos);
    EXPECT_NE(refusal({"lookahead=off"}).find("lookahead=off asks no library"), std::string::npos);
    EXPECT_NE(refusal({"lift=compact-no-reward"}).find("earlier: segments of the lift"),
              std::string::npos);
    const auto base = Make(pair.base, pair.env);
    EXPECT_NE(
        UserErrorText([&] { base->TakeSegments(theirs, "earlier"); }).find("plans with no library"),
        std::string::npos);
  }
}

TEST(Msrl, TheFirstStepOfTheFilterIsToldOnce) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.id);
    Play play(pair.env, Make(pair.id, pair.env, {"obstruction_threshold=0.05"}));
    int told = 0;
    double first = 0.0;
    for (int t = 1; t <= 400; ++t) {
      play.Step();
      Collected metrics;
      play.agent_->DrainMetrics(metrics);
      const auto found = metrics.values.find("obstruction/first_step");
      const bool removed = metrics.values.contains("obstruction/removed") &&
                           metrics.values.at("obstruction/removed") > 0.0;
      if (told == 0) {
        EXPECT_EQ(removed, found != metrics.values.end());
      }
      if (found == metrics.values.end()) continue;
      ++told;
      first = found->second;
      EXPECT_EQ(first, t);
    }
    EXPECT_EQ(told, 1);
    EXPECT_GT(first, 40);  // not among the random steps
    const std::string notice =
        StrCat("the obstruction filter removes futures from step ", first, " on");
    EXPECT_EQ(std::ranges::count(play.notices_, notice), 1);
  }
}

}  // namespace
}  // namespace msrl
