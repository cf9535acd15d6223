#include "msrl/agents/msrl/model_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "msrl/agents/common/candidate_actions.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kOverride, kGain, kDoubt, kWeight };

constexpr double kStretch = 1.5;  // of random candidates

int CandidateCount(const EnvSpec& spec, const ModelPlanSettings& settings) {
  if (spec.action.kind == ActionKind::kContinuous) return settings.candidates;
  if (spec.action.size > Critic::kMaxCandidates) {
    throw UserError(StrCat("planning weighs at most ", Critic::kMaxCandidates,
                           " discrete actions, '", spec.id, "' has ", spec.action.size));
  }
  return spec.action.size;
}

}  // namespace

ModelPlanner::ModelPlanner(const EnvSpec& spec, const ModelPlanSettings& settings,
                           const Lift::Ptr& lift, const MatrixFeatureOptions& features,
                           double gamma, std::uint64_t seed, bool goal_is_read)
    : settings_(RequireInRange(settings)),
      spec_(spec),
      discrete_(spec.action.kind == ActionKind::kDiscrete),
      m_(spec.action.size),
      count_(CandidateCount(spec, settings)),
      lift_(lift),
      features_(lift, features),
      gamma_(gamma),
      model_(spec, settings.model, count_, seed, goal_is_read),
      metrics_({"plan/override", "plan/gain", "plan/doubt", "plan/source_weight"}),
      candidates_(m_, count_),
      ahead_(spec.observation_size, count_),
      before_(kGeometrySize, count_),
      z_(static_cast<std::size_t>(count_), SegmentMatrix(lift)),
      z_features_(features_.size(), count_),
      value_(static_cast<std::size_t>(count_)),
      score_(count_),
      alive_(count_),
      order_(static_cast<std::size_t>(count_)),
      psi_(lift->m()) {}

void ModelPlanner::SetSource(const ValueBranch& branch) {
  source_ = branch;
  source_tape_.emplace(branch.spec(), count_);
}

double ModelPlanner::SourceWeight() const {
  if (settings_.source_steps == 0) return settings_.source_weight;
  const double gone = static_cast<double>(steps_) / static_cast<double>(settings_.source_steps);
  return settings_.source_weight * std::max(0.0, 1.0 - gone);
}

// The policy's choice is the first.
void ModelPlanner::DrawCandidates(const ActionBuffer& choice, Rng& rng) {
  if (discrete_) {
    candidates_.setZero();
    candidates_(choice.index(), 0) = 1.0F;
    for (int a = 0, k = 1; a < m_; ++a) {
      if (a != choice.index()) candidates_(a, k++) = 1.0F;
    }
    return;
  }
  for (int i = 0; i < m_; ++i) {
    candidates_(i, 0) =
        static_cast<float>(std::clamp(choice.values()[static_cast<std::size_t>(i)], -1.0, 1.0));
  }
  for (int k = 1; k < count_; ++k) {
    DrawStretched(kStretch, rng, ColumnSpan(candidates_, static_cast<std::size_t>(k)));
  }
}

// Normal numbers with mean and spread of the best quarter (cross-entropy method). The policy's
// choice and the best so far stay.
void ModelPlanner::RedrawAroundBest(Rng& rng) {
  const int elites = std::max(2, count_ / 4);
  std::iota(order_.begin(), order_.end(), 0);
  std::partial_sort(order_.begin(), order_.begin() + elites, order_.end(),
                    [this](int a, int b) { return score_[a] > score_[b]; });
  std::array<double, kMaxActionSize> mean{};
  std::array<double, kMaxActionSize> spread{};
  for (int i = 0; i < m_; ++i) {
    double sum = 0.0, squares = 0.0;
    for (int e = 0; e < elites; ++e) {
      const double a = static_cast<double>(candidates_(i, order_[static_cast<std::size_t>(e)]));
      sum += a;
      squares += a * a;
    }
    const auto at = static_cast<std::size_t>(i);
    mean[at] = sum / elites;
    spread[at] = std::sqrt(std::max(squares / elites - mean[at] * mean[at], 1e-4));
  }
  const int best = order_[0];
  if (best != 0) candidates_.col(1) = candidates_.col(best);
  for (int k = best == 0 ? 1 : 2; k < count_; ++k) {
    for (int i = 0; i < m_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      candidates_(i, k) =
          static_cast<float>(std::clamp(mean[at] + spread[at] * rng.Normal(), -1.0, 1.0));
    }
  }
}

