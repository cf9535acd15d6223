#include "msrl/agents/host/host.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/common/percentiles.h"
#include "msrl/agents/common/slot_view.h"
#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t {
  kCriticLoss,
  kActorLoss,
  kModuleLoss,
  kQ,
  kEntropy,
  kAlpha,
  kKappa,
  kFit
};

constexpr int kEncodeWindows = 64;  // of one pass over the replay
constexpr int kTailSteps = 15;      // whose mean reward goes on after a truncation
constexpr double kLeastScale = 1e-3;

std::span<const double> AsSpan(const EnvView& view) {
  return {view.data(), static_cast<std::size_t>(view.size())};
}

std::span<const float> AsSpan(const Eigen::VectorXf& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

std::span<const float> ChannelsOf(const Eigen::VectorXf& features) {
  return AsSpan(features).last(kChannels);
}

// A module that was told what its target is like, before graphs of it are built.
std::unique_ptr<ValueModule> Entered(std::unique_ptr<ValueModule> module,
                                     const ChannelFacts& facts) {
  module->Enter(facts);
  return module;
}

}  // namespace

Calibration Calibrate(std::span<float> g, std::span<const float> v, int episodes,
                      int wanted_episodes) {
  MSRL_CHECK_EQ(g.size(), v.size());
  Calibration fit{.episodes = episodes};
  if (g.empty()) return fit;
  const auto count = static_cast<double>(g.size());
  double mean_g = 0.0;
  double mean_v = 0.0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    mean_g += static_cast<double>(g[i]) / count;
    mean_v += static_cast<double>(v[i]) / count;
  }
  double gg = 0.0;
  double gv = 0.0;
  double vv = 0.0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double dg = static_cast<double>(g[i]) - mean_g;
    const double dv = static_cast<double>(v[i]) - mean_v;
    gg += dg * dg;
    gv += dg * dv;
    vv += dv * dv;
  }
  const float high = Quantile(g, 0.95);
  fit.scale = std::max(kLeastScale, static_cast<double>(high - Quantile(g, 0.05)));
  if (episodes < wanted_episodes || vv <= 0.0 || gg <= 0.0) return fit;
  const double kappa = std::clamp(gv / vv, 0.0, 2.0 * fit.scale);
  // of the residual sum of squares gg - 2 kappa gv + kappa^2 vv
  fit.r2 = (2.0 * kappa * gv - kappa * kappa * vv) / gg;
  if (kappa == 0.0 || fit.r2 < 0.0) return fit;
  fit.kappa = kappa;
  fit.beta = mean_g - kappa * mean_v;
  return fit;
}

// ---- building ----

