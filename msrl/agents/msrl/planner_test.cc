#include "msrl/agents/msrl/planner.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "msrl/testing/agent_update.h"
#include "msrl/testing/archived.h"
#include "msrl/testing/only_values.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::Archived;
using ::msrl::testing::Doubles;
using ::msrl::testing::SmallSpec;
using ::msrl::testing::UserErrorText;

constexpr int kObservation = 2;

// Q and V as anyone can compute them; nothing is learned.
class KnownValues : public testing::OnlyValues {
 public:
  explicit KnownValues(bool discrete) : discrete_(discrete) {}

  static float Q(float o, float z, float a, bool discrete) {
    return discrete ? 0.3F * std::cos(2.0F * a + o)
                    : 0.4F * o - 0.5F * (a - o) * (a - o) + 0.1F * z;
  }
  static float V(float o, float z) { return 1.5F * o + 0.2F * z; }

  void ActionValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                    const ConstMatrixRef& action, std::span<float> q) override {
    for (Eigen::Index i = 0; i < observation.cols(); ++i) {
      q[static_cast<std::size_t>(i)] =
          Q(observation(0, i), features(0, i), action(0, i), discrete_);
    }
  }
  void StateValues(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                   std::span<float> v) override {
    for (Eigen::Index i = 0; i < observation.cols(); ++i) {
      v[static_cast<std::size_t>(i)] = V(observation(0, i), features(0, i));
    }
  }

 private:
  bool discrete_;
};

struct State {
  std::array<double, kObservation> observation{};
  std::array<double, kGeometrySize> geometry{};
};

// A step as the test remembers it: what the library should know.
struct Segment {
  State before, after;
  double action;
  bool terminated;
  Eigen::VectorXd psi;
  double reward;
};

class PlannerTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int kActions = 3;

  bool discrete() const { return GetParam(); }
  EnvSpec Spec() const {
    return discrete() ? SmallSpec(ActionKind::kDiscrete, kActions, kObservation)
                      : SmallSpec(ActionKind::kContinuous, 1, kObservation);
  }
  static PlannerSettings Settings() {
    PlannerSettings settings;
    settings.library_size = 40;
    settings.context_radius = 0.35;
    settings.margin = 0.0;
    settings.obstruction = false;
    return settings;
  }
  // With a plan for its only episode.
  Planner Make(const PlannerSettings& settings) {
    Planner planner(Spec(), settings, CompactLift(), MatrixFeatureOptions{},
                    /*critic_sees_matrix=*/true, /*seed=*/1);
    plan_ = planner.MakePlan();
    return planner;
  }
  State RandomState() {
    State state;
    for (double& value : state.observation) value = rng_.Uniform(-1.0, 1.0);
    // two slots move: places near each other are not rare
    state.geometry[0] = rng_.Uniform(-1.0, 1.0);
    state.geometry[2] = rng_.Uniform(-1.0, 1.0);
    return state;
  }
  Segment RandomSegment() {
    Segment segment{
        .before = RandomState(),
        .after = RandomState(),
        .action = discrete() ? static_cast<double>(rng_.Index(kActions)) : rng_.Uniform(-1.0, 1.0),
        .terminated = rng_.Bernoulli(0.2),
        .psi = Eigen::VectorXd(CompactLift()->m()),
        .reward = rng_.Normal()};
    std::array<double, kActionCodeSize> code{};
    code[discrete() ? static_cast<std::size_t>(segment.action) : 0] =
        discrete() ? 1.0 : segment.action;
    CompactLift()->Apply(Vector(segment.before.geometry), Vector(code), segment.reward,
                         Vector(segment.after.geometry), segment.psi);
    return segment;
  }
  template <std::size_t N>
  static EnvView Vector(const std::array<double, N>& values) {
    return {values.data(), static_cast<Eigen::Index>(N)};
  }
  static Situation View(const State& state, const SegmentMatrix& z) {
    return {Vector(state.observation), Vector(state.geometry), z, 0};
  }
  void Observe(const Segment& segment, Planner& planner) const {
    Observe(segment, planner, *plan_);
  }
  void Observe(const Segment& segment, Planner& planner, Plan& plan) const {
    const SegmentMatrix z(CompactLift());
    const Experience seen{.before = View(segment.before, z),
                          .action = discrete() ? Action::Discrete(static_cast<int>(segment.action))
                                               : Action::Continuous({&segment.action, 1}),
                          .action_code = {},
                          .scaled_reward = segment.reward,
                          .psi = {segment.psi.data(), static_cast<std::size_t>(segment.psi.size())},
                          .after = View(segment.after, z),
                          .terminated = segment.terminated};
    planner.Observe(seen, plan);
  }
  std::vector<Segment> Fill(int count, Planner& planner) {
    std::vector<Segment> segments;
    for (int i = 0; i < count; ++i) {
      segments.push_back(RandomSegment());
      Observe(segments.back(), planner);
    }
    return segments;
  }
  static float FirstFeature(const SegmentMatrix& z) {
    const MatrixFeatures features(CompactLift());
    std::vector<float> values(static_cast<std::size_t>(features.size()));
    features.Compute(z, std::span(values));
    return values[0];
  }
  // The policy's choice and what is drawn beside it.
  std::vector<double> Candidates(double choice, const PlannerSettings& settings, Rng rng) const {
    std::vector<double> candidates{choice};
    if (discrete()) {
      for (int a = 0; a < kActions; ++a) {
        if (a != static_cast<int>(choice)) candidates.push_back(a);
      }
      return candidates;
    }
    while (std::ssize(candidates) < settings.candidates) {
      candidates.push_back(std::clamp(rng.Uniform(-1.3, 1.3), -1.0, 1.0));
    }
    return candidates;
  }
  bool BeginsWith(const Segment& segment, double action, const PlannerSettings& settings) const {
    return std::abs(segment.action - action) <= (discrete() ? 0.0 : settings.action_radius);
  }
  // For each candidate the nearest segments that begin near and with it.
  std::vector<const Segment*> Nearby(const std::vector<Segment>& segments, const State& state,
                                     const std::vector<double>& candidates,
                                     const PlannerSettings& settings) const {
    std::vector<const Segment*> found;
    for (const double action : candidates) {
      std::vector<std::pair<double, const Segment*>> near;
      for (const Segment& segment : segments) {
        const double distance = (Vector(segment.before.geometry) - Vector(state.geometry)).norm();
        if (distance <= settings.context_radius && BeginsWith(segment, action, settings)) {
          near.emplace_back(distance, &segment);
        }
      }
      std::sort(near.begin(), near.end());
      near.resize(std::min(near.size(), static_cast<std::size_t>(settings.neighbours)));
      for (const auto& [distance, segment] : near) {
        if (std::find(found.begin(), found.end(), segment) == found.end()) {
          found.push_back(segment);
        }
      }
    }
    return found;
  }
  // What a future is worth that goes on, segment by segment, with the best of those that begin
  // nearest to its end. A proxy judges the joints, if there is one.
  double Worth(const Segment& future, const State& state, SegmentMatrix z,
               const std::vector<Segment>& segments, const PlannerSettings& settings,
               ObstructionProxy* proxy) {
    const auto value = [&](const Segment& last, const SegmentMatrix& ahead, double rewards) {
      const double end =
          last.terminated
              ? 0.0
              : static_cast<double>(KnownValues::V(static_cast<float>(last.after.observation[0]),
                                                   FirstFeature(ahead)));
      return end + (settings.future_rewards ? rewards : 0.0);
    };
    const auto keeps = [&](const State& from, const SegmentMatrix& prefix, const Segment& next) {
      if (proxy == nullptr) return true;
      SegmentMatrix own(CompactLift());
      own.AddStep(next.psi);
      float probability = 0.0F;
      proxy->Predict(Floats(from), AllFeatures(prefix), Floats(next.after), AllFeatures(own),
                     {&probability, 1});
      ++joints_[proxy->Keeps(probability) ? 1 : 0];
      return proxy->Keeps(probability);
    };
    if (!keeps(state, z, future)) return -1e30;
    const Segment* last = &future;
    double rewards = future.reward;
    z.AddStep(future.psi);
    double worth = value(future, z, rewards);
    for (int length = 2; length <= settings.chain && !last->terminated; ++length) {
      const Segment* best = nullptr;
      double best_value = 0.0;
      for (const Segment* next : Nearest(segments, last->after, settings)) {
        if (!keeps(last->after, z, *next)) continue;
        SegmentMatrix ahead = z;
        ahead.AddStep(next->psi);
        const double v = value(*next, ahead, rewards + next->reward);
        if (best != nullptr && v <= best_value) continue;
        best = next;
        best_value = v;
      }
      if (best == nullptr) break;
      ++longer_;
      worth = std::max(worth, best_value);
      z.AddStep(best->psi);
      rewards += best->reward;
      last = best;
    }
    return worth;
  }
  static std::vector<const Segment*> Nearest(const std::vector<Segment>& segments,
                                             const State& state, const PlannerSettings& settings) {
    std::vector<std::pair<double, const Segment*>> near;
    for (const Segment& segment : segments) {
      const double distance = (Vector(segment.before.geometry) - Vector(state.geometry)).norm();
      if (distance <= settings.context_radius) near.emplace_back(distance, &segment);
    }
    std::sort(near.begin(), near.end());
    near.resize(std::min(near.size(), static_cast<std::size_t>(settings.neighbours)));
    std::vector<const Segment*> found;
    for (const auto& [distance, segment] : near) found.push_back(segment);
    return found;
  }
  static Eigen::VectorXf Floats(const State& state) {
    return Vector(state.observation).cast<float>();
  }
  static Eigen::VectorXf AllFeatures(const SegmentMatrix& z) {
    const MatrixFeatures features(CompactLift());
    Eigen::VectorXf values(features.size());
    features.Compute(z, {values.data(), static_cast<std::size_t>(values.size())});
    return values;
  }
  // S = Q + beta (U - neutral) of every candidate, written down plainly; the policy's choice wins
  // unless another beats it by the margin.
  double BestAction(const std::vector<const Segment*>& futures,
                    const std::vector<double>& candidates, const State& state,
                    const SegmentMatrix& z, const PlannerSettings& settings,
                    bool filtered = false) const {
    const double choice = candidates[0];
    if (futures.empty()) return choice;  // nothing to look at: the policy is trusted
    const auto o = static_cast<float>(state.observation[0]);
    const auto q = [&](double a) {
      return static_cast<double>(
          KnownValues::Q(o, FirstFeature(z), static_cast<float>(a), discrete()));
    };
    const double neutral = settings.fallback == Fallback::kValue ? q(choice) : 0.0;
    double best = choice;
    double best_score = -1e30;
    for (const double a : candidates) {
      double score = q(a);
      double u = -1e30;
      for (const Segment* future : futures) {
        if (filtered || !BeginsWith(*future, a, settings)) continue;
        SegmentMatrix ahead = z;
        ahead.AddStep(future->psi);
        const double v =
            future->terminated
                ? 0.0
                : static_cast<double>(KnownValues::V(
                      static_cast<float>(future->after.observation[0]), FirstFeature(ahead)));
        u = std::max(u, v);
      }
      if (u > -1e30) score += settings.beta * (u - neutral);
      if (a == choice) score += settings.margin;
      if (score > best_score) {
        best_score = score;
        best = a;
      }
    }
    return best;
  }
  double ChoiceOf(const ActionBuffer& buffer) const {
    return discrete() ? buffer.view().index() : buffer.view().values()[0];
  }
  ActionBuffer Buffer(double choice) const {
    ActionBuffer buffer(Spec().action);
    if (discrete()) {
      buffer.set_index(static_cast<int>(choice));
    } else {
      buffer.values()[0] = choice;
    }
    return buffer;
  }
  double RandomChoice() {
    return discrete() ? static_cast<double>(rng_.Index(kActions)) : rng_.Uniform(-1.0, 1.0);
  }
  SegmentMatrix RandomPrefix() {
    SegmentMatrix z(CompactLift());
    for (std::int64_t t = rng_.Index(4); t > 0; --t) z.AddStep(RandomSegment().psi);
    return z;
  }
  static std::int64_t Uses(const Planner& planner) {
    std::int64_t uses = 0;
    for (std::int64_t slot = 0; slot < planner.library().size(); ++slot) {
      uses += planner.library().uses(slot);
    }
    return uses;
  }

  std::unique_ptr<Plan> plan_;
  Rng rng_{1, "planner"};
  int longer_ = 0;          // futures that went on
  int joints_[2] = {0, 0};  // that were removed, that were kept
};

