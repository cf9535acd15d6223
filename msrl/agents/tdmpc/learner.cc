#include "msrl/agents/tdmpc/learner.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/common/percentiles.h"
#include "msrl/core/check.h"

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
// The largest action that is cloned; further out atanh leaves what a policy can say.
constexpr float kMostCloned = 0.99F;

Node Columns(StaticGraph& graph, Node x, int block, int width) {
  return graph.SliceColumns(x, block * width, width);
}

// The same columns for every time.
Node Repeat(StaticGraph& graph, Node x, int times) {
  return graph.ConcatColumns(std::vector<Node>(static_cast<std::size_t>(times), x));
}

}  // namespace

Node OfPair(StaticGraph& graph, Node pair, PairValue kind) {
  if (kind == PairValue::kMean) return graph.MeanRows(pair);
  return graph.Min(graph.SliceRows(pair, 0, 1), graph.SliceRows(pair, 1, 1));
}

void DrawPair(int q_count, Rng& rng, StridedMap pair) {
  const std::int64_t first = rng.Index(q_count);
  const std::int64_t other = rng.Index(q_count - 1);
  pair(0, 0) = static_cast<float>(first);
  pair(1, 0) = static_cast<float>(other < first ? other : other + 1);
}

LatentLearner::WorldGraph::WorldGraph(LatentModel& model, const LatentLossSettings& settings) {
  const LatentModelSpec& spec = model.spec();
  const int batch = settings.batch_size;
  const int horizon = settings.horizon;
  const int steps = horizon * batch;
  constexpr auto kTrained = ParameterUse::kTrained;
  constexpr auto kFrozen = ParameterUse::kFrozen;
  observation = graph.Input(spec.observation + spec.native, steps + batch);
  action = graph.Input(spec.actuators(), steps);
  reward = graph.Input(1, steps);
  continues = graph.Input(1, steps);
  noise = graph.Input(spec.actuators(), steps);
  pair = graph.Input(2, 1);
  weight = graph.Input(1, steps);
  LatentModel::Context first;  // of the states of one time
  LatentModel::Context all;    // of all steps
  LatentModel::Context fixed;  // the same, for what is not trained
  if (spec.tasks > 0) {
    task = graph.Input(1, batch);
    first.task = model.Task(graph, task, kTrained);
    all.task = Repeat(graph, first.task, horizon);
    fixed.task = Repeat(graph, model.Task(graph, task, kFrozen), horizon);
  }
  if (settings.lessons) {
    mask = graph.Input(spec.action, batch);
    first.mask = mask;
    all.mask = fixed.mask = Repeat(graph, mask, horizon);
    label = graph.Input(1, steps);
    label_share = graph.Input(1, 1);
  }

  // y_t = r_t + gamma (1 - terminated_t) min_{i,j} Q'(h(o_{t+1}), a'),  a' ~ pi(h(o_{t+1}))
  const Node later = graph.SliceColumns(observation, batch, steps);
  const Node next = model.Encode(graph, later, fixed, kFrozen);
  const Node next_action = model.Act(graph, next, noise, fixed, kFrozen).action;
  const Node next_q =
      model.Decode(graph, model.ValuesOf(graph, model.Input(graph, next, next_action, fixed), pair,
                                         ParameterUse::kTarget));
  Node y =
      graph.Add(reward, graph.Multiply(graph.Scale(continues, static_cast<float>(settings.gamma)),
                                       OfPair(graph, next_q, PairValue::kMin)));
  if (settings.lessons) {
    y = graph.Add(y, graph.Multiply(graph.Subtract(label, y), label_share));
  }

  z.push_back(model.Encode(graph, graph.SliceColumns(observation, 0, batch), first, kTrained));
  std::vector<Node> inputs;
  for (int t = 0; t < horizon; ++t) {
    inputs.push_back(model.Input(graph, z[static_cast<std::size_t>(t)],
                                 Columns(graph, action, t, batch), first));
    z.push_back(model.Next(graph, inputs.back(), kTrained));
  }
  const Node x = graph.ConcatColumns(inputs);
  const Node predicted = graph.ConcatColumns(std::span(z).subspan(1));
  const Node wanted = settings.consistency_target == ConsistencyTarget::kSlow
                          ? model.Encode(graph, later, fixed, ParameterUse::kTarget)
                          : next;

  // every loss is a row with a column per step
  const auto mean = [&](Node row) { return graph.Sum(graph.Multiply(row, weight)); };
  const auto part = [&](Node row, double factor) {
    return graph.Scale(row, static_cast<float>(factor));
  };
  consistency = mean(graph.MeanRows(graph.Square(graph.Subtract(predicted, wanted))));
  reward_loss = mean(model.HeadLoss(graph, model.Reward(graph, x, kTrained), reward));
  value_loss = mean(graph.MeanRows(model.HeadLoss(graph, model.Values(graph, x, kTrained), y)));
  loss = graph.Add(part(consistency, settings.consistency_weight),
                   graph.Add(part(reward_loss, settings.reward_weight),
                             part(value_loss, settings.value_weight)));
  if (spec.termination) {
    // - log p(what happened), with the logit l: softplus(l) - terminated l
    const Node logit = model.Termination(graph, predicted, all, kTrained);
    const Node terminated = graph.Affine(continues, -1.0F, 1.0F);
    termination_loss =
        mean(graph.Subtract(graph.Softplus(logit), graph.Multiply(terminated, logit)));
    loss = graph.Add(loss, part(termination_loss, settings.termination_weight));
  }
  graph.Finish();
}

