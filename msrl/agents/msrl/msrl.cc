#include "msrl/agents/msrl/msrl.h"

#include <array>
#include <cmath>
#include <utility>

#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"
#include "msrl/env/spec.h"

namespace msrl {
namespace {

enum Metric : std::size_t { kPredictor, kAmplitude, kFall, kReturn, kPlanned };

// What was learned is gone; how large the numbers of each layer are stays.
void ShuffleWeights(Rng& rng, Mlp& network) {
  for (const NamedTensor& tensor : network.tensors()) {
    Shuffle(rng, network.parameters().subspan(tensor.offset, tensor.size()));
  }
}

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
           double gamma, std::uint64_t seed)
    : settings_(RequireInRange(settings)),
      seed_(seed),
      sight_(spec, settings.sight, CompactLift(settings.lift),
             MatrixFeatureOptions::Of(settings.features)),
      base_(std::move(base)),
      values_(*base_, sight_),
      contest_(settings.plan_trials),
      metrics_({"transfer/predictor", "transfer/amplitude", "transfer/fall", "transfer/return",
                "plan/leads"}) {
  const Lift::Ptr lift = CompactLift(settings.lift);
  const auto features = MatrixFeatureOptions::Of(settings.features);
  const SightKind sight = settings.sight.kind;
  if (settings.plan != PlanKind::kOff && sight == SightKind::kFrames) {
    throw UserError("imagined states have no last steps: sight=frames needs plan=off");
  }
  if (settings.plans_with_library() && sight == SightKind::kReading) {
    throw UserError(
        "segments of the library have other goals than the one that is read: sight=reading needs "
        "plan=model or plan=off");
  }
  if (!settings.matrix && settings.plan != PlanKind::kOff && sight == SightKind::kMatrix) {
    throw UserError("plans know features of Z from the critic: sight=matrix needs matrix=true");
  }
  seen_turns_.reserve(kMaxTurns);
  if (settings.plans_with_library()) {
    planner_.emplace(spec, settings.planner, lift, features, settings.matrix, seed);
  }
  if (settings.plans_with_model()) {
    if (!settings.matrix) {
      throw UserError(StrCat("plan=", EnumName(settings.plan),
                             " composes futures onto the matrix: it needs matrix=true"));
    }
    model_.emplace(sight_.planned_spec(), settings.model, lift, features, gamma, seed,
                   sight == SightKind::kReading);
  }
  if (settings.source == SourceRole::kDistance && !model_) {
    throw UserError(StrCat("source=distance: plan=", EnumName(settings.plan),
                           " has no model at the end of whose plans it could stand"));
  }
  if (settings.distil > 0.0) {
    if (!model_) {
      throw UserError(StrCat("distil: plan=", EnumName(settings.plan),
                             " has no model whose plans could be taught"));
    }
    if (spec.action.kind == ActionKind::kDiscrete) {
      throw UserError("distil: with discrete actions there is no policy that could be taught");
    }
    base_->memory().BeginLessons(settings.distil);
  }
}

EnvSpec SeenSpec(const EnvSpec& spec, const MsrlSettings& settings) {
  return Sight(spec, settings.sight, CompactLift(settings.lift),
               MatrixFeatureOptions::Of(settings.features))
      .seen_spec();
}

std::vector<std::string> SettingsForArtefact(const ArtefactHeader& header) {
  if (header.kind == GoalReading::kKind) {
    return {"lift=" + header.lift_kind, "features=" + header.Shape("features"), "sight=reading",
            "plan=model"};
  }
  return {"branch_width=" + header.Shape("width"), "branch_layers=" + header.Shape("layers"),
          "features=" + header.Shape("features")};
}

void Msrl::Initialise(const Artefact& artefact) {
  if (artefact.header().kind == GoalReading::kKind) {
    sight_.SetReading(GoalReading::From(artefact, CompactLift(settings_.lift)->id()));
    return;
  }
  const auto& branch = base_->critic().branch_settings();
  if (!branch) {
    throw UserError(StrCat("without the matrix there is no branch for ", artefact.source()));
  }
  ValueBranch loaded =
      ValueBranch::From(artefact, branch->lift->id(),
                        settings_.unaligned ? Alignment::kUnaligned : Alignment::kAligned);
  if (settings_.source == SourceRole::kDistance) {
    throw UserError(
        StrCat("source=distance takes nothing over: it can't start from ", artefact.source()));
  }
  if (settings_.init_mode == InitMode::kRandom) {
    Rng rng(seed_, "random-branch");
    ShuffleWeights(rng, loaded.network());
  }
  loaded.Rescale(settings_.branch_scale, 0.0);
  base_->critic().InitBranch(loaded);
  if (model_) model_->SetSource(loaded);
  took_over_ = true;
}

void Msrl::TakeSegments(const SegmentLibrary& library, std::string_view source) {
  if (!planner_) {
    throw UserError(StrCat("plan=", EnumName(settings_.plan), " asks no library, it can't use ",
                           source, "; set plan=library or plan=both"));
  }
  planner_->Take(library, source);
}

void MsrlCarry::Begin() {
  if (library) library->Begin();
  if (seen) seen->Begin();
  decided = planned = counts = by_model = false;
  earned = 0.0;
}

void MsrlCarry::Visit(const Archive& state) {
  if (seen) seen->Visit(state.Child("seen"));
  if (library) library->Visit(state.Child("segments"));
  if (!contested) return;
  state.Bool("decided", decided);
  state.Bool("planned", planned);
  state.Bool("counts", counts);
  state.Double("earned", earned);
}

std::unique_ptr<Carry> Msrl::MakeCarry() const {
  auto carry = std::make_unique<MsrlCarry>();
  carry->contested = model_.has_value();
  if (planner_) carry->library = planner_->MakePlan();
  if (!sight_.plain()) carry->seen.emplace(sight_.MakeSeen());
  return carry;
}

// While learning, an episode is played one way from the first choice of the policy on.
bool Msrl::PlansThisTurn(const Turn& turn, ActMode mode) const {
  if (!model_ || !model_->ready()) return false;
  if (mode == ActMode::kEvaluate) return contest_.planning_leads();
  auto& carry = CarryAs<MsrlCarry>(turn.carry);
  if (!carry.decided) {
    carry.decided = true;
    carry.planned = turn.rng.Bernoulli(contest_.planned_share());
    carry.counts = turn.situation.step == 0;
  }
  return carry.planned;
}

void Msrl::ActInBatch(std::span<const Turn> turns, ActMode mode) {
  std::array<bool, kMaxTurns> by_policy{};
  std::span<const Turn> seen = turns;
  if (!sight_.plain()) {
    seen_turns_.clear();
    for (const Turn& turn : turns) {
      const Situation situation = sight_.See(turn.situation, *CarryAs<MsrlCarry>(turn.carry).seen);
      seen_turns_.push_back({situation, turn.carry, turn.rng, turn.out});
    }
    seen = seen_turns_;
  }
  base_->Choose(seen, mode, std::span(by_policy).first(turns.size()));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const Turn& turn = turns[i];
    if (by_policy[i]) Plan(turn, sight_.ForPlans(turn.situation, seen[i].situation), mode);
    if (!sight_.plain()) {
      sight_.NoteAction(turn.out.view(), *CarryAs<MsrlCarry>(turn.carry).seen);
    }
  }
}