Host::Host(const EnvSpec& spec, const HostConfig& config, std::uint64_t seed,
           std::unique_ptr<ValueModule> module, ArtefactHeader expected)
    : config_(config),
      action_spec_(spec.action),
      facts_(ChannelFacts::Of(spec)),
      code_at_(CompactLift()->FindBlock("a").offset),
      reward_at_(CompactLift()->FindBlock("r").offset),
      one_at_(CompactLift()->constant_offset()),
      n_(spec.observation_size),
      m_(spec.action.size),
      action_slots_(SlotsOf(spec)),
      expected_(std::move(expected)),
      module_(Entered(std::move(module), facts_)),
      replay_({.capacity = config.replay_size,
               .observation_size = n_,
               .action_size = m_,
               .feature_size = feature_size()}),
      replay_rng_(seed, "replay"),
      noise_rng_(seed, "noise"),
      critic_({.target = true}),
      alpha_adam_(1),
      log_alpha_(1, static_cast<float>(std::log(config.initial_alpha))),
      reading_one_(*module_, 1),
      reading_many_(*module_, kEncodeWindows),
      teaching_(*module_, config.module_windows),
      policy_head_(m_, config.batch_size),
      act_head_(m_, 1),
      batch_(replay_.MakeBatch(config.batch_size)),
      one_(replay_.MakeBatch(1)),
      rows_(replay_.MakeBatch(kEncodeWindows)),
      sequences_(replay_.MakeSequences(config.module_windows, ValueModule::kTrainingLength)),
      log_prob_(static_cast<std::size_t>(config.batch_size)),
      noise_(m_, config.batch_size),
      action_(m_, config.batch_size),
      d_head_(2 * m_, config.batch_size),
      d_q_(2, config.batch_size),
      d_action_(m_, config.batch_size),
      act_noise_(m_, 1),
      act_action_(m_, 1),
      candidates_(m_, module_->candidates()),
      proposals_(kActionCodeSize, module_->candidates() / 2),
      candidate_features_(feature_size(), module_->candidates()),
      y_(config.batch_size),
      v_(config.batch_size),
      next_v_(config.batch_size),
      d_v_(config.batch_size),
      candidate_v_(module_->candidates()),
      labels_(ValueModule::kTrainingLength * config.module_windows),
      before_(feature_size()),
      action_values_(static_cast<std::size_t>(m_)),
      metrics_({"loss/critic", "loss/actor", "loss/module", "value/q", "policy/entropy",
                "policy/alpha", "transfer/kappa", "transfer/fit"}) {
  Rng init(seed, "init");
  const std::vector<int> hidden = HiddenLayers(config.hidden_layers, config.hidden_width);
  actor_net_ = AddMlp(actor_, "policy",
                      {.input = n_ + config.slot_size, .hidden = hidden, .output = 2 * m_}, init);
  critic_net_ =
      AddMlp(critic_, "critic",
             {.input = n_ + config.slot_size + m_, .hidden = hidden, .output = 1, .members = 2},
             init, {.last_scale = 0.0});
  projection_ = AddLinear(critic_, "projection", module_->z_size(), config.slot_size, init);
  act_ = BuildPolicy(1, ParameterUse::kFrozen);
  policy_ = BuildPolicy(config.batch_size, ParameterUse::kTrained);
  learning_ = BuildCritic(config.batch_size, ParameterUse::kTrained);
  valuing_ = BuildCritic(config.batch_size, ParameterUse::kFrozen);
  target_ = BuildCritic(config.batch_size, ParameterUse::kTarget);
  states_ = BuildStates((ValueModule::kTrainingLength + 1) * config.module_windows);
  value_ = BuildValue(config.batch_size, ParameterUse::kFrozen);
  next_value_ = BuildValue(config.batch_size, ParameterUse::kTarget);
  value_of_rows_ = BuildValue(kEncodeWindows, ParameterUse::kFrozen);
  if (module_->candidates() > 0) {
    value_of_candidates_ = BuildValue(module_->candidates(), ParameterUse::kFrozen);
  }
}

Node Host::SlotOf(StaticGraph& g, Node raw, ParameterUse use) const {
  return g.LayerNorm(g.Linear(raw, projection_, use));
}

Host::PolicyGraph Host::BuildPolicy(int columns, ParameterUse use) const {
  PolicyGraph p;
  p.observation = p.graph.Input(n_, columns);
  p.raw = p.graph.Input(module_->z_size(), columns);
  // the critics teach W; the policy takes z as it is
  const Node z = SlotOf(p.graph, p.raw, ParameterUse::kFrozen);
  p.head = p.graph.Mlp(p.graph.ConcatRows({p.observation, z}), actor_net_, use);
  p.graph.Finish();
  return p;
}

Host::CriticGraph Host::BuildCritic(int columns, ParameterUse use) const {
  CriticGraph c;
  const bool learns = use == ParameterUse::kTrained;
  c.observation = c.graph.Input(n_, columns);
  c.raw = c.graph.Input(module_->z_size(), columns);
  c.action = use == ParameterUse::kFrozen ? c.graph.InputWithGradient(m_, columns)
                                          : c.graph.Input(m_, columns);
  const Node z = SlotOf(c.graph, c.raw, use);
  c.q = c.graph.Mlp(c.graph.ConcatRows({c.observation, z, c.action}), critic_net_, use);
  if (learns) {
    // sum_i mean (R_i - y)^2
    c.y = c.graph.Input(1, columns);
    c.loss = c.graph.Scale(c.graph.Sum(c.graph.Square(c.graph.Subtract(c.q, c.y))),
                           1.0F / static_cast<float>(columns));
  }
  c.graph.Finish();
  return c;
}

