#include "msrl/agents/common/critic.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kAct = Critic::kMaxCandidates;

int HiddenRows(const std::optional<BranchSettings>& branch) {
  return branch && branch->hidden_input ? branch->shape.width : 0;
}

std::optional<ValueBranch> MakeBranch(const std::optional<BranchSettings>& settings) {
  if (!settings) return std::nullopt;
  BranchInfo info;
  info.lift = settings->lift->id();
  info.lift_kind = LiftKindName(settings->lift->kind());
  info.features = settings->features;
  return ValueBranch(MatrixFeatures(settings->lift, settings->features).size(), settings->shape,
                     std::move(info));
}

// What must be equal if one branch takes the place of another.
std::string Outline(const ValueBranch& branch) {
  return StrCat(branch.shape().layers, " layers of width ", branch.shape().width,
                branch.shape().layer_norm ? " with" : " without", " layer norm on ",
                branch.feature_count(), " features '", branch.info().features.Name(), "'");
}

std::optional<MlpTape> MakeTape(const std::optional<ValueBranch>& branch, int batch) {
  if (!branch) return std::nullopt;
  return MlpTape(branch->spec(), batch);
}

}  // namespace

Critic::Critic(const CriticSizes& sizes, const std::optional<BranchSettings>& branch)
    : sizes_(sizes),
      settings_(branch),
      h_(HiddenRows(branch)),
      spec_{.input = h_ + sizes.observation + sizes.action,
            .hidden = sizes.hidden,
            .output = sizes.outputs,
            .layer_norm = sizes.layer_norm,
            .members = sizes.heads},
      residual_(spec_),
      residual_target_(spec_),
      branch_(MakeBranch(branch)),
      branch_target_(branch_),
      branch_learns_(branch && branch->trained),
      adam_(residual_.parameter_count()),
      tape_(spec_, sizes.batch),
      now_tape_(spec_, kAct),
      branch_tape_(MakeTape(branch_, sizes.batch)),
      now_branch_tape_(MakeTape(branch_, kAct)),
      gradients_(residual_.parameter_count()),
      input_(spec_.input, sizes.batch),
      now_input_(spec_.input, kAct),
      q_(sizes.heads * sizes.outputs, sizes.batch),
      now_q_(sizes.outputs, kAct) {
  if (!branch_) return;
  const std::size_t count = branch_->network().parameter_count();
  if (settings_->anchor > 0.0) source_ = FloatBuffer(count);
  branch_adam_.emplace(count);
  branch_gradients_ = FloatBuffer(count);
  f_.resize(1, sizes.batch);
  d_f_.resize(1, sizes.batch);
  d_h_.resize(h_, sizes.batch);
}

void Critic::Init(Rng& rng) {
  residual_.Init(rng, {.last_scale = branch_ ? settings_->residual_scale : 1.0,
                       .last_bias = sizes_.initial_value});
  residual_target_ = residual_;
  if (!branch_) return;
  branch_->Init(rng);
  InitBranch(ValueBranch(*branch_));
}

void Critic::InitBranch(const ValueBranch& source) {
  MSRL_CHECK(has_branch());
  if (source.spec() != branch_->spec() || source.info().features != branch_->info().features) {
    throw UserError(
        StrCat("the branch has ", Outline(source), ", the critic wants ", Outline(*branch_)));
  }
  branch_ = source;
  branch_target_ = source;
  std::ranges::copy(branch_->network().parameters().first(source_.size()), source_.begin());
}

void Critic::FreezeBranch() {
  if (!branch_learns_) return;
  branch_learns_ = false;
  std::ranges::copy(branch_->network().parameters(),
                    branch_target_->network().parameters().begin());
}

void Critic::QuietBranch(double factor) {
  MSRL_CHECK(!branch_learns_);
  if (branch_silent_) return;
  branch_->Rescale(factor, 0.0);
  branch_target_->Rescale(factor, 0.0);
  branch_silent_ = factor == 0.0 && h_ == 0;
}

std::int64_t Critic::parameter_count() const {
  const std::size_t branch = branch_ ? branch_->network().parameter_count() : 0;
  return static_cast<std::int64_t>(residual_.parameter_count() + branch);
}

const Eigen::MatrixXf& Critic::TargetQ(const ConstMatrixRef& observation,
                                       const ConstMatrixRef& features) {
  input_.middleRows(h_, sizes_.observation) = observation;
  if (!BranchSpeaks()) return q_ = residual_target_.Forward(input_, tape_);
  f_ = branch_target_->Forward(features, *branch_tape_);
  if (h_ > 0) input_.topRows(h_) = branch_target_->Hidden(*branch_tape_);
  q_ = residual_target_.Forward(input_, tape_).rowwise() + f_.row(0);
  return q_;
}