// Z^ <- Z^ + psi^ psi^T of the last imagined step.
void ModelPlanner::Compose(int candidate) {
  std::array<double, kActionCodeSize> code{};
  if (discrete_) {
    Eigen::Index index = 0;
    candidates_.col(candidate).maxCoeff(&index);
    EmbedAction(spec_, Action::Discrete(static_cast<int>(index)), code);
  } else {
    std::array<double, kMaxActionSize> action{};
    for (int i = 0; i < m_; ++i) {
      action[static_cast<std::size_t>(i)] = static_cast<double>(candidates_(i, candidate));
    }
    EmbedAction(spec_, Action::Continuous(std::span(action).first(static_cast<std::size_t>(m_))),
                code);
  }
  using Geometry = Eigen::Matrix<double, kGeometrySize, 1>;
  const Geometry from = before_.col(candidate).cast<double>();
  const Geometry to = ahead_.geometry.col(candidate).cast<double>();
  lift_->Apply(from, EnvView(code.data(), kActionCodeSize),
               static_cast<double>(ahead_.reward[candidate]), to, psi_);
  z_[static_cast<std::size_t>(candidate)].AddStep(psi_);
}

void ModelPlanner::Imagine(const Situation& situation) {
  ahead_.count = count_;
  for (int k = 0; k < count_; ++k) {
    CopyObservation(situation.observation, ahead_.observation.col(k));
    ahead_.geometry.col(k) = situation.geometry.cast<float>();
    z_[static_cast<std::size_t>(k)] = situation.matrix;
  }
  score_.setZero();
  alive_.setOnes();
  double discount = 1.0;
  for (int h = 0; h < settings_.horizon; ++h) {
    before_ = ahead_.geometry;
    model_.Advance(candidates_, ahead_);
    for (int k = 0; k < count_; ++k) {
      Compose(k);
      const double gain = static_cast<double>(ahead_.reward[k]) -
                          settings_.doubt * static_cast<double>(ahead_.doubt[k]);
      score_[k] += discount * alive_[k] * gain;
      alive_[k] *= 1.0 - static_cast<double>(ahead_.ends[k]);
    }
    discount *= gamma_;
  }
  alive_ *= discount;
}

void ModelPlanner::AddValues(ActionValuer& base) {
  for (int k = 0; k < count_; ++k) {
    features_.Compute(z_[static_cast<std::size_t>(k)],
                      ColumnSpan(z_features_, static_cast<std::size_t>(k)));
  }
  base.StateValues(ahead_.observation, z_features_, value_);
  for (int k = 0; k < count_; ++k) {
    score_[k] += alive_[k] * static_cast<double>(value_[static_cast<std::size_t>(k)]);
  }
  const double weight = SourceWeight();
  if (weight == 0.0) return;
  if (distance_ > 0.0) {
    for (int k = 0; k < count_; ++k) {
      const auto goal = ahead_.geometry.col(k).segment<2>(2);
      score_[k] -= alive_[k] * weight * distance_ * static_cast<double>(goal.norm());
    }
  }
  if (!source_) return;
  const auto f = source_->Forward(z_features_, *source_tape_);
  for (int k = 0; k < count_; ++k) score_[k] += alive_[k] * weight * static_cast<double>(f(0, k));
}

int ModelPlanner::Best() const {
  Eigen::Index best = 0;
  const double top = score_.maxCoeff(&best);
  return top > score_[0] + settings_.margin ? static_cast<int>(best) : 0;
}

bool ModelPlanner::Improve(const Situation& situation, ActMode mode, ActionValuer& base, Rng& rng,
                           ActionBuffer& out) {
  if (!ready()) return false;
  DrawCandidates(out, rng);
  const int rounds = discrete_ ? 1 : settings_.rounds;
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) RedrawAroundBest(rng);
    Imagine(situation);
    AddValues(base);
  }
  RequireFinite("score of a plan", std::span(score_.data(), static_cast<std::size_t>(count_)));
  const int best = Best();
  if (mode == ActMode::kExplore) {
    metrics_.Add(kOverride, best != 0 ? 1.0 : 0.0);
    metrics_.Add(kGain, score_[best] - score_[0]);
    metrics_.Add(kDoubt, static_cast<double>(ahead_.doubt[best]));
    metrics_.Add(kWeight, source_ || distance_ > 0.0 ? SourceWeight() : 0.0);
  }
  if (best == 0) return false;
  if (discrete_) {
    Eigen::Index index = 0;
    candidates_.col(best).maxCoeff(&index);
    out.set_index(static_cast<int>(index));
    return true;
  }
  for (int i = 0; i < m_; ++i) {
    out.values()[static_cast<std::size_t>(i)] = static_cast<double>(candidates_(i, best));
  }
  return true;
}

void ModelPlanner::Update(const Replay& replay) {
  if (ready()) ++steps_;
  model_.Update(replay);
}

void ModelPlanner::DrainMetrics(MetricSink& sink) {
  metrics_.Drain(sink);
  model_.DrainMetrics(sink);
}

void ModelPlanner::Visit(const Archive& state) {
  model_.Visit(state.Child("model"));
  if (source_) VisitNetwork(state.Child("source"), source_->network());
  state.Int("plan_steps", steps_);
  state.Double("distance", distance_);
  metrics_.Visit(state.Child("plan_metrics"));
}

}  // namespace msrl