Host::StateGraph Host::BuildStates(int columns) const {
  constexpr auto kFrozen = ParameterUse::kFrozen;
  StateGraph s;
  s.observation = s.graph.Input(n_, columns);
  s.raw = s.graph.Input(module_->z_size(), columns);
  const Node z = SlotOf(s.graph, s.raw, kFrozen);
  const Node head = s.graph.Mlp(s.graph.ConcatRows({s.observation, z}), actor_net_, kFrozen);
  s.mode = s.graph.Tanh(s.graph.SliceRows(head, 0, m_));
  const Node q = s.graph.Mlp(s.graph.ConcatRows({s.observation, z, s.mode}), critic_net_, kFrozen);
  s.value = s.graph.Min(s.graph.SliceRows(q, 0, 1), s.graph.SliceRows(q, 1, 1));
  s.graph.Finish();
  return s;
}

Host::ValueGraph Host::BuildValue(int columns, ParameterUse use) const {
  ValueGraph v;
  v.kept = v.graph.Input(module_->kept_size(), columns);
  v.action = v.graph.InputWithGradient(m_, columns);
  Eigen::MatrixXf used(kActionCodeSize, columns);
  for (int i = 0; i < kActionCodeSize; ++i) used.row(i).setConstant(facts_.uses(i) ? 1.0F : 0.0F);
  const Node code = v.graph.Linear(v.action, v.graph.Constant(action_slots_));
  v.value =
      module_->SlotValue(v.graph, v.kept, v.graph.ConcatRows({code, v.graph.Constant(used)}), use);
  v.graph.Finish();
  return v;
}

std::int64_t Host::parameter_count() const {
  return static_cast<std::int64_t>(actor_.size() + critic_.size() + module_->parameters().size()) +
         1;
}

double Host::alpha() const { return std::exp(static_cast<double>(log_alpha_[0])); }

void Host::Initialise(const Artefact& artefact) { LoadModule(artefact, expected_, *module_); }

// ---- what is seen ----

void Host::Memory::Begin() {
  window.setZero();
  features.setZero();
  states = 0;
  step = -1;
  sums.fill(0.0);
}

void Host::Memory::Visit(const Archive& state) {
  writer.Visit(state);
  state.Array("window", Flat(window));
  state.Array("features", std::span(features.data(), static_cast<std::size_t>(features.size())));
  state.Int("states", states, 0, window.cols());
  state.Int("step", step, -1);
  state.Array("sums", sums);
}

std::unique_ptr<Carry> Host::MakeCarry() const {
  return std::make_unique<Memory>(facts_, module_->context(), feature_size());
}

void Host::See(const Situation& situation, Memory& memory) {
  if (memory.step == situation.step) return;
  // nobody hands the last action and reward to an agent that is evaluated, but Z has their sums
  std::array<double, kActionCodeSize + 1> last{};
  for (Index i = 0; i <= kActionCodeSize; ++i) {
    const double sum = situation.matrix(i < kActionCodeSize ? code_at_ + i : reward_at_, one_at_);
    auto& before = memory.sums[static_cast<std::size_t>(i)];
    last[static_cast<std::size_t>(i)] = sum - before;
    before = sum;
  }
  const Index context = memory.window.cols();
  if (memory.states == context) {
    std::copy(memory.window.data() + kChannels, memory.window.data() + memory.window.size(),
              memory.window.data());
    --memory.states;
  }
  const std::span<float> column =
      ColumnSpan(memory.window, static_cast<std::size_t>(memory.states));
  ++memory.states;
  if (memory.step < 0) {
    memory.writer.Begin(AsSpan(situation.geometry), column);
  } else {
    memory.writer.Next(AsSpan(situation.geometry), std::span(last).first(kActionCodeSize),
                       last.back(), column);
  }
  memory.step = situation.step;

  auto channels = reading_one_.graph.input(reading_one_.windows.channels);
  channels = memory.window;
  channels.row(kRewardAt) /= static_cast<float>(calibration_.scale);
  reading_one_.graph.input(reading_one_.windows.end)(0, 0) = static_cast<float>(memory.states - 1);
  reading_one_.Forward();
  const int z_size = module_->z_size();
  memory.features[0] = reading_one_.graph.value(reading_one_.slots.value)(0, 0);
  memory.features.segment(1, z_size) = reading_one_.graph.value(reading_one_.slots.z).col(0);
  memory.features.tail(kChannels) = memory.window.col(memory.states - 1);
}

