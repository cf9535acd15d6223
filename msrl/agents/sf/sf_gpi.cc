#include "msrl/agents/sf/sf_gpi.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr auto kFrozen = ParameterUse::kFrozen;
constexpr float kLeastSigma = 0.1F;
constexpr float kMostSigma = 1.0F;

enum Metric : std::size_t { kRewardFit };

MlpSpec SpecOf(int input, int width, int output, int members = 1) {
  return {.input = input,
          .hidden = {width, width},
          .output = output,
          .layer_norm = true,
          .members = members};
}

ParameterOptions WithTarget(ParameterOptions options) {
  options.target = true;
  return options;
}

Node Repeated(StaticGraph& g, Node x, int times) {
  return g.ConcatColumns(std::vector<Node>(static_cast<std::size_t>(times), x));
}

}  // namespace

SfGpi::SfGpi(const SfGpiShape& shape, const ParameterOptions& options, Rng& rng)
    : ValueModule(options),
      shape_(shape),
      own_(WithTarget(options)),
      used_(Eigen::VectorXf::Ones(kActionCodeSize)),
      moments_(Eigen::MatrixXd::Zero(shape.features, shape.features)),
      successors_(Eigen::MatrixXd::Zero(shape.features, shape.policies)),
      products_(Eigen::VectorXd::Zero(shape.features)),
      factor_(shape.features),
      system_(shape.features, shape.features),
      phi_now_(shape.features),
      w_(shape.features),
      metrics_({"transfer/reward_fit"}) {
  const int steps = 2 * kStateChannels + kActionChannels;
  const MlpSpec psi = SpecOf(kStateChannels + kActionChannels + shape.code_size,
                             shape.successor_width, shape.features, kTwins);
  phi_ = AddMlp(parameters(), "phi", SpecOf(steps, shape.feature_width, shape.features - 1), rng);
  psi_ = AddMlp(parameters(), "psi", psi, rng);
  // as the count of its specification has it: without norms
  mu_ = AddMlp(parameters(), "mu",
               {.input = kStateChannels + shape.code_size,
                .hidden = {shape.policy_width, shape.policy_width},
                .output = 2 * kActionCodeSize},
               rng);
  codes_ = AddEmbedding(parameters(), "codes", shape.code_size, shape.policies, rng);
  weights_ = AddEmbedding(parameters(), "weights", shape.features, shape.policies, rng, 0.1);
  bias_ = parameters().Add("bias", 1, 1);
  target_w_ = fixed_.Add("w", shape.features, 1);
  best_ = fixed_.Add("best", 1, 1);
  own_psi_ = AddMlp(own_, "psi", psi, rng);
  own_code_ = own_.Add("code", shape.code_size, 1);
}

// ---- its parts ----

Node SfGpi::ShownOf(StaticGraph& g, Node x, Node action, Node next_x, ParameterUse use) const {
  return g.Mlp(g.ConcatRows({x, action, next_x}), phi_, use);
}

Node SfGpi::WithOne(StaticGraph& g, Node shown) {
  return g.ConcatRows({shown, g.Constant(Eigen::MatrixXf::Ones(1, shown.columns))});
}

Node SfGpi::Psi(StaticGraph& g, Node x, Node action, Node code, ParameterUse use) const {
  return g.Mlp(g.ConcatRows({x, action, code}), psi_, use);
}

Node SfGpi::OwnPsi(StaticGraph& g, Node x, Node action, ParameterUse use) const {
  const Node code =
      g.GatherColumns(g.Param(own_code_, use), g.Constant(Eigen::MatrixXf::Zero(1, x.columns)));
  return g.Mlp(g.ConcatRows({x, action, code}), own_psi_, use);
}

SfGpi::TwinValues SfGpi::ValuesOf(StaticGraph& g, Node psi, Node w) const {
  const auto value = [&](int k) {
    return g.SumRows(g.Multiply(g.SliceRows(psi, k * shape_.features, shape_.features), w));
  };
  return {value(0), value(1)};
}

