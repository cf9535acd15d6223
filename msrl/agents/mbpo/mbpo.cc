#include "msrl/agents/mbpo/mbpo.h"

#include <algorithm>
#include <cmath>

#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kRolloutSteps, kRolloutEnds };

// Time by time, so that no step goes on from the one before: two rows for every transition.
std::int64_t ImaginedRows(const MbpoConfig& config) {
  const std::int64_t longest = std::max(config.rollout_first, config.rollout_last);
  return 2 * longest * config.rollout_states * config.rollout_kept;
}

void CopyColumn(const Eigen::MatrixXf& matrix, Eigen::Index column, std::vector<double>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = matrix(static_cast<Eigen::Index>(i), column);
  }
}

}  // namespace

MbpoConfig::MbpoConfig(MbpoPreset which) : preset(which) {
  critic_learning_rate = 3e-4;
  alpha_learning_rate = 3e-4;
  // the paper has -1/3 for Hopper, -1/2 for Walker2d and Ant
  target_entropy_per_action = -0.5;
  if (which == MbpoPreset::kCompact) {
    hidden_width = 128;
    updates_per_step = 10;
    return;
  }
  random_steps = 5000;
  updates_per_step = 20;
  model.members = 7;
  model.elites = 5;
  model.layers = 4;
  model.width = 200;
  model.minibatches = 1'000'000;
  rollout_states = 100'000;
  rollout_last = 15;
  rollout_until = 150'000;
  real_share = 0.05;
}

Mbpo::Mbpo(const EnvSpec& spec, const MbpoConfig& config, std::uint64_t seed)
    : config_(RequireInRange(config)),
      sac_(spec, config, seed),
      model_(spec, config.model, config.replay_size, config.rollout_states, seed),
      imagined_({.capacity = ImaginedRows(config),
                 .observation_size = spec.observation_size,
                 .action_size = spec.action.size,
                 .pieces = true}),
      rollout_rows_(static_cast<std::size_t>(config.rollout_kept)),
      rollout_rng_(seed, "rollouts"),
      batch_rng_(seed, "batches"),
      metrics_({"rollout/steps", "rollout/terminated"}),
      batch_(imagined_.MakeBatch(config.batch_size)),
      starts_(imagined_.MakeBatch(config.rollout_states)),
      actor_tape_(sac_.actor().spec(), kChunk),
      gaussian_(spec.action.size, kChunk),
      log_prob_(kChunk),
      reward_(static_cast<std::size_t>(config.rollout_states)),
      action_noise_(spec.action.size, kChunk),
      state_(spec.observation_size, config.rollout_states),
      action_(spec.action.size, config.rollout_states),
      next_(spec.observation_size, config.rollout_states),
      terminated_(static_cast<std::size_t>(config.rollout_states)),
      before_(static_cast<std::size_t>(spec.observation_size)),
      after_(before_.size()) {
  if (config.her > 0) {
    throw UserError(
        "her: most of what is learned from is imagined, and leads to no end; set her=0");
  }
}

int Mbpo::RolloutLength(std::int64_t steps) const {
  // linear from first to last, whole steps
  const double share = config_.rollout_until > config_.rollout_from
                           ? static_cast<double>(steps - config_.rollout_from) /
                                 static_cast<double>(config_.rollout_until - config_.rollout_from)
                           : (steps < config_.rollout_from ? 0.0 : 1.0);
  const double length = config_.rollout_first + std::clamp(share, 0.0, 1.0) *
                                                    (config_.rollout_last - config_.rollout_first);
  return static_cast<int>(length);
}

void Mbpo::Update() {
  const OffPolicyMemory& memory = sac_.memory();
  const int updates = memory.UpdatesDue();
  if (updates == 0) return;
  if ((memory.steps() - config_.random_steps) % config_.model_every == 0) {
    model_.Train(memory.replay());
    Imagine();
  }
  for (int i = 0; i < updates; ++i) sac_.UpdateOn(Mix());
}

void Mbpo::Imagine() {
  std::rotate(rollout_rows_.begin(), rollout_rows_.begin() + 1, rollout_rows_.end());
  rollout_rows_.back() = imagined_.end_row();
  const int length = RolloutLength(sac_.memory().steps());
  sac_.memory().replay().Sample(rollout_rng_, starts_);
  state_ = starts_.observation;
  Eigen::Index count = state_.cols();
  for (int t = 0; t < length && count > 0; ++t) {
    ChooseActions(count);
    model_.Advance(state_.leftCols(count), action_.leftCols(count), rollout_rng_,
                   next_.leftCols(count), reward_, terminated_);
    Eigen::Index alive = 0;
    for (Eigen::Index i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CopyColumn(state_, i, before_);
      CopyColumn(next_, i, after_);
      imagined_.Add({.before = {.observation = before_},
                     .action = ColumnSpan(action_, at),
                     .reward = reward_[at],
                     .terminated = terminated_[at] != 0,
                     .after = {.observation = after_}});
      // a branch that ended is dropped
      if (terminated_[at] == 0) state_.col(alive++) = next_.col(i);
    }
    metrics_.Add(kRolloutEnds, 1.0 - static_cast<double>(alive) / static_cast<double>(count));
    count = alive;
  }
  metrics_.Add(kRolloutSteps, length);
}

void Mbpo::ChooseActions(Eigen::Index count) {
  for (Eigen::Index first = 0; first < count; first += kChunk) {
    const Eigen::Index size = std::min<Eigen::Index>(kChunk, count - first);
    const auto head = sac_.actor().Forward(state_.middleCols(first, size), actor_tape_);
    FillNormal(rollout_rng_, Flat(action_noise_));
    gaussian_.Sample(head, action_noise_.leftCols(size), action_.middleCols(first, size),
                     std::span(log_prob_).first(static_cast<std::size_t>(size)));
  }
}

const ReplayBatch& Mbpo::Mix() {
  const auto real = static_cast<Eigen::Index>(config_.real_share * config_.batch_size);
  sac_.memory().replay().Sample(batch_rng_, batch_, 0, real);
  const std::int64_t begin = std::max(rollout_rows_.front(), imagined_.first_row());
  for (Eigen::Index column = real; column < batch_.size(); ++column) {
    std::int64_t row = 0;
    do {
      row = begin + batch_rng_.Index(imagined_.end_row() - begin);
    } while (!imagined_.IsStep(row));
    imagined_.Read(row, column, batch_);
  }
  return batch_;
}

void Mbpo::DrainMetrics(MetricSink& sink) {
  sac_.DrainMetrics(sink);
  model_.DrainMetrics(sink);
  metrics_.Drain(sink);
}

FeedForwardPolicy Mbpo::ExportPolicy() const { return sac_.ExportPolicy(); }

void Mbpo::Visit(const Archive& state) {
  sac_.Visit(state.Child("policy"));
  model_.Visit(state.Child("model"));
  imagined_.Visit(state.Child("imagined"));
  state.Array("rollout_rows", rollout_rows_);
  for (const std::int64_t row : rollout_rows_) {
    if (row < 0 || row > imagined_.end_row()) state.Fail("rollout_rows", "are no rows");
  }
  state.Random("rollout_random", rollout_rng_);
  state.Random("batch_random", batch_rng_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
