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

constexpr double kStretch = 1.5;  // of random candidates

// An episode with its matrix.
struct Path {
  SegmentMatrix matrix;
  Eigen::VectorXd geometry;
};

class Climber {
 public:
  Climber(const std::function<std::unique_ptr<Env>()>& make, const ValueBranch& branch, ClimbBy by,
          const ClimbOptions& options)
      : env_(make()),
        trial_(make()),
        branch_(branch),
        by_(by),
        options_(RequireInRange(options)),
        lift_(CompactLift(LiftKindFromName(branch.info().lift_kind))),
        features_(lift_, branch.info().features),
        tape_(branch.spec(), 1),
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
    for (bool over = false; !over;) {
      Choose(path);
      const StepResult result = Step(*env_, action_, path);
      total += result.reward;
      over = result.terminated || result.truncated;
    }
    return total;
  }
  bool Succeeded() const { return env_->Success().value_or(false); }

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

  double Value(const SegmentMatrix& matrix) {
    features_.Compute(matrix, std::span(column_.data(), static_cast<std::size_t>(column_.size())));
    return static_cast<double>(branch_.Forward(column_, tape_)(0, 0));
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
        return -discount * std::hypot(path.geometry[2], path.geometry[3]);
    }
    MSRL_CHECK(false, "a way of judging without a rule");
  }

  void Choose(const Path& path) {
    const ActionSpec& spec = env_->spec().action;
    if (by_ == ClimbBy::kRandom) return DrawUniformAction(spec, rng_, action_);
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
  const ValueBranch& branch_;
  ClimbBy by_;
  ClimbOptions options_;
  Lift::Ptr lift_;
  MatrixFeatures features_;
  MlpTape tape_;
  Eigen::MatrixXf column_;
  Eigen::VectorXd psi_;
  Rng rng_;
  ActionBuffer action_;
};

}  // namespace

ClimbResult Climb(const std::function<std::unique_ptr<Env>()>& make, const ValueBranch& branch,
                  ClimbBy by, const ClimbOptions& options) {
  Climber climber(make, branch, by, options);
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
  return result;
}

}  // namespace msrl
