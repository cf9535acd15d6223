#include "msrl/env/graph_motif.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "msrl/core/config.h"

namespace msrl {
namespace {

constexpr int kForward = 0;
constexpr int kBack = 1;
constexpr int kSide = 2;
constexpr int kMinHorizon = 20;
constexpr int kMaxHorizon = 60;
constexpr auto kMotifs = EnumValues<Motif>();

using Positions = std::vector<Eigen::Vector2d>;

EnvSpec MakeSpec(const GraphMotifConfig& config) {
  EnvSpec spec;
  spec.id = GraphMotif::kId;
  spec.family = "graph-motif";
  spec.description = "directed graphs: paths, cycles, branches, reversal pairs, lollipops";
  spec.observation_size = TabularEnv::ObservationSize(config.actions, 0);
  spec.action = {ActionKind::kDiscrete, config.actions};
  spec.step_limit = GraphMotifConfig::kStepLimit;
  spec.reward_low = -3.0;
  spec.reward_high = 1.5;
  spec.geometry_bound = 12.0;  // a chord is many typical steps long
  spec.observation_bound = 12.0;
  spec.has_success = true;
  return spec;
}

// Nodes and edges under construction; `next` of the label is the node itself until linked.
struct Builder {
  FiniteMdp mdp;
  Positions position;
  bool two_way = false;

  Builder(int size, int actions, bool is_two_way)
      : mdp(FiniteMdp::Idle(size, actions)),
        position(static_cast<std::size_t>(size), Eigen::Vector2d::Zero()),
        two_way(is_two_way) {}

  int& Next(int node, int label) { return mdp.next[mdp.At(node, label)]; }
  bool IsFree(int node, int label) { return Next(node, label) == node; }
  void Place(int node, double x, double y) { position[static_cast<std::size_t>(node)] = {x, y}; }

  void Link(int from, int to, int label = kForward) {
    Next(from, label) = to;
    if (two_way && IsFree(to, kBack)) Next(to, kBack) = from;
  }
  void LinkChain(int first, int last) {
    for (int i = first; i < last; ++i) Link(i, i + 1);
  }
  // Nodes first..last on a circle of the given centre; `first` is nearest to the tail.
  void PlaceRing(int first, int last, double centre_x, double radius, double turn) {
    const int count = last - first + 1;
    for (int i = 0; i < count; ++i) {
      const double angle = std::numbers::pi + turn * 2.0 * std::numbers::pi * i / count;
      Place(first + i, centre_x + radius * std::cos(angle), radius * std::sin(angle));
    }
    LinkChain(first, last);
    Link(last, first);
  }
};

double Along(int i, int count) { return count < 2 ? 0.0 : -1.0 + 2.0 * i / (count - 1); }

void BuildPath(Builder& b, Rng& rng) {
  const double bend = rng.Uniform(-0.4, 0.4);
  for (int i = 0; i < b.mdp.states; ++i) {
    const double x = Along(i, b.mdp.states);
    b.Place(i, x, bend * std::sin(3.0 * x));
  }
  b.LinkChain(0, b.mdp.states - 1);
}

void BuildCycle(Builder& b, double turn) { b.PlaceRing(0, b.mdp.states - 1, 0.0, 1.0, turn); }

void BuildBranch(Builder& b, Rng& rng) {
  // stem 0..fork, then the two arms
  const int n = b.mdp.states;
  const int fork = RandomInt(0, n - 3, rng);
  const int arm = RandomInt(1, n - fork - 2, rng);
  const double open = rng.Uniform(0.4, 0.9);
  const int longest = std::max(arm, n - 1 - fork - arm);
  const double unit = 2.0 / (fork + longest);
  for (int i = 0; i <= fork; ++i) b.Place(i, -1.0 + unit * i, 0.0);
  const auto place_arm = [&](int first, int last, double side) {
    for (int i = first; i <= last; ++i) {
      const double r = unit * (i - first + 1);
      b.Place(i, -1.0 + unit * fork + r * std::cos(open), side * r * std::sin(open));
    }
    b.LinkChain(first, last);
  };
  b.LinkChain(0, fork);
  place_arm(fork + 1, fork + arm, 1.0);
  place_arm(fork + arm + 1, n - 1, -1.0);
  b.Link(fork, fork + 1, kForward);
  b.Link(fork, fork + arm + 1, kSide);
}

void BuildReversalPair(Builder& b, Rng& rng) {
  // nodes 0..k-1 go right, k..2k-1 come back
  const int k = b.mdp.states / 2;
  const double gap = rng.Uniform(0.05, 0.2);
  for (int i = 0; i < k; ++i) {
    b.Place(i, Along(i, k), gap);
    b.Place(2 * k - 1 - i, Along(i, k), -gap);
    if (rng.Bernoulli(0.5)) {
      b.Next(i, kSide) = 2 * k - 1 - i;
      b.Next(2 * k - 1 - i, kSide) = i;
    }
  }
  // lanes are one-way, or they would not be each other's reversal
  b.two_way = false;
  b.LinkChain(0, 2 * k - 1);
  b.Link(2 * k - 1, 0);
}

void BuildLollipop(Builder& b, double turn, Rng& rng) {
  // ring 0..c-1, tail c..n-1, node c next to the ring
  const int n = b.mdp.states;
  const int ring = RandomInt(3, n - 1, rng);
  const int tail = n - ring;
  const double radius = 1.0 - tail * (2.0 / (2.0 * tail + ring));
  b.PlaceRing(0, ring - 1, 1.0 - radius, radius, turn);
  const double mouth = 1.0 - 2.0 * radius;
  for (int i = 0; i < tail; ++i) b.Place(ring + i, mouth - (mouth + 1.0) * (i + 1) / tail, 0.0);
  if (rng.Bernoulli(0.5)) {
    for (int i = n - 1; i > ring; --i) b.Link(i, i - 1);
    b.Link(ring, 0);
  } else {
    b.Link(0, ring, kSide);
    b.LinkChain(ring, n - 1);
  }
}

// Random edges on free labels; with them two graphs of one motif differ in more than size.
void AddChords(Builder& b, double probability, Rng& rng) {
  for (int node = 0; node < b.mdp.states; ++node) {
    for (int label = kSide; label < b.mdp.actions; ++label) {
      if (label == GraphMotif::kStay) continue;
      const bool wanted = rng.Bernoulli(probability);
      const int to = RandomInt(0, b.mdp.states - 1, rng);
      if (wanted && b.IsFree(node, label)) b.Next(node, label) = to;
    }
  }
}

double MeanEdgeLength(const Builder& b) {
  double sum = 0.0;
  int count = 0;
  for (int s = 0; s < b.mdp.states; ++s) {
    const int to = b.mdp.next[b.mdp.At(s, kForward)];
    if (to == s) continue;
    sum +=
        (b.position[static_cast<std::size_t>(to)] - b.position[static_cast<std::size_t>(s)]).norm();
    ++count;
  }
  return sum / std::max(count, 1);
}

struct Sample : TabularInstance {
  Motif motif = Motif::kPath;
};

Sample DrawGraph(const GraphMotifConfig& config, Rng& rng) {
  Sample sample;
  sample.motif = kMotifs[static_cast<std::size_t>(rng.Index(std::ssize(kMotifs)))];
  if (config.motif) sample.motif = *config.motif;
  int size = RandomInt(5, 12, rng);
  if (config.size > 0) size = config.size;
  if (sample.motif == Motif::kReversalPair) size -= size % 2;
  bool two_way = rng.Bernoulli(0.6);
  if (config.two_way) two_way = config.two_way == TwoWay::kYes;
  const double turn = rng.Bernoulli(0.5) ? 1.0 : -1.0;

  Builder builder(size, config.actions, two_way);
  switch (sample.motif) {
    case Motif::kPath:
      BuildPath(builder, rng);
      break;
    case Motif::kCycle:
      BuildCycle(builder, turn);
      break;
    case Motif::kBranch:
      BuildBranch(builder, rng);
      break;
    case Motif::kReversalPair:
      BuildReversalPair(builder, rng);
      break;
    case Motif::kLollipop:
      BuildLollipop(builder, turn, rng);
      break;
  }
  AddChords(builder, config.chord_probability, rng);

  // turn and size in the plane
  const double angle = rng.Uniform(-std::numbers::pi, std::numbers::pi);
  const double radius = rng.Uniform(0.5, 1.0);
  Eigen::Matrix2d rotation;
  rotation << std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle);
  for (Eigen::Vector2d& p : builder.position) {
    p = radius * (rotation * p);
    // one after the other: the order within an argument list is the compiler's
    const double up = rng.Uniform(-1.0, 1.0);
    const double right = rng.Uniform(-1.0, 1.0);
    p += 0.03 * Eigen::Vector2d(right, up);
  }