void Host::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  for (const Turn& turn : turns) {
    auto& memory = CarryAs<Memory>(turn.carry);
    See(turn.situation, memory);
    if (mode == ActMode::kExplore && IsWarmingUp()) {
      DrawUniformAction(action_spec_, turn.rng, turn.out);
      continue;
    }
    CopyObservation(turn.situation.observation, act_.graph.input(act_.observation).col(0));
    act_.graph.input(act_.raw).col(0) = memory.features.segment(1, module_->z_size());
    act_.graph.Forward();
    const auto head = act_.graph.value(act_.head);
    if (mode == ActMode::kExplore) {
      if (IsGuided(turn.rng)) {
        ChooseByValue(turn.rng, memory);
      } else {
        SampleAction(turn.rng);
      }
    } else {
      act_head_.Mode(head, act_action_);
    }
    std::ranges::copy(Flat(act_action_), turn.out.values().begin());
    RequireFinite("action", turn.out.values());
  }
}

bool Host::IsGuided(Rng& rng) const {
  // a V that explains nothing of the target's returns leads nowhere
  if (module_->candidates() == 0 || calibration_.kappa == 0.0) return false;
  const auto since = static_cast<double>(steps_ - config_.random_steps);
  const double share = module_->GuidedShare(since / static_cast<double>(config_.random_steps));
  return share > 0.0 && rng.Bernoulli(share);
}

void Host::SampleAction(Rng& rng) {
  float log_prob = 0.0F;
  FillNormal(rng, Flat(act_noise_));
  act_head_.Sample(act_.graph.value(act_.head), act_noise_, act_action_, {&log_prob, 1});
}

void Host::ChooseByValue(Rng& rng, const Memory& memory) {
  module_->Propose(ChannelsOf(memory.features), rng, proposals_);
  for (Eigen::Index k = 0; k < candidates_.cols(); ++k) {
    candidate_features_.col(k) = memory.features;
    if (k < proposals_.cols()) {
      // dimensions that share an entry do the same
      for (Eigen::Index i = 0; i < m_; ++i) {
        Eigen::Index entry = 0;
        action_slots_.col(i).maxCoeff(&entry);
        candidates_(i, k) = proposals_(entry, k);
      }
    } else {
      SampleAction(rng);
      candidates_.col(k) = act_action_.col(0);
    }
  }
  ReadValues(value_of_candidates_, candidate_features_, candidates_, candidate_v_);
  Eigen::Index best = 0;
  candidate_v_.maxCoeff(&best);
  act_action_.col(0) = candidates_.col(best);
}

void Host::Observe(const Experience& experience, Carry& carry) {
  auto& memory = CarryAs<Memory>(carry);
  See(experience.before, memory);
  before_ = memory.features;
  See(experience.after, memory);
  std::ranges::transform(experience.action.values(), action_values_.begin(),
                         [](double value) { return static_cast<float>(value); });
  replay_.Add({.before = {.observation = AsSpan(experience.before.observation),
                          .features = AsSpan(before_)},
               .action = action_values_,
               .reward = experience.scaled_reward,
               .terminated = experience.terminated,
               .truncated = experience.truncated,
               .after = {.observation = AsSpan(experience.after.observation),
                         .features = AsSpan(memory.features)}});
  module_->Observe(ChannelsOf(before_), ChannelsOf(memory.features));
  episode_open_ = !experience.terminated && !experience.truncated;
  ++steps_;
}