TEST_P(PlannerTest, ChoosesWhatTheFormulaChooses) {
  std::vector<PlannerSettings> variants(6, Settings());
  variants[1].fallback = Fallback::kZero;
  variants[2].margin = 0.2;
  variants[3].beta = 0.0;
  variants[4].candidates = 3;
  variants[4].neighbours = 15;
  variants[4].beta = 2.0;
  variants[5].obstruction = true;  // a filter that has learned nothing removes nothing
  KnownValues values(discrete());
  for (std::size_t v = 0; v < variants.size(); ++v) {
    SCOPED_TRACE(v);
    const PlannerSettings& settings = variants[v];
    Planner planner = Make(settings);
    const std::vector<Segment> segments = Fill(40, planner);
    int overrides = 0, kept = 0, few = 0, none = 0, ends = 0;
    for (int i = 0; i < 200; ++i) {
      const State state = RandomState();
      const SegmentMatrix z = RandomPrefix();
      const double choice = RandomChoice();
      Rng draws(static_cast<std::uint64_t>(i), "draws");
      const std::vector<double> candidates = Candidates(choice, settings, draws);
      const std::vector<const Segment*> futures = Nearby(segments, state, candidates, settings);
      const double expected = BestAction(futures, candidates, state, z, settings);
      ActionBuffer out = Buffer(choice);
      planner.Improve(View(state, z), i % 2 == 0, values, *plan_, draws, out);
      EXPECT_NEAR(ChoiceOf(out), expected, 1e-6);
      ++(expected == choice ? kept : overrides);
      few += !futures.empty() && futures.size() < candidates.size() ? 1 : 0;
      none += futures.empty() ? 1 : 0;
      for (const Segment* future : futures) ends += future->terminated ? 1 : 0;
    }
    // what must have happened for the comparison to say something
    EXPECT_GT(overrides, 20);
    EXPECT_GT(kept, 20);
    EXPECT_GT(few, 20);
    EXPECT_GT(ends, 20);
    EXPECT_GT(none, 0);
    EXPECT_GT(Uses(planner), 5);
  }
}

