#include "msrl/agents/dreamer/dreamer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "msrl/agents/common/percentiles.h"
#include "msrl/agents/common/slot_view.h"
#include "msrl/agents/dreamer/pretrained_world.h"
#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t {
  kReconstructionLoss,
  kRewardLoss,
  kContinueLoss,
  kDynamicsLoss,
  kRepresentationLoss,
  kActorLoss,
  kCriticLoss,
  kReplayCriticLoss,
  kKl,
  kReturn,
  kScale,
  kEntropy
};

constexpr double kScaleRate = 0.01;
constexpr float kLeastDeviation = 0.1F;
constexpr float kMostDeviation = 1.0F;

const DreamerConfig& Checked(const DreamerConfig& config) {
  RequireInRange(config);
  RequireConsistent(config);
  if (config.start_steps > config.sequence_length) {
    throw UserError(StrCat("setting 'start_steps' must be at most 'sequence_length', got ",
                           config.start_steps, " and ", config.sequence_length));
  }
  if (config.replay_size <= config.sequence_length) {
    throw UserError(StrCat("setting 'replay_size' must be more than 'sequence_length', got ",
                           config.replay_size, " and ", config.sequence_length));
  }
  return config;
}

WorldModelSpec SpecFor(const EnvSpec& spec, const DreamerConfig& config) {
  if (!config.aligned) {
    return {.sizes = {config, spec.observation_size, spec.action.size}, .slots = {}};
  }
  WorldModelSpec world = SlotWorldSpec(config);
  world.native = spec.observation_size;
  world.slots = SlotsOf(spec);
  return world;
}

// What is kept of a state: h, and the index of every category of z.
int LatentSize(const DreamerConfig& config) { return config.deter + config.stoch; }

ReplayConfig MakeReplayConfig(const EnvSpec& spec, const DreamerConfig& config) {
  return {.capacity = config.replay_size,
          .observation_size = SeenSize(spec, config.aligned),
          .action_size = spec.action.kind == ActionKind::kDiscrete ? 1 : spec.action.size,
          .feature_size = LatentSize(config)};
}

// The index of the category in each group of a one-hot column.
template <typename OneHot, typename Indices>
void ToIndices(const OneHot& z, int classes, Indices&& out) {
  for (Eigen::Index i = 0; i < out.size(); ++i) {
    Eigen::Index index = 0;
    z.segment(i * classes, classes).maxCoeff(&index);
    out[i] = static_cast<float>(index);
  }
}

std::span<const float> RowOf(const StaticGraph& graph, Node node) {
  return {graph.value(node).data(), static_cast<std::size_t>(node.columns)};
}

std::span<const double> AsSpan(const EnvView& view) {
  return {view.data(), static_cast<std::size_t>(view.size())};
}

}  // namespace

DreamerConfig DreamerConfig::Of(DreamerPreset preset) {
  DreamerConfig config;
  config.preset = preset;
  if (preset == DreamerPreset::kCompact) return config;
  config.deter = 512;
  config.blocks = 8;
  config.stoch = 32;
  config.classes = 4;
  config.hidden = 64;
  config.units = 64;
  config.layers = 3;
  config.sequences = 16;
  config.sequence_length = 64;
  config.start_steps = 64;
  config.horizon = 15;
  config.train_ratio = 1024;
  config.learning_rate = 4e-5;
  config.warm_up = 1000;
  config.normalize_observations = false;
  config.gamma = 1.0 - 1.0 / 333.0;
  return config;
}

void LambdaReturns(std::span<const float> reward, std::span<const float> continues,
                   std::span<const float> last, std::span<const float> bootstrap, double lambda,
                   int columns, std::span<float> returns) {
  const std::size_t size = returns.size();
  const auto step = static_cast<std::size_t>(columns);
  for (std::size_t i = size; i-- > 0;) {
    const float mixed = static_cast<float>(lambda) * (last.empty() ? 1.0F : 1.0F - last[i]);
    const float next = i + step < size ? returns[i + step] : bootstrap[i];
    returns[i] = reward[i] + continues[i] * ((1.0F - mixed) * bootstrap[i] + mixed * next);
  }
}