const Eigen::MatrixXf& Critic::Q(const ConstMatrixRef& observation,
                                 const ConstMatrixRef& features) {
  input_.middleRows(h_, sizes_.observation) = observation;
  if (BranchSpeaks()) {
    f_ = branch_->Forward(features, *branch_tape_);
    if (h_ > 0) input_.topRows(h_) = branch_->Hidden(*branch_tape_);
  }
  return QOfActions({0, sizes_.heads});
}

const Eigen::MatrixXf& Critic::QOfActions(MemberRange heads) {
  const auto residual = residual_.Forward(input_, tape_, heads);
  auto q = q_.topRows(residual.rows());
  q = residual;
  if (BranchSpeaks()) q.rowwise() += f_.row(0);
  return q_;
}

void Critic::Learn(const Eigen::MatrixXf& d_q, double learning_rate, double tau) {
  if (branch_learns_ && h_ > 0) {
    residual_.Backward(d_q, tape_, gradients_, 0, d_h_);
  } else {
    residual_.Backward(d_q, tape_, gradients_);
  }
  RequireFiniteGradients("critic", gradients_);
  if (tau > 0.0) {
    adam_.Step(residual_.parameters(), gradients_, learning_rate, residual_target_.parameters(),
               tau);
  } else {
    adam_.Step(residual_.parameters(), gradients_, learning_rate);
  }
  if (!branch_learns_) return;
  d_f_ = d_q.colwise().sum();
  LearnBranch(learning_rate * settings_->rate, tau);
}

void Critic::LearnBranch(double learning_rate, double tau) {
  if (h_ > 0) {
    branch_->Backward(d_f_, d_h_, *branch_tape_, branch_gradients_);
  } else {
    branch_->Backward(d_f_, *branch_tape_, branch_gradients_);
  }
  const std::span<float> eta = branch_->network().parameters();
  // d/d eta of lambda |eta - eta_src|^2
  const auto pull = static_cast<float>(2.0 * settings_->anchor);
  for (std::size_t i = 0; i < source_.size(); ++i) {
    branch_gradients_[i] += pull * (eta[i] - source_[i]);
  }
  RequireFiniteGradients("branch", branch_gradients_);
  if (tau > 0.0) {
    branch_adam_->Step(eta, branch_gradients_, learning_rate,
                       branch_target_->network().parameters(), tau);
  } else {
    branch_adam_->Step(eta, branch_gradients_, learning_rate);
  }
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a view
void Critic::ActionGradient(const ConstMatrixRef& d_q, MatrixRef d_action) {
  residual_.InputGradient(d_q, tape_, h_ + sizes_.observation, d_action);
}

ConstMatrixMap Critic::QNow(const ConstMatrixRef& observation, const ConstMatrixRef& features,
                            const ConstMatrixRef& action) {
  const Eigen::Index count = observation.cols();
  MSRL_CHECK_LE(count, kAct);
  auto input = now_input_.leftCols(count);
  input.middleRows(h_, sizes_.observation) = observation;
  if (sizes_.action > 0) input.bottomRows(sizes_.action) = action;
  auto q = now_q_.leftCols(count);
  if (!BranchSpeaks()) {
    q = residual_.Forward(input, now_tape_, {.first = 0, .count = 1});
    return {now_q_.data(), now_q_.rows(), count};
  }
  const auto f = branch_->Forward(features, *now_branch_tape_);
  if (h_ > 0) input.topRows(h_) = branch_->Hidden(*now_branch_tape_);
  q = residual_.Forward(input, now_tape_, {.first = 0, .count = 1}).rowwise() + f.row(0);
  return {now_q_.data(), now_q_.rows(), count};
}

void Critic::Visit(const Archive& state) {
  VisitNetwork(state.Child("critic"), residual_);
  VisitNetwork(state.Child("critic_target"), residual_target_);
  VisitAdam(state.Child("critic_adam"), adam_);
  if (!branch_) return;
  VisitNetwork(state.Child("branch"), branch_->network());
  VisitNetwork(state.Child("branch_target"), branch_target_->network());
  VisitAdam(state.Child("branch_adam"), *branch_adam_);
  if (!source_.empty()) state.Array("branch_source", source_);
  if (!state.loading()) return;
  branch_learns_ = settings_->trained;  // until the agent says otherwise
  branch_silent_ = false;
}

}  // namespace msrl
