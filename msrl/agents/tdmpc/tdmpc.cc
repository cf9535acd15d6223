#include "msrl/agents/tdmpc/tdmpc.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/common/percentiles.h"
#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t {
  kConsistency,
  kRewardLoss,
  kValueLoss,
  kTerminationLoss,
  kPolicyLoss,
  kQ,
  kScale,
  kEntropy,
  kGradientNorm
};

constexpr double kScaleRate = 0.01;  // of S

const TdMpcConfig& Checked(const TdMpcConfig& config) {
  RequireInRange(config);
  RequireConsistent(config.mppi);
  return config;
}

LatentModelSpec ModelSpec(const EnvSpec& spec, const TdMpcConfig& config) {
  return {.observation = spec.observation_size,
          .action = spec.action.size,
          .encoder_width = config.encoder_width,
          .latent_groups = config.latent_groups,
          .width = config.model_width,
          .q_count = config.q_count,
          .bins = config.bins,
          .termination = config.termination,
          .slow_encoder = config.consistency_target == ConsistencyTarget::kSlow};
}

// The smaller, or the mean, of two rows.
Node OfPair(StaticGraph& graph, Node pair, PairValue kind) {
  if (kind == PairValue::kMean) return graph.MeanRows(pair);
  return graph.Min(graph.SliceRows(pair, 0, 1), graph.SliceRows(pair, 1, 1));
}

Node Columns(StaticGraph& graph, Node x, int block, int width) {
  return graph.SliceColumns(x, block * width, width);
}

}  // namespace

double DiscountOfLength(int steps) {
  const double length = steps / 5.0;
  return std::clamp((length - 1.0) / length, 0.95, 0.995);
}

TdMpcConfig TdMpcConfig::Of(TdMpcPreset preset) {
  TdMpcConfig config;
  config.preset = preset;
  if (preset == TdMpcPreset::kReference) {
    config.encoder_width = 256;
    config.latent_groups = 64;
    config.model_width = 512;
    config.q_count = 5;
    config.batch_size = 256;
    config.first_updates = 1000;
    config.update_every = 1;
    config.gamma = 0.0;
    config.mppi.samples = 512;
    config.mppi.policy_samples = 24;
    config.mppi.elites = 64;
    config.mppi.iterations = 6;
  }
  return config;
}

TdMpc::WorldGraph::WorldGraph(LatentModel& model, const TdMpcConfig& config, double gamma) {
  const int batch = config.batch_size;
  const int horizon = config.mppi.horizon;
  const int steps = horizon * batch;
  constexpr auto kTrained = ParameterUse::kTrained;
  constexpr auto kFrozen = ParameterUse::kFrozen;
  observation = graph.Input(model.spec().observation, steps + batch);
  action = graph.Input(model.spec().action, steps);
  reward = graph.Input(1, steps);
  continues = graph.Input(1, steps);
  noise = graph.Input(model.spec().action, steps);
  pair = graph.Input(2, 1);
  weight = graph.Input(1, steps);

  // y_t = r_t + gamma (1 - terminated_t) min_{i,j} Q'(h(o_{t+1}), a'),  a' ~ pi(h(o_{t+1}))
  const Node later = graph.SliceColumns(observation, batch, steps);
  const Node next = model.Encode(graph, later, kFrozen);
  const Node next_action = model.Act(graph, next, noise, kFrozen).action;
  const Node next_q = model.Decode(
      graph,
      model.ValuesOf(graph, graph.ConcatRows({next, next_action}), pair, ParameterUse::kTarget));
  const Node y = graph.Add(reward, graph.Multiply(graph.Scale(continues, static_cast<float>(gamma)),
                                                  OfPair(graph, next_q, PairValue::kMin)));

  z.push_back(model.Encode(graph, graph.SliceColumns(observation, 0, batch), kTrained));
  std::vector<Node> inputs;
  for (int t = 0; t < horizon; ++t) {
    inputs.push_back(
        graph.ConcatRows({z[static_cast<std::size_t>(t)], Columns(graph, action, t, batch)}));
    z.push_back(model.Next(graph, inputs.back(), kTrained));
  }
  const Node x = graph.ConcatColumns(inputs);
  const Node predicted = graph.ConcatColumns(std::span(z).subspan(1));
  const Node wanted = config.consistency_target == ConsistencyTarget::kSlow
                          ? model.Encode(graph, later, ParameterUse::kTarget)
                          : next;

  // every loss is a row with a column per step
  const auto mean = [&](Node row) { return graph.Sum(graph.Multiply(row, weight)); };
  const auto part = [&](Node row, double factor) {
    return graph.Scale(row, static_cast<float>(factor));
  };
  consistency = mean(graph.MeanRows(graph.Square(graph.Subtract(predicted, wanted))));
  reward_loss = mean(model.HeadLoss(graph, model.Reward(graph, x, kTrained), reward));
  value_loss = mean(graph.MeanRows(model.HeadLoss(graph, model.Values(graph, x, kTrained), y)));
  loss = graph.Add(
      part(consistency, config.consistency_weight),
      graph.Add(part(reward_loss, config.reward_weight), part(value_loss, config.value_weight)));
  if (config.termination) {
    // - log p(what happened), with the logit l: softplus(l) - terminated l
    const Node logit = model.Termination(graph, predicted, kTrained);
    const Node terminated = graph.Affine(continues, -1.0F, 1.0F);
    termination_loss =
        mean(graph.Subtract(graph.Softplus(logit), graph.Multiply(terminated, logit)));
    loss = graph.Add(loss, part(termination_loss, config.termination_weight));
  }
  graph.Finish();
}