void ReturnScale::Update(std::span<float> returns) {
  low_ += kScaleRate * (Quantile(returns, 0.05) - low_);
  high_ += kScaleRate * (Quantile(returns, 0.95) - high_);
}

double ReturnScale::scale() const { return std::max(1.0, high_ - low_); }

void ReturnScale::Visit(const Archive& state) {
  state.Double("low", low_);
  state.Double("high", high_);
}

std::vector<std::string> SettingsForWorld(const ArtefactHeader& header) {
  std::vector<std::string> settings{"aligned=true"};
  for (const auto& [key, text] : header.shape) settings.push_back(StrCat(key, "=", text));
  return settings;
}

DreamerNetworks::DreamerNetworks(const WorldModelSpec& spec, int policy_outputs,
                                 Parameters& world_buffer, Parameters& model,
                                 Parameters& critic_buffer, Rng rng)
    : world(spec, world_buffer, model, rng) {
  const auto add = [&](Parameters& parameters, const std::string& name, int output,
                       double output_scale) {
    return AddDenseNet(parameters, name,
                       {.input = spec.sizes.features(),
                        .layers = spec.sizes.layers,
                        .width = spec.sizes.units,
                        .output = output,
                        .output_scale = output_scale},
                       rng);
  };
  actor = add(model, "actor", policy_outputs, 0.01);
  critic = add(critic_buffer, "critic", kDreamerBins, 0.0);
}

Dreamer::Dreamer(const EnvSpec& spec, const DreamerConfig& config, std::uint64_t seed)
    : config_(Checked(config)),
      action_spec_(spec.action),
      replay_(MakeReplayConfig(spec, config)),
      replay_rng_(seed, "replay"),
      noise_rng_(seed, "noise"),
      facts_(ChannelFacts::Of(spec)),
      model_({.laprop = LaPropOptions{}}),
      critic_({.laprop = LaPropOptions{}, .target = true}),
      world_({.laprop = LaPropOptions{}}),
      nets_(SpecFor(spec, config), IsDiscrete() ? spec.action.size : 2 * spec.action.size,
            config.aligned ? world_ : model_, model_, critic_, Rng(seed, "init")),
      observation_statistics_(spec.observation_size),
      acting_{BuildActing(1), BuildActing(8), BuildActing(kMaxTurns)},
      learning_(BuildLearning()),
      batch_(MakeRecords()),
      latents_(LatentSize(config), config.sequences * config.sequence_length),
      observation_(SeenSize(spec, config.aligned)),
      seen_(static_cast<std::size_t>(observation_.size())),
      seen_after_(seen_.size()),
      returns_(static_cast<std::size_t>(learning_.target.columns)),
      sorted_returns_(returns_.size()),
      replay_continues_(static_cast<std::size_t>(learning_.replay_target.columns)),
      replay_returns_(replay_continues_.size()),
      action_(static_cast<std::size_t>(replay_.config().action_size)),
      latent_(static_cast<std::size_t>(replay_.config().feature_size)),
      metrics_({"loss/reconstruction", "loss/reward", "loss/continue", "loss/dynamics",
                "loss/representation", "loss/actor", "loss/critic", "loss/replay_critic",
                "model/kl", "value/return", "value/scale", "policy/entropy"}) {}

std::int64_t Dreamer::parameter_count() const {
  return static_cast<std::int64_t>(model_.size() + critic_.size() + world_.size());
}

RecordBatch Dreamer::MakeRecords() const {
  return replay_.MakeRecords(config_.sequences, config_.sequence_length + 1);
}

// ---- policy ----