TEST_P(PlannerTest, FuturesAreChainsOfSegmentsThatFit) {
  std::vector<PlannerSettings> variants(4, Settings());
  for (PlannerSettings& settings : variants) {
    settings.chain = 3;
    settings.beta = 1.0;
  }
  variants[0].chain = 2;
  variants[1].future_rewards = true;
  variants[2].obstruction = variants[3].obstruction = true;
  variants[2].proxy.min_updates = variants[3].proxy.min_updates = 0;  // it removes from the start
  variants[3].proxy.threshold = 0.5;
  KnownValues values(discrete());
  for (std::size_t v = 0; v < variants.size(); ++v) {
    SCOPED_TRACE(v);
    const PlannerSettings& settings = variants[v];
    Planner planner = Make(settings);
    const std::vector<Segment> segments = Fill(40, planner);
    // as yet untrained, so that one of the same seed says the same
    ObstructionProxy twin(kObservation, MatrixFeatures(CompactLift()), settings.proxy, /*seed=*/1);
    longer_ = joints_[0] = joints_[1] = 0;
    int different = 0;
    for (int i = 0; i < 150; ++i) {
      const State state = RandomState();
      const SegmentMatrix z = RandomPrefix();
      const double choice = RandomChoice();
      Rng draws(static_cast<std::uint64_t>(i), "draws");
      const std::vector<double> candidates = Candidates(choice, settings, draws);
      const auto futures = Nearby(segments, state, candidates, settings);
      const auto o = static_cast<float>(state.observation[0]);
      const auto q = [&](double a) {
        return static_cast<double>(
            KnownValues::Q(o, FirstFeature(z), static_cast<float>(a), discrete()));
      };
      std::vector<double> worth;
      for (const Segment* future : futures) {
        worth.push_back(
            Worth(*future, state, z, segments, settings, settings.obstruction ? &twin : nullptr));
      }
      double expected = choice, best_score = -1e30;
      for (const double a : candidates) {
        if (futures.empty()) break;
        double u = -1e30;
        for (std::size_t j = 0; j < futures.size(); ++j) {
          if (BeginsWith(*futures[j], a, settings)) u = std::max(u, worth[j]);
        }
        const double score = q(a) + (u > -1e30 ? settings.beta * (u - q(choice)) : 0.0);
        if (score <= best_score) continue;
        best_score = score;
        expected = a;
      }
      ActionBuffer out = Buffer(choice);
      planner.Improve(View(state, z), /*exploring=*/false, values, *plan_, draws, out);
      EXPECT_NEAR(ChoiceOf(out), expected, 1e-6) << i;
      different += expected != BestAction(futures, candidates, state, z, settings) ? 1 : 0;
    }
    EXPECT_GT(longer_, v == 3 ? 15 : 100);
    EXPECT_GT(different, 5);  // than without going on
    if (v == 3) {
      EXPECT_GT(joints_[0], 50);
      EXPECT_GT(joints_[1], 50);
    }
  }
}

