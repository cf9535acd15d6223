#include "msrl/agents/tdmpc/tdmpc.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/common/return_unit.h"
#include "msrl/agents/common/slot_view.h"
#include "msrl/agents/feed_forward.h"
#include "msrl/agents/tdmpc/pretrained_model.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

constexpr int kProbeColumns = 64;  // of the reward error

const TdMpcConfig& Checked(const TdMpcConfig& config) {
  RequireInRange(config);
  RequireConsistent(config.mppi);
  return config;
}

LatentSizes SizesOf(const TdMpcConfig& config) {
  return {.encoder_width = config.encoder_width,
          .latent_groups = config.latent_groups,
          .model_width = config.model_width,
          .q_count = config.q_count,
          .bins = config.bins,
          .termination = config.termination,
          .task_size = config.task_size};
}

LatentModelSpec ModelSpec(const EnvSpec& spec, const TdMpcConfig& config) {
  LatentModelSpec model = SlotModel(SizesOf(config), /*tasks=*/1);
  if (config.aligned) {
    model.native = spec.observation_size;
    model.slots = SlotsOf(spec);
  } else {
    model.observation = spec.observation_size;
    model.action = spec.action.size;
    model.tasks = model.task_size = 0;
  }
  model.slow_encoder = config.consistency_target == ConsistencyTarget::kSlow;
  return model;
}

LatentLossSettings LossSettings(const TdMpcConfig& config, double gamma) {
  LatentLossSettings settings{config};
  settings.batch_size = config.batch_size;
  settings.horizon = config.mppi.horizon;
  settings.gamma = gamma;
  settings.consistency_target = config.consistency_target;
  settings.pair_value = config.pair_value;
  settings.frozen = config.frozen;
  return settings;
}

// The vector of the one task, for `columns` states.
LatentModel::Context ContextOf(StaticGraph& graph, LatentModel& model, int columns) {
  if (model.spec().tasks == 0) return {};
  return {.task = model.Task(graph, graph.Input(1, columns), ParameterUse::kFrozen), .mask = {}};
}

