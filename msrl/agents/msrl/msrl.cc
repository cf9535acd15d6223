#include "msrl/agents/msrl/msrl.h"

#include <array>
#include <cmath>
#include <utility>

#include "msrl/agents/msrl/transfer_predictor.h"
#include "msrl/core/check.h"
#include "msrl/env/spec.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kPredictor, kAmplitude };

double Rounded(double value) { return std::round(1e3 * value) / 1e3; }

}  // namespace

std::optional<BranchSettings> MakeBranchSettings(const MsrlSettings& settings) {
  RequireInRange(settings);
  if (!settings.matrix) return std::nullopt;
  return BranchSettings{.lift = CompactLift(settings.lift),
                        .features = MatrixFeatureOptions::Of(settings.features),
                        .shape = {.width = settings.branch_width, .layers = settings.branch_layers},
                        .hidden_input = settings.branch_hidden,
                        .trained = settings.init_mode != InitMode::kFrozen,
                        .rate = settings.branch_rate,
                        .anchor = settings.init_mode == InitMode::kAnchored ? settings.anchor : 0.0,
                        .residual_scale = settings.residual_scale};
}

Msrl::Msrl(const EnvSpec& spec, const MsrlSettings& settings, std::unique_ptr<CriticAgent> base,
           std::uint64_t seed)
    : settings_(RequireInRange(settings)),
      base_(std::move(base)),
      metrics_({"transfer/predictor", "transfer/amplitude"}) {
  if (!settings.planner.library) return;
  planner_.emplace(spec, settings.planner, CompactLift(settings.lift),
                   MatrixFeatureOptions::Of(settings.features), settings.matrix, seed);
}

std::vector<std::string> SettingsForBranch(const ArtefactHeader& header) {
  return {"branch_width=" + header.Shape("width"), "branch_layers=" + header.Shape("layers"),
          "features=" + header.Shape("features")};
}

void Msrl::Initialise(const Artefact& artefact) {
  const auto& branch = base_->critic().branch_settings();
  if (!branch) {
    throw UserError(StrCat("without the matrix there is no branch for ", artefact.source()));
  }
  ValueBranch loaded =
      ValueBranch::From(artefact, branch->lift->id(),
                        settings_.unaligned ? Alignment::kUnaligned : Alignment::kAligned);
  if (settings_.init_mode == InitMode::kRandom) return;
  loaded.Rescale(settings_.branch_scale, 0.0);
  base_->critic().InitBranch(loaded);
  took_over_ = true;
}

std::unique_ptr<Carry> Msrl::MakeCarry() const {
  if (planner_) return planner_->MakePlan();
  return Agent::MakeCarry();
}

void Msrl::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  std::array<bool, kMaxTurns> by_policy{};
  base_->Choose(turns, mode, std::span(by_policy).first(turns.size()));
  const Lookahead lookahead = settings_.planner.lookahead;
  const bool wanted = lookahead == Lookahead::kAlways ||
                      (lookahead == Lookahead::kTraining && mode == ActMode::kExplore);
  if (!planner_ || !wanted) return;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!by_policy[i]) continue;
    planner_->Improve(turns[i].situation, mode == ActMode::kExplore, *base_,
                      CarryAs<Plan>(turns[i].carry), turns[i].out);
  }
}

void Msrl::Observe(const Experience& experience, Carry& carry) {
  base_->Observe(experience, carry);
  if (planner_) planner_->Observe(experience, CarryAs<Plan>(carry));
}

void Msrl::Update() {
  if (base_->memory().WarmUpEnds() && base_->critic().has_branch()) JudgeBranch();
  base_->Update();
  if (planner_) planner_->Update();
}

// What F says about the random steps, and how loudly: the last moment before it begins to learn.
void Msrl::JudgeBranch() {
  Critic& critic = base_->critic();
  const TransferPredictor predictor = PredictTransfer(critic.branch(), base_->memory().replay());
  metrics_.Add(kPredictor, predictor.correlation);
  metrics_.Add(kAmplitude, predictor.amplitude);
  notice_ = StrCat("transfer predictor over ", predictor.pairs,
                   " pairs of random steps: F follows "
                   "progress with correlation ",
                   Rounded(predictor.correlation), ", amplitude ", Rounded(predictor.amplitude));
  const double limit = settings_.max_amplitude;
  if (!took_over_ || limit == 0.0 || predictor.amplitude <= limit) return;
  ValueBranch scaled = critic.branch();
  scaled.Rescale(limit / predictor.amplitude, 0.0);
  critic.InitBranch(scaled);
  notice_ += StrCat(", scaled down to ", limit);
}

std::string Msrl::TakeNotice() { return std::exchange(notice_, {}); }

void Msrl::DrainMetrics(MetricSink& sink) {
  base_->DrainMetrics(sink);
  metrics_.Drain(sink);
  if (planner_) planner_->DrainMetrics(sink);
}

void Msrl::Visit(const Archive& state) {
  base_->Visit(state);
  state.Bool("took_over", took_over_);
  metrics_.Visit(state.Child("msrl_metrics"));
  if (planner_) planner_->Visit(state);
}

}  // namespace msrl