TEST_P(PlannerTest, SegmentsOfSeveralSteps) {
  PlannerSettings settings = Settings();
  settings.segment_steps = 3;
  Planner planner = Make(settings);
  // two episodes at once
  const std::unique_ptr<Plan> other = planner.MakePlan();
  std::vector<Segment> steps;
  for (int t = 0; t < 8; ++t) {
    steps.push_back(RandomSegment());
    steps.back().terminated = t == 7;
    Observe(steps.back(), planner);
    if (t < 5) {
      Segment elsewhere = RandomSegment();
      elsewhere.terminated = false;
      Observe(elsewhere, planner, *other);
    }
  }
  const SegmentLibrary& library = planner.library();
  ASSERT_EQ(library.size(), 8 + 3);  // two of the other's are still open
  std::size_t begin = 0;
  for (std::int64_t slot = 0; slot < library.size(); ++slot) {
    // the segment whose beginning is the next step's of this episode
    const std::vector<float> context(library.context(slot).begin(), library.context(slot).end());
    if (begin == steps.size() ||
        context[0] != static_cast<float>(steps[begin].before.geometry[0])) {
      continue;
    }
    const std::size_t end = std::min(begin + 3, steps.size());
    ASSERT_EQ(library.length(slot), static_cast<std::int64_t>(end - begin));
    SegmentMatrix expected(CompactLift()), stored(CompactLift());
    double rewards = 0.0;
    for (std::size_t t = begin; t < end; ++t) {
      expected.AddStep(steps[t].psi);
      rewards += steps[t].reward;
    }
    library.AddMatrixTo(slot, stored);
    EXPECT_EQ(stored, expected);
    EXPECT_EQ(library.reward_sum(slot), rewards);
    EXPECT_EQ(library.head_action(slot)[0], static_cast<float>(steps[begin].action));
    EXPECT_EQ(library.tail_observation(slot)[0],
              static_cast<float>(steps[end - 1].after.observation[0]));
    EXPECT_EQ(library.terminated(slot), end == steps.size());
    ++begin;
  }
  EXPECT_EQ(begin, 8u);
  // an episode that begins anew leaves what was open behind
  other->Begin();
  Observe(RandomSegment(), planner, *other);
  EXPECT_LE(library.size(), 8 + 3 + 1);
}