TdMpc::PolicyGraph::PolicyGraph(LatentModel& model, const TdMpcConfig& config) {
  const int states = (config.mppi.horizon + 1) * config.batch_size;
  z = graph.Input(model.latent_size(), states);
  noise = graph.Input(model.spec().action, states);
  pair = graph.Input(2, 1);
  const LatentModel::Choice choice = model.Act(graph, z, noise, ParameterUse::kTrained);
  const Node x = graph.ConcatRows({z, choice.action});
  q = OfPair(graph, model.Decode(graph, model.ValuesOf(graph, x, pair, ParameterUse::kFrozen)),
             config.pair_value);
  entropy = choice.entropy;
  graph.Finish();
}

TdMpc::PlanGraph::PlanGraph(LatentModel& model, const TdMpcConfig& config, double gamma) {
  const int horizon = config.mppi.horizon;
  const int samples = config.mppi.samples;
  const int proposals = config.mppi.policy_samples;
  const int m = model.spec().action;
  constexpr auto kFrozen = ParameterUse::kFrozen;
  observation = graph.Input(model.spec().observation, 1);
  encoded = model.Encode(graph, observation, kFrozen);
  act_noise = graph.Input(m, 1);
  const LatentModel::Choice choice = model.Act(graph, encoded, act_noise, kFrozen);
  act = choice.action;
  act_mode = choice.mode;

  if (proposals > 0) {
    start = graph.Input(model.latent_size(), proposals);
    policy_noise = graph.Input(m, horizon * proposals);
    Node state = start;
    for (int t = 0; t < horizon; ++t) {
      policy_actions.push_back(
          model.Act(graph, state, Columns(graph, policy_noise, t, proposals), kFrozen).action);
      if (t + 1 == horizon) break;
      state = model.Next(graph, graph.ConcatRows({state, policy_actions.back()}), kFrozen);
    }
  }

  // G = sum_t gamma^t s_t R(z_t, a_t) + gamma^H s_H Q(z_H, pi(z_H)), with s_t the probability that
  // the episode has not terminated before step t
  z = graph.Input(model.latent_size(), samples);
  actions = graph.Input(m, horizon * samples);
  noise = graph.Input(m, samples);
  pair = graph.Input(2, 1);
  Node state = z;
  Node alive;  // s_t; none at first: it is certain
  double discount = 1.0;
  const auto add = [&](Node what) {
    if (alive.id >= 0) what = graph.Multiply(alive, what);
    what = graph.Scale(what, static_cast<float>(discount));
    value = value.id < 0 ? what : graph.Add(value, what);
  };
  for (int t = 0; t < horizon; ++t) {
    const Node x = graph.ConcatRows({state, Columns(graph, actions, t, samples)});
    add(model.Decode(graph, model.Reward(graph, x, kFrozen)));
    state = model.Next(graph, x, kFrozen);
    discount *= gamma;
    if (config.termination) {
      const Node survives =
          graph.Sigmoid(graph.Scale(model.Termination(graph, state, kFrozen), -1.0F));
      alive = alive.id < 0 ? survives : graph.Multiply(alive, survives);
    }
  }
  const Node last = graph.ConcatRows({state, model.Act(graph, state, noise, kFrozen).action});
  add(OfPair(graph, model.Decode(graph, model.ValuesOf(graph, last, pair, kFrozen)),
             config.pair_value));
  graph.Finish();
}