LatentLearner::PolicyGraph::PolicyGraph(LatentModel& model, const LatentLossSettings& settings) {
  const LatentModelSpec& spec = model.spec();
  const int times = settings.horizon + 1;
  const int states = times * settings.batch_size;
  z = graph.Input(model.latent_size(), states);
  noise = graph.Input(spec.actuators(), states);
  pair = graph.Input(2, 1);
  LatentModel::Context context;
  if (spec.tasks > 0) {
    task = graph.Input(1, settings.batch_size);
    context.task = Repeat(graph, model.Task(graph, task, ParameterUse::kFrozen), times);
  }
  if (settings.lessons) {
    mask = graph.Input(spec.action, settings.batch_size);
    context.mask = Repeat(graph, mask, times);
  }
  const LatentModel::Choice choice = model.Act(graph, z, noise, context, ParameterUse::kTrained);
  const Node x = model.Input(graph, z, choice.action, context);
  q = OfPair(graph, model.Decode(graph, model.ValuesOf(graph, x, pair, ParameterUse::kFrozen)),
             settings.pair_value);
  entropy = choice.entropy;
  if (settings.lessons) {
    taken = graph.Input(spec.action, states);
    const Node error = graph.Divide(graph.Subtract(taken, choice.mu), graph.Exp(choice.log_std));
    const auto constant = static_cast<float>(0.5 * std::log(2.0 * std::numbers::pi));
    const Node surprise =
        graph.Add(choice.log_std, graph.Affine(graph.Square(error), 0.5F, constant));
    clone = graph.SumRows(graph.Multiply(surprise, context.mask));
  }
  graph.Finish();
}

LatentLearner::LatentLearner(LatentModel& model, const LatentLossSettings& settings, Rng noise)
    : model_(model),
      settings_(settings),
      noise_rng_(std::move(noise)),
      world_(model, settings),
      policy_(model, settings),
      values_(static_cast<std::size_t>(settings.batch_size)),
      weight_(world_.weight.columns),
      d_q_(policy_.q.columns),
      d_entropy_(policy_.q.columns),
      d_clone_(policy_.q.columns),
      metrics_({"loss/consistency", "loss/reward", "loss/value", "loss/termination", "loss/policy",
                "value/q", "value/scale", "policy/entropy", "gradient/norm"}) {}