TEST_P(PlannerTest, OutcomesOfLongerSegmentsAreSeenWhenTheyEnd) {
  PlannerSettings settings = Settings();
  settings.obstruction = true;
  settings.segment_steps = 2;
  settings.context_radius = 100.0;  // all are near
  KnownValues values(discrete());
  const auto judged = [](const Planner& planner) {
    return planner.proxy().obstructed_count() + planner.proxy().realizable_count();
  };
  for (const bool terminated : {false, true}) {
    SCOPED_TRACE(terminated);
    Planner planner = Make(settings);
    for (int i = 0; i < 20; ++i) {
      Segment step = RandomSegment();
      step.terminated = false;
      Observe(step, planner);
    }
    plan_->Begin();
    EXPECT_EQ(judged(planner), 0);
    const SegmentMatrix z = RandomPrefix();
    const std::int64_t known = planner.library().size();
    ActionBuffer out = Buffer(static_cast<double>(planner.library().head_action(0)[0]));
    planner.Improve(View(RandomState(), z), /*exploring=*/true, values, *plan_, rng_, out);
    Segment step = RandomSegment();
    step.action = ChoiceOf(out);
    step.terminated = terminated;
    Observe(step, planner);
    if (terminated) {
      // what would have gone on has not come true, what happened has
      EXPECT_GT(planner.proxy().obstructed_count(), 0);
      EXPECT_EQ(planner.proxy().realizable_count(), 1);
      EXPECT_EQ(planner.library().length(known), 1);
      continue;
    }
    EXPECT_EQ(judged(planner), 0);
    Segment second = RandomSegment();
    second.terminated = false;
    Observe(second, planner);
    EXPECT_GT(judged(planner), 1);
    const int before = judged(planner);
    Observe(second, planner);
    EXPECT_EQ(judged(planner), before);  // nothing was planned there
  }
}

TEST_P(PlannerTest, AnEmptyLibraryChangesNothing) {
  Planner planner = Make(Settings());
  KnownValues values(discrete());
  const SegmentMatrix z(CompactLift());
  const double choice = RandomChoice();
  ActionBuffer out = Buffer(choice);
  planner.Improve(View(RandomState(), z), /*exploring=*/true, values, *plan_, rng_, out);
  EXPECT_EQ(ChoiceOf(out), choice);
}