Node SfGpi::SmallerValue(StaticGraph& g, Node psi, Node w) const {
  const TwinValues values = ValuesOf(g, psi, w);
  return g.Min(values.first, values.second);
}

Node SfGpi::SmallerPsi(StaticGraph& g, Node psi, Node w) const {
  const TwinValues values = ValuesOf(g, psi, w);
  // 1 where the first has the smaller value, else 0
  constexpr float kSteep = 1e20F;
  const Node first =
      g.StopGradient(g.Clamp(g.Scale(g.Subtract(values.second, values.first), kSteep), 0.0F, 1.0F));
  const Node one = g.SliceRows(psi, 0, shape_.features);
  const Node other = g.SliceRows(psi, shape_.features, shape_.features);
  return g.Add(g.Multiply(one, first), g.Multiply(other, g.Affine(first, -1.0F, 1.0F)));
}

SfGpi::Proposal SfGpi::Mu(StaticGraph& g, Node x, Node code, ParameterUse use) const {
  const Node head = g.Mlp(g.ConcatRows({x, code}), mu_, use);
  return {g.Tanh(g.SliceRows(head, 0, kActionCodeSize)),
          g.Affine(g.Sigmoid(g.SliceRows(head, kActionCodeSize, kActionCodeSize)),
                   kMostSigma - kLeastSigma, kLeastSigma)};
}

Node SfGpi::CodeOf(StaticGraph& g, Node policy, ParameterUse use) const {
  return g.GatherColumns(g.Param(codes_, use), policy);
}

Node SfGpi::WeightOf(StaticGraph& g, Node policy, ParameterUse use) const {
  return g.GatherColumns(g.Param(weights_, use), policy);
}

void SfGpi::Whiten(const Eigen::VectorXf& mean, const Eigen::VectorXf& deviation) {
  auto weight = Find("phi.layers.2.weight").value();
  auto bias = Find("phi.layers.2.bias").value();
  weight = deviation.cwiseInverse().asDiagonal() * weight;
  bias = (bias - mean).cwiseQuotient(deviation);
}

void SfGpi::CopyPolicy(int from, int to) {
  for (const Parameter& table : {codes_, weights_}) table.value().col(to) = table.value().col(from);
}

// ---- slots ----

Node SfGpi::CodesOfAll(StaticGraph& g, int columns, ParameterUse use) const {
  Eigen::MatrixXf policy(1, shape_.policies * columns);
  for (int i = 0; i < shape_.policies; ++i) {
    policy.middleCols(i * columns, columns).setConstant(static_cast<float>(i));
  }
  return CodeOf(g, g.Constant(policy), use);
}

Node SfGpi::Best(StaticGraph& g, Node values, int columns) {
  Node best = g.SliceColumns(values, 0, columns);
  for (int c = columns; c < values.columns; c += columns) {
    best = g.Max(best, g.SliceColumns(values, c, columns));
  }
  return best;
}

Node SfGpi::MaskedAction(StaticGraph& g, Node code) const {
  const Node used = g.Constant(used_.replicate(1, code.columns));
  return g.ConcatRows({g.Multiply(code, used), used});
}

SfGpi::Asked SfGpi::AskPolicies(StaticGraph& g, Node x, ParameterUse use) const {
  const Node codes = CodesOfAll(g, x.columns, use);
  const Node states = Repeated(g, x, shape_.policies);
  const Node action = MaskedAction(g, Mu(g, states, codes, use).mean);
  const Node psi = Psi(g, states, action, codes, use);
  return {g.SliceRows(psi, 0, shape_.features), SmallerValue(g, psi, g.Param(target_w_, kFrozen))};
}

ValueModule::Slots SfGpi::Read(StaticGraph& g, const Windows& windows, ParameterUse use) {
  const int count = windows.count;
  const Node x = g.SliceRows(g.GatherColumns(windows.channels, windows.end), 0, kStateChannels);
  const Asked asked = AskPolicies(g, x, use);
  Eigen::MatrixXf column(1, count);
  for (int c = 0; c < count; ++c) column(0, c) = static_cast<float>(c);
  const Node block = g.Scale(g.Param(best_, kFrozen), static_cast<float>(count));
  return {g.GatherColumns(asked.psi, g.Add(g.Constant(column), block)),
          g.Add(Best(g, asked.values, count), Bias(g))};
}