void LatentLearner::Update(const SequenceBatch& batch, const SourceLesson* lesson) {
  MSRL_CHECK(batch.sequences() == settings_.batch_size && batch.length() == settings_.horizon,
             batch.sequences(), " sequences of ", batch.length());
  MSRL_CHECK((lesson != nullptr) == settings_.lessons);
  if (lesson != nullptr) FillLesson(batch, *lesson);
  UpdateWorld(batch);
  UpdatePolicy(batch, lesson);
}

void LatentLearner::FillLesson(const SequenceBatch& batch, const SourceLesson& lesson) {
  StaticGraph& world = world_.graph;
  world.input(world_.task) = lesson.task;
  world.input(world_.mask) = lesson.mask;
  world.input(world_.label) = lesson.label;
  world.input(world_.label_share)(0, 0) = static_cast<float>(lesson.label_share);
  StaticGraph& policy = policy_.graph;
  policy.input(policy_.task) = lesson.task;
  policy.input(policy_.mask) = lesson.mask;
  policy.input(policy_.taken).leftCols(batch.action.cols()) =
      batch.action.array().max(-kMostCloned).min(kMostCloned).atanh().matrix();
}

void LatentLearner::UpdateWorld(const SequenceBatch& batch) {
  StaticGraph& graph = world_.graph;
  // rho^t / (H B), nothing for filling
  const auto count = static_cast<float>(batch.reward.size());
  for (Eigen::Index t = 0; t < settings_.horizon; ++t) {
    weight_.segment(batch.Column(t), batch.sequences()) =
        static_cast<float>(std::pow(settings_.rho, t)) / count *
        batch.inside.segment(batch.Column(t), batch.sequences());
  }
  graph.input(world_.observation) = batch.observation;
  graph.input(world_.action) = batch.action;
  graph.input(world_.reward) = batch.reward;
  graph.input(world_.continues) = batch.continues;
  graph.input(world_.weight) = weight_;
  graph.FillNormal(world_.noise, noise_rng_);
  DrawPair(model_.spec().q_count, noise_rng_, graph.input(world_.pair));
  graph.Forward();

  const auto note = [&](Metric metric, Node loss) {
    metrics_.Add(metric, static_cast<double>(graph.value(loss)(0, 0)));
  };
  const float loss = graph.value(world_.loss)(0, 0);
  RequireFinite("world loss", std::span(&loss, 1));
  note(kConsistency, world_.consistency);
  note(kRewardLoss, world_.reward_loss);
  note(kValueLoss, world_.value_loss);
  if (model_.spec().termination) note(kTerminationLoss, world_.termination_loss);
  StepWorld();
}

void LatentLearner::StepWorld() {
  Parameters& encoder = model_.encoder();
  Parameters& dynamics = model_.dynamics();
  Parameters& values = model_.values();
  // of a model over slots
  Parameters* const native = model_.native().size() > 0 ? &model_.native() : nullptr;
  Parameters* const task = model_.task().size() > 0 ? &model_.task() : nullptr;
  for (Parameters* part : {&encoder, &dynamics, &values, native, task}) {
    if (part != nullptr) part->ClearGradients();
  }
  world_.graph.Backward(world_.loss);
  if (settings_.frozen) {
    std::ranges::fill(encoder.gradients(), 0.0F);
    for (const NamedTensor& tensor : dynamics.tensors()) {
      if (!LatentModel::IsTransition(tensor)) continue;
      std::ranges::fill(dynamics.gradients().subspan(tensor.offset, tensor.size()), 0.0F);
    }
  }
  const auto of = [](Parameters* part) {
    return part != nullptr ? part->gradients() : std::span<float>();
  };
  metrics_.Add(kGradientNorm, ClipNorm({encoder.gradients(), dynamics.gradients(),
                                        values.gradients(), of(native), of(task)},
                                       settings_.max_gradient_norm));
  const bool slow = settings_.consistency_target == ConsistencyTarget::kSlow;
  for (Parameters* part : {&encoder, native}) {
    if (part == nullptr) continue;
    if (slow) {
      part->Step(settings_.encoder_learning_rate, settings_.tau);
    } else {
      part->Step(settings_.encoder_learning_rate);
    }
  }
  dynamics.Step(settings_.learning_rate);
  // Q' <- tau Q + (1 - tau) Q'
  values.Step(settings_.learning_rate, settings_.tau);
  if (task != nullptr) {
    task->Step(settings_.learning_rate);
    model_.BoundTasks();
  }
}

