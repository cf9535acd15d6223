#include "msrl/inspect/precise_critic.h"

#include "msrl/core/check.h"

namespace msrl {
namespace {

const BranchSettings& RequireBranch(const Critic& critic) {
  MSRL_CHECK(critic.has_branch(), "this critic does not see Z");
  return *critic.branch_settings();
}

std::span<const double> AsSpan(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

}  // namespace

PreciseCritic::PreciseCritic(const Critic& critic)
    : features_(RequireBranch(critic).lift, critic.branch_settings()->features),
      hidden_input_(critic.branch_settings()->hidden_input),
      outputs_(critic.network().spec().output),
      branch_(critic.branch().network()) {
  for (int head = 0; head < critic.network().spec().members; ++head) {
    heads_.emplace_back(critic.network(), head);
  }
}

Eigen::VectorXd PreciseCritic::FeaturesOf(const SegmentMatrix& z) const {
  Eigen::VectorXd features(features_.size());
  features_.Compute(z, std::span(features.data(), static_cast<std::size_t>(features.size())));
  return features;
}

PreciseCritic::Forward PreciseCritic::Run(const SegmentMatrix& z, const Eigen::VectorXd& state,
                                          int output) const {
  MSRL_CHECK(output >= 0 && output < outputs_);
  Forward forward;
  forward.features = FeaturesOf(z);
  const PreciseMlp::Result branch = branch_.Forward(forward.features);
  forward.f = branch.output[0];
  const Eigen::Index h = hidden_input_ ? branch.hidden.size() : 0;
  forward.input.resize(h + state.size());
  forward.input << branch.hidden.head(h), state;
  for (std::size_t head = 0; head < heads_.size(); ++head) {
    const double r = heads_[head].Forward(forward.input).output[output];
    if (head > 0 && r >= forward.r) continue;
    forward.r = r;
    forward.head = head;
  }
  return forward;
}

double PreciseCritic::F(const SegmentMatrix& z) const {
  return branch_.Forward(FeaturesOf(z)).output[0];
}

double PreciseCritic::Q(const SegmentMatrix& z, const Eigen::VectorXd& state, int output) const {
  const Forward forward = Run(z, state, output);
  return forward.f + forward.r;
}

SegmentMatrix PreciseCritic::Gradient(const SegmentMatrix& z, const Eigen::VectorXd& state,
                                      int output) const {
  const Forward forward = Run(z, state, output);
  // dQ = dF + dR/dh dh
  Eigen::VectorXd d_hidden;
  if (hidden_input_) {
    const Eigen::VectorXd d_input =
        heads_[forward.head].InputGradient(forward.input, Eigen::VectorXd::Unit(outputs_, output));
    d_hidden = d_input.head(forward.input.size() - state.size());
  }
  const Eigen::VectorXd d_features =
      branch_.InputGradient(forward.features, Eigen::VectorXd::Ones(1), d_hidden);
  return features_.Pullback(z, AsSpan(d_features));
}

CriticValue::CriticValue(const PreciseCritic& critic, const Eigen::VectorXd& observation,
                         const Eigen::VectorXd& action)
    : critic_(critic), state_(observation.size() + action.size()) {
  state_ << observation, action;
}

CriticValue::CriticValue(const PreciseCritic& critic, const Eigen::VectorXd& observation,
                         int action)
    : critic_(critic), state_(observation), output_(action) {}

}  // namespace msrl