  const int goal = RandomInt(0, size - 1, rng);
  sample.at_goal.assign(static_cast<std::size_t>(size), 0);
  sample.at_goal[static_cast<std::size_t>(goal)] = 1;
  sample.contact.assign(sample.at_goal.begin(), sample.at_goal.end());
  sample.goal = builder.position[static_cast<std::size_t>(goal)];
  sample.step_length = MeanEdgeLength(builder);
  sample.stay_action = GraphMotif::kStay;

  const std::vector<int> steps = StepsToGoal(builder.mdp, sample.at_goal);
  std::vector<int> starts;
  for (int s = 0; s < size; ++s) {
    if (steps[static_cast<std::size_t>(s)] > 0) starts.push_back(s);
  }
  // the goal may be a source of the graph, which nothing leads to
  sample.start = -1;
  if (!starts.empty()) {
    sample.start = starts[static_cast<std::size_t>(rng.Index(std::ssize(starts)))];
    sample.steps_to_goal = steps[static_cast<std::size_t>(sample.start)];
  }

  LayoutText layout(EnumName(sample.motif));
  layout.Add('n', size);
  layout.Add('t', turn > 0.0 ? 1 : 0);
  for (const int next : builder.mdp.next) layout.Add('e', next);
  layout.Add('g', goal);
  sample.layout = layout.text();
  sample.mdp = std::move(builder.mdp);
  sample.position = std::move(builder.position);
  return sample;
}

}  // namespace

GraphMotif::GraphMotif(GraphMotifConfig config)
    : TabularEnv(MakeSpec(RequireInRange(config)), IdentityText(ListFields(config))),
      config_(std::move(config)) {}

TabularInstance GraphMotif::Draw(std::uint64_t seed) {
  Rng rng(seed, "graph-motif");
  Sample sample = DrawInSplit(config_.common, [&] {
    Sample drawn = DrawGraph(config_, rng);
    while (drawn.start < 0) drawn = DrawGraph(config_, rng);
    return drawn;
  });
  FinishInstance(config_.common, kMinHorizon, kMaxHorizon, rng, sample);
  drawn_motif_ = sample.motif;
  return sample;
}

}  // namespace msrl
