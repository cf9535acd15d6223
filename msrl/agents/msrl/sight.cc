#include "msrl/agents/msrl/sight.h"

#include <algorithm>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {

Seen::Seen(const Lift::Ptr& lift, int observation_size, int frame_numbers, int action_size)
    : before(lift, observation_size),
      after(lift, observation_size),
      frames(static_cast<std::size_t>(frame_numbers), 0.0) {
  if (frames.empty()) return;
  last_observation.assign(static_cast<std::size_t>(observation_size - frame_numbers), 0.0);
  last_action.assign(static_cast<std::size_t>(action_size), 0.0);
}

void Seen::Begin() {
  std::fill(frames.begin(), frames.end(), 0.0);
  reward_sum = 0.0;
  noted_step = -1;
  after_step = -1;
}

void Seen::Visit(const Archive& state) {
  if (state.loading()) after_step = -1;
  if (frames.empty()) return;
  state.Array("frames", frames);
  state.Array("last_observation", last_observation);
  state.Array("last_action", last_action);
  state.Double("reward_sum", reward_sum);
  state.Int("noted_step", noted_step, -1, 1'000'000'000);
}

Situation Seen::Picture::View(int step) const {
  return {EnvView(observation.data(), observation.size()), EnvView(geometry.data(), kGeometrySize),
          matrix, step};
}

Sight::Sight(const EnvSpec& spec, const SightSettings& settings, const Lift::Ptr& lift,
             const MatrixFeatureOptions& features)
    : settings_(RequireInRange(settings)),
      spec_(spec),
      seen_spec_(spec),
      lift_(lift),
      features_(lift, features),
      n_(spec.observation_size),
      m_(spec.action.kind == ActionKind::kDiscrete ? 1 : spec.action.size),
      column_(features_.size(), 1) {
  switch (settings.kind) {
    case SightKind::kObservation:
      break;
    case SightKind::kFrames:
      if (!lift->HasBlock("r")) throw UserError("sight=frames needs a lift with the reward");
      extra_ = settings.frames * (n_ + m_ + 1);
      frames_ahead_.resize(static_cast<std::size_t>(extra_));
      break;
    case SightKind::kMatrix:
      extra_ = features_.size();
      break;
    case SightKind::kReading:
      extra_ = 2;
      break;
  }
  seen_spec_.observation_size += extra_;
  if (extra_ > 0) seen_spec_.goal_task.reset();  // what is added is of the goal that was pursued
  extended_.resize(seen_spec_.observation_size, Critic::kMaxCandidates);
}

void Sight::SetReading(GoalReading reading) {
  if (settings_.kind != SightKind::kReading) {
    throw UserError("a goal reading is looked at with sight=reading only");
  }
  if (reading.feature_count() != features_.size() ||
      !(reading.info().features == features_.options())) {
    throw UserError(StrCat("the goal reading is for features '", reading.info().features.Name(),
                           "', the agent has '", features_.options().Name(), "'"));
  }
  reading_ = std::move(reading);
  tape_.emplace(reading_->spec(), 1);
}

void Sight::Visit(const Archive& state) {
  if (settings_.kind != SightKind::kReading) return;
  BranchShape shape{.width = 0, .layers = 0};
  if (reading_) shape = reading_->shape();
  state.Int("width", shape.width, 0, BranchShape::kMaxWidth);
  state.Int("layers", shape.layers, 0, BranchShape::kMaxLayers);
  state.Bool("layer_norm", shape.layer_norm);
  if (shape.width == 0) return;
  if (state.loading()) {
    SetReading(GoalReading(features_.size(), shape,
                           {.lift = lift_->id(),
                            .lift_kind = std::string(LiftKindName(lift_->kind())),
                            .features = features_.options(),
                            .made = {}}));
  }
  VisitNetwork(state.Child("network"), reading_->network());
}

Seen Sight::MakeSeen() const {
  const bool frames = settings_.kind == SightKind::kFrames;
  return {lift_, seen_spec_.observation_size, frames ? extra_ : 0, m_};
}

double Sight::RewardSum(const SegmentMatrix& matrix) const {
  return matrix(lift_->FindBlock("r").offset, lift_->constant_offset());
}

void Sight::PushFrame(std::span<const double> observation, std::span<const double> action,
                      double reward, std::vector<double>& frames) const {
  const auto size = static_cast<std::size_t>(n_ + m_ + 1);
  std::copy_backward(frames.begin(), frames.end() - static_cast<std::ptrdiff_t>(size),
                     frames.end());
  auto out = std::copy(observation.begin(), observation.end(), frames.begin());
  out = std::copy(action.begin(), action.end(), out);
  *out = reward;
}

void Sight::Fill(const Situation& situation, std::span<const double> frames,
                 Seen::Picture& picture) {
  picture.observation.head(n_) = situation.observation;
  std::copy(situation.geometry.begin(), situation.geometry.end(), picture.geometry.begin());
  picture.matrix = situation.matrix;
  auto more = picture.observation.tail(extra_);
  switch (settings_.kind) {
    case SightKind::kObservation:
      break;
    case SightKind::kFrames:
      std::copy(frames.begin(), frames.end(), more.begin());
      break;
    case SightKind::kMatrix:
    case SightKind::kReading:
      features_.Compute(situation.matrix,
                        {column_.data(), static_cast<std::size_t>(column_.size())});
      if (settings_.kind == SightKind::kMatrix) {
        more = column_.col(0).cast<double>();
        break;
      }
      if (!reading_) {
        throw UserError("sight=reading needs a goal reading to start from (--init)");
      }
      const Eigen::Vector2d offset = reading_->Offset(column_, *tape_);
      more = offset;
      const int origin = spec_.goal_origin;
      const ShownGoal shown{offset + situation.geometry.segment<2>(origin), origin};
      shown.Apply(picture.matrix);
      picture.geometry[2] = offset[0];
      picture.geometry[3] = offset[1];
      break;
  }
}

Situation Sight::See(const Situation& situation, Seen& seen) {
  if (settings_.kind == SightKind::kFrames) {
    const double sum = RewardSum(situation.matrix);
    if (seen.noted_step >= 0 && seen.noted_step + 1 == situation.step) {
      PushFrame(seen.last_observation, seen.last_action, sum - seen.reward_sum, seen.frames);
    }
    std::copy(situation.observation.begin(), situation.observation.end(),
              seen.last_observation.begin());
    seen.reward_sum = sum;
    seen.noted_step = situation.step;
  }
  if (seen.after_step == situation.step) {
    std::swap(seen.before, seen.after);
  } else {
    Fill(situation, seen.frames, seen.before);
  }
  seen.after_step = -1;
  return seen.before.View(situation.step);
}

void Sight::NoteAction(const Action& action, Seen& seen) const {
  if (settings_.kind != SightKind::kFrames) return;
  if (action.kind() == ActionKind::kDiscrete) {
    seen.last_action[0] = action.index();
  } else {
    std::copy(action.values().begin(), action.values().end(), seen.last_action.begin());
  }
}

Situation Sight::SeeAfter(const Experience& experience, Seen& seen) {
  if (settings_.kind == SightKind::kFrames) {
    std::copy(seen.frames.begin(), seen.frames.end(), frames_ahead_.begin());
    PushFrame(seen.last_observation, seen.last_action,
              RewardSum(experience.after.matrix) - seen.reward_sum, frames_ahead_);
  }
  Fill(experience.after, frames_ahead_, seen.after);
  seen.after_step = experience.after.step;
  return seen.after.View(experience.after.step);
}

Situation Sight::ForPlans(const Situation& situation, const Situation& seen) const {
  const EnvView& observation =
      settings_.kind == SightKind::kReading ? seen.observation : situation.observation;
  return {observation, seen.geometry, seen.matrix, seen.step};
}

ConstMatrixRef Sight::Extend(const ConstMatrixRef& observation, const ConstMatrixRef& features) {
  if (settings_.kind != SightKind::kMatrix) return observation;
  MSRL_CHECK_EQ(features.rows(), extra_);
  auto out = extended_.leftCols(observation.cols());
  out.topRows(n_) = observation;
  out.bottomRows(extra_) = features;
  return out;
}

}  // namespace msrl