Node SfGpi::SlotValue(StaticGraph& g, Node kept, Node action, ParameterUse use) const {
  const int n = kept.columns;
  const Node x = g.SliceRows(kept, 1 + z_size(), kStateChannels);
  const Node w = g.Param(target_w_, kFrozen);
  const Node sources =
      SmallerValue(g,
                   Psi(g, Repeated(g, x, shape_.policies), Repeated(g, action, shape_.policies),
                       CodesOfAll(g, n, kFrozen), kFrozen),
                   w);
  const Node own = SmallerValue(g, OwnPsi(g, x, action, use), w);
  return g.Add(g.Max(Best(g, sources, n), own), Bias(g));
}

Node SfGpi::Loss(StaticGraph& g, const Windows& windows, Node /*label*/, Node weight) {
  const auto gamma = static_cast<float>(shape_.successor_gamma);
  const Steps& steps = windows.steps;
  const Node x = g.SliceRows(windows.channels, 0, kStateChannels);
  const Node next_x = g.SliceRows(steps.next, 0, kStateChannels);
  const Node phi = WithOne(g, ShownOf(g, x, steps.action, next_x, kFrozen));
  const Node later = SmallerPsi(g, OwnPsi(g, next_x, steps.next_action, ParameterUse::kTarget),
                                g.Param(target_w_, kFrozen));
  const Node y = g.StopGradient(
      g.Add(g.Scale(phi, 1.0F - gamma), g.Multiply(g.Scale(later, gamma), steps.continues)));
  const Node psi = OwnPsi(g, x, steps.action, ParameterUse::kTrained);
  // of both, the mean over features
  return g.Scale(WeightedHuber(g, psi, g.ConcatRows({y, y}), weight),
                 1.0F / static_cast<float>(shape_.features));
}

void SfGpi::RescaleValue(double factor, double offset) {
  for (int k = 0; k < kTwins; ++k) {
    RescaleLinear(StrCat("psi.members.", k, ".layers.2"), factor, 0.0);
  }
  bias_.value() = (static_cast<float>(factor) * bias_.value()).array() + static_cast<float>(offset);
}

// ---- at a target ----

void SfGpi::Enter(const ChannelFacts& facts) {
  for (int i = 0; i < kActionCodeSize; ++i) used_[i] = facts.uses(i) ? 1.0F : 0.0F;
  step_ = BuildStep();
  proposals_ = BuildProposals();
}

std::unique_ptr<SfGpi::StepGraph> SfGpi::BuildStep() const {
  auto s = std::make_unique<StepGraph>();
  StaticGraph& g = s->graph;
  s->before = g.Input(kChannels, 1);
  s->after = g.Input(kChannels, 1);
  const Node x = g.SliceRows(s->before, 0, kStateChannels);
  s->phi = WithOne(g, ShownOf(g, x, g.SliceRows(s->after, kActionAt, kActionChannels),
                              g.SliceRows(s->after, 0, kStateChannels), kFrozen));
  s->psi = AskPolicies(g, x, kFrozen).psi;
  g.Finish();
  return s;
}

std::unique_ptr<SfGpi::ProposalGraph> SfGpi::BuildProposals() const {
  auto p = std::make_unique<ProposalGraph>();
  StaticGraph& g = p->graph;
  p->channels = g.Input(kChannels, 1);
  const Node x = Repeated(g, g.SliceRows(p->channels, 0, kStateChannels), shape_.policies);
  const Proposal proposal = Mu(g, x, CodesOfAll(g, 1, kFrozen), kFrozen);
  p->mean = proposal.mean;
  p->sigma = proposal.sigma;
  g.Finish();
  return p;
}