void Host::EncodeReplay() {
  auto channels = reading_many_.graph.input(reading_many_.windows.channels);
  auto end = reading_many_.graph.input(reading_many_.windows.end);
  const int context = module_->context();
  const int z_size = module_->z_size();
  const auto unit = static_cast<float>(calibration_.scale);
  for (std::int64_t row = replay_.first_row(); row < replay_.end_row(); row += kEncodeWindows) {
    const auto count =
        static_cast<int>(std::min<std::int64_t>(kEncodeWindows, replay_.end_row() - row));
    for (int w = 0; w < count; ++w) {
      std::int64_t first = row + w;
      while (first > replay_.first_row() && !replay_.IsFirst(first) &&
             row + w - first + 1 < context) {
        --first;
      }
      for (std::int64_t k = first; k <= row + w; ++k) {
        const auto features = replay_.features(k);
        auto column = channels.col((k - first) * kEncodeWindows + w);
        column = Eigen::Map<const Eigen::VectorXf>(features.data() + 1 + z_size, kChannels);
        column[kRewardAt] /= unit;
      }
      end(0, w) = static_cast<float>((row + w - first) * kEncodeWindows + w);
    }
    for (int w = count; w < kEncodeWindows; ++w) end(0, w) = static_cast<float>(w);
    reading_many_.Forward();
    for (int w = 0; w < count; ++w) {
      const auto features = replay_.features(row + w);
      std::ranges::copy(features, before_.begin());
      before_[0] = reading_many_.graph.value(reading_many_.slots.value)(0, w);
      before_.segment(1, z_size) = reading_many_.graph.value(reading_many_.slots.z).col(w);
      replay_.SetFeatures(row + w, AsSpan(before_));
    }
  }
}

std::vector<float> Host::ValuesOfSteps() {
  std::vector<float> values(static_cast<std::size_t>(replay_.end_row() - replay_.first_row()));
  for (std::int64_t row = replay_.first_row(); row < replay_.end_row(); row += kEncodeWindows) {
    const std::int64_t end = std::min(row + kEncodeWindows, replay_.end_row());
    for (std::int64_t k = row; k < end; ++k) {
      if (replay_.IsStep(k)) replay_.Read(k, k - row, rows_);
    }
    value_of_rows_.graph.input(value_of_rows_.kept) = rows_.features;
    value_of_rows_.graph.input(value_of_rows_.action) = rows_.action;
    value_of_rows_.graph.Forward();
    for (std::int64_t k = row; k < end; ++k) {
      if (!replay_.IsStep(k)) continue;
      values[static_cast<std::size_t>(k - replay_.first_row())] =
          value_of_rows_.graph.value(value_of_rows_.value)(0, k - row);
    }
  }
  return values;
}

void Host::CalibrateOnReplay() {
  // all steps of whole episodes, with the return that followed
  std::vector<float> g;
  std::vector<float> v;
  std::vector<float> values;
  const auto gather = [&] {
    g.clear();
    v.clear();
    int episodes = 0;
    std::vector<double> rewards;
    for (std::int64_t row = replay_.first_row(); row < replay_.end_row(); ++row) {
      if (replay_.IsStep(row)) {
        replay_.Read(row, 0, one_);
        rewards.push_back(static_cast<double>(one_.reward[0]));
        continue;
      }
      const bool open = row + 1 == replay_.end_row() && episode_open_;
      if (!open && !rewards.empty()) {
        ++episodes;
        const auto tail = std::min<std::size_t>(kTailSteps, rewards.size());
        double sum = 0.0;
        for (std::size_t k = 0; k < tail; ++k) sum += rewards[rewards.size() - 1 - k];
        double rest = one_.continues[0] > 0.0F
                          ? sum / static_cast<double>(tail) / (1.0 - config_.gamma)
                          : 0.0;
        for (std::size_t k = rewards.size(); k-- > 0;) {
          rest = rewards[k] + config_.gamma * rest;
          g.push_back(static_cast<float>(rest));
          const std::int64_t at = row - static_cast<std::int64_t>(rewards.size() - k);
          v.push_back(values[static_cast<std::size_t>(at - replay_.first_row())]);
        }
      }
      rewards.clear();
    }
    return episodes;
  };
  // first the unit of rewards, in which the module has to be asked
  values.resize(static_cast<std::size_t>(replay_.end_row() - replay_.first_row()));
  int episodes = gather();
  calibration_ = {.scale = Calibrate(g, v, episodes, config_.calibration_episodes).scale};
  module_->Settle(calibration_.scale);
  EncodeReplay();
  values = ValuesOfSteps();
  episodes = gather();
  calibration_ = Calibrate(g, v, episodes, config_.calibration_episodes);
}