void LatentLearner::UpdatePolicy(const SequenceBatch& batch, const SourceLesson* lesson) {
  StaticGraph& graph = policy_.graph;
  const Eigen::Index size = batch.sequences();
  StridedMap z = graph.input(policy_.z);
  for (int t = 0; t <= settings_.horizon; ++t) {
    z.middleCols(batch.Column(t), size) = world_.graph.value(world_.z[static_cast<std::size_t>(t)]);
  }
  graph.FillNormal(policy_.noise, noise_rng_);
  DrawPair(model_.spec().q_count, noise_rng_, graph.input(policy_.pair));
  graph.Forward();

  // S follows the range of the middle nine tenths of the values of first states
  const auto q = graph.value(policy_.q).row(0);
  const auto entropy = graph.value(policy_.entropy).row(0);
  std::ranges::copy(q.head(size), values_.begin());
  RequireFinite("value", std::span<const float>(values_));
  const auto range =
      static_cast<double>(Quantile(std::span(values_), 0.95) - Quantile(std::span(values_), 0.05));
  scale_ += kScaleRate * (std::max(1.0, range) - scale_);

  // L = - sum_t rho^t mean (Q(z_t, a_t) / S + entropy_weight m H),  a_t ~ pi(z_t); of the states
  // that follow on steps
  const auto count = static_cast<float>(d_q_.size());
  for (Eigen::Index t = 0; t <= settings_.horizon; ++t) {
    auto weight = d_q_.segment(batch.Column(t), size);
    weight.setConstant(-static_cast<float>(std::pow(settings_.rho, t)) / count);
    if (t > 0) weight.array() *= batch.inside.segment(batch.Column(t - 1), size).array();
  }
  if (lesson == nullptr) {
    d_entropy_ = d_q_ * static_cast<float>(settings_.entropy_weight * model_.spec().actuators());
  } else {
    // m is the number of slots that the task has; what was done is known of steps only
    for (Eigen::Index t = 0; t <= settings_.horizon; ++t) {
      const auto weight = d_q_.segment(batch.Column(t), size).array();
      d_entropy_.segment(batch.Column(t), size) = static_cast<float>(settings_.entropy_weight) *
                                                  weight * lesson->mask.colwise().sum().array();
      auto clone = d_clone_.segment(batch.Column(t), size).array();
      if (t == settings_.horizon) {
        clone.setZero();
      } else {
        clone = -static_cast<float>(settings_.clone_weight) * weight *
                batch.inside.segment(batch.Column(t), size).array();
      }
    }
  }
  d_q_ /= static_cast<float>(scale_);
  double loss = static_cast<double>(d_q_.dot(q) + d_entropy_.dot(entropy));
  if (lesson != nullptr) {
    loss += static_cast<double>(d_clone_.dot(graph.value(policy_.clone).row(0)));
  }
  RequireFinite("policy loss", std::span(&loss, 1));
  metrics_.Add(kPolicyLoss, loss);
  metrics_.Add(kQ, static_cast<double>(q.head(size).mean()));
  metrics_.Add(kScale, scale_);
  metrics_.Add(kEntropy, static_cast<double>(entropy.mean()));

  Parameters& policy = model_.policy();
  policy.ClearGradients();
  if (lesson == nullptr) {
    graph.Backward({{policy_.q, d_q_}, {policy_.entropy, d_entropy_}});
  } else {
    graph.Backward({{policy_.q, d_q_}, {policy_.entropy, d_entropy_}, {policy_.clone, d_clone_}});
  }
  ClipNorm({policy.gradients()}, settings_.max_gradient_norm);
  policy.Step(settings_.learning_rate);
}

void LatentLearner::Visit(const Archive& state) {
  state.Random("noise", noise_rng_);
  state.Double("scale", scale_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