Dreamer::Policy Dreamer::PolicyOf(StaticGraph& g, Node head) const {
  Policy policy;
  if (IsDiscrete()) {
    policy.probability = MixedSoftmax(g, head, head.rows);
    return policy;
  }
  const int m = action_spec_.size;
  policy.mean = g.Tanh(g.SliceRows(head, 0, m));
  policy.deviation = g.Affine(g.Sigmoid(g.Affine(g.SliceRows(head, m, m), 1.0F, 2.0F)),
                              kMostDeviation - kLeastDeviation, kLeastDeviation);
  return policy;
}

Node Dreamer::NoiseInput(StaticGraph& g, int columns) const {
  return g.Input(IsDiscrete() ? 1 : action_spec_.size, columns);
}

Node Dreamer::SampleOf(StaticGraph& g, const Policy& policy, Node noise) const {
  return g.StopGradient(IsDiscrete() ? g.SampleOneHot(policy.probability, noise)
                                     : g.Add(policy.mean, g.Multiply(policy.deviation, noise)));
}

Node Dreamer::LogProbability(StaticGraph& g, const Policy& policy, Node action) const {
  if (IsDiscrete()) return g.SumRows(g.Multiply(action, g.Log(policy.probability)));
  // up to a constant, which has no gradient but is part of what is logged
  const auto constant =
      static_cast<float>(-0.5 * action_spec_.size * std::log(2.0 * std::numbers::pi));
  const Node error = g.Divide(g.Subtract(action, policy.mean), policy.deviation);
  return g.Affine(g.SumRows(g.Add(g.Scale(g.Square(error), 0.5F), g.Log(policy.deviation))), -1.0F,
                  constant);
}

Node Dreamer::Entropy(StaticGraph& g, const Policy& policy) const {
  if (IsDiscrete()) {
    return g.Scale(g.SumRows(g.Multiply(policy.probability, g.Log(policy.probability))), -1.0F);
  }
  const auto constant = static_cast<float>(0.5 * action_spec_.size *
                                           std::log(2.0 * std::numbers::pi * std::numbers::e));
  return g.Affine(g.SumRows(g.Log(policy.deviation)), 1.0F, constant);
}

// ---- starting from a pretrained world model ----

void Dreamer::Initialise(const Artefact& artefact) {
  const std::unique_ptr<SlotWorld> source = ReadWorld(artefact);
  if (!config_.aligned) {
    throw UserError(StrCat("a world model over observations can't take ", artefact.source(),
                           " over; set aligned=true"));
  }
  for (const auto& [key, own] : WorldHeader(config_, {}).shape) {
    const std::string& wanted = artefact.header().Shape(key);
    if (own == wanted) continue;
    throw UserError(
        StrCat(artefact.source(), ": '", key, "' is ", wanted, ", the agent's is ", own));
  }
  CopyTensors(source->world, world_, [](const NamedTensor&) { return true; });
}

// ---- acting ----

Dreamer::Acting Dreamer::BuildActing(int turns) {
  constexpr auto kUse = ParameterUse::kFrozen;
  const WorldModel& world = nets_.world;
  const Rssm& rssm = world.rssm();
  const RssmSizes& sizes = world.sizes();
  Acting a;
  StaticGraph& g = a.graph;
  a.observation = g.Input(world.spec().seen(), turns);
  a.h = g.Input(sizes.deter, turns);
  a.z = g.Input(sizes.latent(), turns);
  a.action = g.Input(world.spec().actuators(), turns);
  a.z_noise = g.Input(sizes.stoch, turns);
  a.noise = NoiseInput(g, turns);
  a.next_h = rssm.Core(g, a.h, a.z, world.ActionInput(g, a.action, kUse), kUse);
  const Node tokens = world.Tokens(g, a.observation, kUse);
  const Node posterior = rssm.Posterior(g, a.next_h, tokens, kUse);
  const auto policy = [&](Node z) {
    return PolicyOf(g, Apply(g, g.ConcatRows({a.next_h, z}), nets_.actor, kUse));
  };
  a.sampled.z = g.SampleOneHot(posterior, a.z_noise, sizes.classes);
  a.sampled.action = SampleOf(g, policy(a.sampled.z), a.noise);
  a.likely.z = g.ModeOneHot(posterior, sizes.classes);
  const Policy likely = policy(a.likely.z);
  a.likely.action = IsDiscrete() ? g.ModeOneHot(likely.probability) : likely.mean;
  g.Finish();
  return a;
}