// The library proposes, the model disposes.
void Msrl::Plan(const Turn& turn, const Situation& situation, ActMode mode) {
  const Lookahead lookahead = settings_.planner.lookahead;
  if (planner_ && (lookahead == Lookahead::kAlways ||
                   (lookahead == Lookahead::kTraining && mode == ActMode::kExplore))) {
    planner_->Improve(situation, mode == ActMode::kExplore, values_,
                      *CarryAs<MsrlCarry>(turn.carry).library, turn.rng, turn.out, turn.simulator);
  }
  if (!PlansThisTurn(turn, mode)) return;
  const bool overrides = model_->Improve(situation, mode, values_, turn.rng, turn.out);
  if (settings_.distil > 0.0) CarryAs<MsrlCarry>(turn.carry).by_model = overrides;
}

void Msrl::Observe(const Experience& experience, Carry& carry) {
  auto& own = CarryAs<MsrlCarry>(carry);
  if (sight_.plain()) {
    base_->Observe(experience, carry);
  } else {
    const Experience seen{.before = own.seen->before.View(experience.before.step),
                          .action = experience.action,
                          .action_code = experience.action_code,
                          .reward = experience.reward,
                          .scaled_reward = experience.scaled_reward,
                          .psi = experience.psi,
                          .after = sight_.SeeAfter(experience, *own.seen),
                          .terminated = experience.terminated,
                          .truncated = experience.truncated};
    base_->Observe(seen, carry);
  }
  if (settings_.distil > 0.0) {
    base_->memory().NoteLesson(std::exchange(own.by_model, false));
  }
  if (planner_) planner_->Observe(experience, *own.library);
  if (!own.decided) return;
  own.earned += experience.scaled_reward;
  if (!own.counts || !(experience.terminated || experience.truncated)) return;
  contest_.Note(own.planned, own.earned);
  metrics_.Add(kPlanned, contest_.planning_leads() ? 1.0 : 0.0);
}

void Msrl::Update() {
  if (base_->memory().WarmUpEnds() && base_->critic().has_branch()) JudgeBranch();
  LetBranchGo();
  base_->Update();
  if (planner_) planner_->Update();
  if (model_ && !base_->memory().IsWarmingUp()) model_->Update(base_->memory().replay());
}

// The branch learns, stays, and fades: what it brought must not stand in the way of what R learns.
void Msrl::LetBranchGo() {
  const std::int64_t since = base_->memory().steps() - settings_.branch_steps;
  if (settings_.branch_steps == 0 || since < 0 || !base_->critic().has_branch()) return;
  base_->critic().FreezeBranch();
  if (settings_.branch_fade == 0 || since == 0) return;
  const std::int64_t left = std::max<std::int64_t>(0, settings_.branch_fade - since);
  base_->critic().QuietBranch(static_cast<double>(left) / static_cast<double>(left + 1));
}