void SfGpi::Observe(std::span<const float> before, std::span<const float> after) {
  std::ranges::copy(before, step_->graph.input(step_->before).col(0).begin());
  std::ranges::copy(after, step_->graph.input(step_->after).col(0).begin());
  const bool settled = scale_ > 0.0;
  if (settled) {
    step_->graph.Forward({step_->phi});
  } else {
    step_->graph.Forward();
    successors_ += step_->graph.value(step_->psi).cast<double>();
  }
  phi_now_ = step_->graph.value(step_->phi).col(0).cast<double>();
  const auto r = static_cast<double>(after[kRewardAt]);
  moments_.noalias() += phi_now_ * phi_now_.transpose();
  products_ += r * phi_now_;
  reward_sum_ += r;
  reward_squares_ += r * r;
  ++steps_;
  if (settled && steps_ % settings_.refit_every == 0) Refit();
}

void SfGpi::Refit() {
  const auto count = static_cast<double>(steps_);
  system_ = moments_ / count;
  system_.diagonal().array() += settings_.ridge;
  factor_.compute(system_);
  w_ = products_ / count;
  factor_.solveInPlace(w_);
  RequireFinite("weights of rewards", std::span(w_.data(), static_cast<std::size_t>(w_.size())));
  const double variance = reward_squares_ / count - std::pow(reward_sum_ / count, 2);
  const double error = reward_squares_ / count - 2.0 * w_.dot(products_) / count +
                       (moments_.lazyProduct(w_)).dot(w_) / count;
  reward_fit_ = variance > 0.0 ? 1.0 - error / variance : 0.0;
  metrics_.Add(kRewardFit, reward_fit_);
  w_ /= scale_ * (1.0 - shape_.successor_gamma);
  target_w_.value() = w_.cast<float>();
}

void SfGpi::Settle(double scale) {
  scale_ = scale;
  if (steps_ == 0) return;
  Refit();
  Eigen::Index best = 0;
  (successors_.transpose() * w_).maxCoeff(&best);
  best_.value()(0, 0) = static_cast<float>(best);
  own_code_.value() = codes_.value().col(best);
  CopyTensors(parameters(), own_,
              [](const NamedTensor& tensor) { return tensor.name.starts_with("psi."); });
}

double SfGpi::GuidedShare(double random_spans) const {
  return settings_.gpi_spans > 0.0 ? std::max(0.0, 1.0 - random_spans / settings_.gpi_spans) : 0.0;
}

void SfGpi::Propose(std::span<const float> channels, Rng& rng, Eigen::MatrixXf& codes) {
  std::ranges::copy(channels, proposals_->graph.input(proposals_->channels).col(0).begin());
  proposals_->graph.Forward();
  const auto mean = proposals_->graph.value(proposals_->mean);
  const auto sigma = proposals_->graph.value(proposals_->sigma);
  for (Eigen::Index k = 0; k < codes.cols(); ++k) {
    const Eigen::Index policy = k % shape_.policies;
    for (Eigen::Index i = 0; i < codes.rows(); ++i) {
      const auto noise = static_cast<float>(rng.Normal());
      codes(i, k) = std::clamp(mean(i, policy) + sigma(i, policy) * noise, -1.0F, 1.0F);
    }
  }
}

void SfGpi::Visit(const Archive& state) {
  const auto flat = [](Eigen::MatrixXd& matrix) {
    return std::span(matrix.data(), static_cast<std::size_t>(matrix.size()));
  };
  VisitValues(state, parameters());
  VisitValues(state.Child("fixed"), fixed_);
  const float best = best_.value()(0, 0);
  if (state.loading() &&
      !(best >= 0.0F && best < static_cast<float>(shape_.policies) && best == std::floor(best))) {
    state.Fail("fixed/best", "is no policy");
  }
  VisitParameters(state.Child("own"), own_);
  state.Double("scale", scale_);
  state.Int("steps", steps_);
  state.Array("moments", flat(moments_));
  state.Array("successors", flat(successors_));
  state.Array("products", std::span(products_.data(), static_cast<std::size_t>(products_.size())));
  state.Double("reward_sum", reward_sum_);
  state.Double("reward_squares", reward_squares_);
  state.Double("reward_fit", reward_fit_);
  metrics_.Visit(state.Child("metrics"));
}

}  // namespace msrl
