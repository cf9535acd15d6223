#include "msrl/inspect/climb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "msrl/agents/common/candidate_actions.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kUntold = 10;       // steps of an episode before a reading is compared with the truth
constexpr double kStretch = 1.5;  // of random candidates

// An episode with its matrix.
struct Path {
  SegmentMatrix matrix;
  Eigen::VectorXd geometry;
};

class Climber {
 public:
  Climber(const std::function<std::unique_ptr<Env>()>& make, const MatrixNetwork& network,
          ClimbBy by, const ClimbOptions& options)
      : env_(make()),
        trial_(make()),
        network_(network),
        reading_(dynamic_cast<const GoalReading*>(&network)),
        by_(by),
        options_(RequireInRange(options)),
        lift_(CompactLift(LiftKindFromName(network.info().lift_kind))),
        features_(lift_, network.info().features),
        tape_(network.spec(), 1),
        column_(features_.size(), 1),
        psi_(lift_->m()),
        rng_(options.seed, "climb"),
        action_(env_->spec().action) {}

  // The return of one episode.
  double Play(std::uint64_t seed) {
    env_->Reset(seed);
    trial_->Reset(seed);
    Path path{SegmentMatrix(lift_), env_->geometry()};
    double total = 0.0;
    int steps = 0;
    for (bool over = false; !over;) {
      Choose(path);
      const StepResult result = Step(*env_, action_, path);
      total += result.reward;
      if (reading_ != nullptr && ++steps > kUntold) Compare(path);
      over = result.terminated || result.truncated;
    }
    return total;
  }
  bool Succeeded() const { return env_->Success().value_or(false); }
  double Told() const {
    if (compared_ == 0.0) return 0.0;
    const double variance = squares_ / compared_ - (sum_ / compared_).squaredNorm();
    return variance > 0.0 ? 1.0 - errors_ / compared_ / variance : 0.0;
  }

 private:
  StepResult Step(Env& env, const ActionBuffer& action, Path& path) {
    const StepResult result = env.Step(action.view());
    std::array<double, kActionCodeSize> code{};
    EmbedAction(env.spec(), action.view(), code);
    const Eigen::VectorXd reached = env.geometry();
    lift_->Apply(path.geometry, EnvView(code.data(), kActionCodeSize),
                 result.reward / env.spec().reward_scale, reached, psi_);
    path.matrix.AddStep(psi_);
    path.geometry = reached;
    return result;
  }

  void Compare(const Path& path) {
    const Eigen::Vector2d truth = TrueOffset(*env_);
    sum_ += truth;
    squares_ += truth.squaredNorm();
    errors_ += (Read(path.matrix) - truth).squaredNorm();
    compared_ += 1.0;
  }

  double Value(const SegmentMatrix& matrix) {
    features_.Compute(matrix, std::span(column_.data(), static_cast<std::size_t>(column_.size())));
    return static_cast<double>(network_.Forward(column_, tape_)(0, 0));
  }
  Eigen::Vector2d Read(const SegmentMatrix& matrix) {
    features_.Compute(matrix, std::span(column_.data(), static_cast<std::size_t>(column_.size())));
    return reading_->Offset(column_, tape_);
  }
  // Where it is, whoever is told.
  static Eigen::Vector2d TrueOffset(Env& env) { return env.Unwrapped().geometry().segment<2>(2); }
  Eigen::Vector2d Origin(const Path& path) const {
    return path.geometry.segment<2>(env_->spec().goal_origin);
  }

  // What comes of holding an action from the present state on.
  double Judge(const std::vector<std::byte>& here, const ActionBuffer& action, Path path) {
    trial_->Restore(here);
    double rewards = 0.0;
    double discount = 1.0;
    bool over = false;
    for (int h = 0; h < options_.horizon && !over; ++h) {
      const StepResult result = Step(*trial_, action, path);
      rewards += discount * result.reward / trial_->spec().reward_scale;
      discount *= trial_->spec().gamma;
      over = result.terminated || result.truncated;
    }
    switch (by_) {
      case ClimbBy::kRandom:
      case ClimbBy::kRewards:
        return rewards;
      case ClimbBy::kBranch:
        return discount * Value(path.matrix);
      case ClimbBy::kBranchAndRewards:
        return rewards + discount * Value(path.matrix);
      case ClimbBy::kDistance:
        return -discount * TrueOffset(*trial_).norm();
      case ClimbBy::kReading:
        return -discount * (goal_ - Origin(path)).norm();
    }
    MSRL_CHECK(false, "a way of judging without a rule");
  }

  void Choose(const Path& path) {
    const ActionSpec& spec = env_->spec().action;
    if (by_ == ClimbBy::kRandom) return DrawUniformAction(spec, rng_, action_);
    if (by_ == ClimbBy::kReading) goal_ = Origin(path) + Read(path.matrix);
    const std::vector<std::byte> here = env_->Snapshot();
    const bool discrete = spec.kind == ActionKind::kDiscrete;
    const int candidates = discrete ? spec.size : options_.candidates;
    ActionBuffer candidate(spec);
    double top = -std::numeric_limits<double>::infinity();
    for (int k = 0; k < candidates; ++k) {
      if (discrete) {
        candidate.set_index(k);
      } else {
        // the first stands still
        std::ranges::fill(candidate.values(), 0.0);
        if (k > 0) DrawStretched(kStretch, rng_, candidate.values());
      }
      const double score = Judge(here, candidate, path);
      if (score > top) {
        top = score;
        action_ = candidate;
      }
    }
  }

  std::unique_ptr<Env> env_, trial_;
  const MatrixNetwork& network_;
  const GoalReading* reading_;  // the network, if it is one
  ClimbBy by_;
  ClimbOptions options_;
  Lift::Ptr lift_;
  MatrixFeatures features_;
  MlpTape tape_;
  Eigen::MatrixXf column_;
  Eigen::VectorXd psi_;
  Rng rng_;
  ActionBuffer action_;
  Eigen::Vector2d goal_{0, 0};  // as read at the present step
  // of Compare
  Eigen::Vector2d sum_{0, 0};
  double squares_ = 0.0, errors_ = 0.0, compared_ = 0.0;
};

}  // namespace

ClimbResult Climb(const std::function<std::unique_ptr<Env>()>& make, const MatrixNetwork& network,
                  ClimbBy by, const ClimbOptions& options) {
  const bool reading = dynamic_cast<const GoalReading*>(&network) != nullptr;
  if ((by == ClimbBy::kReading) != reading &&
      (by == ClimbBy::kReading || by == ClimbBy::kBranch || by == ClimbBy::kBranchAndRewards)) {
    throw UserError(StrCat("a ", reading ? GoalReading::kKind : ValueBranch::kKind,
                           " can't be climbed by ", EnumName(by)));
  }
  Climber climber(make, network, by, options);
  Rng seeds(options.seed, "climb-episodes");
  ClimbResult result;
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < options.episodes; ++i) {
    const double total = climber.Play(seeds.NextU64());
    sum += total;
    squares += total * total;
    if (climber.Succeeded()) result.success += 1.0;
  }
  const double n = options.episodes;
  result.mean = sum / n;
  const double variance = std::max(squares / n - result.mean * result.mean, 0.0);
  result.standard_error = n > 1 ? std::sqrt(variance / (n - 1)) : 0.0;
  result.success /= n;
  result.told = climber.Told();
  return result;
}

}  // namespace msrl