TdMpc::TdMpc(const EnvSpec& spec, const TdMpcConfig& config, std::uint64_t seed)
    : config_(Checked(config)),
      action_spec_(spec.action),
      m_(spec.action.size),
      gamma_(config.gamma > 0.0 ? config.gamma : DiscountOfLength(spec.step_limit)),
      replay_({.capacity = config.replay_size,
               .observation_size = spec.observation_size,
               .action_size = spec.action.size}),
      replay_rng_(seed, "replay"),
      noise_rng_(seed, "noise"),
      model_(ModelSpec(spec, config), Rng(seed, "init")),
      world_(model_, config, gamma_),
      policy_(model_, config),
      plan_(model_, config, gamma_),
      mppi_(config.mppi, m_),
      batch_(MakeBatch()),
      action_(static_cast<std::size_t>(m_)),
      values_(static_cast<std::size_t>(std::max(config.batch_size, config.mppi.samples))),
      chosen_(m_, 1),
      weight_(world_.weight.columns),
      d_q_(policy_.q.columns),
      d_entropy_(policy_.q.columns),
      metrics_({"loss/consistency", "loss/reward", "loss/value", "loss/termination", "loss/policy",
                "value/q", "value/scale", "policy/entropy", "gradient/norm"}) {}

std::int64_t TdMpc::parameter_count() const {
  return static_cast<std::int64_t>(model_.parameter_count());
}

std::unique_ptr<Carry> TdMpc::MakeCarry() const { return std::make_unique<Course>(m_, horizon()); }

void TdMpc::Course::Visit(const Archive& state) { state.Array("mean", Flat(mean)); }

void TdMpc::DrawPair(Rng& rng, StridedMap pair) const {
  const std::int64_t first = rng.Index(config_.q_count);
  const std::int64_t other = rng.Index(config_.q_count - 1);
  pair(0, 0) = static_cast<float>(first);
  pair(1, 0) = static_cast<float>(other < first ? other : other + 1);
}

// ---- acting ----

void TdMpc::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  for (const Turn& turn : turns) {
    if (mode == ActMode::kExplore && IsWarmingUp()) {
      DrawUniformAction(action_spec_, turn.rng, turn.out);
    } else {
      Encode(turn.situation.observation);
      config_.plan ? ActByPlan(turn, mode) : ActByPolicy(turn, mode);
      RequireFinite("action", turn.out.values());
    }
  }
}

void TdMpc::Encode(const EnvView& observation) {
  CopyObservation(observation, plan_.graph.input(plan_.observation).col(0));
  plan_.graph.Forward({plan_.encoded});
}

void TdMpc::ActByPolicy(const Turn& turn, ActMode mode) {
  const bool explores = mode == ActMode::kExplore;
  if (explores) plan_.graph.FillNormal(plan_.act_noise, turn.rng);
  const Node chosen = explores ? plan_.act : plan_.act_mode;
  plan_.graph.Forward({chosen});
  for (int j = 0; j < m_; ++j) {
    turn.out.values()[static_cast<std::size_t>(j)] =
        static_cast<double>(plan_.graph.value(chosen)(j, 0));
  }
}

std::span<const float> TdMpc::PlanValues(Rng& rng) {
  plan_.graph.FillNormal(plan_.noise, rng);
  DrawPair(rng, plan_.graph.input(plan_.pair));
  plan_.graph.Forward({plan_.value});
  const std::span<float> values =
      std::span(values_).first(static_cast<std::size_t>(config_.mppi.samples));
  std::ranges::copy(plan_.graph.value(plan_.value).row(0), values.begin());
  RequireFinite("value of a plan", values);
  return values;
}

std::span<const float> TdMpc::ValuesOfPlans(const EnvView& observation,
                                            const ConstMatrixRef& actions, Rng& rng) {
  Encode(observation);
  plan_.graph.input(plan_.z).colwise() = plan_.graph.value(plan_.encoded).col(0);
  plan_.graph.input(plan_.actions) = actions;
  return PlanValues(rng);
}