// ---- learning ----

void Host::ReadValues(ValueGraph& v, const Eigen::MatrixXf& features, const Eigen::MatrixXf& action,
                      Eigen::RowVectorXf& values) const {
  if (calibration_.kappa == 0.0) {
    values.setZero();
    return;
  }
  v.graph.input(v.kept) = features;
  v.graph.input(v.action) = action;
  v.graph.Forward();
  values = v.graph.value(v.value);
}

float Host::ValueOf(float v) const {
  return static_cast<float>(calibration_.kappa * static_cast<double>(v) + calibration_.beta);
}

void Host::Update() {
  if (IsWarmingUp()) return;
  if (steps_ == config_.random_steps) CalibrateOnReplay();
  const bool tunes = config_.fine_tune && steps_ >= 2 * config_.random_steps;
  for (int i = 0; i < config_.updates_per_step; ++i) {
    replay_.Sample(replay_rng_, batch_);
    UpdateOn(batch_);
    ++updates_;
    if (!tunes || updates_ % config_.module_every != 0) continue;
    replay_.Sample(replay_rng_, sequences_);
    FineTuneOn(sequences_);
  }
  if (tunes && steps_ % config_.encode_every == 0) EncodeReplay();
}

void Host::UpdateOn(const ReplayBatch& batch) {
  MSRL_CHECK_EQ(batch.size(), config_.batch_size);
  UpdateCritic(batch);
  UpdateActor(batch);
  UpdateAlpha();
  metrics_.Add(kAlpha, alpha());
  metrics_.Add(kKappa, calibration_.kappa);
  metrics_.Add(kFit, calibration_.r2);
}

void Host::UpdateCritic(const ReplayBatch& batch) {
  const auto gamma = static_cast<float>(config_.gamma);
  const auto alpha_now = static_cast<float>(alpha());
  const int z_size = module_->z_size();

  // a' ~ pi(.|o', z')
  FillNormal(noise_rng_, Flat(noise_));
  policy_.graph.input(policy_.observation) = batch.next_observation;
  policy_.graph.input(policy_.raw) = batch.next_features.middleRows(1, z_size);
  policy_.graph.Forward();
  policy_head_.Sample(policy_.graph.value(policy_.head), noise_, action_, log_prob_);
  // y = r + gamma (1 - terminated) (kappa V' + beta + min_i R'_i - alpha log pi) - kappa V - beta
  target_.graph.input(target_.observation) = batch.next_observation;
  target_.graph.input(target_.raw) = batch.next_features.middleRows(1, z_size);
  target_.graph.input(target_.action) = action_;
  target_.graph.Forward();
  const auto next_q = target_.graph.value(target_.q);
  ReadValues(next_value_, batch.next_features, action_, next_v_);
  ReadValues(value_, batch.features, batch.action, v_);
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    const float next = ValueOf(next_v_[b]) + next_q.col(b).minCoeff() -
                       alpha_now * log_prob_[static_cast<std::size_t>(b)];
    y_[b] = batch.reward[b] + gamma * batch.continues[b] * next - ValueOf(v_[b]);
  }

  learning_.graph.input(learning_.observation) = batch.observation;
  learning_.graph.input(learning_.raw) = batch.features.middleRows(1, z_size);
  learning_.graph.input(learning_.action) = batch.action;
  learning_.graph.input(learning_.y) = y_;
  learning_.graph.Forward();
  const double loss = learning_.graph.value(learning_.loss)(0, 0);
  RequireFinite("critic loss", std::span(&loss, 1));
  metrics_.Add(kCriticLoss, loss);
  double q = static_cast<double>(learning_.graph.value(learning_.q).row(0).mean());
  q += calibration_.kappa * static_cast<double>(v_.mean()) + calibration_.beta;
  metrics_.Add(kQ, q);
  critic_.ClearGradients();
  learning_.graph.Backward(learning_.loss);
  RequireFiniteGradients("critic", critic_.gradients());
  critic_.Step(config_.critic_learning_rate, config_.tau);
}

