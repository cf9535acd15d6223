#include "msrl/agents/msrl/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kFutures, kOverride, kRealized };

// Uniform candidates are stretched by this and clipped: extreme actions are often the best.
constexpr double kStretch = 1.3;

int NumbersPerAction(const ActionSpec& action) {
  return action.kind == ActionKind::kDiscrete ? 1 : action.size;
}

// Actions that are weighed at most.
int CandidateCount(const ActionSpec& action, const PlannerSettings& settings) {
  return action.kind == ActionKind::kDiscrete ? action.size : settings.candidates;
}

// Segments that are looked at for all of them; the critic judges so many at once.
int FutureCount(int candidates, const PlannerSettings& settings) {
  const int each = std::max(1, std::min(settings.neighbours, Critic::kMaxCandidates / candidates));
  return each * candidates;
}

template <typename From>
void CopyToFloats(const From& from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>(from[static_cast<Eigen::Index>(i)]);
  }
}

}  // namespace

Planner::Planner(const EnvSpec& spec, const PlannerSettings& settings, const Lift::Ptr& lift,
                 const MatrixFeatureOptions& features, bool critic_sees_matrix, std::uint64_t seed)
    : settings_(RequireInRange(settings)),
      action_spec_(spec.action),
      env_(spec.id),
      n_(spec.observation_size),
      m_(NumbersPerAction(spec.action)),
      most_candidates_(CandidateCount(spec.action, settings)),
      most_futures_(FutureCount(most_candidates_, settings)),
      features_(lift, features),
      critic_rows_(critic_sees_matrix ? features_.size() : 0),
      library_({.capacity = settings.library_size,
                .policy = settings.library_policy,
                .lift = lift,
                .context_size = kGeometrySize,
                .action_size = m_,
                .observation_size = n_,
                .discrete = spec.action.kind == ActionKind::kDiscrete,
                .family = spec.family}),
      proxy_(n_, features_, settings.proxy, seed),
      rng_(seed, "library"),
      metrics_({"planner/futures", "planner/override", "planner/realized"}),
      neighbours_(static_cast<std::size_t>(most_futures_)),
      observation_(n_, Critic::kMaxCandidates),
      z_(features_.size(), Critic::kMaxCandidates),
      ahead_(features_.size(), most_futures_),
      candidates_(m_, Critic::kMaxCandidates),
      context_(kGeometrySize),
      value_(neighbours_.size()),
      q_(Critic::kMaxCandidates),
      kept_(neighbours_.size()),
      matrix_(lift),
      action_(static_cast<std::size_t>(m_)),
      tail_observation_(static_cast<std::size_t>(n_)),
      tail_geometry_(kGeometrySize),
      foretold_(kGeometrySize),
      step_(features_.size(), 1) {
  if (action_spec_.kind == ActionKind::kDiscrete && action_spec_.size > Critic::kMaxCandidates) {
    throw UserError(StrCat("lookahead weighs at most ", Critic::kMaxCandidates,
                           " discrete actions, '", spec.id, "' has ", action_spec_.size));
  }
}

Plan::Plan(int observation_size, int feature_count, int action_size, int most_futures)
    : observation(observation_size, 1),
      z(feature_count, 1),
      action(action_size, 1),
      tails(observation_size, most_futures),
      segment(feature_count, most_futures),
      heads(action_size, most_futures),
      geometry(kGeometrySize, most_futures),
      probability(static_cast<std::size_t>(most_futures)) {}

std::unique_ptr<Plan> Planner::MakePlan() const {
  return std::make_unique<Plan>(n_, features_.size(), m_, most_futures_);
}

// The policy's choice is the first candidate.
int Planner::DrawCandidates(const ActionBuffer& choice, Rng& rng) {
  if (action_spec_.kind == ActionKind::kDiscrete) {
    int count = 0;
    candidates_(0, count++) = static_cast<float>(choice.index());
    for (int a = 0; a < action_spec_.size; ++a) {
      if (a != choice.index()) candidates_(0, count++) = static_cast<float>(a);
    }
    return count;
  }
  CopyToFloats(choice.values(), ColumnSpan(candidates_, 0));
  for (int c = 1; c < most_candidates_; ++c) {
    for (float& a : ColumnSpan(candidates_, static_cast<std::size_t>(c))) {
      a = static_cast<float>(std::clamp(rng.Uniform(-kStretch, kStretch), -1.0, 1.0));
    }
  }
  return most_candidates_;
}