void TdMpc::ActByPlan(const Turn& turn, ActMode mode) {
  auto& course = CarryAs<Course>(turn.carry);
  const int samples = config_.mppi.samples;
  const int proposals = config_.mppi.policy_samples;
  StaticGraph& graph = plan_.graph;
  const auto encoded = graph.value(plan_.encoded).col(0);
  StridedMap actions = graph.input(plan_.actions);

  if (proposals > 0) {
    graph.input(plan_.start).colwise() = encoded;
    graph.FillNormal(plan_.policy_noise, turn.rng);
    graph.Forward({plan_.policy_actions.back()});
    for (int t = 0; t < horizon(); ++t) {
      actions.middleCols(t * samples, proposals) =
          graph.value(plan_.policy_actions[static_cast<std::size_t>(t)]);
    }
  }
  graph.input(plan_.z).colwise() = encoded;
  mppi_.Begin(course.mean);
  for (int i = 0; i < config_.mppi.iterations; ++i) {
    mppi_.Sample(turn.rng, actions);
    mppi_.Fit(actions, PlanValues(turn.rng));
  }

  chosen_ = actions.col(mppi_.Choose(turn.rng));
  if (mode == ActMode::kExplore) {
    for (int j = 0; j < m_; ++j) {
      chosen_(j, 0) += mppi_.std()(j, 0) * static_cast<float>(turn.rng.Normal());
    }
  }
  std::ranges::transform(ColumnSpan(chosen_, 0), turn.out.values().begin(), [](float value) {
    return std::clamp(static_cast<double>(value), -1.0, 1.0);
  });
  // the next plan starts where this one is after a step
  const Eigen::Index rest = horizon() - 1;
  course.mean.leftCols(rest) = mppi_.mean().rightCols(rest);
  course.mean.col(rest).setZero();
}

// ---- learning ----

void TdMpc::Observe(const Experience& experience, Carry& /*carry*/) {
  const auto as_span = [](const EnvView& view) {
    return std::span(view.data(), static_cast<std::size_t>(view.size()));
  };
  const auto reward = static_cast<float>(experience.scaled_reward);
  RequireFinite("reward", std::span(&reward, 1));  // heads would cut it to their range
  std::ranges::transform(experience.action.values(), action_.begin(),
                         [](double value) { return static_cast<float>(value); });
  replay_.Add({.before = {.observation = as_span(experience.before.observation)},
               .action = action_,
               .reward = experience.scaled_reward,
               .terminated = experience.terminated,
               .truncated = experience.truncated,
               .after = {.observation = as_span(experience.after.observation)}});
  ++steps_;
}

void TdMpc::Update() {
  if (IsWarmingUp()) return;
  const std::int64_t after = steps_ - config_.random_steps;
  const int due = after == 0 ? config_.first_updates : after % config_.update_every == 0 ? 1 : 0;
  for (int i = 0; i < due; ++i) {
    replay_.Sample(replay_rng_, batch_);
    UpdateOn(batch_);
  }
}

void TdMpc::UpdateOn(const SequenceBatch& batch) {
  MSRL_CHECK(batch.sequences() == batch_size() && batch.length() == horizon(), batch.sequences(),
             " sequences of ", batch.length());
  UpdateWorld(batch);
  UpdatePolicy(batch);
}