void Dreamer::Belief::Begin() {
  h.setZero();
  z.setZero();
  action.setZero();
}

void Dreamer::Belief::Visit(const Archive& state) {
  const auto vector = [&state](const char* name, Eigen::VectorXf& values) {
    state.Array(name, {values.data(), static_cast<std::size_t>(values.size())});
  };
  vector("h", h);
  vector("z", z);
  vector("action", action);
  if (aligned) writer.Visit(state.Child("channels"));
}

std::unique_ptr<Carry> Dreamer::MakeCarry() const {
  return std::make_unique<Belief>(nets_.world.spec(), facts_);
}

void Dreamer::EncodeAction(const Action& action, Eigen::Ref<Eigen::VectorXf> column) const {
  if (IsDiscrete()) {
    column.setZero();
    column[action.index()] = 1.0F;
    return;
  }
  for (Eigen::Index i = 0; i < column.size(); ++i) {
    column[i] = static_cast<float>(action.values()[static_cast<std::size_t>(i)]);
  }
}

void Dreamer::Normalise(const ConstMatrixRef& seen, MatrixRef out) const {
  const int own = config_.normalize_observations ? observation_statistics_.size() : 0;
  // slots keep the scale that they have in all tasks
  out.topRows(seen.rows() - own) = seen.topRows(seen.rows() - own);
  if (own > 0) observation_statistics_.Normalize(seen.bottomRows(own), out.bottomRows(own));
}

void Dreamer::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  const bool explores = mode == ActMode::kExplore;
  const bool random = explores && steps_ < config_.random_steps;
  Acting& a = *std::ranges::find_if(acting_, [&](const Acting& acting) {
    return static_cast<std::size_t>(acting.h.columns) >= turns.size();
  });
  StaticGraph& g = a.graph;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    const Turn& turn = turns[i];
    auto& belief = CarryAs<Belief>(turn.carry);
    const auto fill = [&](Node node, void (*draw)(Rng&, std::span<float>)) {
      StridedMap input = g.input(node);
      draw(turn.rng, std::span(input.col(column).data(), static_cast<std::size_t>(node.rows)));
    };
    CopyObservation(See(turn.situation, config_.aligned, belief.writer, seen_), observation_);
    Normalise(observation_, g.input(a.observation).col(column));
    g.input(a.h).col(column) = belief.h;
    g.input(a.z).col(column) = belief.z;
    g.input(a.action).col(column) = belief.action;
    if (explores) fill(a.z_noise, FillUniform);
    if (explores && !random) fill(a.noise, IsDiscrete() ? FillUniform : FillNormal);
  }
  const auto [z, choice] = explores ? a.sampled : a.likely;
  if (random) {
    g.Forward({a.next_h, z});
  } else {
    g.Forward({a.next_h, z, choice});
  }
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    const Turn& turn = turns[i];
    auto& belief = CarryAs<Belief>(turn.carry);
    belief.h = g.value(a.next_h).col(column);
    belief.z = g.value(z).col(column);
    RequireFinite("state of the world",
                  std::span(belief.h.data(), static_cast<std::size_t>(belief.h.size())));
    if (random) {
      DrawUniformAction(action_spec_, turn.rng, turn.out);
    } else if (IsDiscrete()) {
      Eigen::Index index = 0;
      g.value(choice).col(column).maxCoeff(&index);
      turn.out.set_index(static_cast<int>(index));
    } else {
      // the sample is unbounded; environment and world model get it clipped
      std::ranges::transform(g.value(choice).col(column), turn.out.values().begin(),
                             [](float v) { return std::clamp(static_cast<double>(v), -1.0, 1.0); });
      RequireFinite("action", turn.out.values());
    }
    EncodeAction(turn.out.view(), belief.action);
  }
}