// Nearby segments that begin as a candidate does, with what they lead to.
int Planner::FindFutures(const Situation& situation, int candidates, Plan& plan) {
  CopyToFloats(situation.geometry, context_);
  const int each = most_futures_ / most_candidates_;
  auto end = neighbours_.begin();
  for (int c = 0; c < candidates; ++c) {
    const auto begin = end;
    const int count = library_.Query(
        context_,
        {.k = each,
         .radius = static_cast<float>(settings_.context_radius),
         .head_action = ColumnSpan(candidates_, static_cast<std::size_t>(c)),
         .action_radius = static_cast<float>(settings_.action_radius * std::sqrt(m_))},
        std::span(begin, static_cast<std::size_t>(each)));
    // a segment that begins as two candidates do is one future
    end = std::remove_if(begin, begin + count, [&](const Neighbour& neighbour) {
      return std::any_of(neighbours_.begin(), begin,
                         [&](const Neighbour& known) { return known.slot == neighbour.slot; });
    });
  }
  const auto found = static_cast<int>(end - neighbours_.begin());
  const auto rows = static_cast<std::size_t>(features_.size());
  for (int j = 0; j < found; ++j) {
    const std::int64_t slot = neighbours_[static_cast<std::size_t>(j)].slot;
    matrix_ = situation.matrix;
    library_.AddMatrixTo(slot, matrix_);
    features_.Compute(matrix_, {ahead_.col(j).data(), rows});
    matrix_.SetZero();
    library_.AddMatrixTo(slot, matrix_);
    features_.Compute(matrix_, {plan.segment.col(j).data(), rows});
    std::ranges::copy(library_.tail_observation(slot), plan.tails.col(j).data());
    std::ranges::copy(library_.head_action(slot), plan.heads.col(j).data());
    std::ranges::copy(library_.tail_geometry(slot), plan.geometry.col(j).data());
  }
  return found;
}

// V(o^, Z^) of the futures that the filter keeps.
void Planner::JudgeFutures(ActionValuer& base, int futures, Plan& plan) {
  const auto count = static_cast<std::size_t>(futures);
  std::ranges::fill(kept_, std::uint8_t{1});
  if (settings_.obstruction) {
    proxy_.Predict(plan.observation.col(0), plan.z.col(0), plan.tails.leftCols(futures),
                   plan.segment.leftCols(futures), std::span(plan.probability).first(count));
    for (std::size_t j = 0; j < count; ++j) {
      kept_[j] = proxy_.Keeps(plan.probability[j]) ? 1 : 0;
    }
  }
  base.StateValues(plan.tails.leftCols(futures), ahead_.topLeftCorner(critic_rows_, futures),
                   value_);
  for (std::size_t j = 0; j < count; ++j) {
    if (library_.terminated(neighbours_[j].slot)) value_[j] = 0.0F;
  }
}

template <typename Column>
bool Planner::Compatible(const Plan& plan, int future, const Column& action) const {
  const auto difference = plan.heads.col(future) - action;
  if (action_spec_.kind == ActionKind::kDiscrete) return difference[0] == 0.0F;
  const auto radius = static_cast<float>(settings_.action_radius);
  return difference.squaredNorm() <= radius * radius * static_cast<float>(m_);
}

// U of a candidate; -inf if there is no future.
float Planner::BestFuture(const Plan& plan, int candidate, int futures) const {
  float best = -std::numeric_limits<float>::infinity();
  for (int j = 0; j < futures; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (kept_[at] != 0 && value_[at] > best && Compatible(plan, j, candidates_.col(candidate))) {
      best = value_[at];
    }
  }
  return best;
}