void Host::UpdateActor(const ReplayBatch& batch) {
  const auto size = static_cast<float>(batch.size());
  const auto alpha_now = static_cast<float>(alpha());
  const int z_size = module_->z_size();

  // a ~ pi(.|o, z),  L_pi = mean (alpha log pi(a|o, z) - min_i Q_i(o, a))
  FillNormal(noise_rng_, Flat(noise_));
  policy_.graph.input(policy_.observation) = batch.observation;
  policy_.graph.input(policy_.raw) = batch.features.middleRows(1, z_size);
  policy_.graph.Forward();
  policy_head_.Sample(policy_.graph.value(policy_.head), noise_, action_, log_prob_);
  valuing_.graph.input(valuing_.observation) = batch.observation;
  valuing_.graph.input(valuing_.raw) = batch.features.middleRows(1, z_size);
  valuing_.graph.input(valuing_.action) = action_;
  valuing_.graph.Forward();
  const auto q = valuing_.graph.value(valuing_.q);
  const Eigen::Map<const Eigen::RowVectorXf> log_pi(log_prob_.data(), batch.size());
  double loss = static_cast<double>(alpha_now * log_pi.mean() - q.colwise().minCoeff().mean());
  ReadValues(value_, batch.features, action_, v_);
  loss -= calibration_.kappa * static_cast<double>(v_.mean()) + calibration_.beta;
  RequireFinite("actor loss", std::span(&loss, 1));
  metrics_.Add(kActorLoss, loss);
  metrics_.Add(kEntropy, -static_cast<double>(log_pi.mean()));

  // only the smaller critic counts
  d_q_.row(0) = (q.row(0).array() <= q.row(1).array()).cast<float>() * (-1.0F / size);
  d_q_.row(1).setConstant(-1.0F / size);
  d_q_.row(1) -= d_q_.row(0);
  valuing_.graph.Backward({{valuing_.q, d_q_}});
  d_action_ = valuing_.graph.gradient(valuing_.action);
  if (module_->values_actions() && calibration_.kappa > 0.0) {
    d_v_.setConstant(static_cast<float>(-calibration_.kappa) / size);
    value_.graph.Backward({{value_.value, d_v_}});
    d_action_ += value_.graph.gradient(value_.action);
  }
  y_.setConstant(alpha_now / size);
  policy_head_.Backward(d_action_, {y_.data(), static_cast<std::size_t>(y_.size())}, d_head_);
  actor_.ClearGradients();
  policy_.graph.Backward({{policy_.head, d_head_}});
  RequireFiniteGradients("actor", actor_.gradients());
  actor_.Step(config_.actor_learning_rate);
}

void Host::UpdateAlpha() {
  // L_alpha = -log alpha (mean log pi + target entropy)
  const Eigen::Map<const Eigen::RowVectorXf> log_pi(log_prob_.data(),
                                                    static_cast<Eigen::Index>(log_prob_.size()));
  const auto target = static_cast<float>(config_.target_entropy_per_action * m_);
  const float gradient = -(log_pi.mean() + target);
  alpha_adam_.Step(log_alpha_, {&gradient, 1}, config_.alpha_learning_rate);
}