TEST_P(PlannerTest, ValuesThatAreNoNumbersStopTheRun) {
  class Broken : public KnownValues {
   public:
    Broken(bool discrete, bool states) : KnownValues(discrete), states_(states) {}
    void ActionValues(const ConstMatrixRef& o, const ConstMatrixRef& z, const ConstMatrixRef& a,
                      std::span<float> q) override {
      KnownValues::ActionValues(o, z, a, q);
      if (!states_) q[0] = std::nanf("");
    }
    void StateValues(const ConstMatrixRef& /*observation*/, const ConstMatrixRef& /*features*/,
                     std::span<float> v) override {
      std::ranges::fill(v, states_ ? INFINITY : 0.0F);
    }

   private:
    bool states_;
  };
  for (const bool states : {false, true}) {
    PlannerSettings settings = Settings();
    settings.context_radius = 100.0;
    Planner planner = Make(settings);
    for (int i = 0; i < 40; ++i) {
      Segment step = RandomSegment();
      step.terminated = false;
      Observe(step, planner);
    }
    Broken broken(discrete(), states);
    ActionBuffer out = Buffer(0.0);
    const SegmentMatrix z(CompactLift());
    try {
      planner.Improve(View(RandomState(), z), /*exploring=*/true, broken, *plan_, rng_, out);
      ADD_FAILURE() << "it went on";
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find(states ? "value of a future" : "of a candidate"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST_P(PlannerTest, WhatTheFilterRemovesIsNoFuture) {
  KnownValues values(discrete());
  int different = 0;
  for (const double threshold : {0.0, 1.0}) {
    PlannerSettings settings = Settings();
    settings.obstruction = true;
    settings.beta = 2.0;
    settings.proxy.threshold = threshold;
    settings.proxy.min_updates = 0;  // it removes from the start
    Planner planner = Make(settings);
    const std::vector<Segment> segments = Fill(40, planner);
    for (int i = 0; i < 100; ++i) {
      const State state = RandomState();
      const SegmentMatrix z = RandomPrefix();
      const double choice = RandomChoice();
      Rng draws(static_cast<std::uint64_t>(i), "draws");
      const std::vector<double> candidates = Candidates(choice, settings, draws);
      const auto futures = Nearby(segments, state, candidates, settings);
      ActionBuffer out = Buffer(choice);
      planner.Improve(View(state, z), /*exploring=*/false, values, *plan_, draws, out);
      const double all = BestAction(futures, candidates, state, z, settings, false);
      const double nothing = BestAction(futures, candidates, state, z, settings, true);
      EXPECT_NEAR(ChoiceOf(out), threshold == 0.0 ? nothing : all, 1e-6);
      different += all != nothing ? 1 : 0;
    }
  }
  EXPECT_GT(different, 20);
}

TEST_P(PlannerTest, OutcomesTeachTheFilter) {
  PlannerSettings settings = Settings();
  settings.obstruction = true;
  settings.proxy.tolerance = 0.5;
  Planner planner = Make(settings);
  KnownValues values(discrete());
  std::vector<Segment> segments = Fill(30, planner);
  EXPECT_EQ(planner.proxy().obstructed_count() + planner.proxy().realizable_count(), 0);
  int obstructed = 0, realizable = 0, outcomes[2] = {0, 0};
  for (int i = 0; i < 60; ++i) {
    Segment step = RandomSegment();
    const std::vector<Segment> kept(
        segments.end() - std::min<std::ptrdiff_t>(std::ssize(segments), settings.library_size),
        segments.end());
    Rng draws(static_cast<std::uint64_t>(i), "draws");
    const auto futures =
        Nearby(kept, step.before, Candidates(step.action, settings, draws), settings);
    const SegmentMatrix z = RandomPrefix();
    ActionBuffer out = Buffer(step.action);
    planner.Improve(View(step.before, z), /*exploring=*/true, values, *plan_, draws, out);
    step.action = ChoiceOf(out);
    // another episode plans before this one knows its outcome
    const std::unique_ptr<Plan> other = planner.MakePlan();
    ActionBuffer other_out = Buffer(0.0);
    planner.Improve(View(State{}, z), /*exploring=*/true, values, *other, draws, other_out);
    // half of the steps end where a future said
    if (i % 2 == 0 && !futures.empty()) step.after = futures.back()->after;
    Observe(step, planner);
    for (const Segment* future : futures) {
      if (!BeginsWith(*future, step.action, settings)) continue;
      const double off =
          (Vector(future->after.geometry) - Vector(step.after.geometry)).cwiseAbs().maxCoeff();
      ++(off > settings.proxy.tolerance ? obstructed : realizable);
      ++outcomes[off > settings.proxy.tolerance ? 1 : 0];
    }
    if (!futures.empty()) ++realizable;  // what really happened
    EXPECT_EQ(planner.proxy().obstructed_count(), obstructed) << i;
    EXPECT_EQ(planner.proxy().realizable_count(), realizable) << i;
    segments.push_back(step);
  }
  EXPECT_GT(outcomes[0], 5);
  EXPECT_GT(outcomes[1], 5);
  // a step that was not planned teaches nothing about futures
  Observe(RandomSegment(), planner);
  EXPECT_EQ(planner.proxy().obstructed_count() + planner.proxy().realizable_count(),
            obstructed + realizable);
}

TEST_P(PlannerTest, EvaluationChangesNothingThatIsSaved) {
  PlannerSettings settings = Settings();
  settings.obstruction = true;
  Planner planner = Make(settings);
  KnownValues values(discrete());
  Fill(40, planner);
  const std::string before = Archived(planner);
  int overrides = 0;
  for (int i = 0; i < 50; ++i) {
    const double choice = RandomChoice();
    ActionBuffer out = Buffer(choice);
    const SegmentMatrix z = RandomPrefix();
    planner.Improve(View(RandomState(), z), /*exploring=*/false, values, *plan_, rng_, out);
    overrides += ChoiceOf(out) != choice ? 1 : 0;
  }
  EXPECT_GT(overrides, 5);
  EXPECT_EQ(Archived(planner), before);
  // nor does a step afterwards learn from what was planned
  Observe(RandomSegment(), planner);
  EXPECT_EQ(planner.proxy().obstructed_count() + planner.proxy().realizable_count(), 0);
  // the other side: planning while exploring is counted
  ActionBuffer out = Buffer(0.0);
  const SegmentMatrix z = RandomPrefix();
  const std::string stepped = Archived(planner);
  planner.Improve(View(State{}, z), /*exploring=*/true, values, *plan_, rng_, out);
  EXPECT_NE(Archived(planner), stepped);
}

INSTANTIATE_TEST_SUITE_P(Actions, PlannerTest, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Discrete" : "Continuous"; });

TEST(PlannerSettings, ImpossibleOnesAreNamed) {
  const auto refusal = [](const auto& change) {
    PlannerSettings settings;
    change(settings);
    return UserErrorText([&] { RequireInRange(settings); });
  };
  EXPECT_EQ(refusal([](PlannerSettings&) {}), "no error");
  const auto expect = [&](const char* name, const auto& change) {
    EXPECT_NE(refusal(change).find(std::string("'") + name + "'"), std::string::npos)
        << refusal(change);
  };
  expect("beta", [](PlannerSettings& s) { s.beta = -0.1; });
  expect("beta", [](PlannerSettings& s) { s.beta = std::nan(""); });
  expect("neighbours", [](PlannerSettings& s) { s.neighbours = 0; });
  expect("neighbours", [](PlannerSettings& s) { s.neighbours = Critic::kMaxCandidates + 1; });
  expect("candidates", [](PlannerSettings& s) { s.candidates = 0; });
  expect("context_radius", [](PlannerSettings& s) { s.context_radius = 0.0; });
  expect("action_radius", [](PlannerSettings& s) { s.action_radius = -1.0; });
  expect("margin", [](PlannerSettings& s) { s.margin = std::nan(""); });
  expect("library_size", [](PlannerSettings& s) { s.library_size = 0; });
  expect("segment_steps", [](PlannerSettings& s) { s.segment_steps = 0; });
  expect("chain", [](PlannerSettings& s) { s.chain = 0; });
  expect("candidates", [](PlannerSettings& s) { s.candidates = Critic::kMaxCandidates + 1; });
  expect("obstruction_threshold", [](PlannerSettings& s) { s.proxy.threshold = 1.01; });
  expect("obstruction_threshold", [](PlannerSettings& s) { s.proxy.threshold = -0.01; });
}

}  // namespace
}  // namespace msrl