// What F says about the random steps, and how loudly: the last moment before it begins to learn.
void Msrl::JudgeBranch() {
  Critic& critic = base_->critic();
  const TransferPredictor predictor = PredictTransfer(critic.branch(), base_->memory().replay());
  metrics_.Add(kPredictor, predictor.correlation);
  metrics_.Add(kAmplitude, predictor.amplitude);
  metrics_.Add(kReturn, predictor.return_correlation);
  notice_ =
      StrCat("transfer predictor over ", predictor.pairs,
             " pairs of random steps: F follows progress with correlation ",
             Rounded(predictor.correlation), ", the return with ",
             Rounded(predictor.return_correlation), ", amplitude ", Rounded(predictor.amplitude));
  if (predictor.ends > 0) {
    metrics_.Add(kFall, predictor.fall);
    notice_ += StrCat(", changes by ", Rounded(predictor.fall), " amplitudes before an end (",
                      predictor.ends, " ends), is ", Rounded(predictor.height()),
                      " amplitudes higher than there");
  }
  if (model_ && (settings_.source == SourceRole::kDistance || sight_.has_reading())) {
    const double wanted = settings_.model.source_amplitude;
    const double natural = predictor.distance_amplitude;
    model_->SetDistance(wanted > 0.0 && natural > 0.0 ? wanted / natural : 1.0);
  }
  const SourceRole source = settings_.source;
  if (!took_over_ && (source == SourceRole::kReversed || source == SourceRole::kConstant)) {
    notice_ +=
        StrCat(", source=", EnumName(source), " changes nothing: no branch was taken over (init)");
  }
  if (!took_over_ || predictor.amplitude == 0.0) return;

  const double limit = settings_.max_amplitude;
  double factor = 1.0;
  if (settings_.amplitude > 0.0) {
    factor = settings_.amplitude / predictor.amplitude;
  } else if (limit > 0.0 && predictor.amplitude > limit) {
    factor = limit / predictor.amplitude;
  }
  base_->critic().InitBranch(Placed(critic.branch(), predictor, factor));
  notice_ += StrCat(", amplitude in the critic ", Rounded(factor * predictor.amplitude));
  if (!model_) return;
  const double wanted = settings_.model.source_amplitude;
  const double plan_factor = wanted > 0.0 ? wanted / predictor.amplitude : 1.0;
  model_->SetSource(Placed(model_->source(), predictor, plan_factor));
  notice_ += StrCat(", in plans ", Rounded(plan_factor * predictor.amplitude));
}

// The branch at the wanted loudness and level, or the control that stands for it.
ValueBranch Msrl::Placed(ValueBranch branch, const TransferPredictor& predictor,
                         double factor) const {
  double shift = 0.0;
  if (settings_.level) {
    const bool own = predictor.ends > 0 && settings_.height == 0.0;
    shift = -factor * (own ? predictor.end_value : predictor.mean);
    if (predictor.ends > 0) shift += settings_.height * factor * predictor.amplitude;
  }
  const double mean = factor * predictor.mean + shift;
  switch (settings_.source) {
    case SourceRole::kBranch:
    case SourceRole::kDistance:
      branch.Rescale(factor, shift);
      break;
    case SourceRole::kReversed:
      branch.Rescale(-factor, 2.0 * mean - shift);
      break;
    case SourceRole::kConstant:
      branch.Rescale(0.0, mean);
      break;
  }
  return branch;
}

FeedForwardPolicy Msrl::ExportPolicy() const {
  if (!sight_.plain()) {
    throw UserError(
        StrCat("its policy sees more than the observation (sight=", EnumName(sight_.kind()), ")"));
  }
  if (planner_ && settings_.planner.lookahead == Lookahead::kAlways) {
    throw UserError("it plans with its library in every step (lookahead=always)");
  }
  if (model_ && model_->ready() && contest_.planning_leads()) {
    throw UserError(StrCat("it plans with its model in every step (plan=", EnumName(settings_.plan),
                           "), which earned more than its policy alone"));
  }
  return base_->ExportPolicy();
}

std::string Msrl::TakeNotice() {
  if (!notice_.empty() || !planner_) return std::exchange(notice_, {});
  return planner_->TakeNotice();
}

void Msrl::DrainMetrics(MetricSink& sink) {
  base_->DrainMetrics(sink);
  metrics_.Drain(sink);
  if (planner_) planner_->DrainMetrics(sink);
  if (model_) model_->DrainMetrics(sink);
}

void Msrl::Visit(const Archive& state) {
  base_->Visit(state);
  state.Bool("took_over", took_over_);
  sight_.Visit(state.Child("reading"));
  metrics_.Visit(state.Child("msrl_metrics"));
  if (planner_) planner_->Visit(state);
  if (!model_) return;
  bool has_source = model_->has_source();
  state.Bool("has_source", has_source);
  if (has_source && !model_->has_source()) model_->SetSource(base_->critic().branch());
  model_->Visit(state);
  contest_.Visit(state.Child("contest"));
}

}  // namespace msrl