void TdMpc::UpdateWorld(const SequenceBatch& batch) {
  StaticGraph& graph = world_.graph;
  // rho^t / (H B), nothing for filling
  const auto count = static_cast<float>(batch.reward.size());
  for (Eigen::Index t = 0; t < horizon(); ++t) {
    weight_.segment(batch.Column(t), batch_size()) =
        static_cast<float>(std::pow(config_.rho, t)) / count *
        batch.inside.segment(batch.Column(t), batch_size());
  }
  graph.input(world_.observation) = batch.observation;
  graph.input(world_.action) = batch.action;
  graph.input(world_.reward) = batch.reward;
  graph.input(world_.continues) = batch.continues;
  graph.input(world_.weight) = weight_;
  graph.FillNormal(world_.noise, noise_rng_);
  DrawPair(noise_rng_, graph.input(world_.pair));
  graph.Forward();

  const auto note = [&](Metric metric, Node loss) {
    metrics_.Add(metric, static_cast<double>(graph.value(loss)(0, 0)));
  };
  const float loss = graph.value(world_.loss)(0, 0);
  RequireFinite("world loss", std::span(&loss, 1));
  note(kConsistency, world_.consistency);
  note(kRewardLoss, world_.reward_loss);
  note(kValueLoss, world_.value_loss);
  if (config_.termination) note(kTerminationLoss, world_.termination_loss);

  Parameters& encoder = model_.encoder();
  Parameters& dynamics = model_.dynamics();
  Parameters& values = model_.values();
  for (Parameters* part : {&encoder, &dynamics, &values}) part->ClearGradients();
  graph.Backward(world_.loss);
  metrics_.Add(kGradientNorm,
               ClipNorm({encoder.gradients(), dynamics.gradients(), values.gradients()},
                        config_.max_gradient_norm));
  if (config_.consistency_target == ConsistencyTarget::kSlow) {
    encoder.Step(config_.encoder_learning_rate, config_.tau);
  } else {
    encoder.Step(config_.encoder_learning_rate);
  }
  dynamics.Step(config_.learning_rate);
  // Q' <- tau Q + (1 - tau) Q'
  values.Step(config_.learning_rate, config_.tau);
}

void TdMpc::UpdatePolicy(const SequenceBatch& batch) {
  StaticGraph& graph = policy_.graph;
  StridedMap z = graph.input(policy_.z);
  for (int t = 0; t <= horizon(); ++t) {
    z.middleCols(batch.Column(t), batch_size()) =
        world_.graph.value(world_.z[static_cast<std::size_t>(t)]);
  }
  graph.FillNormal(policy_.noise, noise_rng_);
  DrawPair(noise_rng_, graph.input(policy_.pair));
  graph.Forward();

  // S follows the range of the middle nine tenths of the values of first states
  const auto q = graph.value(policy_.q).row(0);
  const auto entropy = graph.value(policy_.entropy).row(0);
  const std::span<float> first = std::span(values_).first(static_cast<std::size_t>(batch_size()));
  std::ranges::copy(q.head(batch_size()), first.begin());
  RequireFinite("value", first);
  const auto range = static_cast<double>(Quantile(first, 0.95) - Quantile(first, 0.05));
  scale_ += kScaleRate * (std::max(1.0, range) - scale_);

  // L = - sum_t rho^t mean (Q(z_t, a_t) / S + entropy_weight m H),  a_t ~ pi(z_t); of the states
  // that follow on steps
  const auto count = static_cast<float>(d_q_.size());
  for (Eigen::Index t = 0; t <= horizon(); ++t) {
    auto weight = d_q_.segment(batch.Column(t), batch_size());
    weight.setConstant(-static_cast<float>(std::pow(config_.rho, t)) / count);
    if (t > 0) weight.array() *= batch.inside.segment(batch.Column(t - 1), batch_size()).array();
  }
  d_entropy_ = d_q_ * static_cast<float>(config_.entropy_weight * m_);
  d_q_ /= static_cast<float>(scale_);
  const double loss = static_cast<double>(d_q_.dot(q) + d_entropy_.dot(entropy));
  RequireFinite("policy loss", std::span(&loss, 1));
  metrics_.Add(kPolicyLoss, loss);
  metrics_.Add(kQ, static_cast<double>(q.head(batch_size()).mean()));
  metrics_.Add(kScale, scale_);
  metrics_.Add(kEntropy, static_cast<double>(entropy.mean()));

  Parameters& policy = model_.policy();
  policy.ClearGradients();
  graph.Backward({{policy_.q, d_q_}, {policy_.entropy, d_entropy_}});
  ClipNorm({policy.gradients()}, config_.max_gradient_norm);
  policy.Step(config_.learning_rate);
}

FeedForwardPolicy TdMpc::ExportPolicy() const {
  if (config_.plan) throw UserError("it plans in its latent model in every step (plan=true)");
  return model_.ExportPolicy();
}

void TdMpc::Visit(const Archive& state) {
  replay_.Visit(state.Child("replay"));
  state.Random("replay_random", replay_rng_);
  state.Random("noise", noise_rng_);
  state.Int("steps", steps_);
  state.Double("scale", scale_);
  model_.Visit(state.Child("model"));
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