void Planner::Improve(const Situation& situation, bool exploring, ActionValuer& base, Plan& plan,
                      Rng& rng, ActionBuffer& out) {
  CopyObservation(situation.observation, plan.observation.col(0));
  const int candidates = DrawCandidates(out, rng);
  const int futures = FindFutures(situation, candidates, plan);
  if (futures > 0) {
    features_.Compute(situation.matrix, Flat(plan.z));
    JudgeFutures(base, futures, plan);
    for (int c = 0; c < candidates; ++c) {
      observation_.col(c) = plan.observation.col(0);
      z_.col(c) = plan.z.col(0);
    }
    const auto o = observation_.leftCols(candidates);
    const auto z = z_.topLeftCorner(critic_rows_, candidates);
    base.ActionValues(o, z, candidates_.leftCols(candidates), q_);
    // what a future is measured against: nothing, or the value of what the policy chose
    const float neutral = settings_.fallback == Fallback::kValue ? q_[0] : 0.0F;

    // S = Q + beta (U - neutral), and Q alone where there is no future
    const auto beta = static_cast<float>(settings_.beta);
    int best = 0;
    float best_score = -std::numeric_limits<float>::infinity();
    for (int c = 0; c < candidates; ++c) {
      float score = q_[static_cast<std::size_t>(c)];
      const float u = BestFuture(plan, c, futures);
      if (std::isfinite(u)) score += beta * (u - neutral);
      if (c == 0) score += static_cast<float>(settings_.margin);
      if (score > best_score) {
        best_score = score;
        best = c;
      }
    }
    if (best != 0) {
      if (action_spec_.kind == ActionKind::kDiscrete) {
        out.set_index(static_cast<int>(candidates_(0, best)));
      } else {
        std::ranges::copy(ColumnSpan(candidates_, static_cast<std::size_t>(best)),
                          out.values().begin());
      }
      // of the segments that begin so, the nearest
      for (int j = 0; exploring && j < futures; ++j) {
        if (!Compatible(plan, j, candidates_.col(best))) continue;
        library_.NoteUse(neighbours_[static_cast<std::size_t>(j)].slot);
        break;
      }
    }
    if (exploring) metrics_.Add(kOverride, best != 0 ? 1.0 : 0.0);
    plan.action = candidates_.col(best);
  }
  if (!exploring) return;
  plan.futures = futures;
  metrics_.Add(kFutures, futures);
  if (settings_.obstruction && futures > 0) {
    proxy_.CountFiltered(std::span(plan.probability).first(static_cast<std::size_t>(futures)));
  }
}

void Planner::Observe(const Experience& experience, Plan& plan) {
  if (settings_.obstruction) LearnOutcomes(experience, plan);
  plan.futures = 0;
  if (action_spec_.kind == ActionKind::kDiscrete) {
    action_[0] = static_cast<float>(experience.action.index());
  } else {
    std::ranges::transform(experience.action.values(), action_.begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  CopyToFloats(experience.before.geometry, context_);
  CopyToFloats(experience.after.observation, tail_observation_);
  CopyToFloats(experience.after.geometry, tail_geometry_);
  library_.Add({.psi = experience.psi,
                .head_action = action_,
                .context = context_,
                .tail_observation = tail_observation_,
                .tail_geometry = tail_geometry_,
                .terminated = experience.terminated,
                .env = env_,
                .reward_sum = experience.scaled_reward,
                .episode = episode_},
               rng_);
  if (experience.terminated || experience.truncated) ++episode_;
}

// What really happened, against what the futures with this action foretold.
void Planner::LearnOutcomes(const Experience& experience, const Plan& plan) {
  const std::span<const double> reached(experience.after.geometry.data(), kGeometrySize);
  for (int j = 0; j < plan.futures; ++j) {
    if (!Compatible(plan, j, plan.action.col(0))) continue;
    std::copy_n(plan.geometry.col(j).data(), kGeometrySize, foretold_.begin());
    const bool differs = OutcomeDiffers(reached, foretold_, settings_.proxy.tolerance);
    metrics_.Add(kRealized, differs ? 0.0 : 1.0);
    proxy_.Add(plan.observation.col(0), plan.z.col(0), plan.tails.col(j), plan.segment.col(j),
               differs, plan.probability[static_cast<std::size_t>(j)]);
  }
  if (plan.futures == 0) return;
  matrix_.SetZero();
  matrix_.AddStep(Eigen::Map<const Eigen::VectorXd>(
      experience.psi.data(), static_cast<Eigen::Index>(experience.psi.size())));
  features_.Compute(matrix_, Flat(step_));
  CopyToFloats(experience.after.observation, tail_observation_);
  proxy_.Add(plan.observation.col(0), plan.z.col(0),
             Eigen::Map<const Eigen::VectorXf>(tail_observation_.data(), n_), step_.col(0),
             /*obstructed=*/false, std::nullopt);
}

void Planner::Update() {
  if (settings_.obstruction) proxy_.Update();
}

void Planner::DrainMetrics(MetricSink& sink) {
  metrics_.Drain(sink);
  if (settings_.obstruction) proxy_.DrainMetrics(sink);
}

void Planner::Visit(const Archive& state) {
  library_.Visit(state.Child("library"));
  proxy_.Visit(state.Child("proxy"));
  state.Random("library_random", rng_);
  state.Int("episode", episode_);
  metrics_.Visit(state.Child("planner_metrics"));
}

}  // namespace msrl