void Dreamer::Observe(const Experience& experience, Carry& carry) {
  const auto& belief = CarryAs<Belief>(carry);
  if (IsDiscrete()) {
    action_[0] = static_cast<float>(experience.action.index());
  } else {
    std::ranges::copy(belief.action, action_.begin());
  }
  const auto reward = static_cast<float>(experience.scaled_reward);
  RequireFinite("reward", std::span(&reward, 1));
  // the episode's writer has seen the state before; the next turn shows it the state after
  ChannelWriter writer = belief.writer;
  const EnvView before = See(experience.before, config_.aligned, writer, seen_);
  const EnvView after = See(experience.after, config_.aligned, writer, seen_after_);
  CopyObservation(before, observation_);
  RequireFinite("observation",
                std::span(observation_.data(), static_cast<std::size_t>(observation_.size())));
  if (config_.normalize_observations) {
    observation_statistics_.Update(observation_.tail(observation_statistics_.size()));
  }
  // what is inferred of the successor is known when it is acted in
  std::ranges::fill(latent_, 0.0F);
  replay_.Add({.before = {.observation = AsSpan(before), .features = latent_},
               .action = action_,
               .reward = experience.scaled_reward,
               .terminated = experience.terminated,
               .truncated = experience.truncated,
               .after = {.observation = AsSpan(after), .features = latent_}});
  Eigen::Map<Eigen::VectorXf> latent(latent_.data(), static_cast<Eigen::Index>(latent_.size()));
  latent.head(config_.deter) = belief.h;
  ToIndices(belief.z, config_.classes, latent.tail(config_.stoch));
  replay_.SetFeatures(replay_.end_row() - 2, latent_);
  ++steps_;
}

// ---- learning ----

