// Matrix-space reinforcement learning: a base agent whose critic sees the prefix matrix Z,
//   Q(o, Z, a) = F(Z) + R(o, a, h(Z)),
// whose policy may see more than o (sight.h), and that plans in matrix space, over a library of
// segments or with a learned model. F and h may come from source pretraining. Without matrix and
// plan it is its base, bit for bit. docs/agents/msrl.md
#ifndef MSRL_AGENTS_MSRL_MSRL_H_
#define MSRL_AGENTS_MSRL_MSRL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/msrl/model_planner.h"
#include "msrl/agents/msrl/plan_contest.h"
#include "msrl/agents/msrl/planner.h"
#include "msrl/agents/msrl/sight.h"
#include "msrl/agents/msrl/transfer_predictor.h"

namespace msrl {

enum class InitMode { kPlain, kAnchored, kFrozen, kRandom };
constexpr auto EnumNames(InitMode) {
  return Names("plain", "anchored", "frozen", "random");  // a word
}

enum class PlanKind { kOff, kLibrary, kModel, kBoth };
constexpr auto EnumNames(PlanKind) { return Names("off", "library", "model", "both"); }

// What stands for F of the source: the branch, or a control that is as loud and as high.
enum class SourceRole { kBranch, kReversed, kConstant, kDistance };
constexpr auto EnumNames(SourceRole) { return Names("branch", "reversed", "constant", "distance"); }

struct MsrlSettings {
  bool matrix = true;
  LiftKind lift = LiftKind::kCompact;
  FeatureSet features = FeatureSet::kSelectedEndpoints;
  int branch_width = 64;
  int branch_layers = 2;
  bool branch_hidden = false;
  double branch_rate = 0.3;
  std::int64_t branch_steps = 8000;
  std::int64_t branch_fade = 8000;
  double branch_scale = 1.0;
  double max_amplitude = 0.5;
  double amplitude = 0.0;
  bool level = true;
  double height = 0.0;
  SourceRole source = SourceRole::kBranch;
  double residual_scale = 0.1;
  InitMode init_mode = InitMode::kPlain;
  double anchor = 1e-3;
  bool unaligned = false;
  SightSettings sight;
  PlanKind plan = PlanKind::kLibrary;
  double plan_trials = 0.25;
  double distil = 0.0;
  PlannerSettings planner;
  ModelPlanSettings model;

  bool plans_with_library() const { return plan == PlanKind::kLibrary || plan == PlanKind::kBoth; }
  bool plans_with_model() const { return plan == PlanKind::kModel || plan == PlanKind::kBoth; }

  template <typename V>
  void Fields(V&& visit) {
    visit("matrix", matrix, "whether the critic sees Z");
    visit("lift", lift, "what Z is made of", kCompactLifts);
    visit("features", features, "what networks see of Z");
    visit("branch_width", branch_width, "width of the branch's hidden layers",
          Between(1, BranchShape::kMaxWidth));
    visit("branch_layers", branch_layers, "hidden layers of the branch",
          Between(1, BranchShape::kMaxLayers));
    visit("branch_hidden", branch_hidden, "whether R sees h(Z)");
    visit("branch_rate", branch_rate, "learning rate of the branch, as a share of the critic's",
          NotNegative());
    visit("branch_steps", branch_steps,
          "steps after which the branch stays as it is; 0: it learns to the end", NotNegative());
    visit("branch_fade", branch_fade,
          "steps over which F leaves the critic once it has stopped learning; 0: it stays",
          NotNegative());
    visit("branch_scale", branch_scale, "factor of F when a branch is taken over", AnyNumber());
    visit(
        "max_amplitude", max_amplitude,
        "F of a branch that is taken over is scaled down to this amplitude over the random steps; "
        "0: never",
        NotNegative());
    visit("amplitude", amplitude,
          "F of a branch that is taken over is scaled to exactly this amplitude; 0: max_amplitude",
          NotNegative());
    visit(
        "level", level,
        "F of a branch that is taken over is shifted to 0 where random steps end an episode, or in "
        "the mean of all where none does");
    visit("height", height,
          "with level, where random steps end an episode: the mean of F over all of them, in "
          "amplitudes, so that every branch is as high; 0: what levelling its ends makes of it",
          AnyNumber());
    visit("source", source,
          "what stands for F of the source: the branch, its mirror image, its mean, or minus the "
          "distance to the goal (plans only, needs no branch)");
    visit("residual_scale", residual_scale, "factor of R's last layer at the start", AnyNumber());
    visit("init_mode", init_mode,
          "what a branch that is taken over does: learn on, stay near its source, stay as it is; "
          "or learn on with the weights of each layer shuffled");
    visit("anchor", anchor, "lambda of lambda |eta - eta_src|^2 (anchored)", NotNegative());
    visit("unaligned", unaligned, "take over a branch of another lift (a control)");
    sight.Fields(visit);
    visit(
        "plan", plan,
        "what actions are chosen by: the policy alone, futures from the library of segments, from "
        "the learned model, or both");
    visit(
        "plan_trials", plan_trials,
        "share of training episodes in which the other of policy and model shows what it earns; 0: "
        "the model always has the say",
        Between(0, 0.5));
    visit("distil", distil,
          "weight in the policy's loss of its squared distance from what the model's plans chose, "
          "where the critic prefers that; 0: none",
          NotNegative());
    planner.Fields(visit);
    model.Fields(visit);
  }
};

// All settings of the base and those of the matrix.
template <typename BaseConfig>
struct MsrlConfig : BaseConfig, MsrlSettings {
  template <typename V>
  void Fields(V&& visit) {
    BaseConfig::Fields(visit);
    MsrlSettings::Fields(visit);
  }
};

// What the base's critic gets; empty without the matrix. UserError on values out of range.
std::optional<BranchSettings> MakeBranchSettings(const MsrlSettings& settings);

// What the base is made for: the environment with all that the policy sees.
EnvSpec SeenSpec(const EnvSpec& spec, const MsrlSettings& settings);

// The shape of a value branch, or what a goal reading needs, as settings.
std::vector<std::string> SettingsForArtefact(const ArtefactHeader& header);

// What an episode is played with.
struct MsrlCarry : Carry {
  void Begin() override;
  void Visit(const Archive& state) override;