const Eigen::RowVectorXf& Host::LabelsOf(const SequenceBatch& batch) {
  const Eigen::Index count = batch.sequences();
  states_.graph.input(states_.observation) = batch.observation;
  states_.graph.input(states_.raw) = batch.features.middleRows(1, module_->z_size());
  states_.graph.Forward();
  const auto residual = states_.graph.value(states_.value);
  const auto gamma = static_cast<float>(config_.gamma);
  const auto lambda = static_cast<float>(config_.module_lambda);
  // G_t = r_t + gamma (1 - terminated_t) ((1 - lambda) V_{t+1} + lambda G_{t+1}), where a sequence
  // ends G = V; V = kappa V + beta + min_i R_i(o, z, tanh(mu))
  const bool speaks = calibration_.kappa > 0.0;
  const auto unit = static_cast<float>(speaks ? calibration_.kappa : calibration_.scale);
  const auto shift = static_cast<float>(speaks ? calibration_.beta : 0.0);
  for (Eigen::Index w = 0; w < count; ++w) {
    const auto value = [&](Eigen::Index t) {
      const Eigen::Index column = batch.Column(t) + w;
      return ValueOf(batch.features(0, column)) + residual(0, column);
    };
    const Eigen::Index steps = batch.steps[static_cast<std::size_t>(w)];
    float g = value(steps);
    for (Eigen::Index t = batch.length(); t-- > 0;) {
      const Eigen::Index column = batch.Column(t) + w;
      if (t >= steps) {
        labels_[column] = 0.0F;
        continue;
      }
      g = batch.reward[column] +
          gamma * batch.continues[column] * ((1.0F - lambda) * value(t + 1) + lambda * g);
      labels_[column] = (g - shift) / unit;
    }
  }
  return labels_;
}

void Host::WriteActions(const Eigen::Ref<const Eigen::MatrixXf>& action,
                        StridedMap channels) const {
  channels.topRows(kActionCodeSize) = action_slots_.lazyProduct(action);
  for (int i = 0; i < kActionCodeSize; ++i) {
    channels.row(kActionCodeSize + i).setConstant(facts_.uses(i) ? 1.0F : 0.0F);
  }
}

void Host::WriteSteps(const SequenceBatch& batch) {
  const Eigen::Index columns = batch.length() * batch.sequences();
  states_.graph.input(states_.observation) = batch.observation;
  states_.graph.input(states_.raw) = batch.features.middleRows(1, module_->z_size());
  states_.graph.Forward();
  const Steps& steps = teaching_.windows.steps;
  WriteActions(batch.action, teaching_.graph.input(steps.action));
  WriteActions(states_.graph.value(states_.mode).rightCols(columns),
               teaching_.graph.input(steps.next_action));
  teaching_.graph.input(steps.next) = batch.features.bottomRows(kChannels).rightCols(columns);
  teaching_.graph.input(steps.continues) = batch.continues;
}

void Host::FineTuneOn(const SequenceBatch& batch) {
  const Eigen::Index columns = batch.length() * batch.sequences();
  auto channels = teaching_.graph.input(teaching_.windows.channels);
  channels = batch.features.bottomRows(kChannels).leftCols(columns);
  channels.row(kRewardAt) /= static_cast<float>(calibration_.scale);
  auto end = teaching_.graph.input(teaching_.windows.end);
  for (Eigen::Index w = 0; w < batch.sequences(); ++w) {
    end(0, w) = static_cast<float>(batch.Column(batch.steps[static_cast<std::size_t>(w)] - 1) + w);
  }
  if (module_->values_actions()) {
    WriteSteps(batch);
  } else {
    teaching_.graph.input(teaching_.label) = LabelsOf(batch);
  }
  teaching_.graph.input(teaching_.weight) = batch.inside / batch.inside.sum();
  metrics_.Add(kModuleLoss, teaching_.Learn(config_.module_learning_rate));
}

FeedForwardPolicy Host::ExportPolicy() const {
  throw UserError("its policy also sees what its module reads in the episode so far");
}

void Host::Visit(const Archive& state) {
  replay_.Visit(state.Child("replay"));
  state.Random("replay_rng", replay_rng_);
  state.Random("noise", noise_rng_);
  module_->Visit(state.Child("module"));
  VisitParameters(state.Child("actor"), actor_);
  VisitParameters(state.Child("critic"), critic_);
  VisitAdam(state.Child("alpha_adam"), alpha_adam_);
  state.Array("log_alpha", log_alpha_);
  state.Double("kappa", calibration_.kappa);
  state.Double("beta", calibration_.beta);
  state.Double("fit", calibration_.r2);
  state.Double("scale", calibration_.scale);
  state.Int("episodes", calibration_.episodes);
  state.Int("steps", steps_);
  state.Int("updates", updates_);
  state.Bool("episode_open", episode_open_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