void Dreamer::AddImagination(Learning& l, Node h, Node z, Node features) {
  constexpr auto kUse = ParameterUse::kFrozen;
  const WorldModel& world = nets_.world;
  const Rssm& rssm = world.rssm();
  const RssmSizes& sizes = world.sizes();
  const TwoHotBins& bins = world.bins();
  const int starts = h.columns;
  const int columns = starts * config_.horizon;
  StaticGraph& g = l.graph;

  // a_t ~ pi(. | h_t, z_t),  h_{t+1} = f(h_t, z_t, a_t),  z_{t+1} ~ p(. | h_{t+1})
  std::vector<Node> states{g.ConcatRows({h, z})};
  std::vector<Node> heads;
  std::vector<Node> actions;
  for (int t = 0; t < config_.horizon; ++t) {
    heads.push_back(Apply(g, states.back(), nets_.actor, ParameterUse::kTrained));
    l.action_noise.push_back(NoiseInput(g, starts));
    actions.push_back(SampleOf(g, PolicyOf(g, heads.back()), l.action_noise.back()));
    const Node bounded = IsDiscrete() ? actions.back() : g.Clamp(actions.back(), -1.0F, 1.0F);
    h = rssm.Core(g, h, z, world.ActionInput(g, bounded, kUse), kUse);
    l.imagined_z_noise.push_back(g.Input(sizes.stoch, starts));
    z = g.SampleOneHot(rssm.Prior(g, h, kUse), l.imagined_z_noise.back(), sizes.classes);
    states.push_back(g.ConcatRows({h, z}));
  }
  const Node all = g.ConcatColumns(states);
  const Node before = g.SliceColumns(all, 0, columns);      // t = 0, ..., horizon - 1
  const Node after = g.SliceColumns(all, starts, columns);  // t = 1, ..., horizon
  l.imagined_reward = g.TwoHotMean(world.Reward(g, after, kUse), bins);
  l.imagined_continue = g.Sigmoid(world.Continue(g, all, kUse));
  const Node logits = Apply(g, all, nets_.critic, ParameterUse::kTrained);
  l.value = g.TwoHotMean(g.StopGradient(logits), bins);

  // L_actor = -w_t (A_t log pi(a_t) + eta H(pi))
  l.advantage = g.Input(1, columns);
  l.weight = g.Input(1, columns);
  const Policy policy = PolicyOf(g, g.ConcatColumns(heads));
  const Node entropy = Entropy(g, policy);
  const Node gain =
      g.Add(g.Multiply(l.advantage, LogProbability(g, policy, g.ConcatColumns(actions))),
            g.Scale(entropy, static_cast<float>(config_.entropy_weight)));
  l.entropy = g.Mean(entropy);
  l.actor_loss = g.Scale(g.Mean(g.Multiply(l.weight, gain)), -1.0F);

  // L_critic = w_t (CE(two-hot R_t) + CE(two-hot v_slow_t))
  const Node slow = g.TwoHotMean(Apply(g, before, nets_.critic, ParameterUse::kTarget), bins);
  const auto critic_loss = [&](Node of, Node weight, Node target, Node slow_value) {
    const Node both =
        g.Add(g.TwoHotCrossEntropy(of, target, bins), g.TwoHotCrossEntropy(of, slow_value, bins));
    return g.Mean(g.Multiply(weight, both));
  };
  l.target = g.Input(1, columns);
  l.critic_loss = critic_loss(g.SliceColumns(logits, 0, columns), l.weight, l.target, slow);

  // the same for replayed states, all but the last; the world model learns from it, too
  const int replayed = starts - config_.sequences;
  l.replay_weight = g.Input(1, replayed);
  l.replay_target = g.Input(1, replayed);
  const Node replay_logits =
      Apply(g, g.SliceColumns(features, 0, replayed), nets_.critic, ParameterUse::kTrained);
  l.replay_critic_loss = critic_loss(replay_logits, l.replay_weight, l.replay_target,
                                     g.SliceColumns(slow, 0, replayed));
}

Dreamer::Learning Dreamer::BuildLearning() {
  Learning l;
  StaticGraph& g = l.graph;
  nets_.world.AddPass(g, config_.sequences, config_.sequence_length, config_.gamma,
                      config_.free_nats, l);
  const int starts = config_.start_steps * config_.sequences;
  const auto last = [&](Node x) { return g.SliceColumns(x, x.columns - starts, starts); };
  AddImagination(l, g.StopGradient(last(l.next_h)), g.StopGradient(last(l.next_z)),
                 last(l.features));
  l.loss = WorldModel::Loss(g, l, config_);
  const auto add = [&](Node loss, double weight) {
    l.loss = g.Add(l.loss, g.Scale(loss, static_cast<float>(weight)));
  };
  add(l.actor_loss, 1.0);
  add(l.critic_loss, 1.0);
  add(l.replay_critic_loss, config_.replay_value_weight);
  g.Finish();
  return l;
}