  std::unique_ptr<Plan> library;  // null without one
  std::optional<Seen> seen;       // of a policy that sees more than o
  bool contested = false;         // whether a model plans, so that both ways are compared
  // once the first choice of the policy is due:
  bool decided = false;
  bool planned = false;
  bool counts = false;  // in the contest: the whole episode is played this way
  double earned = 0.0;
  bool by_model = false;  // the action since the last step: false whenever a state is written
};

class Msrl : public Agent {
 public:
  // `gamma` is the base's discount.
  Msrl(const EnvSpec& spec, const MsrlSettings& settings, std::unique_ptr<CriticAgent> base,
       double gamma, std::uint64_t seed);

  // Also a library without a matrix critic needs the lift that it was made with.
  LiftKind lift_kind() const override {
    return planner_ ? planner_->library().config().lift->kind() : base_->lift_kind();
  }
  std::int64_t parameter_count() const override {
    return base_->parameter_count() + (planner_ ? planner_->parameter_count() : 0) +
           (model_ ? model_->parameter_count() : 0);
  }
  bool wants_simulator() const override { return planner_ && planner_->checks(); }
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  FeedForwardPolicy ExportPolicy() const override;
  KeptExperience Kept() const override { return base_->Kept(); }
  void Initialise(const Artefact& artefact) override;
  void TakeSegments(const SegmentLibrary& library, std::string_view source) override;
  std::string TakeNotice() override;
  void DrainMetrics(MetricSink& sink) override;
  void Visit(const Archive& state) override;

  const CriticAgent& base() const { return *base_; }
  const std::optional<Planner>& planner() const { return planner_; }
  const std::optional<ModelPlanner>& model() const { return model_; }
  const PlanContest& contest() const { return contest_; }

 private:
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  bool PlansThisTurn(const Turn& turn, ActMode mode) const;
  void Plan(const Turn& turn, const Situation& situation, ActMode mode);
  void JudgeBranch();
  void LetBranchGo();
  ValueBranch Placed(ValueBranch branch, const TransferPredictor& predictor, double factor) const;

  MsrlSettings settings_;
  std::uint64_t seed_;
  Sight sight_;
  std::unique_ptr<CriticAgent> base_;
  SightedValues values_;
  std::optional<Planner> planner_;
  std::optional<ModelPlanner> model_;
  PlanContest contest_;
  bool took_over_ = false;  // F comes from a file
  std::vector<Turn> seen_turns_;
  std::string notice_;
  MetricMeans metrics_;
};

// An Msrl over a Base with the constructor (spec, config, seed, branch settings).
template <typename Base, typename BaseConfig>
class MsrlOver : public Msrl {
 public:
  MsrlOver(const EnvSpec& spec, const MsrlConfig<BaseConfig>& config, std::uint64_t seed)
      : Msrl(spec, config,
             std::make_unique<Base>(SeenSpec(spec, config), config, seed,
                                    MakeBranchSettings(config)),
             config.gamma, seed) {}
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_MSRL_H_
