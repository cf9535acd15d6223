// Matrix-space reinforcement learning: a base agent whose critic sees the prefix matrix Z,
//   Q(o, Z, a) = F(Z) + R(o, a, h(Z)),
// and that looks ahead over a library of segments. F and h may come from source pretraining.
// Without matrix and library it is its base, bit for bit. docs/agents/msrl.md
#ifndef MSRL_AGENTS_MSRL_MSRL_H_
#define MSRL_AGENTS_MSRL_MSRL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/msrl/planner.h"

namespace msrl {

enum class InitMode { kPlain, kAnchored, kFrozen, kRandom };
constexpr auto EnumNames(InitMode) {
  return Names("plain", "anchored", "frozen", "random");  // a word
}

struct MsrlSettings {
  bool matrix = true;
  LiftKind lift = LiftKind::kCompact;
  FeatureSet features = FeatureSet::kSelectedEndpoints;
  int branch_width = 64;
  int branch_layers = 2;
  bool branch_hidden = false;
  double branch_rate = 0.3;
  double branch_scale = 1.0;
  double max_amplitude = 0.5;
  double residual_scale = 0.1;
  InitMode init_mode = InitMode::kPlain;
  double anchor = 1e-3;
  bool unaligned = false;
  PlannerSettings planner;

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
    visit("branch_scale", branch_scale, "factor of F when a branch is taken over", AnyNumber());
    visit(
        "max_amplitude", max_amplitude,
        "F of a branch that is taken over is scaled down to this amplitude over the random steps; "
        "0: never",
        NotNegative());
    visit("residual_scale", residual_scale, "factor of R's last layer at the start", AnyNumber());
    visit("init_mode", init_mode,
          "what a branch that is taken over does: learn on, stay near its source, stay as it is; "
          "or random weights in its place");
    visit("anchor", anchor, "lambda of lambda |eta - eta_src|^2 (anchored)", NotNegative());
    visit("unaligned", unaligned, "take over a branch of another lift (a control)");
    planner.Fields(visit);
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

// The shape of a value branch as settings.
std::vector<std::string> SettingsForBranch(const ArtefactHeader& header);

class Msrl : public Agent {
 public:
  Msrl(const EnvSpec& spec, const MsrlSettings& settings, std::unique_ptr<CriticAgent> base,
       std::uint64_t seed);

  // Also a library without a matrix critic needs the lift that it was made with.
  LiftKind lift_kind() const override {
    return planner_ ? planner_->library().config().lift->kind() : base_->lift_kind();
  }
  std::int64_t parameter_count() const override {
    return base_->parameter_count() + (planner_ ? planner_->parameter_count() : 0);
  }
  // The planner's; bases have none.
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  void Initialise(const Artefact& artefact) override;
  std::string TakeNotice() override;
  void DrainMetrics(MetricSink& sink) override;
  void Visit(const Archive& state) override;

  const CriticAgent& base() const { return *base_; }
  const std::optional<Planner>& planner() const { return planner_; }

 private:
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  void JudgeBranch();

  MsrlSettings settings_;
  std::unique_ptr<CriticAgent> base_;
  std::optional<Planner> planner_;
  bool took_over_ = false;  // F comes from a file
  std::string notice_;
  MetricMeans metrics_;
};

// An Msrl over a Base with the constructor (spec, config, seed, branch settings).
template <typename Base, typename BaseConfig>
class MsrlOver : public Msrl {
 public:
  MsrlOver(const EnvSpec& spec, const MsrlConfig<BaseConfig>& config, std::uint64_t seed)
      : Msrl(spec, config, std::make_unique<Base>(spec, config, seed, MakeBranchSettings(config)),
             seed) {}
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_MSRL_H_