void Dreamer::FillInputs(const RecordBatch& batch) {
  Learning& l = learning_;
  StaticGraph& g = l.graph;
  const Eigen::Index sequences = batch.sequences();
  const Eigen::Index columns = sequences * config_.sequence_length;
  // record 0 is where to start from
  Normalise(batch.observation.rightCols(columns), g.input(l.observation));
  g.input(l.reward) = batch.reward.tail(columns);
  g.input(l.terminal) = batch.terminal.tail(columns);
  g.input(l.keep) = 1.0F - batch.first.tail(columns).array();
  StridedMap action = g.input(l.action);
  for (Eigen::Index i = 0; i < columns; ++i) {
    const bool first = batch.first[i + sequences] != 0.0F;
    if (IsDiscrete()) {
      action.col(i).setZero();
      if (!first) action(static_cast<Eigen::Index>(batch.action(0, i)), i) = 1.0F;
    } else if (first) {
      action.col(i).setZero();
    } else {
      action.col(i) = batch.action.col(i);
    }
  }
  g.input(l.h) = batch.features.topLeftCorner(config_.deter, sequences);
  StridedMap z = g.input(l.z);
  z.setZero();
  for (Eigen::Index b = 0; b < sequences; ++b) {
    for (int i = 0; i < config_.stoch; ++i) {
      z(i * config_.classes + static_cast<Eigen::Index>(batch.features(config_.deter + i, b)), b) =
          1.0F;
    }
  }
  g.FillUniform(l.z_noise, noise_rng_);
  for (std::size_t t = 0; t < l.action_noise.size(); ++t) {
    if (IsDiscrete()) {
      g.FillUniform(l.action_noise[t], noise_rng_);
    } else {
      g.FillNormal(l.action_noise[t], noise_rng_);
    }
    g.FillUniform(l.imagined_z_noise[t], noise_rng_);
  }
}

void Dreamer::FillTargets(const RecordBatch& batch) {
  Learning& l = learning_;
  StaticGraph& g = l.graph;
  const auto sequences = static_cast<std::size_t>(batch.sequences());
  const auto starts = sequences * static_cast<std::size_t>(config_.start_steps);
  const std::size_t columns = returns_.size();
  const std::span<const float> value = RowOf(g, l.value);
  const std::span<const float> continues = RowOf(g, l.imagined_continue);

  // R_t of what was imagined, and its scale
  LambdaReturns(RowOf(g, l.imagined_reward), continues.subspan(starts), {}, value.subspan(starts),
                config_.lambda, static_cast<int>(starts), returns_);
  RequireFinite("imagined return", std::span<const float>(returns_));
  sorted_returns_ = returns_;
  scale_.Update(sorted_returns_);
  const auto scale = static_cast<float>(scale_.scale());

  // A_t = (R_t - v_t) / S,  w_t = c_0 ... c_t
  StridedMap advantage = g.input(l.advantage);
  StridedMap weight = g.input(l.weight);
  StridedMap target = g.input(l.target);
  for (std::size_t i = 0; i < columns; ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    advantage(0, column) = (returns_[i] - value[i]) / scale;
    weight(0, column) =
        continues[i] * (i < starts ? 1.0F : weight(0, column - static_cast<Eigen::Index>(starts)));
    target(0, column) = returns_[i];
  }

  // returns of real rewards that go on as imagined
  const std::size_t replayed = replay_returns_.size();
  const std::size_t first = static_cast<std::size_t>(batch.reward.size()) - starts;
  const auto tail = [&](const Eigen::RowVectorXf& row) {
    return std::span(row.data() + first + sequences, replayed);
  };
  const std::span<const float> terminal = tail(batch.terminal);
  for (std::size_t i = 0; i < replayed; ++i) {
    replay_continues_[i] = static_cast<float>(config_.gamma) * (1.0F - terminal[i]);
  }
  LambdaReturns(tail(batch.reward), replay_continues_, tail(batch.last),
                std::span(returns_).subspan(sequences, replayed), config_.lambda,
                static_cast<int>(sequences), replay_returns_);
  StridedMap replay_target = g.input(l.replay_target);
  StridedMap replay_weight = g.input(l.replay_weight);
  for (std::size_t i = 0; i < replayed; ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    replay_target(0, column) = replay_returns_[i];
    replay_weight(0, column) = 1.0F - batch.last[static_cast<Eigen::Index>(first + i)];
  }
}