std::span<const double> AsSpan(const EnvView& view) {
  return {view.data(), static_cast<std::size_t>(view.size())};
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

std::vector<std::string> SettingsForModel(const ArtefactHeader& header) {
  std::vector<std::string> settings{"aligned=true"};
  for (const auto& [key, text] : header.shape) {
    const bool flag = key == "termination";
    settings.push_back(StrCat(key, "=", !flag ? text : text == "1" ? "true" : "false"));
  }
  return settings;
}

TdMpc::PlanGraph::PlanGraph(LatentModel& model, const TdMpcConfig& config, double gamma) {
  const int horizon = config.mppi.horizon;
  const int samples = config.mppi.samples;
  const int proposals = config.mppi.policy_samples;
  const int m = model.spec().actuators();
  constexpr auto kFrozen = ParameterUse::kFrozen;
  observation = graph.Input(model.spec().observation + model.spec().native, 1);
  const LatentModel::Context now = ContextOf(graph, model, 1);
  encoded = model.Encode(graph, observation, now, kFrozen);
  act_noise = graph.Input(m, 1);
  const LatentModel::Choice choice = model.Act(graph, encoded, act_noise, now, kFrozen);
  act = choice.action;
  act_mode = choice.mode;

  if (proposals > 0) {
    start = graph.Input(model.latent_size(), proposals);
    policy_noise = graph.Input(m, horizon * proposals);
    const LatentModel::Context context = ContextOf(graph, model, proposals);
    Node state = start;
    for (int t = 0; t < horizon; ++t) {
      const Node drawn = Columns(graph, policy_noise, t, proposals);
      policy_actions.push_back(model.Act(graph, state, drawn, context, kFrozen).action);
      if (t + 1 == horizon) break;
      state = model.Next(graph, model.Input(graph, state, policy_actions.back(), context), kFrozen);
    }
  }

  // G = sum_t gamma^t s_t R(z_t, a_t) + gamma^H s_H Q(z_H, pi(z_H)), with s_t the probability that
  // the episode has not terminated before step t
  z = graph.Input(model.latent_size(), samples);
  actions = graph.Input(m, horizon * samples);
  noise = graph.Input(m, samples);
  pair = graph.Input(2, 1);
  const LatentModel::Context context = ContextOf(graph, model, samples);
  Node state = z;
  Node alive;  // s_t; none at first: it is certain
  double discount = 1.0;
  const auto add = [&](Node what) {
    if (alive.id >= 0) what = graph.Multiply(alive, what);
    what = graph.Scale(what, static_cast<float>(discount));
    value = value.id < 0 ? what : graph.Add(value, what);
  };
  for (int t = 0; t < horizon; ++t) {
    const Node x = model.Input(graph, state, Columns(graph, actions, t, samples), context);
    add(model.Decode(graph, model.Reward(graph, x, kFrozen)));
    state = model.Next(graph, x, kFrozen);
    discount *= gamma;
    if (config.termination) {
      const Node survives =
          graph.Sigmoid(graph.Scale(model.Termination(graph, state, context, kFrozen), -1.0F));
      alive = alive.id < 0 ? survives : graph.Multiply(alive, survives);
    }
  }
  const Node last_action = model.Act(graph, state, noise, context, kFrozen).action;
  const Node last = model.Input(graph, state, last_action, context);
  add(OfPair(graph, model.Decode(graph, model.ValuesOf(graph, last, pair, kFrozen)),
             config.pair_value));
  graph.Finish();
}

TdMpc::TdMpc(const EnvSpec& spec, const TdMpcConfig& config, std::uint64_t seed)
    : config_(Checked(config)),
      action_spec_(spec.action),
      m_(spec.action.size),
      gamma_(config.gamma > 0.0 ? config.gamma : DiscountOfLength(spec.step_limit)),
      facts_(ChannelFacts::Of(spec)),
      replay_({.capacity = config.replay_size,
               .observation_size = SeenSize(spec, config.aligned),
               .action_size = spec.action.size}),
      replay_rng_(seed, "replay"),
      model_(ModelSpec(spec, config), Rng(seed, "init")),
      learner_(model_, LossSettings(config, gamma_), Rng(seed, "noise")),
      plan_(model_, config, gamma_),
      mppi_(config.mppi, m_),
      batch_(MakeBatch()),
      action_(static_cast<std::size_t>(m_)),
      values_(static_cast<std::size_t>(config.mppi.samples)),
      seen_(static_cast<std::size_t>(SeenSize(spec, config.aligned))),
      seen_after_(seen_.size()),
      chosen_(m_, 1) {}

std::int64_t TdMpc::parameter_count() const {
  return static_cast<std::int64_t>(model_.parameter_count());
}

std::unique_ptr<Carry> TdMpc::MakeCarry() const {
  return std::make_unique<Course>(m_, horizon(), config_.aligned, facts_);
}

void TdMpc::Course::Visit(const Archive& state) {
  state.Array("mean", Flat(mean));
  if (aligned) writer.Visit(state.Child("channels"));
}

// ---- starting from a pretrained model ----

void TdMpc::Initialise(const Artefact& artefact) {
  const std::unique_ptr<LatentModel> source = ReadModel(artefact);
  if (!config_.aligned) {
    throw UserError(StrCat("a model over observations can't take ", artefact.source(),
                           " over; set aligned=true"));
  }
  for (const auto& [key, own] : HeaderOf(SizesOf(config_), {}).shape) {
    const std::string& wanted = artefact.header().Shape(key);
    if (own == wanted) continue;
    throw UserError(
        StrCat(artefact.source(), ": '", key, "' is ", wanted, ", the agent's is ", own));
  }
  const auto all = [](const NamedTensor&) { return true; };
  const bool whole = config_.copy == ModelCopy::kAll;
  CopyTensors(source->encoder(), model_.encoder(), all);
  CopyTensors(source->dynamics(), model_.dynamics(), [whole](const NamedTensor& tensor) {
    return whole || LatentModel::IsTransition(tensor);
  });
  const Eigen::MatrixXf vectors = source->task_vectors();
  model_.task_vectors() = vectors.rowwise().mean();
  if (!whole) return;
  CopyTensors(source->values(), model_.values(), all);
  CopyTensors(source->policy(), model_.policy(), all);
  known_ = {.names = artefact.header().Made("sources"), .vectors = vectors};
}

void TdMpc::KnownTasks::Visit(const Archive& state) {
  Eigen::Index rows = vectors.rows();
  Eigen::Index columns = vectors.cols();
  state.Text("names", names);
  state.Int("size", rows, 0, kMaxHiddenWidth);
  state.Int("count", columns, 0, kMaxTasks);
  if (state.loading()) vectors.resize(rows, columns);
  state.Array("vectors", Flat(vectors));
}

void TdMpc::MeetTask() {
  reward_unit_ = ReturnUnit(replay_, gamma_);
  const KnownTasks known = std::exchange(known_, {});
  if (known.vectors.cols() == 0) return;
  std::vector<double> errors;
  for (const auto vector : known.vectors.colwise()) {
    model_.task_vectors() = vector;
    errors.push_back(RewardError());
  }
  const auto nearest = std::ranges::min_element(errors) - errors.begin();
  model_.task_vectors() = known.vectors.col(nearest);
  notice_ = StrCat("of the sources ", known.names, " number ", nearest + 1,
                   " is nearest by its rewards: squared errors");
  for (const double error : errors) notice_ += StrCat(" ", error);
  notice_ += StrCat(" in units of ", reward_unit_);
}

double TdMpc::RewardError() {
  constexpr auto kFrozen = ParameterUse::kFrozen;
  StaticGraph graph;
  const Node observation = graph.Input(static_cast<int>(seen_.size()), kProbeColumns);
  const Node action = graph.Input(m_, kProbeColumns);
  const LatentModel::Context context = ContextOf(graph, model_, kProbeColumns);
  const Node z = model_.Encode(graph, observation, context, kFrozen);
  const Node reward =
      model_.Decode(graph, model_.Reward(graph, model_.Input(graph, z, action, context), kFrozen));
  graph.Finish();
  ReplayBatch steps = replay_.MakeBatch(kProbeColumns);
  double squares = 0.0;
  Eigen::Index count = 0;
  Eigen::Index filled = 0;
  const auto measure = [&] {
    graph.input(observation) = steps.observation;
    graph.input(action) = steps.action;
    graph.Forward({reward});
    const auto error =
        (graph.value(reward).row(0) - steps.reward / static_cast<float>(reward_unit_)).head(filled);
    squares += static_cast<double>(error.squaredNorm());
    count += std::exchange(filled, 0);
  };
  for (std::int64_t row = replay_.first_row(); row < replay_.end_row(); ++row) {
    if (!replay_.IsStep(row)) continue;
    replay_.Read(row, filled++, steps);
    if (filled == kProbeColumns) measure();
  }
  if (filled > 0) measure();
  return squares / static_cast<double>(count);
}

// ---- acting ----

void TdMpc::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  for (const Turn& turn : turns) {
    const EnvView seen =
        See(turn.situation, config_.aligned, CarryAs<Course>(turn.carry).writer, seen_);
    if (mode == ActMode::kExplore && IsWarmingUp()) {
      DrawUniformAction(action_spec_, turn.rng, turn.out);
    } else {
      Encode(seen);
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
  DrawPair(config_.q_count, rng, plan_.graph.input(plan_.pair));
  plan_.graph.Forward({plan_.value});
  std::ranges::copy(plan_.graph.value(plan_.value).row(0), values_.begin());
  RequireFinite("value of a plan", std::span<const float>(values_));
  // elites are weighed by what a plan is worth in the unit of the environment
  if (config_.aligned) {
    for (float& value : values_) value *= static_cast<float>(reward_unit_);
  }
  return values_;
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

void TdMpc::Observe(const Experience& experience, Carry& carry) {
  const auto reward = static_cast<float>(experience.scaled_reward);
  RequireFinite("reward", std::span(&reward, 1));  // heads would cut it to their range
  std::ranges::transform(experience.action.values(), action_.begin(),
                         [](double value) { return static_cast<float>(value); });
  // the episode's writer has seen the state before; the next turn shows it the state after
  ChannelWriter before = CarryAs<Course>(carry).writer;
  ChannelWriter after = before;
  const auto see = [this](const Situation& situation, ChannelWriter& writer,
                          std::vector<double>& seen) {
    return See(situation, config_.aligned, writer, seen);
  };
  replay_.Add({.before = {.observation = AsSpan(see(experience.before, before, seen_))},
               .action = action_,
               .reward = experience.scaled_reward,
               .terminated = experience.terminated,
               .truncated = experience.truncated,
               .after = {.observation = AsSpan(see(experience.after, after, seen_after_))}});
  ++steps_;
}

void TdMpc::Update() {
  if (IsWarmingUp()) return;
  const std::int64_t after = steps_ - config_.random_steps;
  if (after == 0 && config_.aligned) MeetTask();
  const int due = after == 0 ? config_.first_updates : after % config_.update_every == 0 ? 1 : 0;
  for (int i = 0; i < due; ++i) {
    replay_.Sample(replay_rng_, batch_);
    if (config_.aligned) batch_.reward /= static_cast<float>(reward_unit_);
    UpdateOn(batch_);
  }
}

FeedForwardPolicy TdMpc::ExportPolicy() const {
  if (config_.plan) throw UserError("it plans in its latent model in every step (plan=true)");
  if (config_.aligned) throw UserError("it also sees what all tasks share (aligned=true)");
  return model_.ExportPolicy();
}

void TdMpc::Visit(const Archive& state) {
  replay_.Visit(state.Child("replay"));
  state.Random("replay_random", replay_rng_);
  state.Int("steps", steps_);
  learner_.Visit(state);
  model_.Visit(state.Child("model"));
  if (!config_.aligned) return;
  state.Double("reward_unit", reward_unit_);
  known_.Visit(state.Child("known_tasks"));
}

}  // namespace msrl