void Dreamer::UpdateOn(const RecordBatch& batch, Eigen::MatrixXf& latents) {
  MSRL_CHECK(
      batch.sequences() == config_.sequences && batch.length() == config_.sequence_length + 1,
      batch.length(), " records of ", batch.sequences(), " sequences");
  Learning& l = learning_;
  StaticGraph& g = l.graph;
  FillInputs(batch);
  g.Forward({l.imagined_reward, l.imagined_continue, l.value});
  FillTargets(batch);
  g.ForwardRest();

  double sum = 0.0;
  const auto add = [&](Metric metric, Node node) {
    const auto value = static_cast<double>(g.value(node)(0, 0));
    metrics_.Add(metric, value);
    sum += value;
  };
  add(kReconstructionLoss, l.reconstruction_loss);
  add(kRewardLoss, l.reward_loss);
  add(kContinueLoss, l.continue_loss);
  add(kDynamicsLoss, l.dynamics_loss);
  add(kRepresentationLoss, l.representation_loss);
  add(kActorLoss, l.actor_loss);
  add(kCriticLoss, l.critic_loss);
  add(kReplayCriticLoss, l.replay_critic_loss);
  add(kKl, l.kl);
  add(kEntropy, l.entropy);
  RequireFinite("sum of the losses", std::span(&sum, 1));
  metrics_.Add(kReturn, static_cast<double>(g.value(l.target).mean()));
  metrics_.Add(kScale, scale_.scale());

  model_.ClearGradients();
  critic_.ClearGradients();
  if (config_.aligned) world_.ClearGradients();
  g.Backward(l.loss);
  RequireFiniteGradients("model", model_.gradients());
  RequireFiniteGradients("critic", critic_.gradients());
  if (config_.aligned) RequireFiniteGradients("world", world_.gradients());
  ++updates_;
  const double rate =
      config_.learning_rate * std::min(1.0, static_cast<double>(updates_) / config_.warm_up);
  model_.Step(rate);
  critic_.Step(rate, config_.slow_rate);
  if (config_.aligned && !config_.frozen) {
    const bool early = steps_ < 2 * config_.random_steps;
    world_.Step(early ? config_.early_rate * rate : rate);
  }

  latents.topRows(config_.deter) = g.value(l.next_h);
  for (Eigen::Index i = 0; i < latents.cols(); ++i) {
    ToIndices(g.value(l.next_z).col(i), config_.classes, latents.col(i).tail(config_.stoch));
  }
}

void Dreamer::Update() {
  if (steps_ < config_.random_steps || replay_.end_row() - replay_.first_row() < batch_.length()) {
    return;
  }
  const std::int64_t size = std::int64_t{config_.sequences} * config_.sequence_length;
  if (updates_ == 0 && due_ == 0) due_ = config_.first_updates * size;
  for (due_ += config_.train_ratio; due_ >= size; due_ -= size) {
    replay_.Sample(replay_rng_, batch_);
    UpdateOn(batch_, latents_);
    for (Eigen::Index i = 0; i < latents_.cols(); ++i) {
      const std::int64_t row = batch_.row[static_cast<std::size_t>(i % batch_.sequences())];
      replay_.SetFeatures(row + 1 + i / batch_.sequences(),
                          ColumnSpan(latents_, static_cast<std::size_t>(i)));
    }
  }
}

FeedForwardPolicy Dreamer::ExportPolicy() const {
  throw UserError("its policy acts on a recurrent state, which follows the whole episode");
}

void Dreamer::Visit(const Archive& state) {
  replay_.Visit(state.Child("replay"));
  state.Random("replay_random", replay_rng_);
  state.Random("noise", noise_rng_);
  VisitParameters(state.Child("model"), model_);
  VisitParameters(state.Child("critic"), critic_);
  if (config_.aligned) VisitParameters(state.Child("world"), world_);
  state.Packed("observation_statistics", observation_statistics_);
  scale_.Visit(state.Child("scale"));
  state.Int("steps", steps_);
  state.Int("updates", updates_);
  state.Int("due", due_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
